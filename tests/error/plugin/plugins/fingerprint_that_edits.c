/* Changes the graph while the key is made. */
#include <kiln/plugin.h>
#include <stddef.h>
static kiln_error *fingerprint(void *user, kiln_pass_call *call) {
  const kiln_host *host = (const kiln_host *)user;
  const kiln_dim dim = {2, 0};
  const kiln_type type = {sizeof type, KILN_F32, 1, KILN_LAYOUT_ROW_MAJOR, &dim, NULL};
  kiln_value value = 0;
  return host->edit->input(host->pass->edit(call), "more", 4, &type, &value);
}
#define CHANGE_PASS pass.fingerprint = fingerprint
#include "../frame.h"
