/* Mutation outside the epilogue: overwrites a weight. */
#define PASS_BODY                                                                                                 \
  kiln_value copy = 0;                                                                                            \
  kiln_error *error = add_node(host, call, "copy_", value_of(host, edit, "w"), value_of(host, edit, "w"), &copy); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
