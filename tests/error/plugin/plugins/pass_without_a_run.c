/* Registers a pass that does nothing. */
#define CHANGE_PASS pass.run = NULL
#include "../frame.h"
