/* kiln/graph.h: errors, graphs, edits and running passes. These are the calls that plugins share with hosts: each
 * kiln_GROUP_NAME here is also the slot NAME of the table GROUP that a plugin receives (plugin.h).
 *
 * A graph is functional: its nodes stand in topological order, and a value is (node, output). It never changes. An edit
 * begins empty or from a graph and ends in a new one; builder and rewriter are one vocabulary.
 * Accessors that return no error answer 0 for a node or value that is not there. */
#ifndef KILN_GRAPH_H
#define KILN_GRAPH_H
#include "kiln/types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors */

/* An error for a callback to return (returning it transfers it). Takes over `cause` (may be NULL). Never returns NULL:
 * without memory, it is a KILN_OUT_OF_MEMORY error. A code of 0 becomes KILN_INTERNAL. */
KILN_EXPORT kiln_error *kiln_error_create(uint32_t code, const char *message, uint64_t message_size, kiln_error *cause);
/* KILN_*; KILN_OK for NULL, KILN_INTERNAL for what is no error or was destroyed, as its message then says. Whoever
 * returns such a pointer from a callback fails with KILN_PLUGIN_FAILED. */
KILN_EXPORT uint32_t kiln_error_code(const kiln_error *error);
/* What failed, where, and what was expected, in one line. View of `error`; empty for NULL. */
KILN_EXPORT void kiln_error_message(const kiln_error *error, kiln_text *out);
/* The plugin at fault (its name or path), or empty. View of `error`. */
KILN_EXPORT void kiln_error_plugin(const kiln_error *error, kiln_text *out);
/* The error that led to this one, or NULL. View of `error`: not to be destroyed. */
KILN_EXPORT const kiln_error *kiln_error_cause(const kiln_error *error);
/* With its causes and its report; their views die with it. Any thread. */
KILN_EXPORT void kiln_error_destroy(kiln_error *error);

/* ---- ops: one generic "add node", and names. kiln_op_count and kiln_op_describe (kiln.h) tell the schemas. */

/* KILN_UNKNOWN_NAME, with the nearest name, when there is no such op. What a pass asks of its own context
 * (kiln_pass_context) is kept in the artifact, also that there was none. */
KILN_EXPORT kiln_error *kiln_op_find(kiln_context *context, const char *name, uint64_t name_size, kiln_op *out);
/* View of `context`. KILN_OUT_OF_RANGE for an op that is not there. */
KILN_EXPORT kiln_error *kiln_op_name(kiln_context *context, kiln_op op, kiln_text *out);

/* ---- dimensions */

/* Reads "batch", "2*n + 1", "(h + 3) // 4", "min(a, b)", "128": + - * / (exact) // % min max and parentheses over
 * integers and symbols; at most 64 KiB of text, and at most 200 levels deep. */
KILN_EXPORT kiln_error *kiln_dim_parse(kiln_context *context, const char *text, uint64_t text_size, kiln_dim *out);
/* The text that kiln_dim_parse reads back. View of `context`. */
KILN_EXPORT kiln_error *kiln_dim_text(kiln_context *context, const kiln_dim *dim, kiln_text *out);
/* The value for given sizes: `symbols` and `values` are `count` long. KILN_UNKNOWN_NAME for a missing symbol. */
KILN_EXPORT kiln_error *kiln_dim_evaluate(kiln_context *context, const kiln_dim *dim, const kiln_text *symbols,
                                          const int64_t *values, uint64_t count, int64_t *out);

/* ---- reading graphs. Any thread. Functions with (buffer, capacity, out_count) write at most `capacity` elements and
 * always set *out_count to how many there are; buffer may be NULL when capacity is 0. Views live as long as the graph;
 * those of kiln_edit_view's graph, until the next change of the edit. */

/* All nodes in topological order. */
KILN_EXPORT kiln_error *kiln_graph_nodes(const kiln_graph *graph, kiln_node *buffer, uint64_t capacity,
                                         uint64_t *out_count);
/* The values of one side of the signature (KILN_SIDE_*), in order. */
KILN_EXPORT kiln_error *kiln_graph_signature(const kiln_graph *graph, uint32_t side, kiln_value *buffer,
                                             uint64_t capacity, uint64_t *out_count);
/* The name of output `index`. (An input's or parameter's name is its node's.) */
KILN_EXPORT kiln_error *kiln_graph_output_name(const kiln_graph *graph, uint64_t index, kiln_text *out);
/* The node of that name; KILN_UNKNOWN_NAME when there is none. */
KILN_EXPORT kiln_error *kiln_graph_find(const kiln_graph *graph, const char *name, uint64_t name_size, kiln_node *out);
/* Views of it (texts, attributes, constants) die with it; what was compiled from it does not. Any thread. Does nothing
 * to the view of an edit. */
KILN_EXPORT void kiln_graph_destroy(kiln_graph *graph);

/* KILN_NODE_*. A nested graph has inputs alone; where a pass sees one that every node which carries the graph gives a
 * parameter or a constant, its kind is KILN_NODE_PARAMETER: no call changes it. */
KILN_EXPORT uint32_t kiln_node_kind(const kiln_graph *graph, kiln_node node);
/* Unique in its graph, never empty; for people, unless it is an input's or a parameter's (see kiln_pass). *out is a
 * view of `graph`. KILN_OUT_OF_RANGE when the graph has no such node. */
KILN_EXPORT kiln_error *kiln_node_name(const kiln_graph *graph, kiln_node node, kiln_text *out);
/* 0 unless it is an op node. */
KILN_EXPORT kiln_op kiln_node_op(const kiln_graph *graph, kiln_node node);
/* Operands of an op node; 0 for all others. */
KILN_EXPORT uint32_t kiln_node_input_count(const kiln_graph *graph, kiln_node node);
/* Operand `index`, from 0; 0 when there is none. */
KILN_EXPORT kiln_value kiln_node_input(const kiln_graph *graph, kiln_node node, uint32_t index);
/* Values that the node makes: one, but for op nodes that yield several. */
KILN_EXPORT uint32_t kiln_node_output_count(const kiln_graph *graph, kiln_node node);
/* One attribute of an op node, defaults included. `out` is a view. KILN_UNKNOWN_NAME when the op has none. */
KILN_EXPORT kiln_error *kiln_node_attr(const kiln_graph *graph, kiln_node node, const char *name, uint64_t name_size,
                                       kiln_attr *out);
/* All attributes that differ from their op's defaults, sorted by name. A pattern refuses what it does not name here. */
KILN_EXPORT kiln_error *kiln_node_attrs(const kiln_graph *graph, kiln_node node, kiln_attr *buffer, uint64_t capacity,
                                        uint64_t *out_count);
/* All annotations, sorted by name. Those whose names begin with "debug." are for people (see kiln_pass). */
KILN_EXPORT kiln_error *kiln_node_annotations(const kiln_graph *graph, kiln_node node, kiln_attr *buffer,
                                              uint64_t capacity, uint64_t *out_count);
/* A constant's bytes, row-major; KILN_INVALID_ARGUMENT unless it is a constant node. */
KILN_EXPORT kiln_error *kiln_node_constant(const kiln_graph *graph, kiln_node node, const DLTensor **out);

/* How often the value is an operand or an output; a node that uses it twice counts twice. */
KILN_EXPORT uint32_t kiln_value_use_count(const kiln_graph *graph, kiln_value value);
/* The op nodes that use the value, each once, in topological order. */
KILN_EXPORT kiln_error *kiln_value_users(const kiln_graph *graph, kiln_value value, kiln_node *buffer,
                                         uint64_t capacity, uint64_t *out_count);
/* The element type. KILN_OUT_OF_RANGE when the graph has no such value. */
KILN_EXPORT kiln_error *kiln_value_dtype(const kiln_graph *graph, kiln_value value, kiln_dtype *out);
/* The sizes, outermost first; *out_rank of them. Expressions are valid within the graph's context. KILN_OUT_OF_RANGE
 * when the graph has no such value. */
KILN_EXPORT kiln_error *kiln_value_dims(const kiln_graph *graph, kiln_value value, kiln_dim *buffer, uint64_t capacity,
                                        uint64_t *out_rank);
/* Strides in elements. Passes may not read the layout that the planner is free to choose: KILN_INVALID_ARGUMENT unless
 * the value's layout is exact (inputs, parameters, constants). */
KILN_EXPORT kiln_error *kiln_value_strides(const kiln_graph *graph, kiln_value value, kiln_dim *buffer,
                                           uint64_t capacity, uint64_t *out_rank);
/* The value whose storage this one is a view of, or 0. */
KILN_EXPORT kiln_value kiln_value_view_of(const kiln_graph *graph, kiln_value value);

/* ---- edits. One thread at a time: KILN_BUSY for a change while another thread makes one. An edit that is destroyed
 * without finish changes nothing. */

/* Begins an edit: from a copy of `from` (of the view of an edit: as it stands, without what nothing uses), or empty
 * when it is NULL. Nodes keep their numbers. The caller owns *out. */
KILN_EXPORT kiln_error *kiln_edit_begin(kiln_context *context, const kiln_graph *from, kiln_edit **out);
/* The graph as it stands. View of `edit`: not to be destroyed; it follows every change. NULL for a wrong handle. */
KILN_EXPORT const kiln_graph *kiln_edit_view(const kiln_edit *edit);
/* Declares what is known of a symbol. A symbol that is only used in shapes needs no declaration. */
KILN_EXPORT kiln_error *kiln_edit_symbol(kiln_edit *edit, const char *name, uint64_t name_size,
                                         const kiln_symbol *symbol);
/* Adds an input; *out is its value. The name must be new in the graph (a node that was added without one gives its own
 * up for another), and have neither ':' nor control characters. All of `type` is copied. KILN_INVALID_ARGUMENT names
 * what of them is wrong. */
KILN_EXPORT kiln_error *kiln_edit_input(kiln_edit *edit, const char *name, uint64_t name_size, const kiln_type *type,
                                        kiln_value *out);
/* The same for a parameter: a weight, which is bound once and whose value is not in the key. */
KILN_EXPORT kiln_error *kiln_edit_parameter(kiln_edit *edit, const char *name, uint64_t name_size,
                                            const kiln_type *type, kiln_value *out);
/* Adds a constant. Its bytes are copied, and are in the key and the artifact: meant for small things. An empty name:
 * one is made. */
KILN_EXPORT kiln_error *kiln_edit_constant(kiln_edit *edit, const char *name, uint64_t name_size,
                                           const DLTensor *tensor, kiln_value *out);
/* Adds an op node and infers its results at once; *out is the node, its values are *out << 32 | index. Fails at once,
 * naming op and argument: KILN_TYPE_MISMATCH, KILN_UNKNOWN_NAME, KILN_INVALID_ARGUMENT. An empty name: one is made.
 * Attributes that are left out have their defaults, and integers serve where dims are wanted; an optional operand is
 * left out at the end. */
KILN_EXPORT kiln_error *kiln_edit_add(kiln_edit *edit, kiln_op op, const char *name, uint64_t name_size,
                                      const kiln_value *inputs, uint64_t input_count, const kiln_attr *attrs,
                                      uint64_t attr_count, kiln_node *out);
/* Sets annotations of an op node or an input (kinds i64, f64, text, dtype, bool, and lists of them); one of kind
 * KILN_ATTR_NONE is taken away, and not inherited. Names under "kiln." are Kiln's, closed and typed: KILN_UNKNOWN_NAME
 * for one that there is not, KILN_TYPE_MISMATCH for another kind, KILN_INVALID_ARGUMENT for a value that it does not
 * take. There are:
 * - kiln.region text: the region that the node is marked for, of letters, digits, '_' and '-', but not "forward" or
 *   "backward"; "": none, whatever a scope around says. The compile's option "mode" says whether regions are compiled
 *   by themselves.
 * - kiln.region.backend, kiln.region.rounding text, kiln.region.fuse bool: a compile's options, for the node's region
 *   and phase; two of its nodes that differ are an error of the compile. Inherited within the region alone.
 * - kiln.region.backend.OPTION: likewise, an option of the registered backend that is chosen for the region, which
 *   checks it in the compile.
 * - kiln.fallback bool: the node is compiled with no other, whatever region it is marked for; of a call: all of its
 *   graph. false: takes it back.
 * - kiln.fallback.function text: the function of the host's that runs the node, under every mode, whatever region it is
 *   marked for (function.h); what takes the node's place does not inherit it. "": takes it back.
 * - kiln.decompose text: "keep": a composite op is computed whole, by its reference kernel where the backend has code
 *   for its decomposition alone; "always": it is decomposed where it falls back, too; "backend" (default): takes either
 *   back.
 * - kiln.cut bool: a piece ends after the node; of a call: after its graph. false: takes it back.
 * - kiln.phase text: "backward" or "recompute"; of a graph that was differentiated. Without: the forward pass.
 * - kiln.donate bool: of an input of the outermost graph alone: a run may use its memory as its own, what it holds then
 *   is not defined. It overlaps no other array of the call. Of one that is not row-major, that an output is a view of,
 *   or on backend "reference" nothing is done with it. false: takes it back.
 * - kiln.stage text: a part that kiln_graph_extract cuts out; a compile does not look at it.
 * Names under "debug." are for people: in no key. All others are the host's own: in the key, otherwise inert. */
KILN_EXPORT kiln_error *kiln_edit_annotate(kiln_edit *edit, kiln_node node, const kiln_attr *annotations,
                                           uint64_t count);
/* Opens a scope: nodes that are added inside it get these annotations (inner scopes win), which are checked here as by
 * kiln_edit_annotate. count 0 closes the innermost scope; KILN_INVALID_ARGUMENT when none is open. A pass that ends
 * with one open has failed. */
KILN_EXPORT kiln_error *kiln_edit_scope(kiln_edit *edit, const kiln_attr *annotations, uint64_t count);
/* Makes every use of `from` a use of `to`. Dtype and dims must be the same, and no cycle may close. `to` may be what
 * `from` was made of: where an output of a pass's graph would then share storage with an input, a parameter, a constant
 * or another output, and did not before, the host puts a `clone` before it ("passes.N.clones" of the report). A node
 * that this edit added inherits the annotations of what it replaces; two different values of one name are an error. In
 * the finished graph so do the nodes that it was made of: those that were added after the replaced node, down to others
 * that replace something; each by the first replacement that it is part of. What is set on a node wins. A node that is
 * kept for its effect is not any more when all tokens that it yields are replaced. */
KILN_EXPORT kiln_error *kiln_edit_replace(kiln_edit *edit, kiln_value from, kiln_value to);
/* Sets the graph's outputs. `names` may be NULL: names are then kept, or "output0", "output1", ... One whose name was
 * there is given to calls as that was (kiln_edit_output); others are row-major. */
KILN_EXPORT kiln_error *kiln_edit_outputs(kiln_edit *edit, const kiln_value *values, const kiln_text *names,
                                          uint64_t count);
/* Appends an output, as a call is to be given it (docs/memory.md); all is copied in. By a type's strides (known,
 * symbolic, below 0) no two of its elements may be one: of a dim of several elements none is 0. KILN_LAYOUT_ANY: an
 * array of any such strides, of each run its own. KILN_OUTPUT_VIEW: of a value that is a view of an input (or a copy_,
 * which is the input that it writes): its slot is not bound, and no byte moves; kiln_call_output tells where it lies.
 * KILN_TYPE_MISMATCH: dtype or dims are not the value's. kiln_edit_finish says of strides that do not fit, and of a
 * value that is no view of an input, KILN_INVARIANT; kiln_compile of a view whose elements no strides lead to,
 * KILN_INVALID_ARGUMENT. */
KILN_EXPORT kiln_error *kiln_edit_output(kiln_edit *edit, const kiln_output *output);
/* Sorts, drops what nothing uses, verifies every invariant; *out is the caller's. KILN_INVARIANT names invariant and
 * node. The edit stands as before, and must still be destroyed. Refused (KILN_INVALID_ARGUMENT) for a pass's own edit:
 * the host finishes that one. */
KILN_EXPORT kiln_error *kiln_edit_finish(kiln_edit *edit, kiln_graph **out);
/* With its view. Finished graphs live on. Does nothing to a pass's own edit. */
KILN_EXPORT void kiln_edit_destroy(kiln_edit *edit);

/* ---- inside a pass: valid until run() or fingerprint() returns, on its thread. On another thread and afterwards what
 * they give is refused (KILN_INVALID_ARGUMENT; 0 or NULL where there is no error). About every 20 ms a call asks the
 * host's event callback; when that cancels, it and all later ones of the pass answer KILN_CANCELLED, and so does the
 * compile, whatever the pass returns. */

/* The edit of the graph that the pass works on. The host's: not to be destroyed. NULL inside fingerprint. */
KILN_EXPORT kiln_edit *kiln_pass_edit(kiln_pass_call *call);
/* The context that the pass runs in. A view: not to be destroyed. */
KILN_EXPORT kiln_context *kiln_pass_context(kiln_pass_call *call);
/* The value of an option that the pass declared. View of `call`. */
KILN_EXPORT kiln_error *kiln_pass_option(kiln_pass_call *call, const char *name, uint64_t name_size, kiln_attr *out);
/* Adds bytes to the key. Inside fingerprint only. */
KILN_EXPORT kiln_error *kiln_pass_fingerprint_add(kiln_pass_call *call, const void *bytes, uint64_t size);
/* Takes over `graph` (on success), which becomes the pass's result in place of its edit. Same signature, or the pass
 * fails. */
KILN_EXPORT kiln_error *kiln_pass_replace_graph(kiln_pass_call *call, kiln_graph *graph);
/* Required once, at the end of a run that succeeded; `rewrites` counts what was changed, for the report. After it the
 * pass changes nothing more: KILN_INVALID_ARGUMENT. */
KILN_EXPORT kiln_error *kiln_pass_done(kiln_pass_call *call, uint64_t rewrites);
/* Tells one line of UTF-8 to whoever compiles: it is in the compile's report ("passes.N.notes") and, with the pass's
 * name before it, an event of kind KILN_EVENT_PROGRESS. KILN_CANCELLED when the host cancels there. Inside run only. */
KILN_EXPORT kiln_error *kiln_pass_note(kiln_pass_call *call, const char *text, uint64_t text_size);
/* The same of what is likely not meant: "passes.N.warnings", and KILN_EVENT_WARNING. */
KILN_EXPORT kiln_error *kiln_pass_warn(kiln_pass_call *call, const char *text, uint64_t text_size);
/* Asks what no key has, so that the result may depend on it: a record that was made after other answers is not this
 * compile's, and stays, for whoever has those. All passes of a compile get the same answers, as they were when first
 * asked; of host.NAME as they were when it began.
 *   env.NAME       a variable of the environment (text)
 *   file.PATH      the digest of a file's content, 64 hex digits (text); to be asked before the file is read
 *   host.NAME      what the host has set by kiln_fact_set, of the kind that it has there
 *   device.NAME    of what the backend runs on: "kind" and "arch" (texts), of the processor also "cores", "l1_bytes",
 *                  "l2_bytes", "l3_bytes" (i64)
 *   compile.NAME   of what is keyed anyway: "backend", "target", "stage", "region" (texts; the last of stage lower, of
 *                  what was cut out, and of equal regions, which are compiled once, the first one's), and
 *                  "option.NAME" of those that say what is made (docs/options.md)
 *
 * *out is a view of `call`, but its name, which is `question`. It is of kind KILN_ATTR_NONE where there is no such
 * variable, file, fact or region, which is an answer, too. KILN_UNKNOWN_NAME: no question, with what there is;
 * KILN_IO: the file cannot be read, or is a folder; KILN_NO_DEVICE. Inside run and fingerprint; what a fingerprint or
 * an early pass asks is not kept: a key is made of what they do. */
KILN_EXPORT kiln_error *kiln_pass_query(kiln_pass_call *call, const char *question, uint64_t question_size,
                                        kiln_attr *out);
/* Says in one line of UTF-8 why what the pass makes is not to be given to another compile: "it reads the clock". Inside
 * fingerprint the cache is bypassed, with that reason; inside run the lookup has been a miss, and what is made is
 * neither saved nor shared, of which a KILN_EVENT_WARNING tells. In strict mode the compile fails. Of an early pass it
 * says nothing: what that makes is keyed. */
KILN_EXPORT kiln_error *kiln_pass_uncacheable(kiln_pass_call *call, const char *why, uint64_t why_size);

/* Rewrites by the pass's patterns (kiln_pass) each place in which one is found, once: at each node, in the order in
 * which they stand, the first pattern that is. *out_rewrites (may be NULL): how many. Inside run only, and before
 * kiln_pass_done. */
KILN_EXPORT kiln_error *kiln_pass_apply_patterns(kiln_pass_call *call, uint64_t *out_rewrites);
/* The next three inside kiln_pattern.rewrite alone; elsewhere KILN_INVALID_ARGUMENT. What a capture of the pattern is
 * at this place, or result 0 of one of its nodes; 0: an optional one that is not there. KILN_UNKNOWN_NAME: the pattern
 * has none of that name. */
KILN_EXPORT kiln_error *kiln_pass_match_value(kiln_pass_call *call, const char *name, uint64_t name_size,
                                              kiln_value *out);
/* The number of a capture that is a scalar which the graph itself holds; KILN_TYPE_MISMATCH: it is none. */
KILN_EXPORT kiln_error *kiln_pass_match_number(kiln_pass_call *call, const char *name, uint64_t name_size, double *out);
/* What takes the place of the pattern's outputs, in order and as many. Once. It happens when the function has returned,
 * by the rules of kiln_edit_replace. */
KILN_EXPORT kiln_error *kiln_pass_match_replace(kiln_pass_call *call, const kiln_value *values, uint64_t count);

/* ---- inside a function of an op (kiln_op_def): valid until it returns, on its thread; otherwise refused
 * (KILN_INVALID_ARGUMENT; 0 or NULL where there is no error) */

/* For names of ops and dimensions. View: not to be destroyed. */
KILN_EXPORT kiln_context *kiln_op_call_context(kiln_op_call *call);
KILN_EXPORT uint32_t kiln_op_call_operand_count(kiln_op_call *call);
KILN_EXPORT kiln_error *kiln_op_call_dtype(kiln_op_call *call, uint32_t operand, kiln_dtype *out);
KILN_EXPORT kiln_error *kiln_op_call_dims(kiln_op_call *call, uint32_t operand, kiln_dim *buffer, uint64_t capacity,
                                          uint64_t *out_rank);
/* An attribute of the node, defaults filled in. View of `call`. KILN_UNKNOWN_NAME: the schema has none of that name. */
KILN_EXPORT kiln_error *kiln_op_call_attr(kiln_op_call *call, const char *name, uint64_t name_size, kiln_attr *out);
/* Inside infer: the type of result `index`, whose layout is KILN_LAYOUT_ROW_MAJOR. */
KILN_EXPORT kiln_error *kiln_op_call_result(kiln_op_call *call, uint32_t index, const kiln_type *type);
/* Inside infer: two sizes that must be equal. Where they are different integers it is an error (KILN_TYPE_MISMATCH) for
 * infer to return; where that cannot be told it is checked at each call. `what` says it to people: "a dim 1 and b dim
 * 0". */
KILN_EXPORT kiln_error *kiln_op_call_require_equal(kiln_op_call *call, const kiln_dim *a, const kiln_dim *b,
                                                   const char *what, uint64_t what_size);
/* Inside decompose: where nodes and constants are added; all other changes are refused. The host's: not to be
 * destroyed. NULL elsewhere. */
KILN_EXPORT kiln_edit *kiln_op_call_edit(kiln_op_call *call);
/* Inside decompose: the value that operand `index` is in that edit; 0: there is none. */
KILN_EXPORT kiln_value kiln_op_call_operand(kiln_op_call *call, uint32_t index);
/* Inside decompose: what result `index` is, of the type that infer told. */
KILN_EXPORT kiln_error *kiln_op_call_yield(kiln_op_call *call, uint32_t index, kiln_value value);

#ifdef __cplusplus
}
#endif
#endif
