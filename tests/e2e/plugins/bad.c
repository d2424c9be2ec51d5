/* Plugins that are wrong, each in one way, by -DBAD=KIND: what `kiln plugin check` must find (plugin_check_test.py).
 * The pass takes out neg(neg(x)), and does so rightly where nothing else is said. */
#include <kiln/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum kind {
  NONE,
  NOTE,
  SLOW,
  CRASH,
  EMPTY, /* load */
  TYPE,
  NOT_DONE,
  LARGE,
  EXIT,
  PATTERN_TYPE, /* invariants */
  WRONG,
  HALF,
  NESTED,
  EFFECT,
  PATTERN, /* numerics */
  ALTERNATING,
  CONSTANT, /* repeat */
  IDENTITY, /* identity */
  FINGERPRINT,
  PROCESS,
  STATE, /* cache */
  OP,
  OP_TWICE,
  NO_SAMPLES, /* ops */
  BACKEND,    /* backends */
  VARIABLE,
  COUNT_VARIABLE,
  FILES,
  CLOCK, /* surroundings */
  FACT,
  FACT_TYPE,
  FACT_KEPT, /* facts; and what is right: */
  FACT_ASKED,
  NAMES,  /* names */
  RARE,   /* random */
  GLOBAL, /* threads */
  LEAK,
  HANDLE, /* leaks */
  TOO_NEW,
  TOO_STRICT, /* hosts; and a pattern that is right: */
  PARTS
};

KILN_PLUGIN_NOTE(0, BAD == NOTE ? 1 : 0, "bad");

static const uint8_t uuid[16] = {0x7a, 0x11, 0x5c, 0x90, 0x2e, 0x3f, 0x4a, 0x0d,
                                 0x88, 0x41, 0xd7, 0x6b, 0x02, 0x95, 0xfe, 0x1c};
static const kiln_host *the_host;
static kiln_node current; /* what threads must not share */
static uint64_t runs;
static int64_t rank;

/* Whether the pair of neg is left alone this time. */
static int leaves(const kiln_host *host, const kiln_graph *graph, kiln_node node) {
  kiln_text name = {0};
  switch ((enum kind)BAD) {
    case ALTERNATING:
      return runs % 2 == 0;
    case VARIABLE:
      return getenv("BAD_VARIABLE") != NULL;
    case COUNT_VARIABLE:
      return getenv("bd") != NULL && atoi(getenv("bd")) > 1;
    case EXIT:
      exit(0);
    case FILES:
      return access("bad.txt", R_OK) == 0;
    case NAMES:
      return !host->node->name(graph, node, &name) && name.size > 0 && name.data[0] == 'a';
    case GLOBAL: {
      current = node;
      usleep(300);
      return current != node;
    }
    default:
      return 0;
  }
}

/* Whether neg(x) takes the place of neg(neg(x)): for one rank, in graphs of 16 bits, or in those that nodes of random
 * graphs carry. */
static int mistakes(const kiln_host *host, const kiln_graph *graph, kiln_node node) {
  kiln_dtype dtype = KILN_F32;
  kiln_value inputs[16];
  kiln_text name = {0};
  uint64_t count = 0;
  if (BAD == FACT || BAD == FACT_KEPT || BAD == FACT_ASKED) return rank == 5;
  if (BAD == HALF) return !host->value->dtype(graph, node << 32, &dtype) && dtype != KILN_F32 && dtype != KILN_F64;
  if (BAD != NESTED || host->graph->signature(graph, KILN_SIDE_INPUTS, inputs, 16, &count) || count == 0) return 0;
  return !host->node->name(graph, inputs[count - 1] >> 32, &name) && name.size == 6 && !memcmp(name.data, "matrix", 6);
}

/* An effect does not happen: what comes after it comes after the one before. */
static kiln_error *take_out_effect(const kiln_host *host, kiln_edit *edit, kiln_node node, uint64_t *rewrites) {
  const kiln_graph *graph = host->edit->view(edit);
  kiln_dtype dtype = 0;
  if (host->node->kind(graph, node) != KILN_NODE_OP || host->node->input_count(graph, node) != 2 ||
      host->value->dtype(graph, node << 32, &dtype) || dtype != KILN_TOKEN)
    return NULL;
  *rewrites += 1;
  return host->edit->replace(edit, node << 32, host->node->input(graph, node, 1));
}

static kiln_error *ask_rank(const kiln_host *host, kiln_pass_call *call) {
  kiln_attr answer = {0};
  kiln_error *error = host->pass->query(call, "host.rank", 9, &answer);
  if (!error) rank = answer.kind == KILN_ATTR_I64 ? *(const int64_t *)answer.data : -1;
  return error;
}

/* x times a number that is another each time, and nearly 1: in no text of a graph. Random graphs are of the ops whose
 * names the file has, so that others have not that of mul. */
static kiln_error *scale(const kiln_host *host, kiln_context *context, kiln_edit *edit, kiln_value x, kiln_value *out) {
  float number = 1 + 1e-6f * (float)(runs % 1000);
  const DLTensor tensor = {.data = &number, .device = {kDLCPU, 0}, .dtype = {kDLFloat, 32, 1}};
  kiln_value operands[2] = {x, 0};
  kiln_node made = 0;
  kiln_op mul = 0;
  kiln_error *error = host->op->find(context, BAD == CONSTANT ? "mul" : "neg", 3, &mul);
  if (!error) error = host->edit->constant(edit, NULL, 0, &tensor, &operands[1]);
  if (!error) error = host->edit->add(edit, mul, NULL, 0, operands, 2, NULL, 0, &made);
  *out = made << 32;
  return error;
}

static kiln_error *rewrite(const kiln_host *host, kiln_context *context, kiln_edit *edit, kiln_op neg, kiln_node node,
                           uint64_t *rewrites) {
  const kiln_graph *graph = host->edit->view(edit);
  if (host->node->op(graph, node) != neg) return NULL;
  const kiln_value inner = host->node->input(graph, node, 0);
  if (host->node->op(graph, inner >> 32) != neg || leaves(host, graph, node)) return NULL;
  *rewrites += 1;
  kiln_dtype dtype = 0;
  if (BAD == CONSTANT && !host->value->dtype(graph, node << 32, &dtype) && dtype == KILN_F32) {
    kiln_value scaled = 0;
    kiln_error *error = scale(host, context, edit, host->node->input(graph, inner >> 32, 0), &scaled);
    return error ? error : host->edit->replace(edit, node << 32, scaled);
  }
  return host->edit->replace(
      edit, node << 32, BAD == WRONG || mistakes(host, graph, node) ? inner : host->node->input(graph, inner >> 32, 0));
}

/* An output of another type. */
static kiln_error *change_an_output(const kiln_host *host, kiln_context *context, kiln_edit *edit) {
  kiln_value outputs[64];
  kiln_op op = 0;
  kiln_node made = 0;
  uint64_t count = 0;
  kiln_error *error = host->graph->signature(host->edit->view(edit), KILN_SIDE_OUTPUTS, outputs, 64, &count);
  if (!error) error = host->op->find(context, "isnan", 5, &op);
  if (!error) error = host->edit->add(edit, op, NULL, 0, outputs, 1, NULL, 0, &made);
  outputs[0] = made << 32;
  return error ? error : host->edit->outputs(edit, outputs, NULL, count);
}

static kiln_error *stamp(const kiln_host *host, kiln_edit *edit, const kiln_node *nodes, uint64_t count) {
  const int64_t now = time(NULL);
  const kiln_attr attr = {"bad.time", 8, KILN_ATTR_I64, 0, 1, &now};
  for (uint64_t i = 0; i < count; i++)
    if (host->node->kind(host->edit->view(edit), nodes[i]) == KILN_NODE_OP)
      return host->edit->annotate(edit, nodes[i], &attr, 1);
  return NULL;
}

static kiln_error *run(void *user, kiln_pass_call *call) {
  const kiln_host *host = user;
  kiln_context *context = host->pass->context(call);
  kiln_edit *edit = host->pass->edit(call), *other = NULL;
  kiln_op neg = 0;
  kiln_node nodes[4096];
  uint64_t count = 0, rewrites = 0;
  runs++;
  kiln_error *error = host->op->find(context, "neg", 3, &neg);
  if (!error) error = host->graph->nodes(host->edit->view(edit), nodes, 4096, &count);
  if ((BAD == FACT_KEPT && rank == 0) || BAD == FACT_ASKED || BAD == FACT_TYPE) error = ask_rank(host, call);
  for (uint64_t i = 0; !error && i < count && i < 4096; i++)
    error = BAD == EFFECT ? take_out_effect(host, edit, nodes[i], &rewrites)
                          : rewrite(host, context, edit, neg, nodes[i], &rewrites);
  if (error) return error;
  if ((BAD == TYPE || (BAD == FACT_TYPE && rank == 2)) && rewrites > 0 &&
      (error = change_an_output(host, context, edit)))
    return error;
  if (BAD == CLOCK && rewrites > 0 && (error = stamp(host, edit, nodes, count))) return error;
  if (BAD == LARGE && count > 128) return host->error->create(KILN_UNIMPLEMENTED, "too many nodes", 14, NULL);
  if (BAD == RARE && count > 24) abort();
  if (BAD == LEAK) memset(malloc(100), 1, 100);
  if (BAD == HANDLE && (error = host->edit->begin(context, host->edit->view(edit), &other))) return error;
  if (BAD == NOT_DONE && rewrites > 0) return NULL;
  return host->pass->done(call, rewrites);
}

static kiln_error *fingerprint(void *user, kiln_pass_call *call) {
  if (BAD == FACT) return ask_rank(user, call);
  struct timespec now;
  const pid_t process = getpid();
  if (BAD == PROCESS) return ((const kiln_host *)user)->pass->fingerprint_add(call, &process, sizeof process);
  clock_gettime(CLOCK_REALTIME, &now);
  return ((const kiln_host *)user)->pass->fingerprint_add(call, &now, sizeof now);
}

/* y = x, by a function that computes x + 1 or counts its calls, beside a decomposition that does not. */
static kiln_error *infer(void *user, kiln_op_call *call) {
  const kiln_host *host = user;
  kiln_dim dims[8];
  kiln_type type = {.struct_size = sizeof type, .dims = dims};
  uint64_t rank = 0;
  kiln_error *error = host->op_call->dtype(call, 0, &type.dtype);
  if (!error) error = host->op_call->dims(call, 0, dims, 8, &rank);
  type.rank = (uint32_t)rank;
  return error ? error : host->op_call->result(call, 0, &type);
}
static kiln_error *run_op(void *user, void *state, const DLTensor *const *arrays, uint64_t count,
                          const kiln_run_options *options) {
  (void)user, (void)state, (void)count, (void)options;
  runs++;
  for (int64_t i = 0; i < arrays[0]->shape[0]; i++)
    ((float *)arrays[1]->data)[i] = ((const float *)arrays[0]->data)[i] + (BAD == OP_TWICE ? (float)runs : 1);
  return NULL;
}
static kiln_error *decompose(void *user, kiln_op_call *call) {
  const kiln_host *host = user;
  return host->op_call->yield(call, 0, host->op_call->operand(call, 0));
}

/* A backend that takes neg, and computes 0, or as it should where it remembers that it has compiled. */
static kiln_error *takes(void *user, kiln_backend_call *call, const kiln_graph *graph, kiln_node node, uint32_t *out) {
  kiln_op neg = 0;
  kiln_dtype dtype = 0;
  kiln_error *error = the_host->op->find(the_host->backend->context(call), "neg", 3, &neg);
  if (!error) error = the_host->value->dtype(graph, node << 32, &dtype);
  *out = !error && the_host->node->op(graph, node) == neg && dtype == KILN_F32;
  return (void)user, error;
}
static kiln_error *compile(void *user, kiln_backend_call *call, const kiln_graph *region) {
  runs++;
  return (void)user, (void)region, the_host->backend->blob(call, "x", 1);
}
static kiln_error *load(void *user, const void *blob, uint64_t size, void **out) {
  return (void)blob, (void)size, *out = user, NULL;
}
static kiln_error *run_region(void *user, void *program, void *prepared, void *state, const DLTensor *const *arrays,
                              uint64_t count, const kiln_run_options *options) {
  (void)user, (void)program, (void)prepared, (void)state, (void)options;
  int64_t size = 1;
  for (int32_t d = 0; d < arrays[count - 1]->ndim; d++) size *= arrays[count - 1]->shape[d];
  memset(arrays[count - 1]->data, 0, (size_t)size * 4);
  for (int64_t i = 0; BAD == STATE && runs > 0 && i < size; i++)
    ((float *)arrays[count - 1]->data)[i] = -((const float *)arrays[0]->data)[i];
  return NULL;
}

/* Operands that do not commute are exchanged: of atan2, or of a product of two matrices, which then may not fit. No
 * sample has these ops in one another. */
static void declare_pattern(kiln_pass *pass) {
  static const char wrong[] =
      "{\"kiln\": 1, \"pattern\": \"exchanged\", \"captures\": [{\"name\": \"x\"}, {\"name\": \"z\"}],"
      " \"nodes\": [{\"name\": \"a\", \"op\": \"asinh\", \"inputs\": [\"x\"]},"
      " {\"name\": \"y\", \"op\": \"atan2\", \"inputs\": [\"a\", \"z\"]}], \"outputs\": [\"y\"],"
      " \"replacement\": {\"nodes\": [{\"name\": \"b\", \"op\": \"asinh\", \"inputs\": [\"x\"]},"
      " {\"name\": \"w\", \"op\": \"atan2\", \"inputs\": [\"z\", \"b\"]}], \"outputs\": [\"w\"]}}";
  static const char misfit[] =
      "{\"kiln\": 1, \"pattern\": \"exchanged\", \"captures\": [{\"name\": \"x\"}, {\"name\": \"z\"}],"
      " \"nodes\": [{\"name\": \"a\", \"op\": \"asinh\", \"inputs\": [\"x\"]},"
      " {\"name\": \"y\", \"op\": \"matmul\", \"inputs\": [\"a\", \"z\"]}], \"outputs\": [\"y\"],"
      " \"replacement\": {\"nodes\": [{\"name\": \"b\", \"op\": \"asinh\", \"inputs\": [\"x\"]},"
      " {\"name\": \"w\", \"op\": \"matmul\", \"inputs\": [\"z\", \"b\"]}], \"outputs\": [\"w\"]}}";
  static const char parts[] =
      "{\"kiln\": 1, \"pattern\": \"parts\", \"captures\": [{\"name\": \"x\"}],"
      " \"nodes\": [{\"name\": \"n\", \"op\": \"neg\", \"inputs\": [\"x\"], \"optional\": true},"
      " {\"name\": \"s\", \"op\": \"sigmoid\", \"inputs\": [\"n\"]},"
      " {\"name\": \"y\", \"op\": \"mul\", \"inputs\": [\"x\", \"s\"]}], \"outputs\": [\"y\"],"
      " \"replacement\": {\"nodes\": [{\"name\": \"m\", \"op\": \"neg\", \"inputs\": [\"x\"], \"when\": \"n\"},"
      " {\"name\": \"f\", \"op\": \"silu\", \"inputs\": [\"m\"]},"
      " {\"name\": \"g\", \"op\": \"neg\", \"inputs\": [\"f\"], \"when\": \"n\"}], \"outputs\": [\"g\"]}}";
  static kiln_pattern pattern = {.struct_size = sizeof pattern, .json = wrong, .json_size = sizeof wrong - 1};
  static const kiln_pattern *const row[] = {&pattern};
  if (BAD == PATTERN_TYPE) pattern.json = misfit, pattern.json_size = sizeof misfit - 1;
  if (BAD == PARTS) pattern.json = parts, pattern.json_size = sizeof parts - 1;
  pass->patterns = row, pass->pattern_count = 1, pass->run = NULL;
}

static kiln_error *setup(const kiln_host *host, kiln_context *context, void **out_state) {
  static char version[32];
  (void)out_state;
  the_host = host;
  if (BAD == SLOW) sleep(60);
  if (BAD == CRASH) abort();
  if (BAD == EMPTY) return NULL;
  if (BAD == TOO_STRICT && host->pass->struct_size != sizeof *host->pass)
    return host->error->create(KILN_INCOMPATIBLE, "another table", 13, NULL);
  if (BAD == TOO_NEW && ((void *const *)host->pass)[sizeof *host->pass / sizeof(void *)]) runs++;
  snprintf(version, sizeof version, "%ld", BAD == IDENTITY ? (long)getpid() : 1L);
  static const char with[] =
      "{\"name\": \"bad.op\", \"args\": [{\"name\": \"x\", \"dtypes\": [\"f32\"]}],"
      " \"results\": [\"y\"], \"samples\": [{\"name\": \"row\", \"inputs\": [{\"dtype\": \"f32\","
      " \"shape\": [4]}]}]}";
  static const char without[] =
      "{\"name\": \"bad.op\", \"args\": [{\"name\": \"x\", \"dtypes\": [\"f32\"]}],"
      " \"results\": [\"y\"]}";
  kiln_op_def op = {.struct_size = sizeof op, .schema = with, .schema_size = sizeof with - 1, .uuid = uuid};
  op.user = (void *)host, op.infer = infer, op.run = run_op;
  if (BAD == OP) op.decompose = decompose;
  if (BAD == NO_SAMPLES) op.schema = without, op.schema_size = sizeof without - 1;
  if (BAD == OP || BAD == OP_TWICE || BAD == NO_SAMPLES) return host->context->add_op(context, &op);
  kiln_backend backend = {.struct_size = sizeof backend, .name = "bad", .name_size = 3, .uuid = uuid, .version = "1"};
  backend.version_size = 1, backend.device_type = kDLCPU, backend.flags = KILN_BACKEND_SYMBOLIC;
  backend.takes = takes, backend.compile = compile, backend.load = load, backend.run = run_region;
  if (BAD == BACKEND || BAD == STATE) return host->context->add_backend(context, &backend);
  kiln_pass pass = {.struct_size = sizeof pass, .stage = KILN_STAGE_POST_GRAD, .name = "bad", .name_size = 3};
  pass.version = version, pass.version_size = strlen(version);
  pass.uuid = uuid;
  pass.user = (void *)host;
  pass.run = run;
  if (BAD == PATTERN || BAD == PATTERN_TYPE || BAD == PARTS) declare_pattern(&pass);
  if (BAD == FINGERPRINT || BAD == PROCESS || BAD == FACT) pass.fingerprint = fingerprint;
  return host->context->add_pass(context, &pass);
}

const kiln_plugin *kiln_plugin_entry_v1(void) {
  static const kiln_plugin plugin = {sizeof plugin, KILN_ABI_MAJOR, KILN_PLUGIN_MAGIC, 0, 0, 0, 0, "bad", 3, setup,
                                     NULL};
  return &plugin;
}
