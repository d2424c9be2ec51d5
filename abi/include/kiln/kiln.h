/* kiln/kiln.h: what a host program uses. Link libkiln; include nothing else.
 *
 *   context ── graph (JSON, or an edit: graph.h) ── compile ── executable ── call ── run
 *
 * types.h states the rules that every function here keeps: ownership, errors, strings, structs.
 *
 * What Kiln does to the process that it lives in:
 * - Threads: started when they are first needed, to run kernels, to make runs that return early, to compile and to save
 *   to the cache. All signals are blocked on them. Where the system gives none, the calling thread does their work.
 * - Stacks: 64 KiB are enough. A thread that has less than 512 KiB left when it enters a function that reads, changes
 *   or compiles graphs waits there while a thread of Kiln's own does the work, callbacks included. A stack that the
 *   host made itself (of a coroutine) must have 512 KiB.
 * - Memory: where there is not enough, functions end in KILN_OUT_OF_MEMORY, and everything is as it was before: what is
 *   called again when there is memory succeeds. Before LLVM compiles, memory is set aside for it: for each thread
 *   8 MiB, and 1 KiB for each byte of the largest kernel. Where there is not enough, fewer threads compile.
 * - Signals: Kiln handles none and raises none. A write beyond the limit on the size of files, or into a pipe that
 *   nobody reads, fails as others do. Only a file that another process cuts short while it is mapped (an artifact or a
 *   plugin while it is loaded, tensors until they are destroyed) ends in SIGBUS when the lost part is read.
 * - Floating point: every function computes in the default environment (to nearest, subnormal numbers kept, no traps),
 *   whatever the host's, so that results and code are the same; callbacks get the host's, and what they change is
 *   undone; at return it is the host's again. Of the flags that tell of exceptions, none is cleared.
 * - Forks: after a fork() that came while no thread was inside a function of Kiln's and no run in flight, parent and
 *   child may go on with all their handles: each compiles, runs, saves and destroys on threads of its own. The fork
 *   waits for a save that is under way, or an entry that is being made; what waits behind it is the parent's to do. If
 *   another thread was inside a function of Kiln's, or a run in flight, or the fork came from a callback, the child may
 *   only exec or _exit. What is on a GPU stays the parent's. All this is told by pthread_atfork: a child of clone() or
 *   vfork() may only exec or _exit.
 * - Cancelling: a thread must not be cancelled (pthread_cancel) or leave (pthread_exit, longjmp) inside a function of
 *   Kiln's: the process ends.
 * - Exit: any time. Saves that have not ended are lost, never half done; kiln_context_close waits for them.
 * - Unloading: dlclose leaves the library in memory. */
#ifndef KILN_KILN_H
#define KILN_KILN_H
#include "kiln/backend.h"
#include "kiln/function.h"
#include "kiln/graph.h"
#include "kiln/types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- version */

/* Of the library that runs: KILN_ABI_MAJOR << 16 | minor. */
KILN_EXPORT uint32_t kiln_version(void);
/* {"version", "abi": {"major", "minor"}, "build_id", "compiler", "target" (what option cpu = "native" stands for:
 * "v4+vnni"), "caches": {"l1", "l2", "l3"} (bytes for data, rounded down to powers of two; 0: none, or not known)}.
 * The caller owns *out. */
KILN_EXPORT kiln_error *kiln_build_report(kiln_report **out);
/* Name ("f32"), bytes of an element, and DLPack's type (code | bits << 8 | lanes << 16); each `out` may be NULL.
 * Answers for numbers that a binding does not know yet; KILN_OUT_OF_RANGE for one that this library does not know. */
KILN_EXPORT kiln_error *kiln_dtype_info(kiln_dtype dtype, kiln_text *out_name, uint32_t *out_bytes,
                                        uint32_t *out_dlpack);

/* ---- options: named typed values, checked against a schema by the function that they are given to (an unknown name,
 * or another kind, is an error there). Setting a name again replaces its value. NULL options are empty options.
 *
 * Of a context:
 * - threads i64 = 0: threads that run kernels; 0: KILN_THREADS, or one per usable core
 * - cache text = "": a folder; "": the standard one; "off". One that others may write, or that is another user's, is
 *   not used: compiles say BYPASS and why, and the sink gets a warning
 * - cache_max_bytes i64 = 0: 0: 1 GiB. It holds for all processes together that use the folder
 * - pass_failures text = "fail": a compile whose pass fails does so, too; "skip": it goes on with the graph as that
 * pass found it, and what it makes is neither saved nor shared. A warning and the report ("passes.N.skipped") tell
 * - pass_budget_ms i64 = 0: a pass that calls Kiln after so many ms has failed; 0: none does
 * - load_symbols text[]: the files, by absolute paths, of which kiln_function_register takes functions by symbol; not
 *   given: none. No variable of the environment, cache or artifact adds one
 *
 * Of a compile:
 * - backend text = "cpu": or "cuda", "reference"
 * - cpu text = "native" (all that this machine has): or "x86-64", "v3", "v4", then "+FEATURE" and "-FEATURE":
 *   "v4+vnni-movbe"; docs/cpu.md. Of "cpu" and "reference"
 * - arch text = "native": or "sm_80", "sm_90", ...; of "cuda". "native" needs the GPU (else KILN_NO_DEVICE)
 * - code bool = true: false: kernels are made, but not compiled; the executable can be looked at, not called
 * - cache bool = true
 * - strict bool = false: a cache that is off, or that is bypassed because of a pass, is an error
 * - require_hit bool = false: all but a hit is KILN_NOT_CACHED
 * - passes text[]: exact names of the registered passes to run; not given: all; an empty list: none
 * - disable_passes text[]: exact names of those to leave out
 * - fuse bool = true
 * - mode text = "all", mode.forward, mode.backward text = "", fallback text = "kernel": which nodes are compiled
 *   together, and what runs the others; docs/regions.md
 * - split_at text[]: names of ops: the graph is cut into pieces after their nodes, and after those that are marked
 *   kiln.cut, each of which is looked up and compiled by itself
 * - rounding text = "strict": each 16-bit value is rounded where its op ends, and sums have one order, however the
 *   graph is cut, fused and run; or "relaxed": values that only ops read may stay f32, sums are as it is fastest, and
 *   convolutions by windows of 3 by 3 may be products of transformed tiles (docs/accuracy.md)
 * - specialize text[]: sizes that get a program of their own, an entry, beside the one for all: "batch=1,length=128",
 *   an entry each. A run picks the one that fixes most of its inputs' sizes (docs/specialize.md)
 * - specialize_when text = "ahead": entries are made before kiln_compile returns; "background": after it, by the
 *   context's own thread; "lazy": likewise, when a run first meets the sizes, which goes on with the program for all
 * - compile_threads i64 = 0: 0: one per usable core
 * - dump text = "": a folder, in which the compile makes one with what each pass made of the graph (docs/seeing.md). It
 *   does not ask the cache for the graph: BYPASS, "dump". KILN_IO: it cannot be written
 * - report_html text = "": a file that becomes one page which shows all of the compile, offline (docs/seeing.md), and
 *   how a lookup ends now, which is tried first. Else the compile does not ask the cache for the graph: BYPASS,
 *   "report_html". KILN_IO: it cannot be written
 * - region.NAME.OPTION, region.NAME.forward.OPTION, region.NAME.backward.OPTION: fuse, rounding, backend and
 *   backend.OPTION of one region; backend.NAME.OPTION: of a registered backend
 *
 * Of a plugin: PASS.OPTION, by the schemas of the passes that it registers. Of a pass: OPTION, by its schema. */
/* Empty options, which the caller owns. */
KILN_EXPORT kiln_error *kiln_options_create(kiln_options **out);
/* Sets an option of any kind that options have: i64, f64, text, dtype, bool, and lists of them (KILN_ATTR_LIST). Name
 * and value are copied. KILN_INVALID_ARGUMENT: another kind, or an attribute that does not fit itself. Like all
 * setters, one thread at a time. */
KILN_EXPORT kiln_error *kiln_options_set(kiln_options *options, const kiln_attr *value);
/* Sets an option of kind i64. */
KILN_EXPORT kiln_error *kiln_options_set_i64(kiln_options *options, const char *name, uint64_t name_size,
                                             int64_t value);
/* Sets an option of kind bool: `value` is 0 or 1, else KILN_INVALID_ARGUMENT. */
KILN_EXPORT kiln_error *kiln_options_set_bool(kiln_options *options, const char *name, uint64_t name_size,
                                              uint32_t value);
/* Sets an option of kind text, which is copied. KILN_INVALID_ARGUMENT when it is not UTF-8. */
KILN_EXPORT kiln_error *kiln_options_set_text(kiln_options *options, const char *name, uint64_t name_size,
                                              const char *value, uint64_t value_size);
/* All options there are: {"context": [{"name", "kind", "list", "default" (as text), "keyed" (whether its value is part
 * of a graph's key), "unkeyed" (why not), "of_regions" (whether there is also region.NAME.OPTION, and
 * region.NAME.PHASE.OPTION of its phase forward or backward), "doc"}], "compile": [...]}. The caller owns *out. Any
 * thread. */
KILN_EXPORT kiln_error *kiln_options_describe(kiln_report **out);
/* What received the options has its own copy. */
KILN_EXPORT void kiln_options_destroy(kiln_options *options);

/* ---- context: threads, cache, passes, plugins. Any thread. */

/* `sink` may be NULL. On success the context owns its `user`. */
KILN_EXPORT kiln_error *kiln_context_create(const kiln_options *options, const kiln_event_sink *sink,
                                            kiln_context **out);
/* Waits for background work (saves, entries that were asked for, the verification of prepared parameters that runs have
 * mapped) and runs the destroy callbacks of passes, plugins and sink here; those that a compile on another thread still
 * uses run when it ends. Reports saves to the cache that failed, destroy callbacks that threw, and as KILN_CORRUPT that
 * what runs read of files was damaged, unless a later run told it: their results may be wrong (docs/prepared.md). The
 * context is closed all the same. A closed context refuses new compiles; what was compiled still runs. A second close
 * does nothing. */
KILN_EXPORT kiln_error *kiln_context_close(kiln_context *context);
/* Closes (if that was not done), verifies nothing more, and lets go; children keep what they need alive. */
KILN_EXPORT void kiln_context_destroy(kiln_context *context);
/* {"threads", "cache": {"dir", "max_bytes", "io_errors", "saves" (records written), "failed_saves",
 * "prepared": {"dir", "max_bytes", "hits", "misses", "rejects", "saves", "verified" (whose content was read, and is
 * right), "io_errors"}} or "off",
 * "compiles" (how many): {"hits", "misses", "bypasses", "rejects" (by the lookup of the graph), "failed" (in none of
 * these), "kernels_compiled", "kernels_from_cache"}, "passes_run" (registered ones, each once a compile and once a
 * piece): {"rewrote", "unchanged", "threw", "errors", "over_budget", "not_done", "invariants", "skipped" (of those that
 * failed)}, "passes": [{"name", "plugin" ("" when built in), "stage",
 * "timing", "priority", "version", "label", "numerics", "top_only" (where it has them), "uuid" (if it has one),
 * "identity" ("build" when built in, "none", "uuid", "uuid and file"), "options", "option_kinds": [{"name", "kind"}]}],
 * "ops": [{"name", "plugin" ("": the host's), "version", "identity"}] (those that were registered), "functions":
 * [{"name", "plugin", "version", "signature", "library" ("": a pointer), "identity"}], "fallbacks": [{"op",
 * "function"}], "backends" (that were registered): [{"name", "plugin", "version", "identity", "options": [{"name",
 * "kind", "list", "default"}]}], "plugins": [{"name", "path", "digest"}], "facts" (kiln_fact_set, if any), "handles":
 * {"live", "graphs", "edits", "executables", "calls"}}. handles.live counts what was made from this context and not
 * destroyed yet. */
KILN_EXPORT kiln_error *kiln_context_report(kiln_context *context, kiln_report **out);

/* Says what passes may ask for (kiln_pass_query): `fact` is named "host.NAME" ("host.rank"), of kind i64, f64, text,
 * dtype or bool or a list of such, and is copied; of kind KILN_ATTR_NONE it is taken back. Compiles that have begun
 * keep what there was. What a pass made after another fact is not found. Any thread. */
KILN_EXPORT kiln_error *kiln_fact_set(kiln_context *context, const kiln_attr *fact);

/* ---- ops */

/* Number of ops; op i (from 0: built-in ones by name, then those that were registered) is asked with kiln_op_at. */
KILN_EXPORT uint64_t kiln_op_count(kiln_context *context);
/* The number of op `index`, which is permanent within the context. KILN_OUT_OF_RANGE names how many there are. */
KILN_EXPORT kiln_error *kiln_op_at(kiln_context *context, uint64_t index, kiln_op *out);
/* The schema: {"name", "family" ("pointwise", "shape", ...), "doc", "version", "args": [{"name", "doc", "dtypes",
 * "same_dtype" (as the others of which this is true), "arity"}], "results", "attrs": [{"name", "doc", "kind", "list",
 * "required", "default"}], "flags", "kind": "view" | "kernel" | "composite" | "function" (its own, of one that was
 * registered), "gradient": {"kind" ("rule": its own; "decomposition": that of the ops it is made of; "zero": results
 * change in jumps alone; "none"), "operands" (those that get one), "ties" (of equal elements those that share it:
 * "even", "first", "last", or "none": there are none), "why" (of zero and none)}, which nothing uses yet, "samples":
 * [{"name", "inputs": [{"type":
 * {"dtype", "shape"}, and "data", or the "stream" from which random elements are drawn}], "attrs" (those that are not
 * their defaults, as in a graph's JSON, but nested graphs in place), "sizes" (what the symbols were for which these
 * shapes and attributes stand), "range" and "integer_range" ([low, high) of random elements), "tolerance" (0: that of
 * the type), "other_types" (in which the op takes the sample, in place of f32)}]}. */
KILN_EXPORT kiln_error *kiln_op_describe(kiln_context *context, kiln_op op, kiln_report **out);
/* The same without samples, in a few percent of the time: for who only wants to add nodes. */
KILN_EXPORT kiln_error *kiln_op_schema(kiln_context *context, kiln_op op, kiln_report **out);

/* Registers an op of the host's own, for good. KILN_INVALID_ARGUMENT: its name is taken, or its schema is not one (the
 * message says where). On success the context owns op->user. *out (may be NULL) is its number. Any thread. */
KILN_EXPORT kiln_error *kiln_op_register(kiln_context *context, const kiln_op_def *op, kiln_op *out);

/* ---- plugins and passes */

/* Loads the plugin at `path` into this context. Its library stays in the process and is shared by all contexts that
 * load these bytes from there; setup runs in each. A file that was replaced or changed since is another library, with
 * code and data of its own; what was loaded before keeps running as it was. It is read from memory then, so that
 * $ORIGIN in its RUNPATH leads nowhere. (Of C++ templates and inline variables g++ lets all libraries share one copy,
 * unless they are built with -fno-gnu-unique.) A failed load registers nothing. KILN_IO, KILN_INCOMPATIBLE (not a
 * plugin, or made for another ABI), KILN_PLUGIN_FAILED (its setup), and what kiln_pass_register answers for its
 * passes. */
KILN_EXPORT kiln_error *kiln_plugin_load(kiln_context *context, const char *path, uint64_t path_size,
                                         const kiln_options *options);
/* Loads the plugin into a context of its own: {"path", "name", "abi_major", "host_minor_needed", "digest", "identity"
 * (of the file, of what it links and of the files that it added: what all with a UUID is keyed by), "links" (in turn,
 * too, but for the system's C and C++ libraries): [{"name", "path", "identity" ("build id ...", or "digest ..." where a
 * library has none)}], "files": [{"path", "digest"}], "passes" (of those with patterns also "patterns",
 * as they were declared), "ops", "functions", "fallbacks" (none), "backends"}, as in kiln_context_report. */
KILN_EXPORT kiln_error *kiln_plugin_inspect(const char *path, uint64_t path_size, kiln_report **out);
/* Registers a pass of the host's own. KILN_UNIMPLEMENTED for a stage whose passes do not run yet: joint.
 * Without a file, an identity is a UUID with KILN_PASS_UUID_SUFFICES. On success the context owns pass->user; *out_id
 * (may be NULL) serves to unregister. */
KILN_EXPORT kiln_error *kiln_pass_register(kiln_context *context, const kiln_pass *pass, const kiln_options *options,
                                           uint64_t *out_id);
/* Compiles that have begun keep the pass; `destroy` runs when the last of them ends, or here. */
KILN_EXPORT kiln_error *kiln_pass_unregister(kiln_context *context, uint64_t id);
/* How near a graph comes to the patterns of one pass: runs the passes before it, as kiln_compile would with these
 * options, tells, and runs the pass; it lowers nothing and asks no cache. A pass of stage lower is told of the whole
 * graph, its calls inlined. {"pass", "plugin", "stage", "rewrites", "patterns": [{"name", "found" (places, before the
 * pass has rewritten any), "matches" (that it rewrote), "expected", "closest" (of the places where it was not found):
 * {"graph" ("": the graph itself; else the nodes in whose graph it is), "node", "met" (captures and nodes of the
 * pattern), "of", "failed" (the first condition that did, in words; "": there is no such place)}}]}.
 * KILN_UNKNOWN_NAME: no pass of that name would run; KILN_INVALID_ARGUMENT: it has no patterns; further errors are
 * those of kiln_compile. The caller owns *out. */
KILN_EXPORT kiln_error *kiln_pass_explain(kiln_context *context, const kiln_graph *graph, const kiln_options *options,
                                          const char *name, uint64_t name_size, kiln_report **out);

/* ---- graphs as text. Building and reading them: graph.h. */

/* Reads JSON, strictly, and verifies the graph. Errors say where ("nodes[3].attrs.dim"). */
KILN_EXPORT kiln_error *kiln_graph_parse(kiln_context *context, const void *json, uint64_t json_size, kiln_graph **out);
/* The op nodes of `graph` (not of graphs nested in it) whose annotation `key` is the text `value` ("kiln.stage", or one
 * of your own) as a graph of its own. Inputs and parameters, in order of first use, are what comes from outside, with
 * its dtype and dims; outputs, in the order of the nodes, what others or outputs of `graph` need. Both have the names
 * of the values ("y", of a node's further results "y_1"); what is no argument of `graph` is row-major. A size that no
 * input tells comes by one more, a bool array of that length that nothing reads ("size.n"). *out_map: {"inputs",
 * "parameters", "outputs": [{"name", "from" ("y", "y:1": the value in `graph`), or "size" ("n")}]}. The caller owns
 * *out and *out_map, which need `graph` no more. KILN_UNKNOWN_NAME when no node has it, with what there is;
 * KILN_INVALID_ARGUMENT when a path leaves the part and comes back, which the message names (what writes an input comes
 * after what reads it), when nothing needs what
 * the part yields, or for a graph of another context. Any thread. */
KILN_EXPORT kiln_error *kiln_graph_extract(kiln_context *context, const kiln_graph *graph, const char *key,
                                           uint64_t key_size, const char *value, uint64_t value_size, kiln_graph **out,
                                           kiln_report **out_map);
/* The planner of regions for a graph that Kiln does not have: a host's, of which Kiln is to compile parts. Its `count`
 * nodes stand in an order in which they can run: node i comes after the nodes uses[use_begins[i]] to
 * uses[use_begins[i + 1] - 1], all below i; `use_begins` has count + 1 members and begins with 0. Nodes of one color go
 * into as few parts as can be run one after another; a node of color 0 is a part by itself. What has to keep an order
 * (writes, effects) is said as uses. Writes to out_parts[i], of `count` members, the number of i's part, and to
 * *out_count how many parts there are; parts are numbered in an order in which they can run. Linear in nodes and uses.
 * KILN_INVALID_ARGUMENT when a use is not below its node, a color is above `count`, or there are 2^32 - 1 nodes or uses
 * or more. Any thread. */
KILN_EXPORT kiln_error *kiln_parts_plan(uint64_t count, const uint32_t *colors, const uint64_t *use_begins,
                                        const uint32_t *uses, uint32_t *out_parts, uint32_t *out_count);
/* `format`: "json" (reads back to an equal graph), "text" (one line a node), "dot" (Graphviz). */
KILN_EXPORT kiln_error *kiln_graph_write(const kiln_graph *graph, const char *format, uint64_t format_size,
                                         kiln_blob **out);
/* {"symbols": {NAME: {"min", "max", "divisor", "hint"}}, "inputs": [{"name", "dtype", "shape", "strides" (in elements;
 * those that are row-major are not told)}], "parameters", "outputs", "nodes" and "constants" (how many)}; of an input
 * also "donated" (true), of an output "strides" may be "any", and "view_of" is the input that it is a view of. A
 * dimension is a number, or a text for kiln_dim_parse. */
KILN_EXPORT kiln_error *kiln_graph_describe(const kiln_graph *graph, kiln_report **out);

/* ---- compiling and executables */

/* Compiles, or takes it from the cache. Where another thread compiles the same in this context, that is waited for and
 * shared: a HIT with the reason "in flight". (What a callback of a compile compiles on its thread does not wait: where
 * another compile of the same goes on, it is compiled by itself, and not saved.)
 * *out_report (out_report may be NULL): {"lookup" ("HIT"; "MISS"; "BYPASS": the cache was not asked; "REJECT": what lay
 * in the record's place cannot be used and was put aside: it is damaged, or was made with an op, a function or a
 * backend that is not there now, whose version and plugin "reason" names), "reason", "key", "passes_run": {NAME:
 * rewrites}, "passes": [{"name", "stage", "rewrites", "runs", "ms", "nodes_before", "nodes_after", "digest" (of the
 * graph that it made; of stage lower, of its regions'; "": it ran on none); where there are some "clones" (see
 * kiln_edit_replace), "notes", "warnings", "patterns" ([{"name", "matches", "expected" (if any are)}]), "numerics"
 * (KILN_PASS_NUMERICS), "failed_by" ("throw", "error", "budget", "not done", "invariant"), "skipped" (its error, under
 * the context's option pass_failures = "skip")}], "warnings" (of the compile, if any; each is an event, too),
 * "questions": [{"question", "answer" (a text; of the environment and of files a digest; "none")}] (what passes asked
 * with kiln_pass_query, on a HIT when the artifact was made; if any), "stages":
 * [{"stage", "digest"}] (of the graph behind each stage of passes; of lower, once it is decomposed),
 * "kernels_compiled", "kernels_from_cache", "kernels_distinct", "launches" (of all kernels in a call and its
 * preparation), "materialised" (tensors that are in memory only because kernels would have grown too large without:
 * copies in long chains of views; 0 on a HIT), "llvm_loaded", "phases":
 * {"lookup_ms", ...}, "total_ms", "backend", "target", "device_kernels":
 * [{"entry", "compiler", "nodes" (a text: that it computes), "registers", "spill_bytes", "shared_bytes",
 * "group_threads", "whole_group"}] (of "cuda"),
 * "in_place": {"copies": [{"what", "plan" ("": the outermost), "bytes", "nodes" ([{"node", "op"}]: whose value it is),
 * "why" ("given": an argument or a constant, "prepared", "elsewhere": made where another output or input lies, "read":
 * later, "kept": as an output, "order": its step reads other elements than it writes, "shared", "written": it was an
 * input's), "reason" (for people)}], "made" (copies that there would be besides, were nothing made where its old value
 * lies), "missed" (how many there are), "missed_bytes"} (sizes are texts over the symbols; once there is a plan),
 * "pieces": [{"nodes", "inputs", "key", and "lookup" and "reason", or "same_as": the number of one before it that it is
 * equal to}] (of a graph that is cut into pieces, unless it is a HIT), "pieces_compiled",
 * "entries": [{"name" ("batch=1,length=128"), "guards": [{"symbol", "value"}], "state" ("made", "later"), and when made
 * "lookup", "reason", "key", "kernels_compiled", "kernels_from_cache", "total_ms"}] (of option "specialize"),
 * "components": [{"name", "digest", "text"}] (of the key, where nothing was found by it), "dump" (the folder that
 * option "dump" made, if it is given), "made" (of the compile that made the artifact, on a HIT an earlier one: as
 * kiln_executable_describe's "compile")}. On failure the same hangs on the error, as far as the compile came; where
 * another compiler refused a kernel, its {"log", "options", "source"} instead. */
KILN_EXPORT kiln_error *kiln_compile(kiln_context *context, const kiln_graph *graph, const kiln_options *options,
                                     kiln_executable **out, kiln_report **out_report);
/* What kiln_compile would run, in order; runs none of it. {"backend", "mode", "bypass" (why the cache would not be
 * asked; "": it would), "stages": [{"name" (that of a phase in kiln_compile's report), "doc", "steps": what runs in it,
 * in order: [a pass, as in kiln_context_report, or what is always done, {"name", "doc"}]}]}. Errors: those that
 * kiln_compile answers before it runs a pass. Any thread. The caller owns *out. */
KILN_EXPORT kiln_error *kiln_compile_passes(kiln_context *context, const kiln_graph *graph, const kiln_options *options,
                                            kiln_report **out);
/* Writes the artifact, with the entries that are made by now, into one file. A regular file appears whole or not at
 * all; a FIFO, a device or the target of a link is written in place. KILN_IO says what failed. Options (may be NULL):
 * "packed" (bool = true; false: `path` becomes a folder that a person reads and edits, docs/unpacked-artifacts.md; it
 * appears whole or not at all, and where something but an empty folder is already, that stays: KILN_IO). */
KILN_EXPORT kiln_error *kiln_executable_save(const kiln_executable *executable, const char *path, uint64_t path_size,
                                             const kiln_options *options);
/* The same bytes, for a host that keeps artifacts itself; the caller owns *out. No options are known yet. */
KILN_EXPORT kiln_error *kiln_executable_bytes(const kiln_executable *executable, const kiln_options *options,
                                              kiln_blob **out);
/* What was compiled of one graph for `count` targets (options "cpu" or "arch"), as one executable, which shares them:
 * it runs the one for the most that this machine has. Saved, or as bytes, it has all of them, and opening that picks,
 * on whichever machine. Compiling for what this machine lacks, and joining it, needs none of it; a call does
 * (KILN_INCOMPATIBLE, or KILN_NO_DEVICE). KILN_INVALID_ARGUMENT: two for one target, of different backends, or whose
 * inputs, parameters or outputs differ. The caller owns *out. Any thread. */
KILN_EXPORT kiln_error *kiln_executable_join(const kiln_executable *const *executables, uint64_t count,
                                             kiln_executable **out);
/* An executable of an artifact in a file or a folder. Opening one is running its code: open what you trust. Nothing is
 * published to the cache. What was edited in a folder is made again and told by a KILN_EVENT_WARNING, here and wherever
 * it is saved to and opened again; it has no key. Of one for several targets, that which fits is loaded, and is what
 * saving it again writes. Options (may be NULL): "expect_key" (text: the artifact's key, as kiln_compile's report tells
 * it, must be this one; "": any). KILN_IO, KILN_CORRUPT (with section and offset, or member and place),
 * KILN_INCOMPATIBLE (another build or key, a CPU that this is not, or an op, function or backend that its steps run is
 * another here, or none). The caller owns *out. Any thread. */
KILN_EXPORT kiln_error *kiln_executable_open(kiln_context *context, const char *path, uint64_t path_size,
                                             const kiln_options *options, kiln_executable **out);
/* The same of an artifact in memory, which is read during the call alone; not of one that has parameters
 * (kiln_call_save), which have to be mapped: KILN_INVALID_ARGUMENT. */
KILN_EXPORT kiln_error *kiln_executable_open_bytes(kiln_context *context, const void *bytes, uint64_t size,
                                                   const kiln_options *options, kiln_executable **out);
/* {"backend", "target" (of the code that runs), "targets" (all that it was joined or opened with, if several),
 * "build_id", "key" ("" when the cache was bypassed), "symbols", "inputs", "parameters", "outputs" (as
 * kiln_graph_describe, without hints; of a parameter that its file has also "stored_bytes", 0 where only what was
 * prepared of it is there), "weights" (of such a file): {"path", "bytes", "prepared": [{"parameters" (names),
 * "bytes"}]}, "components": [{"name", "digest", "text"}] (of the key), "uses":
 * [{"kind" ("op", "function", "fallback", "backend"), "name", "identity" ("": there was none)}] (what it was made with
 * and what passes looked up; a record with another one is a MISS), "questions" (as kiln_compile), "edited" (members of
 * an unpacked artifact that it was made of after somebody edited them; where there are some), "kernels" (how many),
 * "device_kernels" (as kiln_compile), "prepare_steps", "steps", "arena_bytes" and "prepared_bytes" (texts over the
 * symbols), "entries":
 * [{"name" ("general", which comes first, or "batch=1,length=128"), "guards": [{"symbol", "value"}], "state" ("made",
 * "later", "failed"), and when made "inputs", "outputs", "key", "kernels"}], "compile": {"passes": [{"name", "stage",
 * "rewrites", "runs", "nodes_before", "nodes_after", "digest"}], "options" (that say what is made and were not as by
 * default, {NAME: value}; where there are some), "stages" (as kiln_compile), and where the graph was cut "partition":
 * {"mode", "regions": [{"name", "backend", "options" ("fuse=false": what is not as the compile's, if there is),
 * "nodes", "inputs", "outputs" (names), "kernels" (how many), "same_as" (number of an equal one before it, if there
 * is)}], "splits": [{"region", "node", "why" ("unmarked", "name", "unsupported": `with` lies between, in no or another
 * region, or refused by the backend, whose "reason" it has then, and its "op"; "effect": likewise, of one that orders
 * effects; "call": it is one; "cycle"; "options": it has others; "backend": `with` is another one's), "with"}],
 * "fallbacks": [{"node", "op", "inputs", "by" ("kernel", "reference", "function" (its op's own), "steps", or the name
 * of a function of the host's), "why" ("marked", "unmarked", "mode", "unsupported", "effect": a region was to have it),
 * "reason" (of what the backend does not take)}], "fallback_counts": {OP: n}, "declined": [{"node", "op", "backend",
 * "reason"}] (nodes that the registered backend which was chosen for them does not take), "warnings" (texts)}; of one
 * that was cut into pieces "pieces": [{"nodes", "inputs" (of the piece), "key", and "same_as" or "made" (the same, of
 * the piece)}]} of the compile that made it}. */
KILN_EXPORT kiln_error *kiln_executable_describe(const kiln_executable *executable, kiln_report **out);
/* A listing for people. `what`: "plan", "steps" (the same as JSON, with the nodes that kernels come from and estimates
 * of bytes and flops; docs/seeing.md), "graph" (after all passes, as JSON), "kernels" (kernel IR), "llvm", "asm" (of
 * backend "cpu") or "cuda" (of backend "cuda"): these are emitted again from the kernels. */
KILN_EXPORT kiln_error *kiln_executable_text(const kiln_executable *executable, const char *what, uint64_t what_size,
                                             kiln_blob **out);
/* Calls made from it keep what they need alive. Any thread. */
KILN_EXPORT void kiln_executable_destroy(kiln_executable *executable);

/* ---- calls: bound slots, resolved shapes and working memory. One thread at a time. Slots number the signature:
 * inputs, then parameters, then outputs. Parameters must be bound before a run; inputs and outputs may be. */

/* A call of which nothing is bound yet; the caller owns it. Any thread. Options (may be NULL): "device" (i64 = 0: which
 * of the GPUs that the driver lists). KILN_NO_DEVICE: the kernels are for a GPU, and it cannot be opened (the message
 * names what was looked for). */
KILN_EXPORT kiln_error *kiln_call_open(kiln_executable *executable, const kiln_options *options, kiln_call **out);
/* The same without options. */
KILN_EXPORT kiln_error *kiln_call_create(kiln_executable *executable, kiln_call **out);
/* A call for another thread, on the same device: shares bound parameters and what was prepared from them; has working
 * memory of its own. */
KILN_EXPORT kiln_error *kiln_call_clone(const kiln_call *call, kiln_call **out);
/* The first slot of that name among inputs, parameters, outputs. An output may be named like an input; its number then
 * follows from its place in the signature. KILN_UNKNOWN_NAME. */
KILN_EXPORT kiln_error *kiln_call_slot(const kiln_call *call, const char *name, uint64_t name_size, uint32_t *out);
/* Binds a slot to the caller's memory, without a copy: it must stay valid and unmoved, and a parameter's values
 * unchanged, until the slot is bound again or the call is destroyed. Its data is where element 0, 0, ... is; of a
 * stride below 0 memory goes on before that. It is the host's memory, or, of backend "cuda", that of the call's device
 * (kDLCUDA), whose arrays the kernels use where they are: what a parameter holds must then be there already. Another
 * place is KILN_NO_DEVICE, with what was expected. The memory of an input that a copy_ writes must be writable. The
 * descriptor is copied; its data may be NULL when it has no elements. A NULL tensor unbinds. Dtype and rank are checked
 * here (KILN_TYPE_MISMATCH), sizes and strides by the next run. */
KILN_EXPORT kiln_error *kiln_call_bind(kiln_call *call, uint32_t slot, const DLTensor *tensor);
/* The same, taking over the tensor on success: its deleter runs, on any thread, once nothing uses the memory. */
KILN_EXPORT kiln_error *kiln_call_bind_owned(kiln_call *call, uint32_t slot, DLManagedTensorVersioned *tensor);
/* Binds a parameter to a part of a file, which Kiln maps for as long as something uses it. `type` has its dtype, shape
 * and strides; its data is NULL, its byte_offset 0, its device the CPU's. The file must not be changed or cut short
 * until then; it may be renamed or unlinked. `type` and `source` are copied. What is prepared of it is kept in the
 * cache (docs/prepared.md), as it is of what kiln_call_bind takes from a kiln_tensors. KILN_IO: it cannot be opened or
 * mapped, or ends before the parameter does (with offset and sizes). KILN_INVALID_ARGUMENT: the slot is no parameter's,
 * or the offset does not fit the elements, or the digest has another size than it may. KILN_TYPE_MISMATCH, KILN_BUSY:
 * as kiln_call_bind. */
KILN_EXPORT kiln_error *kiln_call_bind_source(kiln_call *call, uint32_t slot, const DLTensor *type,
                                              const kiln_source *source);
/* Runs. `args` fill the slots that are not bound: inputs, then outputs but views (KILN_OUTPUT_VIEW), `count` of them.
 * An output that is NULL, or left out at the end, is allocated by Kiln, in the host's memory, and stays with the call
 * until the next run or kiln_call_take. `options` may be NULL; of a run that they have return early, see
 * kiln_call_wait. KILN_TYPE_MISMATCH names the slot, or the node whose sizes do not fit.
 * KILN_OUT_OF_RANGE names the nodes that may have divided an integer by zero, or used an index that is not there: what
 * kernels made of it is 0, the rest is as it should be. A reference kernel ends the run there: the reference backend
 * leaves the outputs as they were, else what they hold is not defined; none can be taken. Of elements that no output
 * needs, only what is computed anyway is told. KILN_CANCELLED: the context's event sink ended it (KILN_EVENT_LOOP,
 * KILN_EVENT_ENTRY, KILN_EVENT_STEP); what outputs and inputs that a copy_ writes hold is not defined, and the call can
 * be run again. KILN_BUSY: another thread is inside a run of this call. */
KILN_EXPORT kiln_error *kiln_call_run(kiln_call *call, const DLTensor *const *args, uint64_t count,
                                      const kiln_run_options *options);
/* The same descriptors as in the last run at other addresses, in the same order. Checks for NULL, alignment
 * and overlap. */
KILN_EXPORT kiln_error *kiln_call_run_data(kiln_call *call, void *const *data, uint64_t count,
                                           const kiln_run_options *options);
/* Waits until no run of the call is in flight. A run is, when KILN_RUN_ASYNC or a stream is asked for
 * (kiln_run_options) and kiln_call_run answered NULL: its arguments were right. What its kernels find, or runs of ops
 * come to, is told here, once: the first of all runs since the last wait. NULL at once when there is none. Until then
 * the memory of its arrays must stay as it is, outputs must not be read, and only these functions may be used: another
 * run on the same stream, which comes after it (on the CPU, with other sizes or outputs that are Kiln's kiln_call_run
 * first waits for the one before); kiln_call_slot; kiln_call_clone; kiln_call_destroy, which waits. All others, and a
 * run on another stream, are KILN_BUSY. On the CPU one thread of the context makes runs in flight, one by one; who
 * waits for one that it has not begun makes it. Who waits, or polls, is told by KILN_EVENT_LOOP about every 50 ms where
 * such a run is, after "step 3" of its plan or in a turn of a loop, and may end it there. Preparing parameters, and on
 * a GPU what the host must know to go on (conditions, loops, sizes that a run tells), is done before kiln_call_run
 * returns. docs/streams.md. */
KILN_EXPORT kiln_error *kiln_call_wait(kiln_call *call);
/* The same without waiting: *out_done is 1 when no run is in flight any more, and what they came to is told (an error
 * means that they have ended, too), else 0. */
KILN_EXPORT kiln_error *kiln_call_poll(kiln_call *call, uint32_t *out_done);
/* Asks the run of the call that is under way to end: one in flight, or one that another thread is inside of. It does
 * where it next can: on the CPU between steps, nodes and turns of loops, and between parts of a kernel's range; what
 * one thread computes in one piece (a sort of one line) comes to its end, and so does what a GPU was given. It is then
 * KILN_CANCELLED, told by kiln_call_wait or kiln_call_run, unless it was over before. Of no run, and of those that
 * begin later, it ends nothing. Threads: any. */
KILN_EXPORT kiln_error *kiln_call_cancel(kiln_call *call);
/* The shape of a slot in the last run (inputs, outputs), or of a bound parameter. KILN_INVALID_ARGUMENT before the
 * first run, and for an output whose size a run resolves after a run that failed before it did. */
KILN_EXPORT kiln_error *kiln_call_dims(const kiln_call *call, uint32_t slot, int64_t *buffer, uint64_t capacity,
                                       uint64_t *out_rank);
/* An output of the last run, wherever it lies: bound, given, Kiln's, or as a view in the array of an input. *out and
 * its memory are valid until the next run, or until that slot, or the input, is bound anew. KILN_INVALID_ARGUMENT when
 * there is none: it was taken, or the run failed (but by a KILN_OUT_OF_RANGE that kernels found: all is computed then).
 * KILN_BUSY: another thread is inside a run of this call. */
KILN_EXPORT kiln_error *kiln_call_output(const kiln_call *call, uint32_t slot, const DLTensor **out);
/* Hands over an output that Kiln allocated in the last run: row-major, or by the strides that the graph declares; call
 * its deleter when done, on any thread. Of a view of an input (KILN_OUTPUT_VIEW), which must have been bound with
 * kiln_call_bind_owned: the input's tensor lives until then. KILN_INVALID_ARGUMENT when there is none: it was given, or
 * taken before, or the run failed (kiln_call_output). KILN_BUSY as there. */
KILN_EXPORT kiln_error *kiln_call_take(kiln_call *call, uint32_t slot, DLManagedTensorVersioned **out);
/* Writes the artifact of the call's executable, with the entries that are made by now, and the parameters that are
 * bound into one file, as kiln_executable_save does (of one for several targets: for that which runs here, alone). What
 * kernels prepare of parameters is prepared, unless it was, and stored; the values of a parameter are only where
 * something else reads them, too. Opened by its path, it is an executable in whose calls these parameters are bound: to
 * the file, which is mapped, shared by all processes, and must not be changed or cut short (it may be renamed or
 * unlinked). Another array may be bound in place of one, and binding NULL then binds the file's again; where what was
 * prepared needs another parameter whose values are not there, a run says which has to be bound, too. Parameters that
 * are not bound are left to whoever opens it. The data is verified in the background behind the first run; where it is
 * damaged, a KILN_EVENT_WARNING tells it, and runs are KILN_CORRUPT. Such an executable can be saved by this alone.
 * docs/prepared.md. Any thread; bound arrays stay as they are meanwhile. No options are known yet. KILN_BUSY: another
 * thread is inside a call of this one, or a run is in flight. KILN_IO: it cannot be written. KILN_TYPE_MISMATCH: a
 * parameter is of other sizes than the graph's. KILN_UNIMPLEMENTED: one is in a device's memory. */
KILN_EXPORT kiln_error *kiln_call_save(const kiln_call *call, const char *path, uint64_t path_size,
                                       const kiln_options *options);
/* {"memory_bytes": working memory, prepared parameters and outputs that the call holds now, but what it maps, "entry":
 * the program that the last run ran, the name of an entry or "general"; "" before a run, after one that failed, and
 * while another thread is inside one, "prepared": [{"parameters" (their names), "bytes", "lookup" (of a record: "HIT",
 * it is mapped; "MISS" and "REJECT", it was made and is saved; "BYPASS", there is to be none), "reason", "steps" (how
 * many made it)}] (what there is now of the bound parameters; of backend "cuda" nothing is told), "prepare_steps" (the
 * sum of these), of an executable whose file has parameters "weights": {"path", "mapped_bytes", "verified" (whether all
 * was read, and is right), "parameters" (names of those that are the file's)}; and of a last run with KILN_RUN_STEPS
 * "steps": [{"plan" (by its numbers in the listing "plan", "1.0";
 * "": the outermost), "step", "what" ("kernel 2(x, arena 0)"), "runs", "ns" (of all its runs, with what nested plans
 * took), and of a kernel "kernel" (its number), "bytes" and "flops" (of all its runs; estimates, docs/seeing.md),
 * "nodes": [{"node" ("": passes made it), "op", "debug" (its annotations debug.*, "debug.line=model.py:12"; if any)}]
 * (that it computes, or a part of which)}], in the order in which they first ended}. */
KILN_EXPORT kiln_error *kiln_call_report(const kiln_call *call, kiln_report **out);
/* Unbinds all; outputs that were taken live on. Waits for runs in flight, whose errors are lost. Not while a run is
 * inside it. */
KILN_EXPORT void kiln_call_destroy(kiln_call *call);

/* ---- cache */

/* `verb`: "ls" {"entries": [{"path", "kind", "key", "bytes", "modified"}]}, "stats" {"dir", "entries", "bytes",
 * "max_bytes", "prepared": {"entries", "bytes", "max_bytes"}}, "clear" {"removed"}, "verify" {"entries", "problems":
 * [{"path", "what"}]}. No options are known yet.
 * KILN_INVALID_ARGUMENT when the context's cache is off, KILN_IO when its folder may not be used, or is to be cleared
 * and is no cache of Kiln's. */
KILN_EXPORT kiln_error *kiln_cache_command(kiln_context *context, const char *verb, uint64_t verb_size,
                                           const kiln_options *options, kiln_report **out);

/* ---- reports: JSON documents, read by path and type. A path is names and list indices joined by dots:
 * "passes_run.fuse_rms_norm", "inputs.0.shape.1"; "" is the whole. A member whose name holds a dot is found by it.
 * KILN_UNKNOWN_NAME when nothing is there, KILN_TYPE_MISMATCH when it is of another type. */

/* The node at fault, where it is known which one is: its name, of one in a graph of a node behind that node's and the
 * graph's ("loop.body_graph.y", or "call.y"). View of `error`; else, and for NULL, empty. An error that led to this one
 * may tell it (kiln_error_cause). */
KILN_EXPORT void kiln_error_node(const kiln_error *error, kiln_text *out);
/* What explains a failure (a compile's report as far as it came), or NULL. View of `error`. */
KILN_EXPORT const kiln_report *kiln_error_report(const kiln_error *error);
/* An integer; one beyond 2^53 is a text in the document, and read all the same. */
KILN_EXPORT kiln_error *kiln_report_get_i64(const kiln_report *report, const char *path, uint64_t path_size,
                                            int64_t *out);
/* A number; also "nan", "inf", "-inf". */
KILN_EXPORT kiln_error *kiln_report_get_f64(const kiln_report *report, const char *path, uint64_t path_size,
                                            double *out);
/* 0 or 1. */
KILN_EXPORT kiln_error *kiln_report_get_bool(const kiln_report *report, const char *path, uint64_t path_size,
                                             uint32_t *out);
/* View of `report`. */
KILN_EXPORT kiln_error *kiln_report_get_text(const kiln_report *report, const char *path, uint64_t path_size,
                                             kiln_text *out);
/* Elements of a list, or members of an object. */
KILN_EXPORT kiln_error *kiln_report_count(const kiln_report *report, const char *path, uint64_t path_size,
                                          uint64_t *out);
/* The name of member `index` of an object. View of `report`. */
KILN_EXPORT kiln_error *kiln_report_key(const kiln_report *report, const char *path, uint64_t path_size, uint64_t index,
                                        kiln_text *out);
/* The whole as JSON, indented. */
KILN_EXPORT kiln_error *kiln_report_json(const kiln_report *report, kiln_blob **out);
/* With its views. Any thread. Not for a report that is a view of an error. */
KILN_EXPORT void kiln_report_destroy(kiln_report *report);

/* ---- tensors in files */

/* Maps a file: ".safetensors", or ".npy" (one tensor, named as the file without its ending). KILN_IO; KILN_CORRUPT
 * names the tensor and what is wrong. */
KILN_EXPORT kiln_error *kiln_tensors_open(const char *path, uint64_t path_size, kiln_tensors **out);
/* How many tensors the file has; 0 for a wrong handle. */
KILN_EXPORT uint64_t kiln_tensors_count(const kiln_tensors *tensors);
/* Tensor `index`, in the file's order. Views of `tensors`; the memory may be read only. Either `out` may be NULL. */
KILN_EXPORT kiln_error *kiln_tensors_at(const kiln_tensors *tensors, uint64_t index, kiln_text *out_name,
                                        const DLTensor **out);
/* The tensor of that name; a view of `tensors`, whose memory may be read only. KILN_UNKNOWN_NAME when there is none. */
KILN_EXPORT kiln_error *kiln_tensors_find(const kiln_tensors *tensors, const char *name, uint64_t name_size,
                                          const DLTensor **out);
/* Writes `count` tensors (exactly one for ".npy", whose name is not used; `names` may then be NULL). A regular
 * file appears whole or not at all; a FIFO, a device or the target of a link is written in place. KILN_IO says what
 * failed. */
KILN_EXPORT kiln_error *kiln_tensors_write(const char *path, uint64_t path_size, const kiln_text *names,
                                           const DLTensor *const *tensors, uint64_t count);
/* Unmaps the file: no tensor of it may be bound or read any more. */
KILN_EXPORT void kiln_tensors_destroy(kiln_tensors *tensors);

/* ---- blobs: owned bytes */

/* View of `blob`; *out_size (may be NULL) in bytes. Text in a blob has no terminator. NULL for a wrong handle. */
KILN_EXPORT const void *kiln_blob_data(const kiln_blob *blob, uint64_t *out_size);
/* With its bytes. Any thread. */
KILN_EXPORT void kiln_blob_destroy(kiln_blob *blob);

#ifdef __cplusplus
}
#endif
#endif
