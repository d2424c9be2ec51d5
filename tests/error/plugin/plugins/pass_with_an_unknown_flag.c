/* Registers a pass with a flag that this version does not know. */
#define CHANGE_PASS pass.flags = 64
#include "../frame.h"
