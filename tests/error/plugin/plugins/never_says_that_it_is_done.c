/* Changes the graph and returns, as a callback does that died quietly. */
#define PASS_BODY                                                                           \
  const kiln_value values[2] = {value_of(host, edit, "sum"), value_of(host, edit, "once")}; \
  return host->edit->outputs(edit, values, NULL, 2)
#include "../frame.h"
