/* Registers an early pass of a late stage. */
#define CHANGE_PASS pass.timing = KILN_TIMING_EARLY
#include "../frame.h"
