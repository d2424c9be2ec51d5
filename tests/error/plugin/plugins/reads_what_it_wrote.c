/* Mutation outside the epilogue: computes with what a copy_ yields. */
#define PASS_BODY                                                                                                    \
  kiln_value copy = 0, result = 0;                                                                                   \
  kiln_error *error = add_node(host, call, "copy_", value_of(host, edit, "x"), value_of(host, edit, "once"), &copy); \
  if (!error) error = add_node(host, call, "neg", copy, 0, &result);                                                 \
  if (!error) error = host->edit->replace(edit, value_of(host, edit, "twice"), result);                              \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
