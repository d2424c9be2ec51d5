/* limits_host cold|warm BACKEND once|from|load|megabytes FIRST LAST STEP
 *
 * For each number from FIRST to LAST, in a child of its own: does the work (work.h) once with a limit, and then once
 * more without. The limit: allocation NUMBER fails; all from NUMBER on fail; allocation NUMBER of those within
 * dlopen fails (the loader's come first); the address space has NUMBER megabytes.
 * The limited work may end in KILN_OUT_OF_MEMORY or be right; the work after it must be right, and no record may be in
 * quarantine. Prints what was not so.
 *
 * cold: nothing is in the cache, and the module that compiles has not been loaded. warm: the record is there.
 * FIRST 0 prints how many allocations there are. With KILN_TEST_SOAK, steps are smaller, and megabytes come 50 times.
 */
#define _XOPEN_SOURCE 700 /* nftw, mkdtemp */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/limits/failing_malloc.h"
#include "tests/limits/work.h"

enum { soak_steps = 32, soak_repeats = 50, seconds_at_most = 100 };

static enum outcome work_within(const struct job *job, const char *limit, long number, char *why, size_t capacity) {
  if (strcmp(limit, "megabytes") != 0) {
    if (strcmp(limit, "load") == 0)
      failing_malloc_arm_loads(number, number);
    else
      failing_malloc_arm(number, strcmp(limit, "from") == 0 ? 1L << 60 : number);
    const enum outcome outcome = work(job, why, capacity);
    failing_malloc_disarm();
    return outcome;
  }
  struct rlimit all, some;
  getrlimit(RLIMIT_AS, &all);
  some = all;
  some.rlim_cur = (rlim_t)number << 20;
  setrlimit(RLIMIT_AS, &some);
  const enum outcome outcome = work(job, why, capacity);
  setrlimit(RLIMIT_AS, &all);
  return outcome;
}

/* In the child. */
static enum outcome limited(const struct job *job, const char *limit, long number) {
  char why[1024] = "";
  alarm(seconds_at_most);
  const enum outcome outcome = work_within(job, limit, number, why, sizeof why);
  if (outcome == wrong) printf("%s %ld: %s\n", limit, number, why);
  const enum outcome after = work(job, why, sizeof why);
  if (after == out_of_memory) snprintf(why, sizeof why, "out of memory");
  if (after != right) printf("%s %ld: without a limit afterwards: %s\n", limit, number, why);
  fflush(stdout);
  return after == right ? outcome : wrong;
}

static int has_quarantine(const struct job *job) {
  char folder[128];
  snprintf(folder, sizeof folder, "%s/quarantine", job->cache);
  return access(folder, F_OK) == 0;
}

/* As in `limited`, or `wrong` when the child died or a record went to quarantine. */
static enum outcome in_child(const struct job *job, const char *limit, long number) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) _exit((int)limited(job, limit, number));
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) printf("%s %ld: died of signal %d\n", limit, number, WTERMSIG(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) > wrong)
    printf("%s %ld: exited with %d\n", limit, number, WEXITSTATUS(status));
  if (has_quarantine(job)) printf("%s %ld: a record is in quarantine\n", limit, number);
  return WIFEXITED(status) && WEXITSTATUS(status) < wrong && !has_quarantine(job) ? (enum outcome)WEXITSTATUS(status)
                                                                                  : wrong;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at) {
  (void)info, (void)kind, (void)at;
  return remove(path);
}
static void remove_folder(const char *path) { nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

int main(int argc, char **argv) {
  if (argc != 7) {
    fprintf(stderr, "usage: see the head of limits_host.c\n");
    return 2;
  }
  const int warm = strcmp(argv[1], "warm") == 0, soak = getenv("KILN_TEST_SOAK") != NULL;
  const char *limit = argv[3];
  const long first = atol(argv[4]), last = atol(argv[5]);
  long step = atol(argv[6]), repeats = 1;
  if (soak && strcmp(limit, "megabytes") == 0) repeats = soak_repeats;
  if (soak && strcmp(limit, "megabytes") != 0) step = step < soak_steps ? 1 : step / soak_steps;
  char folder[] = "/tmp/kiln-limits-XXXXXX", why[1024];
  if (!mkdtemp(folder)) return 2;
  char cache[64];
  snprintf(cache, sizeof cache, "%s/cache", folder);
  const struct job job = {argv[2], cache};
  work_prepare();

  if (warm) in_child(&job, "once", 1L << 60);
  if (first == 0) {
    failing_malloc_arm(1L << 60, 1L << 60);
    work(&job, why, sizeof why);
    printf("%ld allocations\n", failing_malloc_disarm());
  }
  long tally[wrong + 1] = {0};
  for (long number = first; first > 0 && number <= last; number += step) {
    for (long repeat = 0; repeat < repeats; ++repeat) {
      if (!warm) remove_folder(cache);
      ++tally[in_child(&job, limit, number)];
    }
  }
  remove_folder(folder);
  printf("%ld right, %ld out of memory, %ld wrong\n", tally[right], tally[out_of_memory], tally[wrong]);
  return tally[wrong] == 0 ? 0 : 1;
}
