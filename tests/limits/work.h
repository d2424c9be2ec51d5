#ifndef KILN_TESTS_LIMITS_WORK_H
#define KILN_TESTS_LIMITS_WORK_H
#include <stddef.h>

struct job {
  const char *backend; /* "cpu", "cuda", "reference" */
  const char *cache;   /* its folder */
};
enum outcome { right, out_of_memory, wrong };

/* Once, before all else. */
void work_prepare(void);
/* Makes a graph by an edit and as JSON, with a pass, a plugin and an event sink of its own; compiles, runs, lets all
 * go. `why` tells what was wrong. */
enum outcome work(const struct job *job, char *why, size_t capacity);
#endif
