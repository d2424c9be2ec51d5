/* Setup fails after it has registered a pass. */
#define SETUP_BODY                                    \
  host->error->destroy(register_pass(host, context)); \
  return host->error->create(KILN_INVALID_ARGUMENT, "the licence has expired", 23, NULL)
#include "../frame.h"
