/* Registers a pass of a stage that does not run yet. */
#define CHANGE_PASS pass.stage = KILN_STAGE_JOINT
#include "../frame.h"
