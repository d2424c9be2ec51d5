/* Preloaded into limits_host, linked into kiln_test_llvm: makes one allocation fail, or all from one on. Counted are
 * the calls of malloc and its like, of mmap, and of pthread_create, by any thread, from the moment that the host arms
 * it; or of these only what a thread calls within dlopen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "tests/limits/failing_malloc.h"

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_long calls, first, last; /* fails when first <= number of the call <= last */
static atomic_int counts_loads_only;
static __attribute__((tls_model("initial-exec"))) _Thread_local int loads; /* dlopens that this thread is in */

static void arm(long first_failing, long last_failing, int loads_only) {
  atomic_store(&first, 0);
  atomic_store(&calls, 0);
  atomic_store(&counts_loads_only, loads_only);
  atomic_store(&last, last_failing);
  atomic_store(&first, first_failing);
}

EXPORT void failing_malloc_arm(long first_failing, long last_failing) { arm(first_failing, last_failing, 0); }
EXPORT void failing_malloc_arm_loads(long first_failing, long last_failing) { arm(first_failing, last_failing, 1); }

EXPORT long failing_malloc_disarm(void) {
  atomic_store(&first, 0);
  return atomic_load(&calls);
}

static int fails(void) {
  const long from = atomic_load_explicit(&first, memory_order_relaxed);
  if (from == 0 || (atomic_load(&counts_loads_only) && loads == 0)) return 0;
  const long number = atomic_fetch_add(&calls, 1) + 1;
  if (number < from || number > atomic_load(&last)) return 0;
  errno = ENOMEM;
  return 1;
}

EXPORT void *malloc(size_t size) { return fails() ? 0 : __libc_malloc(size); }
EXPORT void *calloc(size_t count, size_t size) { return fails() ? 0 : __libc_calloc(count, size); }
EXPORT void *realloc(void *block, size_t size) { return fails() ? 0 : __libc_realloc(block, size); }
EXPORT void *memalign(size_t alignment, size_t size) { return fails() ? 0 : __libc_memalign(alignment, size); }
EXPORT void *aligned_alloc(size_t alignment, size_t size) { return fails() ? 0 : __libc_memalign(alignment, size); }
EXPORT int posix_memalign(void **out, size_t alignment, size_t size) {
  void *block = fails() ? 0 : __libc_memalign(alignment, size);
  if (!block) return ENOMEM;
  *out = block;
  return 0;
}

EXPORT void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
  static void *(*real)(void *, size_t, int, int, int, off_t);
  if (fails()) return MAP_FAILED;
  if (!real) real = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
  return real(address, size, protection, flags, fd, offset);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *user) {
  static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (fails()) return EAGAIN;
  if (!real)
    real = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
  return real(thread, attributes, start, user);
}

EXPORT void *dlopen(const char *path, int mode) {
  static void *(*real)(const char *, int);
  if (!real) real = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
  ++loads;
  void *library = real(path, mode);
  --loads;
  return library;
}
