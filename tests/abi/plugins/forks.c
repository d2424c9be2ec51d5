/* A plugin that has a life of its own as it is loaded: it makes contexts while a thread of its own forks, and waits for
 * that. It adds nothing. */
#include <kiln/kiln.h>
#include <kiln/plugin.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

KILN_PLUGIN_NOTE(0, 0, "forks");

static int is_done;

static void *fork_once(void *unused) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  if (waitpid(child, NULL, 0) != child) abort();
  __atomic_store_n(&is_done, 1, __ATOMIC_SEQ_CST);
  return unused;
}

__attribute__((constructor)) static void begin(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, fork_once, NULL) != 0) abort();
  while (!__atomic_load_n(&is_done, __ATOMIC_SEQ_CST)) {
    kiln_context *context = NULL;
    if (kiln_context_create(NULL, NULL, &context)) abort();
    kiln_context_destroy(context);
  }
  pthread_join(thread, NULL);
}

static kiln_error *setup(const kiln_host *host, kiln_context *context, void **out_state) {
  (void)host;
  (void)context;
  *out_state = NULL;
  return NULL;
}

static const kiln_plugin plugin = {
    sizeof(kiln_plugin), KILN_ABI_MAJOR, KILN_PLUGIN_MAGIC, 0, 0, 0, 0, "forks", 5, setup, NULL};

const kiln_plugin *kiln_plugin_entry_v1(void) { return &plugin; }
