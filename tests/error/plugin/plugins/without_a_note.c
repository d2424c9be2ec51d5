/* A library without the note. */
#define WITHOUT_NOTE
#include "../frame.h"
