/* Changes the signature: a symbol has another range. */
#define PASS_BODY                                                \
  const kiln_symbol symbol = {sizeof symbol, 0, 5, 0, 0, 0};     \
  kiln_error *error = host->edit->symbol(edit, "n", 1, &symbol); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
