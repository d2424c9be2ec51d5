/* Ends a scope that it did not begin. */
#define PASS_BODY                                       \
  kiln_error *error = host->edit->scope(edit, NULL, 0); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
