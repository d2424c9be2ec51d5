/* kiln/backend.h: backends of hosts and plugins, which compile regions of graphs, and run them, in place of Kiln's own.
 * docs/write-a-backend.md shows how. */
#ifndef KILN_BACKEND_H
#define KILN_BACKEND_H
#include "kiln/types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- flags of kiln_backend */
#define KILN_BACKEND_UUID_SUFFICES 1u /* leaves out of the key what its plugin's file is; needs `uuid` */
#define KILN_BACKEND_ANY_THREAD 2u    /* target, takes and compile may be called on threads of Kiln's */
#define KILN_BACKEND_SYMBOLIC 4u      /* takes nodes of which some sizes are known at a call alone */

/* One call of target, takes or compile: valid until it returns, on its thread. */
typedef struct kiln_backend_call kiln_backend_call;

/* A backend beside Kiln's own: it takes some nodes, and the rest stays with the backend cpu. Option backend = NAME of a
 * compile chooses it for the whole graph; a mode that cuts, for a region: nodes that are annotated kiln.region.backend
 * = NAME, or option region.REGION.backend. Its options are backend.NAME.OPTION of a compile, and for one region
 * annotations kiln.region.backend.OPTION or region.REGION.backend.OPTION.
 *
 * What becomes of a region: `takes` is asked node by node. Nodes that it takes are put together as regions are, into as
 * few graphs as can be (docs/regions.md). `compile` makes bytes of each, equal ones once, which the artifact keeps. To
 * load an executable, from a compile, the cache or a file, is to `load` these bytes; none of the functions above is
 * called then but `target`. Each call object `open`s its own state, each binding of parameters is `prepare`d once, and
 * `run` runs the region as one step.
 *
 * Functions return NULL, or an error, which becomes Kiln's: of target, takes and compile it ends the compile, of load
 * the load (in the cache the record is put aside, and the graph is compiled again), of prepare, open and run the run.
 * None may throw. They run in the host's floating-point environment, with no lock held. target, takes and compile run
 * on the thread that is inside kiln_compile or kiln_executable_open, with KILN_BACKEND_ANY_THREAD also on threads of
 * Kiln's (without, entries are made by the compile: option specialize_when), the others on any thread, several at once
 * for different objects, `run` with one program and one `prepared` for several states at once.
 *
 * A graph that is compiled with it is cached if it has a UUID: then name, version, UUID, unless
 * KILN_BACKEND_UUID_SUFFICES is set what its plugin is, the options it is given, and what `target` tells, say what its
 * code does. Texts, options and UUID are copied. */
typedef struct kiln_backend { /* growable */
  uint32_t struct_size;
  uint32_t flags;   /* KILN_BACKEND_* */
  const char *name; /* letters, digits and _ -, one of its own in the context */
  uint64_t name_size;
  const char *version; /* part of the identity; may be empty */
  uint64_t version_size;
  /* 16 bytes, not all zero; or NULL: graphs that it is chosen for bypass the cache, with its name. Of a host's it needs
   * KILN_BACKEND_UUID_SUFFICES. */
  const uint8_t *uuid;
  const kiln_attr *options; /* with their defaults; a compile sets them as backend.NAME.OPTION */
  uint64_t option_count;
  int32_t device_type; /* of the memory that it works on, in DLPack's numbers: 1 (kDLCPU); others KILN_UNIMPLEMENTED */
  uint32_t reserved0;
  void *user;
  /* May be NULL. Tells (kiln_backend_key) all else that its bytes depend on: a library's version, an instruction set.
   * Asked until it has answered once in a context. What was made with another answer is compiled again, and refused
   * from a file. */
  kiln_error *(*target)(void *user, kiln_backend_call *call);
  /* *out = 1: it takes the node, whole; 0: not, for the reason that kiln_backend_refuse told. A node of a composite op
   * that it does not take is asked about by what it is made of, and taken so if all of that is. Pure: in the graph,
   * node and options. Not asked about control flow, calls, nodes that write inputs or tell sizes and, without
   * KILN_BACKEND_SYMBOLIC, of nodes with symbolic sizes. */
  kiln_error *(*takes)(void *user, kiln_backend_call *call, const kiln_graph *graph, kiln_node node, uint32_t *out);
  /* Ends with kiln_backend_blob, with the same bytes for the same region and options. Of the region's values all are
   * row-major; its constants are in it. */
  kiln_error *(*compile)(void *user, kiln_backend_call *call, const kiln_graph *region);
  /* `blob` is as compile gave it, unless a file was changed: check it. It stays until unload. *out_program may stay
   * NULL. */
  kiln_error *(*load)(void *user, const void *blob, uint64_t size, void **out_program);
  /* May be NULL. For a region with parameters, of `count` arrays in their order, which stay until release. Calls and
   * their clones share what it makes. *out_prepared may stay NULL: then there is nothing to release. */
  kiln_error *(*prepare)(void *user, void *program, const DLTensor *const *parameters, uint64_t count,
                         void **out_prepared);
  kiln_error *(*open)(void *user, void *program, void **out_state); /* of a call object; may be NULL */
  /* `args`: the region's inputs, parameters and outputs, on the CPU, row-major (strides are NULL), aligned to their
   * elements; of any shapes that the region's types allow. Outputs are not initialised, and overlap nothing. Returns
   * when they are there. */
  kiln_error *(*run)(void *user, void *program, void *prepared, void *state, const DLTensor *const *args,
                     uint64_t count, const kiln_run_options *options);
  void (*close)(void *user, void *state);      /* of an open that did not fail; may be NULL */
  void (*release)(void *user, void *prepared); /* of prepare; may be NULL */
  void (*unload)(void *user, void *program);   /* of load; may be NULL */
  /* May be NULL. Runs on the thread that drops the last of these: the registration, compiles and executables that use
   * it; after the last unload. */
  kiln_destroy_fn destroy;
} kiln_backend;

/* Registers a backend. KILN_INVALID_ARGUMENT: the name is taken, or one of Kiln's own. On success the context owns
 * `user`. *out_id (may be NULL) serves to unregister. Any thread. */
KILN_EXPORT kiln_error *kiln_backend_register(kiln_context *context, const kiln_backend *backend, uint64_t *out_id);
/* No compile and no load finds it any more; executables that use it, and compiles that have begun, keep it.
 * KILN_OUT_OF_RANGE: no backend has the id. Any thread. */
KILN_EXPORT kiln_error *kiln_backend_unregister(kiln_context *context, uint64_t id);

/* ---- inside target, takes and compile */

/* The context, to find ops by (kiln_op_find); NULL for another thread's call. */
KILN_EXPORT kiln_context *kiln_backend_context(kiln_backend_call *call);
/* The value that the compile gives to an option of the backend, or its default. Inside takes and compile. A view, valid
 * as long as the call. KILN_UNKNOWN_NAME: it has no such option. Beside its own there is "kiln.rounding", a text, as
 * the compile or the region has it: "strict" (each 16-bit value of the graph is rounded where its op ends) or
 * "relaxed". */
KILN_EXPORT kiln_error *kiln_backend_option(kiln_backend_call *call, const char *name, uint64_t name_size,
                                            kiln_attr *out);
/* Adds to what the backend's bytes depend on. Inside target. */
KILN_EXPORT kiln_error *kiln_backend_key(kiln_backend_call *call, const void *bytes, uint64_t size);
/* Says why it does not take the node, for people ("its groups differ": the report and `kiln inspect --regions` give
 * it). Inside takes, which then answers 0; the last reason holds. Copied; a line. */
KILN_EXPORT kiln_error *kiln_backend_refuse(kiln_backend_call *call, const char *why, uint64_t why_size);
/* Gives the region's bytes, at least one, which are copied. Once, inside compile. */
KILN_EXPORT kiln_error *kiln_backend_blob(kiln_backend_call *call, const void *bytes, uint64_t size);

#ifdef __cplusplus
}
#endif
#endif
