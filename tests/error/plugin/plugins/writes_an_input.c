/* Changes the signature: an input is overwritten that was only read. */
#define PASS_BODY                                                                                                     \
  kiln_value copy = 0;                                                                                                \
  kiln_error *error = add_node(host, call, "copy_", value_of(host, edit, "x"), value_of(host, edit, "twice"), &copy); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
