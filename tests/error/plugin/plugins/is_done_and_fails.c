/* Says that it is done, then fails: it failed. */
#define PASS_BODY                                  \
  host->error->destroy(host->pass->done(call, 1)); \
  return host->error->create(KILN_IO, "no such file", 12, NULL)
#include "../frame.h"
