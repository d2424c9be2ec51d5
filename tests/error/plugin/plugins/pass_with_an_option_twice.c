/* Declares one option twice. */
#define CHANGE_PASS                                                        \
  static const int64_t one = 1;                                            \
  static const kiln_attr option = {"depth", 5, KILN_ATTR_I64, 0, 1, &one}; \
  const kiln_attr twice[2] = {option, option};                             \
  pass.options = twice;                                                    \
  pass.option_count = 2
#include "../frame.h"
