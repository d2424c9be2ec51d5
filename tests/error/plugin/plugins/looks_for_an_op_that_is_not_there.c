/* A name that is no op's. */
#define PASS_BODY                                                                            \
  kiln_value result = 0;                                                                     \
  kiln_error *error = add_node(host, call, "negate", value_of(host, edit, "x"), 0, &result); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
