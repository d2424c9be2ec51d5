/* kiln/function.h: functions of the host, which run nodes in place of what Kiln makes of their ops.
 * docs/call-a-function.md shows how. */
#ifndef KILN_FUNCTION_H
#define KILN_FUNCTION_H
#include "kiln/types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- flags of kiln_function */
#define KILN_FUNCTION_UUID_SUFFICES 1u /* leaves out of the key what its library or plugin is; needs `uuid` */
#define KILN_FUNCTION_ANY_THREAD 2u    /* may be called on threads of Kiln's: by runs in flight (KILN_RUN_ASYNC) */

/* A function, of any signature, that computes what an op means: it runs the nodes that are annotated
 * kiln.fallback.function = NAME, and those that fall back whose op has it as its fallback (kiln_fallback_register).
 *
 * `signature` says what Kiln calls it with, "i32 (i32 101, i32 n, f32 data a[n, n], user)": RETURN (ARGUMENT, ...).
 * - RETURN: "void"; "i32": not 0 says that it failed; "error": a kiln_error *, which becomes Kiln's, or NULL.
 * - "TYPE VALUE": a scalar, of i8 ... i64, u8 ... u64, bool (a byte), f32 or f64.
 * - "TYPE *VALUE": a pointer to it; of an attribute that is a list, to its elements, of a text (i8 or u8), to its bytes
 *   and a 0. What a call writes there is gone at the next.
 * - "data ARRAY" or "TYPE data ARRAY": where its elements begin, row-major; they must be of that TYPE.
 * - "inout RESULT=OPERAND", also after a TYPE: where the result's elements lie, which begin as the operand's.
 * - "tensor ARRAY": a const DLTensor *, on the CPU, row-major (strides are NULL).
 * - "scratch SUM": so many bytes, 64-byte aligned, of the call object's own; what they hold is not defined.
 * - "user": kiln_function.user.
 * - VALUE: a number; 'c', that character's; a name; or, of integers, a SUM of these: + - * / % and parentheses, "size
 *   ARRAY D" and "stride ARRAY D" (in elements) of its dim D.
 * - ARRAY: an operand or a result, by its name in the op's schema (kiln_op_describe) or by its number, in which results
 *   follow operands. "a[m, 4, _]": it has three dims; the first is called m, and where m stands again the size must be
 *   the same; the second is 4.
 * - A name is a size that brackets name, else an attribute of the op, else a symbol that is a dim of an operand.
 * Operands must not be written. Each result is given to one argument at least; but for inout, it is not initialised,
 * and overlaps no other array. Sizes that do not fit their TYPE are an error of the run.
 *
 * A run calls it on the thread that is inside kiln_call_run, with KILN_FUNCTION_ANY_THREAD also on threads of Kiln's
 * (without, a run that is to return early is refused), in the host's floating-point environment, with no lock
 * held; several call objects may do so at once. It must not throw, nor run the call object that it is called by. When
 * it fails, the run ends with an error that names the node and has the function's text; the outputs are then not
 * defined, and the call object can run again.
 *
 * What a compile makes of a graph that it runs nodes of is cached if the function has a UUID: then name, version,
 * signature, UUID and, unless KILN_FUNCTION_UUID_SUFFICES is set, what its library or plugin is, and what that links,
 * say what it computes. Texts are copied. */
typedef struct kiln_function { /* growable */
  uint32_t struct_size;
  uint32_t flags;   /* KILN_FUNCTION_* */
  const char *name; /* letters, digits and _ . -, one of its own in the context */
  uint64_t name_size;
  const char *version; /* part of the identity; may be empty */
  uint64_t version_size;
  const char *signature;
  uint64_t signature_size;
  /* 16 bytes, not all zero; or NULL: graphs that it runs nodes of bypass the cache, with its name. Of a `pointer` of
   * the host's it needs KILN_FUNCTION_UUID_SUFFICES. */
  const uint8_t *uuid;
  void (*pointer)(void); /* or NULL: it is `symbol` of `library` */
  const char *library;   /* an absolute path that the context's option load_symbols lists, as it is listed */
  uint64_t library_size;
  const char *symbol;
  uint64_t symbol_size;
  void *user; /* the function's argument "user" */
  /* May be NULL. Runs on the thread that drops the last of these: the registration, executables that use it. */
  kiln_destroy_fn destroy;
} kiln_function;

/* Registers a function; nodes and fallbacks find it by its name. KILN_INVALID_ARGUMENT: the name is taken, or the
 * signature is none (the message says where); KILN_IO, KILN_UNKNOWN_NAME: there is no such library, or symbol. The
 * library stays in the process; what is called is what was digested, whatever becomes of the file. On success the
 * context owns `user`. *out_id (may be NULL) serves to unregister. Any thread. */
KILN_EXPORT kiln_error *kiln_function_register(kiln_context *context, const kiln_function *function, uint64_t *out_id);
/* Nothing finds it any more. Executables that use it, and compiles that have begun, keep it. KILN_INVALID_ARGUMENT
 * while an op falls back to it; KILN_OUT_OF_RANGE: no function has the id. Any thread. */
KILN_EXPORT kiln_error *kiln_function_unregister(kiln_context *context, uint64_t id);
/* From now on the function runs nodes of `op` that fall back (docs/regions.md), on backends that run on the host; what
 * does not fit its signature is an error of the compile. One for an op. KILN_UNKNOWN_NAME: no function has the name.
 * KILN_INVALID_ARGUMENT: the op has a fallback, or its nodes are not single steps (call, cond, ...). *out_id (may be
 * NULL) serves to unregister. Any thread. */
KILN_EXPORT kiln_error *kiln_fallback_register(kiln_context *context, kiln_op op, const char *function,
                                               uint64_t function_size, uint64_t *out_id);
/* From now on nodes of the op fall back to what Kiln makes of it; executables and compiles that have begun do as they
 * did. KILN_OUT_OF_RANGE: no fallback has the id. Any thread. */
KILN_EXPORT kiln_error *kiln_fallback_unregister(kiln_context *context, uint64_t id);

#ifdef __cplusplus
}
#endif
#endif
