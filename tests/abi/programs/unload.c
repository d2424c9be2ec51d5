/* A host that opens libkiln, computes on several threads, and closes the library while its workers live: what was made
 * from it is still there, and so is the library. Usage: unload LIBRARY. Links nothing of Kiln. */
#define _POSIX_C_SOURCE 199309L
#include <dlfcn.h>
#include <kiln/kiln.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char graph_text[] =
    "{\"kiln\": 1, \"inputs\": [{\"name\": \"x\", \"type\": {\"dtype\": \"f32\", \"shape\": [\"n\"]}}],"
    " \"nodes\": [{\"name\": \"y\", \"op\": \"neg\", \"inputs\": [\"x\"]}], \"outputs\": [{\"name\": \"y\", \"value\": "
    "\"y\"}]}";

static void *library;

static void *find(const char *name) {
  void *symbol = dlsym(library, name);
  if (!symbol) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return symbol;
}

static void check(kiln_error *error, const char *what) {
  if (!error) return;
  fprintf(stderr, "%s failed\n", what);
  exit(1);
}

#define CALL(name, ...) check(((__typeof__(&name))find(#name))(__VA_ARGS__), #name)
#define DESTROY(name, handle) ((__typeof__(&name))find(#name))(handle)

static void pause_ms(long milliseconds) {
  struct timespec time = {0, milliseconds * 1000000};
  nanosleep(&time, NULL);
}

int main(int argc, char **argv) {
  enum { count = 1 << 20 };
  float *x = malloc(count * sizeof *x), *y = malloc(count * sizeof *y);
  int64_t n = count;
  DLTensor in = {0}, out;
  const DLTensor *arguments[2] = {&in, &out};
  kiln_options *options;
  kiln_context *context;
  kiln_graph *graph;
  kiln_executable *executable;
  kiln_call *call;
  int i;
  if (argc != 2 || !x || !y || !(library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL))) {
    fprintf(stderr, "cannot begin: %s\n", argc == 2 ? dlerror() : "usage: unload LIBRARY");
    return 1;
  }
  for (i = 0; i < count; ++i) x[i] = (float)i;
  in.device.device_type = kDLCPU;
  in.ndim = 1;
  in.dtype.code = kDLFloat;
  in.dtype.bits = 32;
  in.dtype.lanes = 1;
  in.shape = &n;
  out = in;
  in.data = x;
  out.data = y;

  CALL(kiln_options_create, &options);
  CALL(kiln_options_set_i64, options, "threads", 7, 3);
  CALL(kiln_options_set_text, options, "cache", 5, "off", 3);
  CALL(kiln_context_create, options, NULL, &context);
  CALL(kiln_graph_parse, context, graph_text, strlen(graph_text), &graph);
  CALL(kiln_compile, context, graph, NULL, &executable, NULL);
  CALL(kiln_call_create, executable, &call);
  for (i = 0; i < 10; ++i) CALL(kiln_call_run, call, arguments, 2, NULL);
  CALL(kiln_context_close, context);
  DESTROY(kiln_context_destroy, context);
  DESTROY(kiln_graph_destroy, graph);
  DESTROY(kiln_options_destroy, options);

  /* The executable and its call live on, and with them the workers, which wake after the library was closed. */
  dlclose(library);
  pause_ms(20);
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (!library) {
    fprintf(stderr, "the library is gone, its threads are not\n");
    return 1;
  }
  CALL(kiln_call_run, call, arguments, 2, NULL);
  dlclose(library);
  pause_ms(20);
  for (i = 0; i < count; ++i) {
    if (y[i] == -x[i]) continue;
    fprintf(stderr, "y[%d] is %f\n", i, y[i]);
    return 1;
  }
  puts("ok");
  return 0;
}
