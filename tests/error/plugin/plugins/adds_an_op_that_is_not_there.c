/* A number that is no op's. */
#define PASS_BODY                                                                    \
  kiln_node node = 0;                                                                \
  kiln_error *error = host->edit->add(edit, 9999, NULL, 0, NULL, 0, NULL, 0, &node); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
