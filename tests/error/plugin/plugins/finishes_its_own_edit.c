/* Finishes the edit that is its host's to finish. */
#define PASS_BODY                                       \
  kiln_graph *graph = NULL;                             \
  kiln_error *error = host->edit->finish(edit, &graph); \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
