/* Storage shared between an output and an input that was not before. */
#define PASS_BODY                                                                                         \
  kiln_error *error = host->edit->replace(edit, value_of(host, edit, "once"), value_of(host, edit, "x")); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
