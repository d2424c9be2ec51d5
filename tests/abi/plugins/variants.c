/* One plugin for each way of being wrong, and one that is right: built once per variant (VARIANT is one of the numbers
 * below). The right one registers the pass "counting" with an option "step", and keeps count of its own ends of life.
 */
#include <kiln/plugin.h>
#include <stdlib.h>
#include <string.h>

#define GOOD 0
#define NO_NOTE 1
#define OTHER_MAJOR 2
#define LATER_MINOR 3
#define UNKNOWN_FEATURE 4
#define NO_ENTRY 5
#define NO_TABLE 6
#define OTHER_NAME 7
#define SETUP_FAILS 8
#define ALL_ZERO_UUID 9
#define LATE_WITHOUT_IDENTITY 10
#define TWICE 11

#if VARIANT == OTHER_MAJOR
#define MAJOR 2u
#else
#define MAJOR KILN_ABI_MAJOR
#endif
#if VARIANT == LATER_MINOR
#define MINOR 99u
#else
#define MINOR 0u
#endif
#if VARIANT == UNKNOWN_FEATURE
#define FEATURES 0x8000000000000000u
#else
#define FEATURES 0u
#endif

#if VARIANT == OTHER_MAJOR /* KILN_PLUGIN_NOTE writes this ABI's */
__attribute__((section(".note.kiln"), used, aligned(4))) static const kiln_plugin_note note = {
    5u,
    KILN_NOTE_PAYLOAD_SIZE,
    KILN_NOTE_TYPE,
    "Kiln",
    (uint32_t)(KILN_PLUGIN_MAGIC & 0xffffffffu),
    (uint32_t)(KILN_PLUGIN_MAGIC >> 32),
    MAJOR,
    MINOR,
    0u,
    0u,
    "variant"};
#elif VARIANT != NO_NOTE
KILN_PLUGIN_NOTE(MINOR, FEATURES, "variant");
#endif

/* What the test reads with dlsym. */
KILN_EXPORT int variant_setups, variant_destroys, variant_teardowns, variant_order_kept;

static const uint8_t uuid[16] = {7, 7, 7};
static const uint8_t zero[16] = {0};

static kiln_error *run(void *user, kiln_pass_call *call) {
  const kiln_host *host = *(const kiln_host **)user;
  kiln_attr step;
  kiln_error *error = host->pass->option(call, "step", 4, &step);
  if (error) return error;
  return host->pass->done(call, (uint64_t)*(const int64_t *)step.data);
}

static void destroy(void *user) {
  (void)user;
  variant_destroys++;
  if (variant_teardowns == 0) variant_order_kept = 1;
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
  pass.timing = VARIANT == LATE_WITHOUT_IDENTITY ? KILN_TIMING_LATE : 0;
  pass.name = name;
  pass.name_size = strlen(name);
  pass.uuid = VARIANT == ALL_ZERO_UUID ? zero : VARIANT == LATE_WITHOUT_IDENTITY ? NULL : uuid;
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
  variant_setups++;
  error = add_pass(host, context, state, "counting");
  if (!error && VARIANT == TWICE) error = add_pass(host, context, state, "counting");
  if (!error && VARIANT == SETUP_FAILS)
    error = host->error->create(KILN_INVALID_ARGUMENT, refused, sizeof refused - 1, NULL);
  if (error) {
    free(state);
    return error;
  }
  *out_state = state;
  return NULL;
}

static void teardown(void *state) {
  variant_teardowns++;
  free(state);
}

#if VARIANT != NO_ENTRY
static const kiln_plugin plugin = {sizeof(kiln_plugin),
                                   MAJOR,
                                   KILN_PLUGIN_MAGIC,
                                   MINOR,
                                   0,
                                   FEATURES,
                                   0,
#if VARIANT == OTHER_NAME
                                   "another",
                                   7,
#else
                                   "variant",
                                   7,
#endif
                                   setup,
                                   teardown};

const kiln_plugin *kiln_plugin_entry_v1(void) { return VARIANT == NO_TABLE ? NULL : &plugin; }
#else
KILN_EXPORT const void *keeps_setup_and_teardown[] = {(const void *)setup, (const void *)teardown};
#endif
