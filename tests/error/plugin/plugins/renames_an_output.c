/* Changes the signature: an output has another name. */
#define PASS_BODY                                                                           \
  const kiln_value values[2] = {value_of(host, edit, "sum"), value_of(host, edit, "once")}; \
  const kiln_text names[2] = {{"y", 1}, {"other", 5}};                                      \
  kiln_error *error = host->edit->outputs(edit, values, names, 2);                          \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
