/* Storage shared between outputs that was not before. */
#define PASS_BODY                                                 \
  const kiln_value once = value_of(host, edit, "once");           \
  const kiln_value values[2] = {once, once};                      \
  kiln_error *error = host->edit->outputs(edit, values, NULL, 2); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
