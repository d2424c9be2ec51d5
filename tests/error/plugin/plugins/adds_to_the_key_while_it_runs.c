/* Only its fingerprint may. */
#define PASS_BODY                                                \
  kiln_error *error = host->pass->fingerprint_add(call, "x", 1); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
