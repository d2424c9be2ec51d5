/* Asks for an option that it did not declare. */
#define PASS_BODY                                                    \
  kiln_attr option;                                                  \
  kiln_error *error = host->pass->option(call, "depth", 5, &option); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
