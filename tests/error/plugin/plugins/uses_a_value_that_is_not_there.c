/* A dangling operand. */
#define PASS_BODY                                                                     \
  kiln_value result = 0;                                                              \
  kiln_error *error = add_node(host, call, "neg", (kiln_value)999 << 32, 0, &result); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
