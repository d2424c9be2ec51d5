/* A plugin that is right: it registers the pass "counting" with an option "step", and keeps count of its own ends of
 * life. Built again with SETUP_FAILS (a code), and with the linker's -ffast-math. (tests/error has one plugin for each
 * other way of being wrong.) */
#include <kiln/plugin.h>
#include <stdlib.h>
#include <string.h>

#ifndef SETUP_FAILS
#define SETUP_FAILS 0
#endif

KILN_PLUGIN_NOTE(0, 0, "variant");

/* What the test reads with dlsym. */
KILN_EXPORT int variant_setups, variant_destroys, variant_teardowns, variant_order_kept;

static const uint8_t uuid[16] = {7, 7, 7};

static kiln_error *run(void *user, kiln_pass_call *call) {
  const kiln_host *host = *(const kiln_host **)user;
  kiln_attr step;
  kiln_error *error = host->pass->option(call, "step", 4, &step);
  if (error) return error;
  return host->pass->done(call, (uint64_t)*(const int64_t *)step.data);
}

static void destroy(void *user) {
  (void)user;
  __atomic_fetch_add(&variant_destroys, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&variant_teardowns, __ATOMIC_SEQ_CST) == 0)
    __atomic_store_n(&variant_order_kept, 1, __ATOMIC_SEQ_CST);
}

static kiln_error *add_pass(const kiln_host *host, kiln_context *context, void *state, const char *name) {
  static const int64_t one = 1;
  kiln_attr step;
  kiln_pass pass;
  memset(&step, 0, sizeof step);
  step.name = "step";
  step.name_size = 4;
  step.kind = KILN_ATTR_I64;
  step.count = 1;
  step.data = &one;
  memset(&pass, 0, sizeof pass);
  pass.struct_size = sizeof pass;
  pass.stage = KILN_STAGE_POST_GRAD;
  pass.name = name;
  pass.name_size = strlen(name);
  pass.uuid = uuid;
  pass.options = &step;
  pass.option_count = 1;
  pass.user = state;
  pass.run = run;
  pass.destroy = destroy;
  return host->context->add_pass(context, &pass);
}

static kiln_error *setup(const kiln_host *host, kiln_context *context, void **out_state) {
  static const char refused[] = "the licence has expired";
  kiln_error *error;
  const kiln_host **state = (const kiln_host **)malloc(sizeof *state);
  if (!state) return host->error->create(KILN_OUT_OF_MEMORY, NULL, 0, NULL);
  *state = host;
  __atomic_fetch_add(&variant_setups, 1, __ATOMIC_SEQ_CST);
  error = add_pass(host, context, state, "counting");
  if (!error && SETUP_FAILS) error = host->error->create(SETUP_FAILS, refused, sizeof refused - 1, NULL);
  if (error) {
    free(state);
    return error;
  }
  *out_state = state;
  return NULL;
}

static void teardown(void *state) {
  __atomic_fetch_add(&variant_teardowns, 1, __ATOMIC_SEQ_CST);
  free(state);
}

static const kiln_plugin plugin = {
    sizeof(kiln_plugin), KILN_ABI_MAJOR, KILN_PLUGIN_MAGIC, 0, 0, 0, 0, "variant", 7, setup, teardown};

const kiln_plugin *kiln_plugin_entry_v1(void) { return &plugin; }
