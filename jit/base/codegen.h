/* The private border between libkiln and a code generating module (libkiln_llvm, libkiln_cuda): one C table, no C++
 * type crosses. Both sides are of one build: the table is refused unless the build ids are equal. Thread-safe. */
#ifndef KILN_JIT_CODEGEN_H
#define KILN_JIT_CODEGEN_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

/* How a device runs a kernel, and what it takes of the device. All zero for kernels that the executor calls itself. */
typedef struct kiln_kernel_use {
  uint32_t group_threads; /* threads of a group, at most; a power of two */
  uint32_t whole_group;   /* 1: a group works on a point of the parallel axes together, with scratch of its own;
                             0: each thread takes a point */
  uint32_t registers;     /* of a thread */
  uint32_t spill_bytes;   /* of a thread: stored, because registers did not suffice */
  uint32_t shared_bytes;  /* of a group */
  uint32_t reserved0;
} kiln_kernel_use;

typedef struct kiln_codegen_request {
  const uint8_t *const *kernels; /* serialised kernels (jit/kernel/kernel.h) */
  const uint64_t *kernel_sizes;
  uint64_t kernel_count;
  const char *target; /* Target::name() */
  uint64_t target_size;
  uint32_t threads;                  /* compile threads, at least 1 */
  uint32_t want;                     /* KILN_CODEGEN_* bits: texts to deliver beside the image */
  uint32_t (*cancelled)(void *user); /* asked on the calling thread, often; may be null */
  void *user;
} kiln_codegen_request;
#define KILN_CODEGEN_IR 1u
#define KILN_CODEGEN_ASM 2u
#define KILN_CODEGEN_SOURCE 4u    /* what a module that goes by way of another compiler gives to it */
#define KILN_CODEGEN_TEXT_ONLY 8u /* no image: the texts alone, without that compiler where it is not needed */

/* Called on the calling thread only, in the order of the kernels, once each. On success `error` is null and the rest
 * is valid during the call. Otherwise `error` says why, in one line. */
typedef struct kiln_codegen_result {
  uint64_t kernel;
  /* Code of one or more kernels: those of one `image_number` (of this request) have one image, which is then the same
   * bytes. Either position-independent code and constants, to be loaded at a 64-byte aligned address, or what the
   * module's own device table (device_table.h) loads. */
  uint64_t image_number;
  const uint8_t *image;
  uint64_t image_size;
  uint64_t entry_offset; /* where the kernel begins, unless `entry` names it */
  const char *entry;
  uint64_t entry_size;
  const kiln_kernel_use *use; /* null: all zero */
  const char *compiler;       /* outside of Kiln's own build: "NVRTC 13.0" */
  uint64_t compiler_size;
  const char *text;
  uint64_t text_size; /* what `want` asked for */
  const char *error;
  uint64_t error_size;
  const char *error_report; /* a JSON object with what explains the error; may be null */
  uint64_t error_report_size;
  uint32_t error_code; /* Code (status.h) */
  uint32_t reserved0;
} kiln_codegen_result;

struct kiln_device_table;

typedef struct kiln_codegen_table {
  const char *build_id;
  /* Returns 0 when every kernel was delivered (some perhaps as errors), 1 when cancelled. */
  int32_t (*compile)(const kiln_codegen_request *request, void (*deliver)(void *user, const kiln_codegen_result *),
                     void *deliver_user);
  const struct kiln_device_table *device; /* device_table.h; null: the executor calls the kernels */
  /* Its name and version, as results tell it ("NVRTC 13.0"), at most `capacity` bytes with the 0 at their end: what
   * compiles the kernels outside of Kiln's own build. Opens it; 1: it cannot be opened, and *out is empty. Null: there
   * is none. */
  uint32_t (*compiler)(char *out, uint64_t capacity);
} kiln_codegen_table;

/* The one symbol that such a module exports. */
typedef const kiln_codegen_table *(*kiln_codegen_entry_fn)(void);
#define KILN_CODEGEN_ENTRY "kiln_codegen_entry"
#ifdef __cplusplus
}
#endif
#endif
