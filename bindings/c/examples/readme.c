#include <kiln/kiln.h>
#include <stdio.h>
static const char json[] =
    "{\"kiln\": 1, \"inputs\": [{\"name\": \"x\", \"type\": {\"dtype\": \"f32\", \"shape\": [\"n\"]}}],"
    " \"nodes\": [{\"name\": \"y\", \"op\": \"silu\", \"inputs\": [\"x\"]}], \"outputs\": [{\"name\": \"y\", \"value\": \"y\"}]}";
int main(void) {
  float x[4] = {-1, 0, 1, 2}, y[4];
  int64_t n = 4; /* one compilation serves every n */
  DLTensor in = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0}, out = {y, in.device, 1, in.dtype, &n, NULL, 0};
  const DLTensor *args[] = {&in, &out};
  kiln_context *context; kiln_graph *graph; kiln_executable *program; kiln_call *call;
  kiln_error *error = kiln_context_create(NULL, NULL, &context);
  if (!error) error = kiln_graph_parse(context, json, sizeof json - 1, &graph);
  if (!error) error = kiln_compile(context, graph, NULL, &program, NULL); /* or maps it from the cache */
  if (!error) error = kiln_call_create(program, &call);
  if (!error) error = kiln_call_run(call, args, 2, NULL);
  if (!error) printf("%.4f %.4f %.4f %.4f\n", y[0], y[1], y[2], y[3]);
  return error != NULL; /* what one keeps longer has its kiln_…_destroy, in any order */
}
