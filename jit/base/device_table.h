/* The second half of the private border (codegen.h): a module that also runs what it compiles, on a device with memory
 * of its own. Addresses are the device's. Functions that can fail return 0, or 1 and fill `error`.
 * Threads: a device and a program serve any number of threads at once, a queue one at a time. A queue and a program
 * are closed before their device, memory before its queue. Work that reads memory is over (finish) before it is freed.
 */
#ifndef KILN_JIT_DEVICE_TABLE_H
#define KILN_JIT_DEVICE_TABLE_H
#include <stdint.h>

#include "jit/base/codegen.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_device kiln_device;
typedef struct kiln_device_program kiln_device_program; /* loaded kernels */
typedef struct kiln_device_queue kiln_device_queue;     /* work that runs in the order in which it was given */

typedef struct kiln_device_error {
  uint32_t code; /* Code (status.h) */
  uint32_t reserved0;
  char message[1016]; /* ends with 0 */
} kiln_device_error;

typedef struct kiln_device_kernel {
  const uint8_t *image; /* kernels of one image have the same pointer: it is loaded once */
  uint64_t image_size;
  const char *entry; /* ends with 0 */
  kiln_kernel_use use;
} kiln_device_kernel;

typedef struct kiln_device_launch {
  const kiln_device_program *program;
  uint64_t kernel;         /* its number in the program */
  const uint64_t *buffers; /* in the order of the kernel's in and out buffers */
  uint64_t buffer_count;
  const int64_t *sizes; /* the kernel's symbols */
  uint64_t size_count;
  int64_t points;         /* of the parallel axes, flattened; none: nothing is done */
  uint64_t scratch_bytes; /* of a group, where the kernel works in whole groups */
} kiln_device_launch;

typedef struct kiln_device_table {
  uint32_t (*open)(uint32_t ordinal, kiln_device **out, kiln_device_error *error);
  void (*close)(kiln_device *device);
  const char *(*arch)(const kiln_device *device); /* what to compile for; lives as long as the device */

  uint32_t (*load)(kiln_device *device, const kiln_device_kernel *kernels, uint64_t count, kiln_device_program **out,
                   kiln_device_error *error);
  void (*unload)(kiln_device_program *program);

  uint32_t (*open_queue)(kiln_device *device, kiln_device_queue **out, kiln_device_error *error);
  void (*close_queue)(kiln_device_queue *queue); /* waits for its work */
  uint32_t (*allocate)(kiln_device_queue *queue, uint64_t bytes, uint64_t *out, kiln_device_error *error);
  void (*free)(kiln_device_queue *queue, uint64_t address);
  /* Host memory must stay until finish. */
  uint32_t (*copy_in)(kiln_device_queue *queue, uint64_t to, const void *from, uint64_t bytes,
                      kiln_device_error *error);
  uint32_t (*copy_out)(kiln_device_queue *queue, void *to, uint64_t from, uint64_t bytes, kiln_device_error *error);
  uint32_t (*copy)(kiln_device_queue *queue, uint64_t to, uint64_t from, uint64_t bytes, kiln_device_error *error);
  uint32_t (*launch)(kiln_device_queue *queue, const kiln_device_launch *launch, kiln_device_error *error);
  /* What is given to `queue` from here on waits for what was given to `first` so far, which several queues may follow
   * at once. */
  uint32_t (*follow)(kiln_device_queue *queue, kiln_device_queue *first, kiln_device_error *error);
  /* Of a stream of the driver's that another has made (its handle as a number; or one of the driver's numbers for the
   * default ones): what is given to `queue` from here on waits for what the stream was given so far (enter), or what
   * the stream is given for what the queue was (leave). Nothing waits here. */
  uint32_t (*enter)(kiln_device_queue *queue, uint64_t stream, kiln_device_error *error);
  uint32_t (*leave)(kiln_device_queue *queue, uint64_t stream, kiln_device_error *error);
  /* *out: 1: all work is over. Does not wait. */
  uint32_t (*is_over)(kiln_device_queue *queue, uint32_t *out, kiln_device_error *error);
  /* Waits for all work; *out: KILN_ERROR_* bits (kernel_args.h) that kernels have set since the last finish. */
  uint32_t (*finish)(kiln_device_queue *queue, uint32_t *out, kiln_device_error *error);
} kiln_device_table;

#ifdef __cplusplus
}
#endif
#endif
