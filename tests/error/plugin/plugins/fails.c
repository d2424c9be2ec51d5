/* Fails with a message and a cause of its own. */
#define PASS_BODY                                                             \
  kiln_error *cause = host->error->create(KILN_IO, "no such file", 12, NULL); \
  (void)call;                                                                 \
  return host->error->create(KILN_CORRUPT, "the table of costs is damaged", 29, cause)
#include "../frame.h"
