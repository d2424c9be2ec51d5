/* Reads, changes, compiles and runs the deepest graphs and expressions that there may be on a thread of 64 KiB of
 * stack. */
#include <kiln/dlpack.h>
#include <kiln/kiln.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { stack_bytes = 64 << 10, deepest_graph = 29, deepest_parentheses = 190 };

static char json[1 << 16];
static int failures;

static void check(kiln_error *error, const char *what) {
  if (!error) return;
  kiln_text message;
  kiln_error_message(error, &message);
  printf("%s: %.*s\n", what, (int)message.size, message.data);
  kiln_error_destroy(error);
  ++failures;
}

/* y = -x, in a graph that is called by a graph, and so on; and n + 1 - 1 in many parentheses. */
static void write_json(void) {
  static const char in[] = "\"inputs\": [{\"name\": \"x\", \"type\": {\"dtype\": \"f32\", \"shape\": [\"n\"]}}], ";
  static const char out[] = "\"outputs\": [{\"name\": \"y\", \"value\": \"y\"}]";
  char *at = json;
  at += sprintf(at, "{\"kiln\": 1, %s\"graphs\": {", in);
  for (int i = 0; i < deepest_graph; ++i) {
    at += sprintf(at, "%s\"g%d\": {%s\"nodes\": [{\"name\": \"y\", ", i ? ", " : "", i, in);
    if (i > 0) at += sprintf(at, "\"op\": \"call\", \"inputs\": [\"x\"], \"attrs\": {\"graph\": \"g%d\"}}], ", i - 1);
    if (i == 0) at += sprintf(at, "\"op\": \"neg\", \"inputs\": [\"x\"]}], ");
    at += sprintf(at, "%s}", out);
  }
  at += sprintf(
      at,
      "}, \"nodes\": [{\"name\": \"called\", \"op\": \"call\", \"inputs\": [\"x\"], \"attrs\": {\"graph\": \"g%d\"}}, ",
      deepest_graph - 1);
  at += sprintf(at, "{\"name\": \"y\", \"op\": \"reshape\", \"inputs\": [\"called\"], \"attrs\": {\"shape\": [\"");
  for (int i = 0; i < deepest_parentheses; ++i) *at++ = '(';
  at += sprintf(at, "n + 1");
  for (int i = 0; i < deepest_parentheses; ++i) *at++ = ')';
  sprintf(at, " - 1\"]}}], %s}", out);
}

static void run(kiln_context *context, const kiln_graph *graph, const char *backend) {
  kiln_options *options = NULL;
  kiln_executable *executable = NULL;
  kiln_call *call = NULL;
  float x[4] = {1, 2, 3, 4}, y[4] = {0};
  int64_t n = 4;
  DLTensor in;
  memset(&in, 0, sizeof in);
  in.data = x;
  in.device.device_type = kDLCPU;
  in.ndim = 1;
  in.dtype.code = kDLFloat;
  in.dtype.bits = 32;
  in.dtype.lanes = 1;
  in.shape = &n;
  DLTensor out = in;
  out.data = y;
  const DLTensor *args[] = {&in, &out};
  check(kiln_options_create(&options), "options");
  check(kiln_options_set_text(options, "backend", 7, backend, strlen(backend)), "option");
  check(kiln_compile(context, graph, options, &executable, NULL), "compile");
  check(kiln_call_create(executable, &call), "call");
  check(kiln_call_run(call, args, 2, NULL), "run");
  if (y[0] != -1 || y[3] != -4) {
    printf("%s: got %g … %g, expected -1 … -4\n", backend, (double)y[0], (double)y[3]);
    ++failures;
  }
  kiln_call_destroy(call);
  kiln_executable_destroy(executable);
  kiln_options_destroy(options);
}

static void *work(void *user) {
  (void)user;
  kiln_options *options = NULL;
  kiln_context *context = NULL;
  kiln_graph *graph = NULL, *again = NULL;
  kiln_edit *edit = NULL;
  kiln_report *report = NULL;
  kiln_blob *text = NULL;
  check(kiln_options_create(&options), "options");
  check(kiln_options_set_text(options, "cache", 5, "off", 3), "option");
  check(kiln_context_create(options, NULL, &context), "context");
  check(kiln_graph_parse(context, json, strlen(json), &graph), "parse");
  check(kiln_graph_describe(graph, &report), "describe");
  check(kiln_graph_write(graph, "json", 4, &text), "write");
  check(kiln_edit_begin(context, graph, &edit), "edit");
  check(kiln_edit_finish(edit, &again), "finish");
  run(context, again, "cpu");
  run(context, again, "reference");
  kiln_blob_destroy(text);
  kiln_report_destroy(report);
  kiln_edit_destroy(edit);
  kiln_graph_destroy(again);
  kiln_graph_destroy(graph);
  kiln_context_destroy(context);
  kiln_options_destroy(options);
  return NULL;
}

int main(void) {
  write_json();
  pthread_attr_t small;
  pthread_attr_init(&small);
  if (pthread_attr_setstacksize(&small, stack_bytes) != 0) return 2;
  pthread_t thread;
  if (pthread_create(&thread, &small, work, NULL) != 0) return 2;
  pthread_join(thread, NULL);
  return failures == 0 ? 0 : 1;
}
