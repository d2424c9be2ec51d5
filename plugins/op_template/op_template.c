/* A Kiln plugin in C with three ops and a pass that uses one: copy this folder, and change what is marked 1 to 4.
 *
 *   template.logit   ln(x / (1 - x)), by a function that is run as a step
 *   template.square  x * x, by a decomposition, which fuses with what is around it
 *   template.print   has an effect: writes x to stderr, in the order that tokens say
 *   use_square       a pass: mul(x, x) becomes template.square
 *
 * All calls go through the host's tables; host->op_call->NAME is documented in kiln/graph.h as kiln_op_call_NAME. */
#include <kiln/plugin.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* 1. The name of the plugin; names of ops begin with it, so that they are nobody else's. */
#define NAME "op_template"
#define SQUARE "template.square"
#define PASS "use_square"
KILN_PLUGIN_NOTE(0, KILN_FEATURE_OPS, NAME);

/* 2. Identities: 16 random bytes each, of your own (kiln plugin uuid). Raise an op's version when what it computes changes. */
static const uint8_t logit_uuid[16] = {0x3b, 0x7e, 0x51, 0x0c, 0x95, 0x2d, 0x4f, 0x10,
                                       0xa2, 0x6b, 0x44, 0xe9, 0x07, 0xd8, 0x3a, 0xf1};
static const uint8_t square_uuid[16] = {0x8d, 0x02, 0xf6, 0x39, 0x1e, 0xc4, 0x43, 0x7b,
                                        0x9d, 0x50, 0xaa, 0x15, 0x6c, 0xe3, 0x28, 0x94};
static const uint8_t print_uuid[16] = {0x52, 0xe8, 0x1f, 0x90, 0x0b, 0x76, 0x4c, 0xd3,
                                       0x81, 0x2e, 0xfa, 0x67, 0x39, 0xc5, 0x04, 0xbd};
static const uint8_t pass_uuid[16] = {0xc1, 0x67, 0x0e, 0xb8, 0x73, 0x4a, 0x4d, 0x2f,
                                      0xb6, 0x99, 0x05, 0x1d, 0xee, 0x42, 0x86, 0x5b};

/* 3. Schemas: what is checked before any function is called, and samples, on which tests run the op. */
static const char logit_schema[] =
    "{\"name\": \"template.logit\", \"doc\": \"ln(x / (1 - x)).\","
    " \"args\": [{\"name\": \"x\", \"doc\": \"between 0 and 1\", \"dtypes\": [\"f32\"]}], \"results\": [\"y\"],"
    " \"samples\": [{\"name\": \"rows\", \"inputs\": [{\"dtype\": \"f32\", \"shape\": [3, 5]}],"
    "               \"range\": [0.125, 0.875]}]}";
static const char square_schema[] =
    "{\"name\": \"template.square\", \"doc\": \"x * x.\","
    " \"args\": [{\"name\": \"x\", \"dtypes\": [\"f32\", \"f64\"]}], \"results\": [\"y\"],"
    " \"samples\": [{\"name\": \"rows\", \"inputs\": [{\"dtype\": \"f32\", \"shape\": [3, 5]}]},"
    "               {\"name\": \"doubles\", \"inputs\": [{\"dtype\": \"f64\", \"shape\": [7]}]}]}";
static const char print_schema[] =
    "{\"name\": \"template.print\", \"doc\": \"Writes x to stderr.\","
    " \"args\": [{\"name\": \"x\", \"dtypes\": [\"f32\"]}, {\"name\": \"after\", \"dtypes\": [\"token\"]}],"
    " \"results\": [\"done\"]}";

/* The user of all ops: the host's tables, which live as long as the process. */
static const kiln_host *host_of(void *user) { return user; }

/* 4. The functions. Both results have the type of the operand. */
static kiln_error *infer(void *user, kiln_op_call *call) {
  const kiln_host_op_call *const op = host_of(user)->op_call;
  kiln_type type = {.struct_size = sizeof type};
  uint64_t rank = 0;
  kiln_error *error = op->dtype(call, 0, &type.dtype);
  if (!error) error = op->dims(call, 0, NULL, 0, &rank);
  if (error) return error;
  kiln_dim *const dims = calloc(rank + 1, sizeof *dims);
  if (!dims) return host_of(user)->error->create(KILN_OUT_OF_MEMORY, NULL, 0, NULL);
  type.dims = dims;
  type.rank = (uint32_t)rank;
  error = op->dims(call, 0, dims, rank, &rank);
  if (!error) error = op->result(call, 0, &type);
  free(dims);
  return error;
}

/* arrays: the operand, then the result; row-major, of as many elements. An error ends the run and names the node. */
static kiln_error *run_logit(void *user, void *state, const DLTensor *const *arrays, uint64_t count,
                             const kiln_run_options *options) {
  (void)state, (void)count, (void)options;
  const float *const x = arrays[0]->data;
  float *const y = arrays[1]->data;
  int64_t elements = 1;
  for (int32_t d = 0; d < arrays[0]->ndim; d++) elements *= arrays[0]->shape[d];
  for (int64_t i = 0; i < elements; i++) {
    if (!(x[i] >= 0 && x[i] <= 1))
      return host_of(user)->error->create(KILN_OUT_OF_RANGE, "an element is not between 0 and 1", 33, NULL);
    y[i] = logf(x[i] / (1 - x[i]));
  }
  return NULL;
}

/* Its only result is the token, of which Kiln knows the type. */
static kiln_error *infer_print(void *user, kiln_op_call *call) {
  (void)user, (void)call;
  return NULL;
}

/* arrays: x, then tokens, which have no data. */
static kiln_error *run_print(void *user, void *state, const DLTensor *const *arrays, uint64_t count,
                             const kiln_run_options *options) {
  (void)user, (void)state, (void)count, (void)options;
  const float *const x = arrays[0]->data;
  int64_t elements = 1;
  for (int32_t d = 0; d < arrays[0]->ndim; d++) elements *= arrays[0]->shape[d];
  for (int64_t i = 0; i < elements; i++) fprintf(stderr, i ? " %g" : "%g", (double)x[i]);
  fputc('\n', stderr);
  return NULL;
}

static kiln_error *decompose_square(void *user, kiln_op_call *call) {
  const kiln_host *const host = host_of(user);
  kiln_op mul = 0;
  kiln_node product = 0;
  const kiln_value x = host->op_call->operand(call, 0);
  const kiln_value operands[] = {x, x};
  kiln_error *error = host->op->find(host->op_call->context(call), "mul", 3, &mul);
  if (!error) error = host->edit->add(host->op_call->edit(call), mul, NULL, 0, operands, 2, NULL, 0, &product);
  return error ? error : host->op_call->yield(call, 0, product << 32);
}

static kiln_error *replace_products(const kiln_host *host, kiln_edit *edit, kiln_op mul, kiln_op square,
                                    const kiln_node *nodes, uint64_t count, uint64_t *rewrites) {
  const kiln_graph *const graph = host->edit->view(edit);
  for (uint64_t i = 0; i < count; i++) {
    const kiln_value x = host->node->input(graph, nodes[i], 0);
    if (host->node->op(graph, nodes[i]) != mul || x != host->node->input(graph, nodes[i], 1)) continue;
    kiln_dtype dtype = 0;
    kiln_node made = 0;
    kiln_error *error = host->value->dtype(graph, x, &dtype);
    if (error) return error;
    if (dtype != KILN_F32 && dtype != KILN_F64) continue;
    error = host->edit->add(edit, square, NULL, 0, &x, 1, NULL, 0, &made);
    if (!error) error = host->edit->replace(edit, nodes[i] << 32, made << 32);
    if (error) return error;
    *rewrites += 1;
  }
  return NULL;
}

static kiln_error *run_pass(void *user, kiln_pass_call *call) {
  const kiln_host *const host = host_of(user);
  kiln_context *const context = host->pass->context(call);
  kiln_edit *const edit = host->pass->edit(call);
  kiln_op mul = 0, square = 0;
  uint64_t count = 0, rewrites = 0;
  kiln_error *error = host->op->find(context, "mul", 3, &mul);
  if (!error) error = host->op->find(context, SQUARE, sizeof SQUARE - 1, &square);
  if (!error) error = host->graph->nodes(host->edit->view(edit), NULL, 0, &count);
  if (error) return error;
  kiln_node *const nodes = calloc(count + 1, sizeof *nodes);
  if (!nodes) return host->error->create(KILN_OUT_OF_MEMORY, NULL, 0, NULL);
  error = host->graph->nodes(host->edit->view(edit), nodes, count, &count);
  if (!error) error = replace_products(host, edit, mul, square, nodes, count, &rewrites);
  free(nodes);
  return error ? error : host->pass->done(call, rewrites);
}

static kiln_error *setup(const kiln_host *host, kiln_context *context, void **out_state) {
  (void)out_state;
  kiln_op_def logit = {.struct_size = sizeof logit, .schema = logit_schema, .uuid = logit_uuid};
  logit.schema_size = sizeof logit_schema - 1;
  logit.user = (void *)host;
  logit.infer = infer;
  logit.run = run_logit;
  kiln_op_def square = {.struct_size = sizeof square, .schema = square_schema, .uuid = square_uuid};
  square.schema_size = sizeof square_schema - 1;
  square.user = (void *)host;
  square.infer = infer;
  square.decompose = decompose_square;
  kiln_op_def print = {.struct_size = sizeof print, .schema = print_schema, .uuid = print_uuid};
  print.flags = KILN_OP_EFFECT;
  print.schema_size = sizeof print_schema - 1;
  print.user = (void *)host;
  print.infer = infer_print;
  print.run = run_print;
  kiln_pass pass = {.struct_size = sizeof pass, .stage = KILN_STAGE_POST_GRAD, .name = PASS};
  pass.name_size = sizeof PASS - 1;
  pass.version = "1";
  pass.version_size = 1;
  pass.uuid = pass_uuid;
  pass.user = (void *)host;
  pass.run = run_pass;
  kiln_error *error = host->context->add_op(context, &logit);
  if (!error) error = host->context->add_op(context, &square);
  if (!error) error = host->context->add_op(context, &print);
  return error ? error : host->context->add_pass(context, &pass);
}

static const kiln_plugin plugin = {
    .struct_size = sizeof plugin,
    .abi_major = KILN_ABI_MAJOR,
    .magic = KILN_PLUGIN_MAGIC,
    .features_needed = KILN_FEATURE_OPS,
    .name = NAME,
    .name_size = sizeof NAME - 1,
    .setup = setup,
};

const kiln_plugin *kiln_plugin_entry_v1(void) { return &plugin; }
