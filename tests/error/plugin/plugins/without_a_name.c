/* A note without a name. */
#define NOTE_NAME ""
#include "../frame.h"
