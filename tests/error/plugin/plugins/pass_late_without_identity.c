/* Registers a late pass without a UUID. */
#define CHANGE_PASS \
  pass.uuid = NULL; \
  pass.timing = KILN_TIMING_LATE
#include "../frame.h"
