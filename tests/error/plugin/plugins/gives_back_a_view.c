/* Hands over the view of its edit as if it were a graph. */
#define PASS_BODY                                                                            \
  kiln_error *error = host->pass->replace_graph(call, (kiln_graph *)host->edit->view(edit)); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
