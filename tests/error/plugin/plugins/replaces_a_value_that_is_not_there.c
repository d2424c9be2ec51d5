/* A dangling replacement. */
#define PASS_BODY                                                                                    \
  kiln_error *error = host->edit->replace(edit, value_of(host, edit, "sum"), (kiln_value)999 << 32); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
