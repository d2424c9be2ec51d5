/* kiln/plugin.h: what a plugin uses. A plugin is a shared library that links nothing of Kiln: it exports
 * kiln_plugin_entry_v1 (and carries a note, KILN_PLUGIN_NOTE) and receives the host's functions in tables.
 *
 * host->GROUP->NAME is the function that graph.h declares and documents as kiln_GROUP_NAME. Tables and slots are
 * permanent and grow at their ends: what a plugin needs it states by `host_minor_needed` and `features_needed`, or it
 * looks at a table's struct_size. Keep state in what `setup` returns, not in globals: setup runs once per context,
 * perhaps on several threads at once. What a pass's result may depend on is told at kiln_pass (types.h). */
#ifndef KILN_PLUGIN_H
#define KILN_PLUGIN_H
#include "kiln/backend.h"
#include "kiln/function.h"
#include "kiln/types.h"
#ifdef __cplusplus
extern "C" {
#endif

#define KILN_PLUGIN_MAGIC 0x316e676c706e6c6bULL /* "klnplgn1" */

/* Names of what a host can do; none is needed for passes. What a plugin says that it needs of them is for hosts that
 * lack it, which then refuse the plugin as a whole, before any of its code runs; a host that has it does not hold a
 * plugin to what it said. */
#define KILN_FEATURE_OPS 1u       /* context->add_op, op_call */
#define KILN_FEATURE_BACKENDS 2u  /* context->add_backend, backend */
#define KILN_FEATURE_FUNCTIONS 4u /* context->add_function */
#define KILN_FEATURE_PATTERNS 8u  /* kiln_pass.patterns, pass->apply_patterns and what follows it */

typedef struct kiln_host_error {
  uint32_t struct_size;
  uint32_t reserved0;
  kiln_error *(*create)(uint32_t code, const char *message, uint64_t message_size, kiln_error *cause);
  uint32_t (*code)(const kiln_error *error);
  void (*message)(const kiln_error *error, kiln_text *out);
  void (*plugin)(const kiln_error *error, kiln_text *out);
  const kiln_error *(*cause)(const kiln_error *error);
  void (*destroy)(kiln_error *error);
} kiln_host_error;

typedef struct kiln_host_op {
  uint32_t struct_size;
  uint32_t reserved0;
  kiln_error *(*find)(kiln_context *context, const char *name, uint64_t name_size, kiln_op *out);
  kiln_error *(*name)(kiln_context *context, kiln_op op, kiln_text *out);
} kiln_host_op;

typedef struct kiln_host_dim {
  uint32_t struct_size;
  uint32_t reserved0;
  kiln_error *(*parse)(kiln_context *context, const char *text, uint64_t text_size, kiln_dim *out);
  kiln_error *(*text)(kiln_context *context, const kiln_dim *dim, kiln_text *out);
  kiln_error *(*evaluate)(kiln_context *context, const kiln_dim *dim, const kiln_text *symbols, const int64_t *values,
                          uint64_t count, int64_t *out);
} kiln_host_dim;

typedef struct kiln_host_graph {
  uint32_t struct_size;
  uint32_t reserved0;
  kiln_error *(*nodes)(const kiln_graph *graph, kiln_node *buffer, uint64_t capacity, uint64_t *out_count);
  kiln_error *(*signature)(const kiln_graph *graph, uint32_t side, kiln_value *buffer, uint64_t capacity,
                           uint64_t *out_count);
  kiln_error *(*output_name)(const kiln_graph *graph, uint64_t index, kiln_text *out);
  kiln_error *(*find)(const kiln_graph *graph, const char *name, uint64_t name_size, kiln_node *out);
  void (*destroy)(kiln_graph *graph);
} kiln_host_graph;

typedef struct kiln_host_node {
  uint32_t struct_size;
  uint32_t reserved0;
  uint32_t (*kind)(const kiln_graph *graph, kiln_node node);
  kiln_error *(*name)(const kiln_graph *graph, kiln_node node, kiln_text *out);
  kiln_op (*op)(const kiln_graph *graph, kiln_node node);
  uint32_t (*input_count)(const kiln_graph *graph, kiln_node node);
  kiln_value (*input)(const kiln_graph *graph, kiln_node node, uint32_t index);
  uint32_t (*output_count)(const kiln_graph *graph, kiln_node node);
  kiln_error *(*attr)(const kiln_graph *graph, kiln_node node, const char *name, uint64_t name_size, kiln_attr *out);
  kiln_error *(*attrs)(const kiln_graph *graph, kiln_node node, kiln_attr *buffer, uint64_t capacity,
                       uint64_t *out_count);
  kiln_error *(*annotations)(const kiln_graph *graph, kiln_node node, kiln_attr *buffer, uint64_t capacity,
                             uint64_t *out_count);
  kiln_error *(*constant)(const kiln_graph *graph, kiln_node node, const DLTensor **out);
} kiln_host_node;

typedef struct kiln_host_value {
  uint32_t struct_size;
  uint32_t reserved0;
  uint32_t (*use_count)(const kiln_graph *graph, kiln_value value);
  kiln_error *(*users)(const kiln_graph *graph, kiln_value value, kiln_node *buffer, uint64_t capacity,
                       uint64_t *out_count);
  kiln_error *(*dtype)(const kiln_graph *graph, kiln_value value, kiln_dtype *out);
  kiln_error *(*dims)(const kiln_graph *graph, kiln_value value, kiln_dim *buffer, uint64_t capacity,
                      uint64_t *out_rank);
  kiln_error *(*strides)(const kiln_graph *graph, kiln_value value, kiln_dim *buffer, uint64_t capacity,
                         uint64_t *out_rank);
  kiln_value (*view_of)(const kiln_graph *graph, kiln_value value);
} kiln_host_value;

typedef struct kiln_host_edit {
  uint32_t struct_size;
  uint32_t reserved0;
  kiln_error *(*begin)(kiln_context *context, const kiln_graph *from, kiln_edit **out);
  const kiln_graph *(*view)(const kiln_edit *edit);
  kiln_error *(*symbol)(kiln_edit *edit, const char *name, uint64_t name_size, const kiln_symbol *symbol);
  kiln_error *(*input)(kiln_edit *edit, const char *name, uint64_t name_size, const kiln_type *type, kiln_value *out);
  kiln_error *(*parameter)(kiln_edit *edit, const char *name, uint64_t name_size, const kiln_type *type,
                           kiln_value *out);
  kiln_error *(*constant)(kiln_edit *edit, const char *name, uint64_t name_size, const DLTensor *tensor,
                          kiln_value *out);
  kiln_error *(*add)(kiln_edit *edit, kiln_op op, const char *name, uint64_t name_size, const kiln_value *inputs,
                     uint64_t input_count, const kiln_attr *attrs, uint64_t attr_count, kiln_node *out);
  kiln_error *(*annotate)(kiln_edit *edit, kiln_node node, const kiln_attr *annotations, uint64_t count);
  kiln_error *(*scope)(kiln_edit *edit, const kiln_attr *annotations, uint64_t count);
  kiln_error *(*replace)(kiln_edit *edit, kiln_value from, kiln_value to);
  kiln_error *(*outputs)(kiln_edit *edit, const kiln_value *values, const kiln_text *names, uint64_t count);
  kiln_error *(*finish)(kiln_edit *edit, kiln_graph **out);
  void (*destroy)(kiln_edit *edit);
  kiln_error *(*output)(kiln_edit *edit, const kiln_output *output);
} kiln_host_edit;

typedef struct kiln_host_pass {
  uint32_t struct_size;
  uint32_t reserved0;
  kiln_edit *(*edit)(kiln_pass_call *call);
  kiln_context *(*context)(kiln_pass_call *call);
  kiln_error *(*option)(kiln_pass_call *call, const char *name, uint64_t name_size, kiln_attr *out);
  kiln_error *(*fingerprint_add)(kiln_pass_call *call, const void *bytes, uint64_t size);
  kiln_error *(*replace_graph)(kiln_pass_call *call, kiln_graph *graph);
  kiln_error *(*done)(kiln_pass_call *call, uint64_t rewrites);
  kiln_error *(*note)(kiln_pass_call *call, const char *text, uint64_t text_size);
  kiln_error *(*warn)(kiln_pass_call *call, const char *text, uint64_t text_size);
  kiln_error *(*query)(kiln_pass_call *call, const char *question, uint64_t question_size, kiln_attr *out);
  kiln_error *(*uncacheable)(kiln_pass_call *call, const char *why, uint64_t why_size);
  kiln_error *(*apply_patterns)(kiln_pass_call *call, uint64_t *out_rewrites);
  kiln_error *(*match_value)(kiln_pass_call *call, const char *name, uint64_t name_size, kiln_value *out);
  kiln_error *(*match_number)(kiln_pass_call *call, const char *name, uint64_t name_size, double *out);
  kiln_error *(*match_replace)(kiln_pass_call *call, const kiln_value *values, uint64_t count);
} kiln_host_pass;

/* What only a plugin may call, and only inside its setup. */
typedef struct kiln_host_context {
  uint32_t struct_size;
  uint32_t reserved0;
  /* Registers a pass. On success Kiln owns pass->user, even when the load fails later. The registration counts only if
   * setup succeeds. */
  kiln_error *(*add_pass)(kiln_context *context, const kiln_pass *pass);
  /* Registers an op, likewise. It has a number (op->find) once the plugin is loaded. */
  kiln_error *(*add_op)(kiln_context *context, const kiln_op_def *op);
  /* Says that what the plugin does follows from this file, too, which it opens or reads: its content and its name, not
   * its folder, join the identity of what is added after it. Of the libraries that a plugin links Kiln knows by itself.
   * KILN_IO. */
  kiln_error *(*add_file)(kiln_context *context, const char *path, uint64_t path_size);
  /* Registers a function, likewise. Of one by pointer, the plugin's identity is in the key. */
  kiln_error *(*add_function)(kiln_context *context, const kiln_function *function);
  /* Registers a backend, likewise. */
  kiln_error *(*add_backend)(kiln_context *context, const kiln_backend *backend);
} kiln_host_context;

typedef struct kiln_host_op_call {
  uint32_t struct_size;
  uint32_t reserved0;
  kiln_context *(*context)(kiln_op_call *call);
  uint32_t (*operand_count)(kiln_op_call *call);
  kiln_error *(*dtype)(kiln_op_call *call, uint32_t operand, kiln_dtype *out);
  kiln_error *(*dims)(kiln_op_call *call, uint32_t operand, kiln_dim *buffer, uint64_t capacity, uint64_t *out_rank);
  kiln_error *(*attr)(kiln_op_call *call, const char *name, uint64_t name_size, kiln_attr *out);
  kiln_error *(*result)(kiln_op_call *call, uint32_t index, const kiln_type *type);
  kiln_error *(*require_equal)(kiln_op_call *call, const kiln_dim *a, const kiln_dim *b, const char *what,
                               uint64_t what_size);
  kiln_edit *(*edit)(kiln_op_call *call);
  kiln_value (*operand)(kiln_op_call *call, uint32_t index);
  kiln_error *(*yield)(kiln_op_call *call, uint32_t index, kiln_value value);
} kiln_host_op_call;

typedef struct kiln_host_backend {
  uint32_t struct_size;
  uint32_t reserved0;
  kiln_context *(*context)(kiln_backend_call *call);
  kiln_error *(*option)(kiln_backend_call *call, const char *name, uint64_t name_size, kiln_attr *out);
  kiln_error *(*key)(kiln_backend_call *call, const void *bytes, uint64_t size);
  kiln_error *(*blob)(kiln_backend_call *call, const void *bytes, uint64_t size);
  kiln_error *(*refuse)(kiln_backend_call *call, const char *why, uint64_t why_size);
} kiln_host_backend;

typedef struct kiln_host { /* lives as long as the process */
  uint32_t struct_size;
  uint32_t abi_minor;
  uint64_t features; /* KILN_FEATURE_* */
  const kiln_host_error *error;
  const kiln_host_op *op;
  const kiln_host_dim *dim;
  const kiln_host_graph *graph;
  const kiln_host_node *node;
  const kiln_host_value *value;
  const kiln_host_edit *edit;
  const kiln_host_pass *pass;
  const kiln_host_context *context;
  const kiln_host_op_call *op_call;
  const kiln_host_backend *backend;
} kiln_host;

typedef struct kiln_plugin { /* all of it in static storage of the plugin */
  uint32_t struct_size;
  uint32_t abi_major; /* KILN_ABI_MAJOR */
  uint64_t magic;     /* KILN_PLUGIN_MAGIC */
  uint32_t host_minor_needed;
  uint32_t reserved0;
  uint64_t features_needed; /* the load fails without them */
  uint64_t features_used;   /* used where the host has them */
  const char *name;
  uint64_t name_size;
  /* Once per context, on the thread that loads. *out_state (may stay NULL) goes to teardown. */
  kiln_error *(*setup)(const kiln_host *host, kiln_context *context, void **out_state);
  /* May be NULL. When the context is closed, after the destroy callbacks of its passes; not if setup failed. */
  void (*teardown)(void *state);
} kiln_plugin;

/* The one symbol that a plugin exports. */
KILN_EXPORT const kiln_plugin *kiln_plugin_entry_v1(void);

/* ---- the note: the same facts, readable from the file before any of its code is mapped. Write once, at file scope:
 *   KILN_PLUGIN_NOTE(host_minor_needed, features_needed, "name");   the name has at most 63 bytes */
#define KILN_NOTE_TYPE 1u
typedef struct kiln_plugin_note { /* an ELF note of owner "Kiln", type 1; 4-byte aligned, so 64-bit facts are halves */
  uint32_t owner_size, payload_size, type;
  char owner[8];
  uint32_t magic_low, magic_high;
  uint32_t abi_major, host_minor_needed;
  uint32_t features_low, features_high;
  char name[64];
} kiln_plugin_note;
#define KILN_NOTE_PAYLOAD_SIZE 88u
#define KILN_PLUGIN_NOTE(minor_needed, features_needed, name_literal)                                          \
  __attribute__((section(".note.kiln"), used, aligned(4))) static const kiln_plugin_note kiln_plugin_note_ = { \
      5u,                                                                                                      \
      KILN_NOTE_PAYLOAD_SIZE,                                                                                  \
      KILN_NOTE_TYPE,                                                                                          \
      "Kiln",                                                                                                  \
      (uint32_t)(KILN_PLUGIN_MAGIC & 0xffffffffu),                                                             \
      (uint32_t)(KILN_PLUGIN_MAGIC >> 32),                                                                     \
      KILN_ABI_MAJOR,                                                                                          \
      (minor_needed),                                                                                          \
      (uint32_t)((uint64_t)(features_needed) & 0xffffffffu),                                                   \
      (uint32_t)((uint64_t)(features_needed) >> 32),                                                           \
      name_literal}

#ifdef __cplusplus
}
#endif
#endif
