/* A Kiln backend in C: copy this folder, and change what is marked 1 to 5. It takes add, mul and relu of f32 arrays of
 * known sizes, without broadcasting, makes steps of a region, and runs them element by element. All calls go through
 * the host's tables; host->backend->NAME is documented in kiln/backend.h as kiln_backend_NAME. */
#include <kiln/plugin.h>
#include <stdlib.h>
#include <string.h>
/* 1. The name of the plugin, and of the backend. */
#define NAME "backend_template"
#define BACKEND "template"
KILN_PLUGIN_NOTE(0, KILN_FEATURE_BACKENDS, NAME);
/* 2. Its identity: 16 random bytes of your own (kiln plugin uuid). Raise the version when what compile makes changes. */
static const uint8_t uuid[16] = {0x4e, 0x90, 0x17, 0xcb, 0x62, 0xa8, 0x4d, 0x35,
                                 0x8f, 0x0b, 0xd1, 0x7c, 0x29, 0xe6, 0x53, 0xba};

/* 3. What a region becomes: steps over slots, which are the arrays of run, then what steps leave to others. */
enum { ADD, MUL, RELU, OPS, MOST = 256 };
typedef struct {
  uint64_t arrays, count;
  int64_t most; /* elements of a step */
  struct step {
    uint32_t op, slots[3]; /* of two operands and the result */
    int64_t elements;
  } steps[MOST];
} program;
typedef struct {
  const kiln_host *host;
  kiln_op ops[OPS];
} backend; /* its user */

static kiln_error *fail(const backend *b, uint32_t code, const char *text) {
  return b->host->error->create(code, text, strlen(text), NULL);
}
static uint32_t number_of(const backend *b, kiln_op op) {
  uint32_t number = 0;
  while (number < OPS && b->ops[number] != op) number++;
  return number;
}
/* How many elements a value has, if it is f32; else 0. Its sizes are known: no flag KILN_BACKEND_SYMBOLIC. */
static kiln_error *measure(const backend *b, const kiln_graph *graph, kiln_value value, int64_t *elements) {
  kiln_dim dims[8];
  uint64_t rank = 0;
  kiln_dtype dtype = 0;
  kiln_error *error = b->host->value->dtype(graph, value, &dtype);
  if (!error) error = b->host->value->dims(graph, value, dims, 8, &rank);
  *elements = !error && dtype == KILN_F32 && rank <= 8;
  for (uint64_t d = 0; *elements && d < rank; d++) *elements *= dims[d].value;
  return error;
}

/* 4. What it takes. By `call` also: what options the compile gives (host->backend->option). */
static kiln_error *takes(void *user, kiln_backend_call *call, const kiln_graph *graph, kiln_node node, uint32_t *out) {
  const backend *const b = user;
  int64_t elements = 0, operands = 0;
  kiln_error *error = measure(b, graph, node << 32, &elements);
  *out = number_of(b, b->host->node->op(graph, node)) < OPS && elements > 0;
  for (uint32_t i = 0; !error && *out && i < b->host->node->input_count(graph, node); i++) {
    const kiln_value x = b->host->node->input(graph, node, i);
    error = measure(b, graph, x, &operands);
    *out = operands == elements && b->host->node->kind(graph, x >> 32) != KILN_NODE_CONSTANT; /* no array of run */
  }
  static const char why[] = "it takes add, mul and relu of f32 arrays of one known size";
  return error || *out ? error : b->host->backend->refuse(call, why, sizeof why - 1);
}

static uint32_t slot_of(kiln_value *slots, uint64_t *count, kiln_value value) {
  for (uint32_t i = 0; i < *count; i++)
    if (slots[i] == value) return i;
  slots[*count] = value;
  return (uint32_t)(*count)++;
}
/* 5. What it makes of a region. The arrays of run are its inputs, parameters and outputs. */
static kiln_error *compile(void *user, kiln_backend_call *call, const kiln_graph *region) {
  const backend *const b = user;
  program made = {0};
  kiln_value slots[2 * MOST];
  kiln_node nodes[MOST];
  uint64_t count = 0, slot_count = 0;
  kiln_error *error = b->host->graph->nodes(region, nodes, MOST, &count); /* also of what is an input or parameter */
  if (error || count > MOST) return error ? error : fail(b, KILN_UNIMPLEMENTED, "the region has too many nodes");
  for (uint32_t side = KILN_SIDE_INPUTS; !error && side <= KILN_SIDE_OUTPUTS; side++, made.arrays += slot_count)
    error = b->host->graph->signature(region, side, slots + made.arrays, 2 * MOST - made.arrays, &slot_count);
  slot_count = made.arrays;
  for (uint64_t n = 0; !error && n < count; n++) {
    if (b->host->node->kind(region, nodes[n]) != KILN_NODE_OP) continue;
    struct step *const to = &made.steps[made.count++];
    to->op = number_of(b, b->host->node->op(region, nodes[n]));
    for (uint32_t i = 0, operands = b->host->node->input_count(region, nodes[n]); i < 2; i++) /* of relu one, twice */
      to->slots[i] = slot_of(slots, &slot_count, b->host->node->input(region, nodes[n], i % operands));
    to->slots[2] = slot_of(slots, &slot_count, nodes[n] << 32);
    error = measure(b, region, nodes[n] << 32, &to->elements);
    if (to->elements > made.most) made.most = to->elements;
  }
  return error ? error : b->host->backend->blob(call, &made, sizeof made);
}

/* The bytes may come from a file that somebody changed. They stay until the program is unloaded. */
static kiln_error *load(void *user, const void *blob, uint64_t size, void **out_program) {
  *out_program = (void *)blob;
  const int fits = size == sizeof(program) && ((const program *)blob)->count <= MOST;
  return fits ? NULL : fail(user, KILN_CORRUPT, "the bytes are no program");
}

static int64_t size_of(const DLTensor *array) {
  int64_t size = 1;
  for (int32_t d = 0; d < array->ndim; d++) size *= array->shape[d];
  return size;
}
static kiln_error *run(void *user, void *of, void *prepared, void *state, const DLTensor *const *args, uint64_t count,
                       const kiln_run_options *options) {
  const program *const p = of;
  float left[2 * MOST], *at[3];
  (void)prepared, (void)state, (void)options;
  for (uint64_t i = 0; i < 3 * p->count; i++) {
    const uint32_t slot = p->steps[i / 3].slots[i % 3];
    if (count != p->arrays || slot >= 2 * MOST || (slot < count && size_of(args[slot]) != p->steps[i / 3].elements))
      return fail(user, KILN_CORRUPT, "the program is of another region");
  }
  for (int64_t i = 0; i < p->most; i++)
    for (const struct step *s = p->steps; s < p->steps + p->count; s++) {
      if (i >= s->elements) continue;
      for (int k = 0; k < 3; k++)
        at[k] = s->slots[k] < count ? (float *)args[s->slots[k]]->data + i : &left[s->slots[k]];
      *at[2] = s->op == ADD ? *at[0] + *at[1] : s->op == MUL ? *at[0] * *at[1] : *at[0] < 0 ? 0 : *at[0];
    }
  return NULL;
}

static kiln_error *setup(const kiln_host *host, kiln_context *context, void **out_state) {
  static const char *const names[OPS] = {"add", "mul", "relu"};
  backend *const b = calloc(1, sizeof *b);
  kiln_error *error = b ? NULL : host->error->create(KILN_OUT_OF_MEMORY, NULL, 0, NULL);
  if (error) return error;
  kiln_backend made = {
      .struct_size = sizeof made, .name = BACKEND, .name_size = sizeof BACKEND - 1, .uuid = uuid, .user = b};
  made.version = "1", made.version_size = 1, made.device_type = kDLCPU, made.destroy = free;
  made.takes = takes, made.compile = compile, made.load = load, made.run = run;
  b->host = host;
  for (int i = 0; !error && i < OPS; i++) error = host->op->find(context, names[i], strlen(names[i]), &b->ops[i]);
  if (!error) error = host->context->add_backend(context, &made);
  if (error) free(b);
  return (void)out_state, error;
}

const kiln_plugin *kiln_plugin_entry_v1(void) {
  static const kiln_plugin plugin = {
      sizeof plugin, KILN_ABI_MAJOR, KILN_PLUGIN_MAGIC, 0, 0, KILN_FEATURE_BACKENDS, 0, NAME, sizeof NAME - 1, setup,
      NULL};
  return &plugin;
}
