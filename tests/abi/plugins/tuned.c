/* A plugin with a backend that has options, one of each kind that the command line can set: it takes neg of f32, and
 * makes `factor` times x of it, with `negative` of -x; where `only` names ops, only nodes of these. */
#include <kiln/plugin.h>
#include <string.h>

KILN_PLUGIN_NOTE(0, KILN_FEATURE_BACKENDS, "tuned");

static const uint8_t uuid[16] = {0x71, 0x0e, 0x5a};

static kiln_error *takes(void *user, kiln_backend_call *call, const kiln_graph *graph, kiln_node node, uint32_t *out) {
  const kiln_host *const host = user;
  kiln_attr only;
  kiln_op neg = 0;
  kiln_error *error = host->op->find(host->backend->context(call), "neg", 3, &neg);
  if (!error) error = host->backend->option(call, "only", 4, &only);
  *out = !error && host->node->op(graph, node) == neg;
  for (uint64_t i = 0; *out && i < only.count; i++) {
    const kiln_text *const name = (const kiln_text *)only.data + i;
    *out = name->size == 3 && !memcmp(name->data, "neg", 3);
  }
  return error;
}

static kiln_error *compile(void *user, kiln_backend_call *call, const kiln_graph *region) {
  const kiln_host *const host = user;
  kiln_attr factor, negative;
  (void)region;
  kiln_error *error = host->backend->option(call, "factor", 6, &factor);
  if (!error) error = host->backend->option(call, "negative", 8, &negative);
  if (error) return error;
  const float scale = (float)*(const int64_t *)factor.data * (*(const uint8_t *)negative.data ? -1.0f : 1.0f);
  return host->backend->blob(call, &scale, sizeof scale);
}

static kiln_error *load(void *user, const void *blob, uint64_t size, void **out_program) {
  (void)user, (void)size;
  *out_program = (void *)blob;
  return NULL;
}

static kiln_error *run(void *user, void *program, void *prepared, void *state, const DLTensor *const *args,
                       uint64_t count, const kiln_run_options *options) {
  (void)user, (void)prepared, (void)state, (void)count, (void)options;
  int64_t elements = 1;
  float scale;
  memcpy(&scale, program, sizeof scale);
  for (int32_t d = 0; d < args[0]->ndim; d++) elements *= args[0]->shape[d];
  for (int64_t i = 0; i < elements; i++) ((float *)args[1]->data)[i] = scale * ((const float *)args[0]->data)[i];
  return NULL;
}

static kiln_error *setup(const kiln_host *host, kiln_context *context, void **out_state) {
  static const int64_t two = 2;
  static const uint8_t no = 0;
  const kiln_attr options[] = {{"factor", 6, KILN_ATTR_I64, 0, 1, &two},
                               {"negative", 8, KILN_ATTR_BOOL, 0, 1, &no},
                               {"only", 4, KILN_ATTR_TEXT | KILN_ATTR_LIST, 0, 0, NULL}};
  const kiln_backend backend = {.struct_size = sizeof backend,
                                .name = "tuned",
                                .name_size = 5,
                                .uuid = uuid,
                                .options = options,
                                .option_count = 3,
                                .device_type = kDLCPU,
                                .user = (void *)(uintptr_t)host,
                                .takes = takes,
                                .compile = compile,
                                .load = load,
                                .run = run};
  (void)out_state;
  return host->context->add_backend(context, &backend);
}

const kiln_plugin *kiln_plugin_entry_v1(void) {
  static const kiln_plugin plugin = {.struct_size = sizeof plugin,
                                     .abi_major = KILN_ABI_MAJOR,
                                     .magic = KILN_PLUGIN_MAGIC,
                                     .features_needed = KILN_FEATURE_BACKENDS,
                                     .name = "tuned",
                                     .name_size = 5,
                                     .setup = setup};
  return &plugin;
}
