/* first_logits MODEL_FOLDER CACHE LENGTH [WARM_CALLS]: loads a model, runs one row of LENGTH tokens, and ends.
 *
 * With WARM_CALLS, runs that often again and prints the seconds of the fastest. Without, all must come from CACHE. */
#define _POSIX_C_SOURCE 200809L
#include <kiln/kiln.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void check(kiln_error *error) {
  if (!error) return;
  kiln_text message;
  kiln_error_message(error, &message);
  fprintf(stderr, "first_logits: %.*s\n", (int)message.size, message.data);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char **argv) {
  static char json[1 << 20], path[4096];
  static int64_t tokens[4096];
  if (argc < 4) return 2;
  snprintf(path, sizeof path, "%s/graph.json", argv[1]);
  FILE *file = fopen(path, "rb");
  if (!file) return 1;
  const size_t size = fread(json, 1, sizeof json, file);
  fclose(file);

  kiln_options *options, *compile_options;
  kiln_context *context;
  kiln_graph *graph;
  kiln_executable *program;
  kiln_tensors *weights;
  kiln_call *call;
  check(kiln_options_create(&options));
  check(kiln_options_set_text(options, "cache", 5, argv[2], strlen(argv[2])));
  check(kiln_context_create(options, NULL, &context));
  check(kiln_graph_parse(context, json, size, &graph));
  check(kiln_options_create(&compile_options));
  check(kiln_options_set_bool(compile_options, "require_hit", 11, argc == 4));
  check(kiln_compile(context, graph, compile_options, &program, NULL));
  check(kiln_call_create(program, &call));
  snprintf(path, sizeof path, "%s/weights.safetensors", argv[1]);
  check(kiln_tensors_open(path, strlen(path), &weights));
  for (uint64_t i = 0; i < kiln_tensors_count(weights); ++i) {
    kiln_text name;
    const DLTensor *tensor;
    uint32_t slot;
    check(kiln_tensors_at(weights, i, &name, &tensor));
    check(kiln_call_slot(call, name.data, name.size, &slot));
    check(kiln_call_bind(call, slot, tensor));
  }
  int64_t shape[2] = {1, atoi(argv[3])};
  for (int64_t i = 0; i < shape[1] && i < 4096; ++i) tokens[i] = i % 60;
  const DLTensor input = {tokens, {kDLCPU, 0}, 2, {kDLInt, 64, 1}, shape, NULL, 0};
  const DLTensor *args[] = {&input};
  check(kiln_call_run(call, args, 1, NULL));
  uint32_t logits_slot;
  DLManagedTensorVersioned *logits;
  check(kiln_call_slot(call, "logits", 6, &logits_slot));
  check(kiln_call_take(call, logits_slot, &logits));
  for (int64_t i = 0; i < shape[1]; ++i)
    if (!isfinite(((const float *)logits->dl_tensor.data)[i * logits->dl_tensor.shape[2]])) return 1;
  logits->deleter(logits);
  double fastest = 1e30;
  for (int i = 0; argc > 4 && i < atoi(argv[4]); ++i) {
    const double begin = now();
    check(kiln_call_run(call, args, 1, NULL));
    const double elapsed = now() - begin;
    if (elapsed < fastest) fastest = elapsed;
  }
  if (argc > 4) printf("%.9f\n", fastest);
  kiln_context_destroy(context); /* waits for what is published; the rest ends with the process */
  return 0;
}
