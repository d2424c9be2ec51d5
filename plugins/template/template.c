/* A Kiln plugin in C with one graph pass: copy this folder, rename it, and change what is marked 1 to 4.
 *
 * The pass replaces neg(neg(x)) by x. It shows the whole of a pass: a note and a table that say what the plugin needs
 * of its host, a setup that registers the pass, and a run that asks about the graph, edits it, and says that it is
 * done.
 *
 * All calls go through the host's tables; host->GROUP->NAME is documented in kiln/graph.h as kiln_GROUP_NAME. A call
 * that can fail returns NULL or an error, which is passed on by returning it. */
#include <kiln/plugin.h>
#include <stdlib.h>
#include <string.h>

/* 1. The name: of the note, of the plugin, of the pass. */
#define NAME "template"
KILN_PLUGIN_NOTE(0, 0, NAME);

/* 2. The identity: 16 random bytes of your own (kiln plugin uuid makes some). With it, results of the pass are cached. Raise
 * VERSION whenever the pass changes what it makes. What it makes must not depend on the names of nodes, among others:
 * see kiln_pass in kiln/types.h. Without identity (pass.uuid = NULL) every compile runs the pass again. */
static const uint8_t uuid[16] = {0x3e, 0x91, 0xc7, 0x04, 0x5d, 0x2a, 0x4b, 0x68,
                                 0x9f, 0x13, 0x80, 0xee, 0x26, 0xb5, 0x71, 0xda};
#define VERSION "1"

/* The node whose first result `value` is (a value is node << 32 | output). */
static kiln_node node_of(kiln_value value) { return value >> 32; }

/* 3. What the pass does with one node. Sets *changed if it rewrote something. */
static kiln_error *rewrite_node(const kiln_host *host, kiln_edit *edit, kiln_op neg, kiln_node node,
                                uint64_t *changed) {
  const kiln_graph *graph = host->edit->view(edit); /* follows every change */
  if (host->node->op(graph, node) != neg) return NULL;
  const kiln_value inner = host->node->input(graph, node, 0);
  if (host->node->op(graph, node_of(inner)) != neg) return NULL;
  const kiln_value x = host->node->input(graph, node_of(inner), 0);
  *changed += 1;
  /* Where an output would become x itself, or a view of x, the host puts a clone before it: outputs have storage of
   * their own. The pass need not look. */
  return host->edit->replace(edit, node << 32, x); /* what nothing uses any more is dropped by the host */
}

/* One run of the pass, on the thread that compiles. `user` is what setup put into kiln_pass.user. */
static kiln_error *run(void *user, kiln_pass_call *call) {
  const kiln_host *host = (const kiln_host *)user;
  kiln_edit *edit = host->pass->edit(call);
  kiln_op neg = 0;
  kiln_error *error = host->op->find(host->pass->context(call), "neg", strlen("neg"), &neg);
  if (error) return error;

  /* All nodes, in topological order. Nodes keep their numbers while the graph is edited. */
  uint64_t changed = 0, count = 0;
  if ((error = host->graph->nodes(host->edit->view(edit), NULL, 0, &count))) return error;
  kiln_node *nodes = (kiln_node *)malloc((count + 1) * sizeof *nodes);
  if (!nodes) return host->error->create(KILN_OUT_OF_MEMORY, NULL, 0, NULL);
  error = host->graph->nodes(host->edit->view(edit), nodes, count, &count);
  for (uint64_t i = 0; !error && i < count; i++) error = rewrite_node(host, edit, neg, nodes[i], &changed);
  free(nodes);
  if (error) return error;

  return host->pass->done(call, changed); /* without done, the host takes the run as failed and keeps the old graph */
}

/* Once per context. */
static kiln_error *setup(const kiln_host *host, kiln_context *context, void **out_state) {
  kiln_pass pass;
  (void)out_state;               /* no state; a plugin that has some sets *out_state, and frees it in teardown */
  memset(&pass, 0, sizeof pass); /* zero is the default of every field */
  pass.struct_size = sizeof pass;
  pass.stage = KILN_STAGE_POST_GRAD; /* 4. or KILN_STAGE_PRE_GRAD: before differentiation */
  pass.name = NAME;
  pass.name_size = strlen(NAME);
  pass.version = VERSION;
  pass.version_size = strlen(VERSION);
  pass.uuid = uuid;
  pass.user = (void *)host; /* lives as long as the process */
  pass.run = run;
  return host->context->add_pass(context, &pass);
}

static const kiln_plugin plugin = {
    sizeof(kiln_plugin), /* struct_size */
    KILN_ABI_MAJOR,      /* abi_major */
    KILN_PLUGIN_MAGIC,   /* magic */
    0,                   /* host_minor_needed: as in the note */
    0,                   /* reserved0 */
    0,                   /* features_needed: as in the note */
    0,                   /* features_used */
    NAME,                /* name: as in the note */
    sizeof NAME - 1,     /* name_size */
    setup,
    NULL, /* teardown */
};

const kiln_plugin *kiln_plugin_entry_v1(void) { return &plugin; }
