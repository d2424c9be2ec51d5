/* Lets a node use what depends on it. */
#define PASS_BODY                                                                                           \
  kiln_error *error = host->edit->replace(edit, value_of(host, edit, "once"), value_of(host, edit, "sum")); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
