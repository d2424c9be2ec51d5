/* A plugin of ABI 1.0-rc: a pass that puts `neg` in place of `abs`, with an option; an op that doubles; a function; a
 * backend that makes 7 of each element. */
#include <kiln/plugin.h>
#include <string.h>

KILN_PLUGIN_NOTE(0, KILN_FEATURE_OPS | KILN_FEATURE_FUNCTIONS | KILN_FEATURE_BACKENDS, "golden");

static const uint8_t pass_uuid[16] = {1, 0, 1}, op_uuid[16] = {1, 0, 2}, function_uuid[16] = {1, 0, 3},
                     backend_uuid[16] = {1, 0, 4};

static kiln_error *run_pass(void *user, kiln_pass_call *call) {
  const kiln_host *host = (const kiln_host *)user;
  kiln_edit *edit = host->pass->edit(call);
  kiln_context *context = host->pass->context(call);
  kiln_op abs_op = 0, neg_op = 0;
  kiln_attr wanted;
  kiln_node nodes[32];
  uint64_t count = 0, changed = 0;
  kiln_error *error = host->op->find(context, "abs", 3, &abs_op);
  if (!error) error = host->op->find(context, "neg", 3, &neg_op);
  if (!error) error = host->pass->option(call, "wanted", 6, &wanted);
  if (!error) error = host->graph->nodes(host->edit->view(edit), nodes, 32, &count);
  for (uint64_t i = 0; !error && i < count && *(const int64_t *)wanted.data; i++) {
    const kiln_graph *graph = host->edit->view(edit);
    if (host->node->op(graph, nodes[i]) != abs_op) continue;
    const kiln_value x = host->node->input(graph, nodes[i], 0);
    kiln_node made = 0;
    error = host->edit->add(edit, neg_op, NULL, 0, &x, 1, NULL, 0, &made);
    if (!error) error = host->edit->replace(edit, nodes[i] << 32, made << 32);
    changed++;
  }
  return error ? error : host->pass->done(call, changed);
}

static kiln_error *infer(void *user, kiln_op_call *call) {
  const kiln_host_op_call *host = ((const kiln_host *)user)->op_call;
  kiln_dtype dtype = 0;
  kiln_dim dims[8];
  uint64_t rank = 0;
  kiln_error *error = host->dtype(call, 0, &dtype);
  if (!error) error = host->dims(call, 0, dims, 8, &rank);
  if (error) return error;
  const kiln_type type = {.struct_size = sizeof type, .dtype = dtype, .rank = (uint32_t)rank, .dims = dims};
  return host->result(call, 0, &type);
}

static kiln_error *run_op(void *user, void *state, const DLTensor *const *arrays, uint64_t count,
                          const kiln_run_options *options) {
  (void)user, (void)state, (void)count, (void)options;
  int64_t elements = 1;
  for (int32_t d = 0; d < arrays[0]->ndim; d++) elements *= arrays[0]->shape[d];
  for (int64_t i = 0; i < elements; i++) ((float *)arrays[1]->data)[i] = 2 * ((const float *)arrays[0]->data)[i];
  return NULL;
}

static void thrice(const float *x, float *y, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = 3 * x[i];
}

static kiln_error *takes(void *user, kiln_backend_call *call, const kiln_graph *graph, kiln_node node, uint32_t *out) {
  const kiln_host *host = (const kiln_host *)user;
  kiln_op neg_op = 0;
  kiln_error *error = host->op->find(host->backend->context(call), "neg", 3, &neg_op);
  *out = !error && host->node->op(graph, node) == neg_op;
  return error;
}

static kiln_error *compile(void *user, kiln_backend_call *call, const kiln_graph *region) {
  (void)region;
  return ((const kiln_host *)user)->backend->blob(call, "7", 1);
}

static kiln_error *load(void *user, const void *blob, uint64_t size, void **out_program) {
  if (size != 1) return ((const kiln_host *)user)->error->create(KILN_CORRUPT, "not a 7", 7, NULL);
  *out_program = (void *)(uintptr_t)blob;
  return NULL;
}

static kiln_error *run_region(void *user, void *program, void *prepared, void *state, const DLTensor *const *args,
                              uint64_t count, const kiln_run_options *options) {
  (void)user, (void)prepared, (void)state, (void)count, (void)options;
  for (int64_t i = 0; i < args[1]->shape[0]; i++) ((float *)args[1]->data)[i] = (float)(*(const char *)program - '0');
  return NULL;
}

static kiln_error *setup(const kiln_host *host, kiln_context *context, void **out_state) {
  static const char schema[] =
      "{\"name\": \"golden.twice\", \"doc\": \"x + x\", \"version\": 1, \"args\": [{\"name\": \"x\", \"doc\": \"any "
      "shape\", \"dtypes\": [\"f32\"]}], \"results\": [\"y\"]}";
  static const char signature[] = "void (data 0, data 1, i64 size 0 0)";
  const int64_t one = 1;
  const kiln_attr wanted = {"wanted", 6, KILN_ATTR_I64, 0, 1, &one};
  *out_state = NULL;
  const kiln_pass pass = {.struct_size = sizeof pass,
                          .stage = KILN_STAGE_POST_GRAD,
                          .name = "golden.negates",
                          .name_size = 14,
                          .version = "1",
                          .version_size = 1,
                          .uuid = pass_uuid,
                          .options = &wanted,
                          .option_count = 1,
                          .user = (void *)(uintptr_t)host,
                          .run = run_pass};
  kiln_error *error = host->context->add_pass(context, &pass);
  if (error) return error;
  const kiln_op_def op = {.struct_size = sizeof op,
                          .schema = schema,
                          .schema_size = sizeof schema - 1,
                          .uuid = op_uuid,
                          .user = (void *)(uintptr_t)host,
                          .infer = infer,
                          .run = run_op};
  error = host->context->add_op(context, &op);
  if (error) return error;
  const kiln_function function = {.struct_size = sizeof function,
                                  .name = "golden.thrice",
                                  .name_size = 13,
                                  .version = "1",
                                  .version_size = 1,
                                  .signature = signature,
                                  .signature_size = sizeof signature - 1,
                                  .uuid = function_uuid,
                                  .pointer = (void (*)(void))thrice};
  error = host->context->add_function(context, &function);
  if (error) return error;
  const kiln_backend backend = {.struct_size = sizeof backend,
                                .name = "golden",
                                .name_size = 6,
                                .version = "1",
                                .version_size = 1,
                                .uuid = backend_uuid,
                                .device_type = kDLCPU,
                                .user = (void *)(uintptr_t)host,
                                .takes = takes,
                                .compile = compile,
                                .load = load,
                                .run = run_region};
  return host->context->add_backend(context, &backend);
}

static const kiln_plugin plugin = {.struct_size = sizeof(kiln_plugin),
                                   .abi_major = KILN_ABI_MAJOR,
                                   .magic = KILN_PLUGIN_MAGIC,
                                   .features_needed = KILN_FEATURE_OPS | KILN_FEATURE_FUNCTIONS | KILN_FEATURE_BACKENDS,
                                   .name = "golden",
                                   .name_size = 6,
                                   .setup = setup};

KILN_EXPORT const kiln_plugin *kiln_plugin_entry_v1(void) { return &plugin; }
