/* Reads, changes, compiles and runs the deepest graphs and expressions that there may be on a thread of 64 KiB of
 * stack, in a child that such a thread forks, and where the first thread has as much left. */
#include <kiln/kiln.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { stack_bytes = 64 << 10, large_bytes = 1 << 20, deepest_graph = 32, deepest_parentheses = 190 };

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

/* The child's only thread has this stack, and is the first of its process. */
static void *work_in_child(void *user) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    failures = 0;
    work(user);
    fflush(stdout);
    _exit(failures == 0 ? 0 : 1);
  }
  if (child > 0 && waitpid(child, &status, 0) == child && status == 0) return NULL;
  printf("the child ended with status %#x\n", (unsigned)status);
  ++failures;
  return NULL;
}

static int run_on_small_stack(void *(*body)(void *)) {
  pthread_attr_t small;
  pthread_t thread;
  pthread_attr_init(&small);
  if (pthread_attr_setstacksize(&small, stack_bytes) != 0) return 1;
  if (pthread_create(&thread, &small, body, NULL) != 0) return 1;
  return pthread_join(thread, NULL);
}

/* On the first stack, of which this leaves 64 KiB. */
__attribute__((noinline)) static void work_deep_down(void) {
  volatile char taken[large_bytes - stack_bytes];
  taken[0] = 0;
  work((void *)&taken[0]);
}

static int limit_first_stack(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_STACK, &limit) != 0) return 1;
  limit.rlim_cur = (size_t)((char *)getauxval(AT_EXECFN) - (char *)&limit) + large_bytes;
  return setrlimit(RLIMIT_STACK, &limit);
}

int main(void) {
  write_json();
  if (run_on_small_stack(work) != 0 || run_on_small_stack(work_in_child) != 0) return 2;
  if (limit_first_stack() != 0) return 2;
  work_deep_down();
  return failures == 0 ? 0 : 1;
}
