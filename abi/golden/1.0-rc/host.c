/* A host of ABI 1.0-rc. Usage: host PLUGIN CACHE_FOLDER EXPECTED_LOOKUP. Prints what differs from what was, or "ok". */
#include <kiln/kiln.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(int line, const char *what) {
  printf("line %d: %s\n", line, what);
  exit(1);
}
#define CHECK(condition)                          \
  do {                                            \
    if (!(condition)) fail(__LINE__, #condition); \
  } while (0)
static void ok(int line, kiln_error *error) {
  kiln_text message;
  if (!error) return;
  kiln_error_message(error, &message);
  fail(line, message.data);
}
#define OK(call) ok(__LINE__, call)
/* That it fails with the code and tells the words. */
static void fails(int line, kiln_error *error, uint32_t code, const char *words) {
  kiln_text message;
  if (kiln_error_code(error) != code) fail(line, "another code");
  kiln_error_message(error, &message);
  if (!strstr(message.data, words)) fail(line, message.data);
  kiln_error_destroy(error);
}
#define FAILS(call, code, words) fails(__LINE__, call, code, words)
#define TEXT(literal) literal, sizeof literal - 1

static int events;
static int32_t on_event(void *user, uint32_t kind, const char *text, uint64_t size) {
  CHECK(user == &events && text && size);
  events += kind == KILN_EVENT_PROGRESS;
  return 0;
}

static DLTensor array_of(float *data, int64_t *shape, int32_t rank) {
  DLTensor tensor = {data, {kDLCPU, 0}, rank, {kDLFloat, 32, 1}, shape, NULL, 0};
  return tensor;
}

static kiln_context *make_context(const char *cache) {
  kiln_options *options = NULL;
  kiln_context *context = NULL;
  kiln_event_sink sink;
  memset(&sink, 0, sizeof sink);
  sink.struct_size = sizeof sink;
  sink.user = &events;
  sink.event = on_event;
  OK(kiln_options_create(&options));
  OK(kiln_options_set_text(options, TEXT("cache"), cache, strlen(cache)));
  OK(kiln_options_set_i64(options, TEXT("threads"), 2));
  OK(kiln_context_create(options, &sink, &context));
  kiln_options_destroy(options);
  return context;
}

/* What the plugin registers: its pass makes -x of |x|, its op doubles that, its function makes three of it. */
static void use_plugin(kiln_context *context, const char *path, const char *expected_lookup) {
  static const char json[] =
      "{\"kiln\": 1, \"inputs\": [{\"name\": \"x\", \"type\": {\"dtype\": \"f32\", \"shape\": [\"n\"]}}], \"nodes\": ["
      "{\"name\": \"a\", \"op\": \"abs\", \"inputs\": [\"x\"]}, {\"name\": \"t\", \"op\": \"golden.twice\", "
      "\"inputs\": "
      "[\"a\"]}, {\"name\": \"r\", \"op\": \"neg\", \"inputs\": [\"t\"], \"annotations\": {\"kiln.fallback.function\": "
      "{\"text\": \"golden.thrice\"}}}], \"outputs\": [{\"name\": \"y\", \"value\": \"r\"}]}";
  kiln_graph *graph = NULL;
  kiln_executable *executable = NULL, *opened = NULL;
  kiln_report *report = NULL;
  kiln_call *call = NULL;
  kiln_blob *bytes = NULL;
  kiln_text text;
  int64_t shape[] = {3}, number = 0;
  uint64_t size = 0;
  uint32_t slot = 9;
  float x[] = {1, -2, 3}, y[3] = {0}, z[3] = {0};
  const DLTensor in = array_of(x, shape, 1), out = array_of(y, shape, 1), scalar = array_of(z, shape, 0);
  const DLTensor *args[] = {&in, &out};
  void *data[] = {x, z};
  const DLTensor *made = NULL;
  kiln_run_options async = {sizeof async, KILN_RUN_ASYNC, 0};

  OK(kiln_plugin_load(context, path, strlen(path), NULL));
  OK(kiln_graph_parse(context, json, sizeof json - 1, &graph));
  OK(kiln_compile(context, graph, NULL, &executable, &report));
  OK(kiln_report_get_text(report, TEXT("lookup"), &text));
  CHECK(text.size == strlen(expected_lookup) && !memcmp(text.data, expected_lookup, text.size));
  kiln_report_destroy(report);
  OK(kiln_executable_describe(executable, &report));
  OK(kiln_report_get_text(report, TEXT("inputs.0.name"), &text));
  CHECK(text.size == 1 && *text.data == 'x');
  kiln_report_destroy(report);

  OK(kiln_call_create(executable, &call));
  OK(kiln_call_slot(call, TEXT("y"), &slot));
  CHECK(slot == 1);
  OK(kiln_call_run(call, args, 2, NULL));
  CHECK(y[0] == -6 && y[1] == 12 && y[2] == -18);
  OK(kiln_call_run_data(call, data, 2, NULL));
  CHECK(!memcmp(y, z, sizeof y));
  OK(kiln_call_output(call, 1, &made));
  CHECK(made->data == z && made->ndim == 1 && made->shape[0] == 3);
  FAILS(kiln_call_run(call, args, 2, &async), KILN_INVALID_ARGUMENT, "must be waited for");
  OK(kiln_call_report(call, &report));
  OK(kiln_report_get_i64(report, TEXT("memory_bytes"), &number));
  kiln_report_destroy(report);
  args[0] = &scalar;
  FAILS(kiln_call_run(call, args, 2, NULL), KILN_TYPE_MISMATCH, "'x'");
  kiln_call_destroy(call);

  OK(kiln_executable_bytes(executable, NULL, &bytes));
  CHECK(kiln_blob_data(bytes, &size) && size > 0);
  OK(kiln_executable_open_bytes(context, kiln_blob_data(bytes, NULL), size, NULL, &opened));
  kiln_blob_destroy(bytes);
  kiln_executable_destroy(opened);
  kiln_executable_destroy(executable);
  kiln_graph_destroy(graph);
}

/* Its backend, which makes 7 of what it runs. */
static void use_backend(kiln_context *context, const char *expected_lookup) {
  static const char json[] =
      "{\"kiln\": 1, \"inputs\": [{\"name\": \"x\", \"type\": {\"dtype\": \"f32\", \"shape\": [3]}}], \"nodes\": ["
      "{\"name\": \"y\", \"op\": \"neg\", \"inputs\": [\"x\"]}], \"outputs\": [{\"name\": \"y\", \"value\": \"y\"}]}";
  kiln_options *options = NULL;
  kiln_graph *graph = NULL;
  kiln_executable *executable = NULL;
  kiln_report *report = NULL;
  kiln_call *call = NULL;
  kiln_text text;
  int64_t shape[] = {3};
  float x[] = {1, -2, 3}, y[3] = {0};
  const DLTensor in = array_of(x, shape, 1), out = array_of(y, shape, 1);
  const DLTensor *args[] = {&in, &out};

  OK(kiln_options_create(&options));
  OK(kiln_options_set_text(options, TEXT("backend"), TEXT("golden")));
  OK(kiln_graph_parse(context, json, sizeof json - 1, &graph));
  OK(kiln_compile(context, graph, options, &executable, &report));
  OK(kiln_report_get_text(report, TEXT("lookup"), &text));
  CHECK(text.size == strlen(expected_lookup) && !memcmp(text.data, expected_lookup, text.size));
  kiln_report_destroy(report);
  OK(kiln_call_create(executable, &call));
  OK(kiln_call_run(call, args, 2, NULL));
  CHECK(y[0] == 7 && y[1] == 7 && y[2] == 7);
  kiln_call_destroy(call);
  kiln_executable_destroy(executable);
  kiln_graph_destroy(graph);
  kiln_options_destroy(options);
}

static kiln_error *negate(void *user, kiln_pass_call *call) {
  (void)user;
  return kiln_pass_done(call, 0);
}

/* A graph from its parts: y = (x + w) * c. And what a host registers itself. */
static void build(kiln_context *context) {
  static const uint8_t uuid[16] = {1, 0, 9};
  kiln_edit *edit = NULL;
  kiln_graph *graph = NULL;
  kiln_executable *executable = NULL;
  kiln_call *call = NULL;
  kiln_op add = 0, mul = 0;
  kiln_dim dims[2] = {{0, 0}, {2, 0}};
  kiln_value inputs[2] = {0, 0}, product = 0;
  kiln_node node = 0;
  const uint8_t yes = 1;
  kiln_attr mark = {TEXT("debug.marked"), KILN_ATTR_BOOL, 0, 1, &yes};
  kiln_type type;
  kiln_pass pass;
  kiln_symbol n;
  uint64_t id = 0;
  int64_t one[] = {1}, shape[] = {2, 2}, weight_shape[] = {2}, of_output[2];
  uint64_t rank = 0;
  float c[] = {10}, x[] = {1, 2, 3, 4}, w[] = {1, 2}, expected[] = {20, 40, 40, 60};
  const DLTensor constant = array_of(c, one, 1), in = array_of(x, shape, 2), weight = array_of(w, weight_shape, 1);
  const DLTensor *args[] = {&in};
  DLManagedTensorVersioned *taken = NULL;

  memset(&pass, 0, sizeof pass);
  pass.struct_size = sizeof pass;
  pass.stage = KILN_STAGE_PRE_GRAD;
  pass.flags = KILN_PASS_UUID_SUFFICES;
  pass.name = "golden.host";
  pass.name_size = 11;
  pass.uuid = uuid;
  pass.run = negate;
  OK(kiln_pass_register(context, &pass, NULL, &id));

  memset(&n, 0, sizeof n);
  n.struct_size = sizeof n;
  n.min = 1;
  n.max = 64;
  n.divisor = 1;
  memset(&type, 0, sizeof type);
  type.struct_size = sizeof type;
  type.dtype = KILN_F32;
  type.rank = 2;
  type.dims = dims;
  OK(kiln_op_find(context, TEXT("add"), &add));
  OK(kiln_op_find(context, TEXT("mul"), &mul));
  OK(kiln_edit_begin(context, NULL, &edit));
  OK(kiln_dim_parse(context, TEXT("n"), &dims[0]));
  OK(kiln_edit_symbol(edit, TEXT("n"), &n));
  OK(kiln_edit_input(edit, TEXT("x"), &type, &inputs[0]));
  type.rank = 1;
  type.dims = dims + 1;
  OK(kiln_edit_parameter(edit, TEXT("w"), &type, &inputs[1]));
  OK(kiln_edit_add(edit, add, TEXT("sum"), inputs, 2, NULL, 0, &node));
  inputs[0] = node << 32;
  OK(kiln_edit_constant(edit, TEXT("c"), &constant, &inputs[1]));
  OK(kiln_edit_add(edit, mul, NULL, 0, inputs, 2, NULL, 0, &node));
  OK(kiln_edit_annotate(edit, node, &mark, 1));
  product = node << 32;
  OK(kiln_edit_outputs(edit, &product, NULL, 1));
  OK(kiln_edit_finish(edit, &graph));
  kiln_edit_destroy(edit);

  OK(kiln_compile(context, graph, NULL, &executable, NULL));
  OK(kiln_pass_unregister(context, id));
  OK(kiln_call_create(executable, &call));
  OK(kiln_call_bind(call, 1, &weight));
  OK(kiln_call_run(call, args, 1, NULL));
  OK(kiln_call_dims(call, 2, of_output, 2, &rank));
  CHECK(rank == 2 && of_output[0] == 2 && of_output[1] == 2);
  OK(kiln_call_take(call, 2, &taken));
  CHECK(!memcmp(taken->dl_tensor.data, expected, sizeof expected));
  taken->deleter(taken);
  kiln_call_destroy(call);
  kiln_executable_destroy(executable);
  kiln_graph_destroy(graph);
}

int main(int count, char **given) {
  kiln_context *context;
  kiln_report *report = NULL;
  kiln_graph *graph = NULL;
  CHECK(count == 4);
  CHECK(kiln_version() >> 16 == KILN_ABI_MAJOR && kiln_version() >= (KILN_ABI_MAJOR << 16 | KILN_ABI_MINOR));
  context = make_context(given[2]);
  use_plugin(context, given[1], given[3]);
  use_backend(context, given[3]);
  build(context);
  CHECK(events > 0);
  FAILS(kiln_graph_parse(context, TEXT("{\"kiln\": 2}"), &graph), KILN_INCOMPATIBLE, "2");
  OK(kiln_context_close(context));
  kiln_context_destroy(context);
  context = make_context(given[2]);
  OK(kiln_cache_command(context, TEXT("ls"), NULL, &report));
  kiln_report_destroy(report);
  kiln_context_destroy(context);
  puts("ok");
  return 0;
}
