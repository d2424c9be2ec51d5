/* A plugin whose pass makes the node "negated" what a library that it links says; it reads a file, which may be there.
 */
#define NOTE_NAME "linking"
#define CHANGE_PASS pass.name = "replace", pass.name_size = 7
#define SETUP_BODY                                                              \
  kiln_error *none = host->context->add_file(context, "no such file", 12);      \
  if (!none) return host->error->create(KILN_INTERNAL, "no such file?", 13, 0); \
  host->error->destroy(none);                                                   \
  kiln_error *failed = add_data(host, context);                                 \
  return failed ? failed : register_pass(host, context)
#define PASS_BODY                                                                \
  const kiln_value from = value_of(host, edit, "negated");                       \
  const kiln_value x = host->node->input(host->edit->view(edit), from >> 32, 0); \
  kiln_value to = 0;                                                             \
  kiln_error *error = add_node(host, call, kiln_test_replacement(), x, 0, &to);  \
  if (!error) error = host->edit->replace(edit, from, to);                       \
  return error ? error : host->pass->done(call, 1)

#define _GNU_SOURCE /* for dladdr */
#include <dlfcn.h>
#include <kiln/plugin.h>
#include <stdio.h>
#include <unistd.h>

const char *kiln_test_replacement(void);
static kiln_error *add_data(const kiln_host *host, kiln_context *context);

#include "../../error/plugin/frame.h"

/* "plugin.so.data" beside "plugin.so". */
static kiln_error *add_data(const kiln_host *host, kiln_context *context) {
  Dl_info info;
  char path[4096];
  if (!dladdr((const void *)uuid, &info)) return 0;
  const int size = snprintf(path, sizeof path, "%s.data", info.dli_fname);
  return access(path, R_OK) == 0 ? host->context->add_file(context, path, (uint64_t)size) : 0;
}
