/* kiln/types.h: handles, numbers and structs that hosts (kiln.h) and plugins (plugin.h) share.
 *
 * Rules that hold for every header of Kiln:
 * - Fixed-width integers and pointers only. Numbers, once given, are permanent.
 * - Frozen structs (kiln_text, kiln_dim, kiln_attr) never grow, and are the only ones in arrays and the only ones that
 *   Kiln writes to. All others start with `struct_size`, are inputs only, and may grow at their end: set struct_size to
 *   sizeof the struct. Kiln refuses a non-zero tail that it does not know.
 * - Zero is the default of every field; `reserved` fields are 0. There is no implicit padding.
 * - Strings are pointer and length in bytes, UTF-8, need no terminator, and are copied in. NULL with length 0 is "".
 * - A function that can fail returns NULL or an error that the caller owns (kiln_error_destroy). On failure, outputs
 *   are untouched. NULL where a pointer is required, or a handle of another type, is KILN_INVALID_ARGUMENT.
 * - A view that Kiln gives out lives as long as its owner, which the function's comment names.
 * - Arrays are DLPack's: strides in elements, of which NULL means row-major. */
#ifndef KILN_TYPES_H
#define KILN_TYPES_H
#include <stdint.h>

#include "kiln/dlpack.h" /* upstream's, version 1.3, as it is; where another one comes first, that is taken */
#ifdef __cplusplus
extern "C" {
#endif

#define KILN_ABI_MAJOR 1u
#define KILN_ABI_MINOR 0u

#if defined(__GNUC__)
#define KILN_EXPORT __attribute__((visibility("default")))
#else
#define KILN_EXPORT
#endif

/* ---- handles: opaque. A child keeps its parents alive; handles may be destroyed in any order and on any thread, and
 * destroying NULL does nothing. */
typedef struct kiln_error kiln_error;           /* any thread, immutable */
typedef struct kiln_context kiln_context;       /* any thread */
typedef struct kiln_options kiln_options;       /* one thread at a time; copied by what receives it */
typedef struct kiln_graph kiln_graph;           /* any thread, immutable (but see kiln_edit_view) */
typedef struct kiln_edit kiln_edit;             /* one thread at a time */
typedef struct kiln_executable kiln_executable; /* any thread, immutable */
typedef struct kiln_call kiln_call;             /* one thread at a time; a second one gets KILN_BUSY */
typedef struct kiln_report kiln_report;         /* any thread, immutable */
typedef struct kiln_tensors kiln_tensors;       /* any thread, immutable */
typedef struct kiln_blob kiln_blob;             /* any thread, immutable */
typedef struct kiln_pass_call kiln_pass_call;   /* one run of one pass, on its thread; dies when run() returns */
typedef struct kiln_op_call kiln_op_call;       /* one call of a function of an op, likewise */

typedef uint64_t kiln_node;  /* id, never reused inside a graph and its edits; 0: none */
typedef uint64_t kiln_value; /* node << 32 | output index; 0: none */
typedef uint32_t kiln_op;    /* permanent within a context; 0: none */
typedef uint32_t kiln_dtype; /* KILN_F32 ...; 0: none */

/* ---- error codes */
#define KILN_OK 0u
#define KILN_INVALID_ARGUMENT 1u
#define KILN_TYPE_MISMATCH 2u /* dtypes or shapes that do not fit */
#define KILN_UNKNOWN_NAME 3u  /* op, attribute, option, pass, slot, tensor, path */
#define KILN_UNIMPLEMENTED 4u
#define KILN_INVARIANT 5u  /* a graph that breaks one */
#define KILN_NOT_CACHED 6u /* require_hit, and no hit; the error's report has the lookup's reason */
#define KILN_CANCELLED 7u  /* an event callback returned non-zero */
#define KILN_OUT_OF_MEMORY 8u
#define KILN_BUSY 9u           /* a call is in use by another thread, or a run of it is in flight */
#define KILN_PLUGIN_FAILED 10u /* a plugin's pass or set-up failed; kiln_error_plugin names it */
#define KILN_IO 11u
#define KILN_CORRUPT 12u      /* damaged file */
#define KILN_INCOMPATIBLE 13u /* of another version, build or CPU */
#define KILN_NO_DEVICE 14u
#define KILN_OUT_OF_RANGE 15u
#define KILN_INTERNAL 16u /* a bug of Kiln's */
/* For kiln_error_create: what a callback threw (an exception of C++'s or Python's, a panic of Rust's), which its
 * language caught before the host. The host then takes it as thrown: a pass's failure is "throw" (kiln_compile), and
 * what fails by it, as by one that leaves a callback, is KILN_PLUGIN_FAILED. Seen as the code of such an error's cause.
 */
#define KILN_EXCEPTION 17u

/* ---- element types */
#define KILN_F64 1u
#define KILN_F32 2u
#define KILN_F16 3u
#define KILN_BF16 4u
#define KILN_I64 5u
#define KILN_I32 6u
#define KILN_I16 7u
#define KILN_I8 8u
#define KILN_U8 9u
#define KILN_BOOL 10u
#define KILN_U16 11u
#define KILN_U32 12u
#define KILN_U64 13u
#define KILN_F8_E4M3FN 14u /* 8-bit floats are stored, moved and converted to and from */
#define KILN_F8_E5M2 15u
#define KILN_TOKEN 16u /* what orders effects (KILN_OP_EFFECT): of rank 0, without data; no call is given one */

/* ---- kinds of kiln_attr, and what `data` points to */
#define KILN_ATTR_NONE 0u          /* no value: takes an annotation away */
#define KILN_ATTR_I64 1u           /* int64_t[count] */
#define KILN_ATTR_F64 2u           /* double[count] */
#define KILN_ATTR_TEXT 3u          /* kiln_text[count] */
#define KILN_ATTR_DTYPE 4u         /* kiln_dtype[count]; of an op 0, too: none */
#define KILN_ATTR_DIM 5u           /* kiln_dim[count] */
#define KILN_ATTR_GRAPH 6u         /* const kiln_graph *[count]; count 0: none, where an op may have none */
#define KILN_ATTR_TENSOR 7u        /* const DLTensor *[count], copied */
#define KILN_ATTR_BOOL 8u          /* uint8_t[count], 0 or 1 */
#define KILN_ATTR_LIST 0x80000000u /* or-ed to the kind: a list, even one of one or no element */

/* ---- kinds of nodes, and sides of a signature */
#define KILN_NODE_INPUT 1u
#define KILN_NODE_PARAMETER 2u
#define KILN_NODE_CONSTANT 3u
#define KILN_NODE_OP 4u
#define KILN_SIDE_INPUTS 1u
#define KILN_SIDE_PARAMETERS 2u
#define KILN_SIDE_OUTPUTS 3u

/* ---- layouts of kiln_type */
#define KILN_LAYOUT_ROW_MAJOR 0u
#define KILN_LAYOUT_STRIDED 1u /* exactly `strides` */
#define KILN_LAYOUT_ANY 2u     /* of outputs: those of each array that a run is given */

/* ---- flags of kiln_output */
#define KILN_OUTPUT_VIEW 1u /* nothing is made: the output lies in the input that its value is a view of */

/* ---- passes */
#define KILN_STAGE_PRE_GRAD 1u
#define KILN_STAGE_JOINT 2u /* reserved: KILN_UNIMPLEMENTED */
#define KILN_STAGE_POST_GRAD 3u
#define KILN_STAGE_LOWER 4u        /* of each region: see kiln_pass */
#define KILN_TIMING_LATE 1u        /* after a miss only; needs an identity */
#define KILN_TIMING_EARLY 2u       /* pre_grad only: at every compile, before the key is made of what it made */
#define KILN_PASS_UUID_SUFFICES 1u /* leaves the digest of the plugin's file out of the key; needs `uuid` */
#define KILN_PASS_ANY_THREAD 2u    /* reserved for passes that may run on threads of Kiln's: KILN_UNIMPLEMENTED */
/* What it makes may compute other values than the graph, beyond the order of roundings (in less precision, say): a
 * context warns once of such a pass, and reports mark it ("passes.N.numerics"). */
#define KILN_PASS_NUMERICS 4u
#define KILN_PASS_TOP_ONLY 8u /* does not run on graphs that nodes carry */

/* ---- ops */
#define KILN_OP_UUID_SUFFICES 16u /* leaves the digest of the plugin's file out of the key; needs `uuid` */
#define KILN_OP_RANDOM 1u         /* equal nodes are not the same, though their operands are */
/* A run does something besides making results. It takes a token last and yields one last, and comes after the node
 * whose token that is, which op "token" begins; without a path of tokens from one to another, either may come first. */
#define KILN_OP_EFFECT 2u
#define KILN_OP_ANY_THREAD 8u /* open and run may be called on threads of Kiln's; see kiln_op_def */

/* ---- flags of kiln_run_options */
#define KILN_RUN_ASYNC 1u /* the run is in flight when kiln_call_run returns */
/* Each step of the plan is timed, told (KILN_EVENT_STEP), and a place where the host can end the run; so are places
 * inside of kernels that take long, on the CPU (KILN_EVENT_LOOP). The times are in kiln_call_report until the next run.
 * On a GPU each step is waited for. Not of runs in flight. */
#define KILN_RUN_STEPS 2u

/* ---- events */
/* The compile enters the named phase, or a pass ("post_grad: pass 'fuse' of costs"), is inside one that calls the host
 * ("inside pass 'fuse' of costs", told about every 20 ms), or a pass tells something (kiln_pass_note); "in flight",
 * told every 20 ms: it waits for another of the same graph. */
#define KILN_EVENT_PROGRESS 1u
#define KILN_EVENT_WARNING 2u /* something went wrong, or is likely not meant, that did not fail the call */
/* A run is in a turn of a while or scan, "loop 'w', turn 12000": told about every 50 ms, by the thread that runs, for
 * hosts that end it, or of a run in flight by the one that waits for it. A scan that is compiled into one kernel is not
 * interrupted. Of runs with KILN_RUN_STEPS also: it is inside of a kernel, "kernel 2", told as often between parts of
 * its range. Of runs that others wait for, or poll: where it is, "step 3". */
#define KILN_EVENT_LOOP 3u
/* A run takes another program than its call's last one, or its first: "entry 'batch=1'", "entry 'general'" for the one
 * for all sizes. Of executables with entries alone (option "specialize"), by the thread that runs, before it begins. */
#define KILN_EVENT_ENTRY 4u
/* A step of a run has ended: "step 3, 4711 ns: kernel 2(x, arena 0)", as in the listing "plan"; of a nested plan
 * "plan 1.0 step 3, ...". Of runs with KILN_RUN_STEPS alone, by the thread that runs. */
#define KILN_EVENT_STEP 5u

/* ---- frozen structs */
typedef struct kiln_text {
  const char *data; /* `size` bytes of UTF-8; Kiln adds no terminator */
  uint64_t size;
} kiln_text;

/* One dimension: the integer `value`, or an expression over symbols when `expr` is not 0 (made by kiln_dim_parse; valid
 * within its context). */
typedef struct kiln_dim {
  int64_t value;
  uint64_t expr;
} kiln_dim;

/* A named, typed value: attribute, annotation or option. */
typedef struct kiln_attr {
  const char *name;
  uint64_t name_size;
  uint32_t kind; /* KILN_ATTR_*, or-ed with KILN_ATTR_LIST for a list */
  uint32_t reserved0;
  uint64_t count; /* of elements; 1 for a scalar */
  const void *data;
} kiln_attr;

/* ---- growable structs (inputs only) */

/* The type of an input or parameter. */
typedef struct kiln_type {
  uint32_t struct_size;
  kiln_dtype dtype;
  uint32_t rank;
  uint32_t layout;         /* KILN_LAYOUT_* */
  const kiln_dim *dims;    /* rank of them */
  const kiln_dim *strides; /* rank of them, in elements, 0 and below too; NULL unless layout is KILN_LAYOUT_STRIDED */
} kiln_type;

/* An output of a graph. Without a type it is row-major, with the dtype and dims of its value. */
typedef struct kiln_output {
  uint32_t struct_size;
  uint32_t flags; /* KILN_OUTPUT_* */
  kiln_value value;
  const char *name; /* one of its own among the outputs */
  uint64_t name_size;
  const kiln_type *type; /* dtype and dims must be the value's; NULL with KILN_OUTPUT_VIEW */
} kiln_output;

/* What is known of a symbol, in every shape that uses it. */
typedef struct kiln_symbol {
  uint32_t struct_size;
  uint32_t reserved0;
  int64_t min;     /* inclusive */
  int64_t max;     /* inclusive; 0: unbounded */
  int64_t divisor; /* the value is a multiple of it; 0: 1 */
  int64_t hint;    /* a likely value, to schedule for; 0: none */
} kiln_symbol;

typedef struct kiln_run_options {
  uint32_t struct_size;
  uint32_t flags; /* KILN_RUN_* */
  /* Of backend "cuda": a CUstream of the call's device, or 1 or 2, the driver's default streams, as in DLPack. The run
   * comes after what the stream was given before, what it is given next comes after the run, and the run is in flight
   * when kiln_call_run returns. 0: a stream of Kiln's own. Where there are no streams, others than 0 are refused. */
  uint64_t stream;
} kiln_run_options;

/* Where the elements of a parameter lie in a file. */
typedef struct kiln_source {
  uint32_t struct_size;
  uint32_t reserved0;
  const char *path; /* of a regular file */
  uint64_t path_size;
  uint64_t offset; /* in bytes, of element 0, 0, ...; a multiple of the element's size */
  /* Of the file, or of what it holds there: 16 to 64 bytes that name the values, as a digest does. What is prepared of
   * them is then found by it and the offset, whatever file they lie in. NULL: by the file's device, inode, size and
   * times. */
  const uint8_t *digest;
  uint64_t digest_size;
} kiln_source;

/* Destroys what a callback's `user` points to. Runs exactly once: when the object that holds the callback is closed or
 * unregistered. It does not run when registering failed: the caller still owns `user` then. */
typedef void (*kiln_destroy_fn)(void *user);

/* What a pass looks for, and what takes its place: `json` (docs/patterns.md), which is read, and copied, when the pass
 * is registered. */
typedef struct kiln_pattern {
  uint32_t struct_size;
  uint32_t reserved0;
  const char *json;
  uint64_t json_size;
  /* NULL: the JSON has a "replacement". Else called for each place, with the pass's `user`, inside its run: asks what
   * was found (kiln_pass_match_value), adds nodes to kiln_pass_edit(call), and says what takes the place of the
   * pattern's outputs (kiln_pass_match_replace); a place of which it says nothing stays. An error is the pass's. */
  kiln_error *(*rewrite)(void *user, kiln_pass_call *call);
} kiln_pattern;

/* A graph pass. Callbacks run on the thread that is inside kiln_compile, with no lock held. They must not throw. One
 * that waits for another thread must not have it compile what is being compiled: that would wait for the callback's
 * compile.
 *
 * A pass of stage lower runs on what is compiled together, before Kiln decomposes it: under mode "all" on the whole
 * graph, else on each region (option "mode"), equal ones once; not on nodes that fall back. Calls have been inlined,
 * and marks are gone from a region that was cut out. Its inputs and outputs have names of their own, and symbols may
 * be bound by inputs that it does not have: only an edit that begins from the pass's own view can be finished.
 *
 * What a pass with an identity makes is cached, so it must follow from what is in the key (the graph, the identity
 * with version and options, what `fingerprint` adds) and from what it asks of kiln_pass_query: files, the environment,
 * facts of the host. A pass can read more than that. Not in the key are the names of op nodes and constants, the
 * numbers of nodes, and annotations whose names begin with "debug."; nor is what it reads by itself, as the clock.
 * Unless the pass is early (then the key is made of its result), a result that depends on one of these may later be
 * given to a graph that it is wrong for. */
typedef struct kiln_pass {
  uint32_t struct_size;
  uint32_t stage;   /* KILN_STAGE_* */
  int32_t priority; /* within the stage, ascending; then in order of registration. Built-in: 0, and 1000 on */
  uint32_t timing; /* KILN_TIMING_*; 0: late with an identity; without: early in pre_grad, else the cache is bypassed */
  uint32_t flags;  /* KILN_PASS_* */
  uint32_t reserved0;
  const char *name; /* without a label not "all", nor a stage's: these stand for others */
  uint64_t name_size;
  const char *version; /* part of the identity */
  uint64_t version_size;
  const uint8_t *uuid;      /* 16 bytes, not all zero; or NULL: no identity, so a late result cannot be cached */
  const kiln_attr *options; /* the options that the pass knows, with their defaults; part of the identity */
  uint64_t option_count;
  void *user;
  /* Edits kiln_pass_edit(call), then says kiln_pass_done(call, rewrites). Returning NULL without done is a failure.
   * A returned error is Kiln's to destroy; the graph is then as it was before. Of a graph whose nodes carry graphs
   * (call, cond, scan, attention, ...) it runs once on each, however many nodes carry it, the innermost first, and last
   * on the graph itself. */
  kiln_error *(*run)(void *user, kiln_pass_call *call);
  /* May be NULL. Asked at every lookup: adds to the key with kiln_pass_fingerprint_add, or says that there can be none
   * (kiln_pass_uncacheable). */
  kiln_error *(*fingerprint)(void *user, kiln_pass_call *call);
  kiln_destroy_fn destroy; /* may be NULL */
  /* Tells several registrations of one name and UUID apart, with other options, say: the pass is then called
   * "NAME:LABEL" wherever passes are named. Part of the identity. Empty: none. */
  const char *label;
  uint64_t label_size;
  /* What it looks for; part of the identity. With patterns `run` may be NULL: the pass then rewrites by them, and no
   * more; a `run` does so with kiln_pass_apply_patterns. Their ops are there when the pass is registered, or are those
   * that the same plugin's setup added before it. */
  const kiln_pattern *const *patterns;
  uint64_t pattern_count;
} kiln_pass;

/* An op of a host's or a plugin's (kiln_op_register, and host->context->add_op). It is used as built-in ops are: in
 * JSON, in edits, in every mode. `infer` and `decompose` may run on any thread; `open` and `run` run on the thread that
 * is inside the call's run, with KILN_OP_ANY_THREAD also on threads of Kiln's: without it, a run that is to return
 * early (KILN_RUN_ASYNC) is refused. Several may run at once, with no lock held. They must not throw.
 *
 * `schema` is JSON: {"name": "lapack.solve" (letters, digits and _ . -; one of its own), "doc", "version" (from 1; 1),
 * "args": [{"name", "doc", "dtypes": ["f32", ...], "same_dtype" (true: as the first of which this is true), "arity"
 * ("one"; "optional", which come last; "variadic", which is the last)}], "results": [NAME, ...], "attrs": [{"name",
 * "doc", "kind" ("i64", "f64", "text", "dtype", "dim", "bool"), "list" (false), "required" (true without default),
 * "default"}], "samples": [{"name", "inputs": [{"dtype", "shape"}, ...], "attrs": {NAME: value}, "sizes": {SYMBOL: n},
 * "range": [low, high) of floats, "integer_range", "tolerance"}]}. Members that are not said are left out; others are
 * refused. Samples are what tests run (kiln_op_describe tells them).
 *
 * One of `run` and `decompose` is there, or both. A node of an op with `decompose` becomes what that yields, once all
 * passes have run, unless it is marked kiln.decompose = "keep"; then, or without one, `run` runs it, as a step of its
 * own, on the host: backends that run elsewhere refuse it. What is between such steps is compiled.
 *
 * With KILN_OP_EFFECT the last of "args" has "dtypes" ["token"], is "one", and no other takes a token; the last of
 * "results" is a token, which `infer` need not tell. There is `run` and no `decompose`. Each run of the graph that the
 * node is in runs it once: it is kept though nothing reads what it yields, merged with no other, and never made ahead.
 * Samples leave the token out.
 *
 * What a compile makes of a graph with such an op is cached if the op has a UUID. It must then follow from the schema,
 * the UUID, the version, and what the functions are given. */
typedef struct kiln_op_def {
  uint32_t struct_size;
  uint32_t flags; /* KILN_OP_* */
  const char *schema;
  uint64_t schema_size;
  const uint8_t *uuid; /* 16 bytes, not all zero; or NULL: graphs that use the op bypass the cache, with its name */
  void *user;
  /* Types of the results: kiln_op_call_result for each. Pure: it follows from types and attributes. */
  kiln_error *(*infer)(void *user, kiln_op_call *call);
  /* May be NULL. Adds nodes to kiln_op_call_edit and tells the results with kiln_op_call_yield. Pure, likewise. */
  kiln_error *(*decompose)(void *user, kiln_op_call *call);
  /* May be NULL, with `close`. Makes *out_state (NULL before) for the node, when a call object first runs it. */
  kiln_error *(*open)(void *user, kiln_op_call *call, void **out_state);
  /* May be NULL. `arrays` are operands, then results, `count` in all: on the CPU, row-major (strides are NULL), results
   * not initialised, none of them overlapping another that is written; those that are tokens have rank 0, dtype code
   * kDLOpaqueHandle of 0 bits and data NULL. Valid during the call. Returns when the results are there. An error stops
   * the run and names the node; its arrays are then not defined. One thread at a time for one state. */
  kiln_error *(*run)(void *user, void *state, const DLTensor *const *arrays, uint64_t count,
                     const kiln_run_options *options);
  void (*close)(void *user, void *state); /* with the call object; not for NULL, nor of an open that failed */
  kiln_destroy_fn destroy;                /* may be NULL; runs when the context and all that was made in it are gone */
} kiln_op_def;

/* Receives progress, warnings, and loops, entries and steps of runs, on the thread that is inside the call that they
 * belong to. Loops of a run in flight are told inside kiln_call_wait, kiln_call_poll and kiln_call_destroy. */
typedef struct kiln_event_sink {
  uint32_t struct_size;
  uint32_t kinds; /* those wanted: bits 1 << KILN_EVENT_*; 0: all. A bit of no kind is refused */
  void *user;
  /* `text` is valid during the call. Non-zero cancels the compile at its next boundary, or, of a loop, an
   * entry or a step, the run (KILN_CANCELLED). */
  int32_t (*event)(void *user, uint32_t kind, const char *text, uint64_t size);
  kiln_destroy_fn destroy; /* may be NULL; runs when the context is closed */
} kiln_event_sink;

#ifdef __cplusplus
}
#endif
#endif
