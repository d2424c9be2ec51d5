/* What a compiled kernel receives. Frozen: images on disk rely on it (whoever changes it raises record_format_version,
 * runtime/cache/record.h). */
#ifndef KILN_JIT_KERNEL_ARGS_H
#define KILN_JIT_KERNEL_ARGS_H
#include <stdint.h>

typedef struct kiln_kernel_args {
  void *const *buffers; /* in the order of Kernel::buffers that are in or out */
  const int64_t *sizes; /* the values of Kernel::symbols, in order */
  int64_t begin, end;   /* range of the flattened parallel tiles, [begin, end) */
  void *scratch;        /* 64-byte aligned, Kernel's scratch size; this call's alone */
  uint32_t *error_word; /* KILN_ERROR_* bits, or-ed atomically when the semantics say so; never null */
} kiln_kernel_args;

#define KILN_ERROR_DIVISION_BY_ZERO 1u
#define KILN_ERROR_INDEX_OUT_OF_RANGE 2u

/* Returns 0. Entry of every image. */
typedef int32_t (*kiln_kernel_fn)(const kiln_kernel_args *args);
#endif
