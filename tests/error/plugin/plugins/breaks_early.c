/* Breaks the signature before the key is made. */
#define CHANGE_PASS                 \
  pass.stage = KILN_STAGE_PRE_GRAD; \
  pass.timing = KILN_TIMING_EARLY
#define PASS_BODY                                                  \
  const kiln_value value = value_of(host, edit, "sum");            \
  const kiln_text name = {"y", 1};                                 \
  kiln_error *error = host->edit->outputs(edit, &value, &name, 1); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
