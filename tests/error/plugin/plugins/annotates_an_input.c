/* An annotation on what is no op node. */
#define PASS_BODY                                                                            \
  static const int64_t one = 1;                                                              \
  const kiln_attr attr = {"mine", 4, KILN_ATTR_I64, 0, 1, &one};                             \
  kiln_error *error = host->edit->annotate(edit, value_of(host, edit, "x") >> 32, &attr, 1); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
