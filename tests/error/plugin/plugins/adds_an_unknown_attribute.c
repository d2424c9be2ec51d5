/* An attribute that the op does not have. */
#define PASS_BODY                                                                        \
  static const int64_t one = 1;                                                          \
  const kiln_attr attr = {"axis", 4, KILN_ATTR_I64, 0, 1, &one};                         \
  const kiln_value x = value_of(host, edit, "x");                                        \
  kiln_op softmax = 0;                                                                   \
  kiln_node node = 0;                                                                    \
  kiln_error *error = host->op->find(host->pass->context(call), "softmax", 7, &softmax); \
  if (!error) error = host->edit->add(edit, softmax, NULL, 0, &x, 1, &attr, 1, &node);   \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
