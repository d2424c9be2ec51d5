/* A name that another node has. */
#define PASS_BODY                                                                   \
  const kiln_value x = value_of(host, edit, "x");                                   \
  kiln_op neg = 0;                                                                  \
  kiln_node node = 0;                                                               \
  kiln_error *error = host->op->find(host->pass->context(call), "neg", 3, &neg);    \
  if (!error) error = host->edit->add(edit, neg, "once", 4, &x, 1, NULL, 0, &node); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
