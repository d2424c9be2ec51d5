/* What the limited runs do: all that a host does with Kiln, from options to values. */
#include "tests/limits/work.h"

#include <kiln/kiln.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { batch = 3, width = 8 };

static const char graph_json[] =
    "{\"kiln\": 1, \"inputs\": [{\"name\": \"x\", \"type\": {\"dtype\": \"f32\", \"shape\": [\"n\", 8]}}],"
    " \"parameters\": [{\"name\": \"w\", \"type\": {\"dtype\": \"f32\", \"shape\": [8, 8]}}],"
    " \"nodes\": [{\"name\": \"h\", \"op\": \"matmul\", \"inputs\": [\"x\", \"w\"]},"
    "             {\"name\": \"s\", \"op\": \"silu\", \"inputs\": [\"h\"]},"
    "             {\"name\": \"y\", \"op\": \"softmax\", \"inputs\": [\"s\"], \"attrs\": {\"dim\": 1}}],"
    " \"outputs\": [{\"name\": \"y\", \"value\": \"y\"}]}";

static float x[batch][width], w[width][width], expected[batch][width];

void work_prepare(void) {
  for (int i = 0; i < batch; ++i)
    for (int j = 0; j < width; ++j) x[i][j] = 0.25f * (float)((i * 5 + j * 3) % 7) - 0.5f;
  for (int i = 0; i < width; ++i)
    for (int j = 0; j < width; ++j) w[i][j] = 0.125f * (float)((i * 3 + j * 5) % 11) - 0.5f;
  for (int i = 0; i < batch; ++i) {
    double e[width], sum = 0;
    for (int j = 0; j < width; ++j) {
      double h = 0;
      for (int k = 0; k < width; ++k) h += (double)x[i][k] * (double)w[k][j];
      e[j] = exp(h / (1 + exp(-h)));
      sum += e[j];
    }
    for (int j = 0; j < width; ++j) expected[i][j] = (float)(e[j] / sum);
  }
}

static DLTensor tensor(void *data, int64_t *shape) {
  DLTensor made;
  memset(&made, 0, sizeof made);
  made.data = data;
  made.device.device_type = kDLCPU;
  made.ndim = 2;
  made.dtype.code = kDLFloat;
  made.dtype.bits = 32;
  made.dtype.lanes = 1;
  made.shape = shape;
  return made;
}

static int is_expected(float y[batch][width]) {
  for (int i = 0; i < batch; ++i)
    for (int j = 0; j < width; ++j)
      if (!(fabsf(y[i][j] - expected[i][j]) <= 1e-5f)) return 0;
  return 1;
}

static enum outcome judge(kiln_error *error, char *why, size_t capacity) {
  if (!error) return right;
  const uint32_t code = kiln_error_code(error);
  kiln_text message;
  kiln_error_message(error, &message);
  if (code != KILN_OUT_OF_MEMORY) snprintf(why, capacity, "code %u: %.*s", code, (int)message.size, message.data);
  kiln_error_destroy(error);
  return code == KILN_OUT_OF_MEMORY ? out_of_memory : wrong;
}

static kiln_error *set_options(const struct job *job, kiln_options *of_context, kiln_options *of_compile) {
  kiln_error *error = kiln_options_set_text(of_context, "cache", 5, job->cache, strlen(job->cache));
  if (!error) error = kiln_options_set_i64(of_context, "threads", 7, 2);
  if (!error) error = kiln_options_set_text(of_compile, "backend", 7, job->backend, strlen(job->backend));
  if (!error && strcmp(job->backend, "cuda") == 0) error = kiln_options_set_text(of_compile, "arch", 4, "sm_90", 5);
  return error;
}

/* A pass that looks at every node and changes none. */
static kiln_error *look(void *user, kiln_pass_call *call) {
  (void)user;
  kiln_node nodes[16];
  uint64_t count = 0;
  kiln_attr strict;
  const kiln_graph *graph = kiln_edit_view(kiln_pass_edit(call));
  kiln_error *error = kiln_pass_option(call, "strict", 6, &strict);
  if (!error) error = kiln_graph_nodes(graph, nodes, 16, &count);
  for (uint64_t i = 0; i < count && i < 16 && !error; ++i) {
    kiln_text name;
    kiln_dim dims[4];
    uint64_t attrs = 0, rank = 0;
    error = kiln_node_name(graph, nodes[i], &name);
    if (!error) error = kiln_node_attrs(graph, nodes[i], NULL, 0, &attrs);
    if (!error) error = kiln_value_dims(graph, (kiln_value)nodes[i] << 32, dims, 4, &rank);
  }
  return error ? error : kiln_pass_done(call, 0);
}

static kiln_error *register_pass(kiln_context *context) {
  static const uint8_t uuid[16] = {1}, no = 0;
  kiln_attr option;
  memset(&option, 0, sizeof option);
  option.name = "strict";
  option.name_size = 6;
  option.kind = KILN_ATTR_BOOL;
  option.count = 1;
  option.data = &no;
  kiln_pass pass;
  memset(&pass, 0, sizeof pass);
  pass.struct_size = sizeof pass;
  pass.stage = KILN_STAGE_PRE_GRAD;
  pass.flags = KILN_PASS_UUID_SUFFICES;
  pass.name = "look";
  pass.name_size = 4;
  pass.version = "1";
  pass.version_size = 1;
  pass.uuid = uuid;
  pass.options = &option;
  pass.option_count = 1;
  pass.run = look;
  return kiln_pass_register(context, &pass, NULL, NULL);
}

static int32_t go_on(void *user, uint32_t kind, const char *text, uint64_t size) {
  (void)user, (void)kind, (void)text, (void)size;
  return 0;
}

/* The graph with its output negated twice, and a shape that the edit computes. */
static kiln_error *edited(kiln_context *context, const kiln_graph *from, kiln_edit **edit, kiln_graph **out) {
  kiln_op neg;
  kiln_node node;
  kiln_value value = 0;
  uint64_t count = 0;
  const kiln_text name = {"y", 1};
  kiln_error *error = kiln_edit_begin(context, from, edit);
  if (!error) error = kiln_op_find(context, "neg", 3, &neg);
  if (!error) error = kiln_graph_signature(kiln_edit_view(*edit), KILN_SIDE_OUTPUTS, &value, 1, &count);
  for (int i = 0; i < 2 && !error; ++i) {
    error = kiln_edit_add(*edit, neg, "", 0, &value, 1, NULL, 0, &node);
    value = (kiln_value)node << 32;
  }
  if (!error) error = kiln_edit_outputs(*edit, &value, &name, 1);
  if (!error) error = kiln_edit_finish(*edit, out);
  return error;
}

enum outcome work(const struct job *job, char *why, size_t capacity) {
  kiln_options *of_context = NULL, *of_compile = NULL;
  kiln_context *context = NULL;
  kiln_graph *parsed = NULL, *graph = NULL;
  kiln_edit *edit = NULL;
  kiln_executable *executable = NULL;
  kiln_call *call = NULL;
  kiln_report *report = NULL, *described = NULL, *of_graph = NULL;
  kiln_blob *blob = NULL;
  kiln_event_sink sink;
  memset(&sink, 0, sizeof sink);
  sink.struct_size = sizeof sink;
  sink.event = go_on;
  int64_t x_shape[2] = {batch, width}, w_shape[2] = {width, width};
  float y[batch][width] = {{0}};
  const DLTensor in = tensor(x, x_shape), weights = tensor(w, w_shape), out = tensor(y, x_shape);
  const DLTensor *args[] = {&in, &out};

  kiln_error *error = kiln_options_create(&of_context);
  if (!error) error = kiln_options_create(&of_compile);
  if (!error) error = set_options(job, of_context, of_compile);
  if (!error) error = kiln_context_create(of_context, &sink, &context);
  if (!error) error = register_pass(context);
  if (!error) error = kiln_plugin_load(context, PLUGIN, sizeof PLUGIN - 1, NULL);
  if (!error) error = kiln_graph_parse(context, graph_json, sizeof graph_json - 1, &parsed);
  if (!error) error = edited(context, parsed, &edit, &graph);
  if (!error) error = kiln_graph_write(graph, "json", 4, &blob);
  if (!error) error = kiln_graph_describe(graph, &of_graph);
  if (!error) error = kiln_compile(context, graph, of_compile, &executable, &report);
  if (!error) error = kiln_executable_describe(executable, &described);
  if (!error) error = kiln_call_create(executable, &call);
  if (!error) error = kiln_call_bind(call, 1, &weights);
  if (!error) error = kiln_call_run(call, args, 2, NULL);
  enum outcome outcome = judge(error, why, capacity);
  if (outcome == right && !is_expected(y)) {
    outcome = wrong;
    snprintf(why, capacity, "wrong values");
  }
  kiln_blob_destroy(blob);
  kiln_report_destroy(report);
  kiln_report_destroy(described);
  kiln_report_destroy(of_graph);
  kiln_call_destroy(call);
  kiln_executable_destroy(executable);
  kiln_edit_destroy(edit);
  kiln_graph_destroy(graph);
  kiln_graph_destroy(parsed);
  kiln_context_destroy(context);
  kiln_options_destroy(of_context);
  kiln_options_destroy(of_compile);
  return outcome;
}
