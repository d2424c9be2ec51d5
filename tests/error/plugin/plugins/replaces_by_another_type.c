/* Puts a value of another shape in the place of one. */
#define PASS_BODY                                                                                        \
  kiln_error *error = host->edit->replace(edit, value_of(host, edit, "sum"), value_of(host, edit, "w")); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
