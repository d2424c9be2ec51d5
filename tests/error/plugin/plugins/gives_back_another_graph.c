/* Changes the signature: the graph that takes the edit's place has none of it. */
#define PASS_BODY                                                                 \
  kiln_edit *empty = NULL;                                                        \
  kiln_graph *graph = NULL;                                                       \
  kiln_error *error = host->edit->begin(host->pass->context(call), NULL, &empty); \
  if (!error) error = host->edit->finish(empty, &graph);                          \
  host->edit->destroy(empty);                                                     \
  if (!error) error = host->pass->replace_graph(call, graph);                     \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
