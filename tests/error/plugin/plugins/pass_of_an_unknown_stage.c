/* Registers a pass of a stage that is not there. */
#define CHANGE_PASS pass.stage = 9
#include "../frame.h"
