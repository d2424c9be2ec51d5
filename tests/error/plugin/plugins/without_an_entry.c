/* Does not export the one symbol. */
#define WITHOUT_ENTRY
#include "../frame.h"
