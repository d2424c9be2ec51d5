/* Declares an option of a kind that is not there. */
#define CHANGE_PASS                                             \
  static const int64_t one = 1;                                 \
  static const kiln_attr option = {"depth", 5, 99, 0, 1, &one}; \
  pass.options = &option;                                       \
  pass.option_count = 1
#include "../frame.h"
