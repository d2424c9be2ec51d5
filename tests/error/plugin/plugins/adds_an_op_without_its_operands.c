/* Too few operands. */
#define PASS_BODY                                                                         \
  kiln_value result = 0;                                                                  \
  kiln_error *error = add_node(host, call, "add", value_of(host, edit, "x"), 0, &result); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
