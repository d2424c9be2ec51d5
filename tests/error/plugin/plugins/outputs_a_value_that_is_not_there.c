/* A dangling output. */
#define PASS_BODY                                                                    \
  const kiln_value values[2] = {value_of(host, edit, "sum"), (kiln_value)999 << 32}; \
  kiln_error *error = host->edit->outputs(edit, values, NULL, 2);                    \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
