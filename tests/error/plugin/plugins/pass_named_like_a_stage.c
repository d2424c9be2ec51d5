/* Registers a pass by the name of a stage. */
#define CHANGE_PASS    \
  pass.name = "lower"; \
  pass.name_size = 5
#include "../frame.h"
