/* Registers a pass by the name of a built-in one. */
#define CHANGE_PASS  \
  pass.name = "cse"; \
  pass.name_size = 3
#include "../frame.h"
