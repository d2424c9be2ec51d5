/* Changes the signature: there is an input more. */
#define PASS_BODY                                                                       \
  const kiln_dim dim = {2, 0};                                                          \
  const kiln_type type = {sizeof type, KILN_F32, 1, KILN_LAYOUT_ROW_MAJOR, &dim, NULL}; \
  kiln_value value = 0;                                                                 \
  kiln_error *error = host->edit->input(edit, "more", 4, &type, &value);                \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
