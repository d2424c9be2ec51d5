/* The frame of a plugin that does one thing wrong. A case defines what differs from the right thing, then includes
 * this: by default the plugin "case" registers one pass, "breaks", of post_grad with an identity. PASS_BODY    what the
 * pass does, a statement that returns; default: nothing, and it is done CHANGE_PASS  a statement that changes `pass`
 * before it is registered NOTE_…       facts of the note, TABLE_… of the table */
#include <kiln/plugin.h>
#include <string.h>

#ifndef NOTE_MAGIC
#define NOTE_MAGIC KILN_PLUGIN_MAGIC
#endif
#ifndef NOTE_MAJOR
#define NOTE_MAJOR KILN_ABI_MAJOR
#endif
#ifndef NOTE_MINOR
#define NOTE_MINOR 0u
#endif
#ifndef NOTE_FEATURES
#define NOTE_FEATURES 0ull
#endif
#ifndef NOTE_NAME
#define NOTE_NAME "case"
#endif
#ifndef TABLE_SIZE
#define TABLE_SIZE sizeof(kiln_plugin)
#endif
#ifndef TABLE_MAGIC
#define TABLE_MAGIC KILN_PLUGIN_MAGIC
#endif
#ifndef TABLE_NAME
#define TABLE_NAME NOTE_NAME
#endif
#ifndef SETUP
#define SETUP setup
#endif
#ifndef PASS_BODY
#define PASS_BODY return host->pass->done(call, 0)
#endif
#ifndef CHANGE_PASS
#define CHANGE_PASS (void)0
#endif
#ifndef SETUP_BODY
#define SETUP_BODY return register_pass(host, context)
#endif

#ifndef WITHOUT_NOTE
__attribute__((section(".note.kiln"), used, aligned(4))) static const kiln_plugin_note note = {
    5u,
    KILN_NOTE_PAYLOAD_SIZE,
    KILN_NOTE_TYPE,
    "Kiln",
    (uint32_t)(NOTE_MAGIC & 0xffffffffu),
    (uint32_t)(NOTE_MAGIC >> 32),
    NOTE_MAJOR,
    NOTE_MINOR,
    (uint32_t)((uint64_t)NOTE_FEATURES & 0xffffffffu),
    (uint32_t)((uint64_t)NOTE_FEATURES >> 32),
    NOTE_NAME};
#endif

static const uint8_t uuid[16] = {0x6b, 1, 2, 3};

/* The value of the node of that name, or 0. */
static inline kiln_value value_of(const kiln_host *host, kiln_edit *edit, const char *name) {
  kiln_node node = 0;
  host->error->destroy(host->graph->find(host->edit->view(edit), name, strlen(name), &node));
  return node << 32;
}

/* Adds a node with up to two operands (0: none) to `edit`. */
static inline kiln_error *add_node(const kiln_host *host, kiln_pass_call *call, const char *op, kiln_value a,
                                   kiln_value b, kiln_value *out) {
  const kiln_value operands[2] = {a, b};
  kiln_op number = 0;
  kiln_node node = 0;
  kiln_error *error = host->op->find(host->pass->context(call), op, strlen(op), &number);
  if (!error)
    error = host->edit->add(host->pass->edit(call), number, NULL, 0, operands, a && b ? 2 : a ? 1 : 0, NULL, 0, &node);
  *out = node << 32;
  return error;
}

static kiln_error *run(void *user, kiln_pass_call *call) {
  const kiln_host *host = (const kiln_host *)user;
  kiln_edit *edit = host->pass->edit(call);
  (void)edit;
  PASS_BODY;
}

static inline kiln_error *register_pass(const kiln_host *host, kiln_context *context) {
  kiln_pass pass;
  memset(&pass, 0, sizeof pass);
  pass.struct_size = sizeof pass;
  pass.stage = KILN_STAGE_POST_GRAD;
  pass.name = "breaks";
  pass.name_size = 6;
  pass.uuid = uuid;
  pass.user = (void *)host; /* read only; it outlives the pass */
  pass.run = run;
  CHANGE_PASS;
  return host->context->add_pass(context, &pass);
}

static inline kiln_error *setup(const kiln_host *host, kiln_context *context, void **out_state) {
  (void)out_state;
  SETUP_BODY;
}

#ifndef WITHOUT_ENTRY
#ifdef __cplusplus
extern "C"
#endif
    const kiln_plugin *
    kiln_plugin_entry_v1(void) {
#ifdef WITHOUT_TABLE
  return NULL;
#else
  static const kiln_plugin table = {
      (uint32_t)TABLE_SIZE,   NOTE_MAJOR, TABLE_MAGIC, NOTE_MINOR, 0, NOTE_FEATURES, 0, TABLE_NAME,
      sizeof(TABLE_NAME) - 1, SETUP,      NULL};
  return &table;
#endif
}
#endif
