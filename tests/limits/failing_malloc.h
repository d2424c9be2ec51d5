/* The library that limits_host is run with (LD_PRELOAD), and a part of the emitter's tests; the functions are absent
 * where neither is so. */
#ifndef KILN_TESTS_FAILING_MALLOC_H
#define KILN_TESTS_FAILING_MALLOC_H
#define EXPORT __attribute__((visibility("default")))

/* Counts allocations from 1 from now on; those from `first_failing` to `last_failing` fail. */
EXPORT __attribute__((weak)) void failing_malloc_arm(long first_failing, long last_failing);
/* The same for those within dlopen alone: the loader's, then the constructors'. */
EXPORT __attribute__((weak)) void failing_malloc_arm_loads(long first_failing, long last_failing);
/* Lets all succeed again. Returns how many there were. */
EXPORT __attribute__((weak)) long failing_malloc_disarm(void);
#endif
