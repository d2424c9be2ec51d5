/* A plugin of which two builds are told apart by what their pass does: the node "negated" becomes REPLACEMENT of its
 * operand. It reports how often the library was set up as its rewrites. */
#define NOTE_NAME "replaced"
#ifndef FLAGS
#define FLAGS 0
#endif
#define CHANGE_PASS pass.name = "replace", pass.name_size = 7, pass.flags = FLAGS
#define SETUP_BODY \
  ++setups;        \
  return register_pass(host, context)
#define PASS_BODY                                                                \
  const kiln_value from = value_of(host, edit, "negated");                       \
  const kiln_value x = host->node->input(host->edit->view(edit), from >> 32, 0); \
  kiln_value to = 0;                                                             \
  kiln_error *error = add_node(host, call, replacement, x, 0, &to);              \
  if (!error) error = host->edit->replace(edit, from, to);                       \
  return error ? error : host->pass->done(call, (uint64_t)setups)

static const char *replacement = REPLACEMENT; /* an address in the data: the loader writes it */
static int setups;                            /* state, each library's own */

#include "../../error/plugin/frame.h"
