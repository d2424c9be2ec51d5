/* Mutation outside the epilogue: overwrites the result of a node. */
#define PASS_BODY                                                                                        \
  kiln_value copy = 0;                                                                                   \
  kiln_error *error =                                                                                    \
      add_node(host, call, "copy_", value_of(host, edit, "once"), value_of(host, edit, "twice"), &copy); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
