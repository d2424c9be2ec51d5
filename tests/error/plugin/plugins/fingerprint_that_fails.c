/* Cannot tell what its result depends on. */
#include <kiln/plugin.h>
#include <stddef.h>
static kiln_error *fingerprint(void *user, kiln_pass_call *call) {
  const kiln_host *host = (const kiln_host *)user;
  (void)call;
  return host->error->create(KILN_IO, "no file of costs", 16, NULL);
}
#define CHANGE_PASS pass.fingerprint = fingerprint
#include "../frame.h"
