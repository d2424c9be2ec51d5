/* The private border between libkiln and a code generating module (libkiln_llvm, libkiln_cuda): one C table, no C++
 * type crosses. Both sides are of one build: the table is refused unless the build ids are equal. Thread-safe. */
#ifndef KILN_JIT_CODEGEN_H
#define KILN_JIT_CODEGEN_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_codegen_request {
  const uint8_t *const *kernels; /* serialised kernels (jit/kernel/serialize.h) */
  const uint64_t *kernel_sizes;
  uint64_t kernel_count;
  const char *target; /* Target::name() */
  uint64_t target_size;
  uint32_t threads;                  /* compile threads, at least 1 */
  uint32_t want;                     /* KILN_CODEGEN_* bits: texts to deliver beside the image */
  uint32_t (*cancelled)(void *user); /* asked between kernels on the calling thread; may be null */
  void *user;
} kiln_codegen_request;
#define KILN_CODEGEN_IR 1u
#define KILN_CODEGEN_ASM 2u

/* Called on the calling thread only, in the order of the kernels, once each. On success `error` is null and the image
 * is valid during the call: position-independent code and constants, entry at `entry_offset`, to be loaded at a 64-byte
 * aligned address. Otherwise `error` says why. */
typedef struct kiln_codegen_result {
  uint64_t kernel;
  const uint8_t *image;
  uint64_t image_size;
  uint64_t entry_offset;
  const char *text;
  uint64_t text_size; /* what `want` asked for */
  const char *error;
  uint64_t error_size;
  double milliseconds;
} kiln_codegen_result;

typedef struct kiln_codegen_table {
  const char *build_id;
  /* Returns 0 when every kernel was delivered (some perhaps as errors), 1 when cancelled. */
  int32_t (*compile)(const kiln_codegen_request *request, void (*deliver)(void *user, const kiln_codegen_result *),
                     void *deliver_user);
} kiln_codegen_table;

/* The one symbol that such a module exports. */
typedef const kiln_codegen_table *(*kiln_codegen_entry_fn)(void);
#define KILN_CODEGEN_ENTRY "kiln_codegen_entry"
#ifdef __cplusplus
}
#endif
#endif
