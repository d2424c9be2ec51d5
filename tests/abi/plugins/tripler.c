/* A plugin that registers a function, which counts its own ends of life. */
#include <kiln/plugin.h>
#include <string.h>

KILN_PLUGIN_NOTE(0, KILN_FEATURE_FUNCTIONS, "tripler");

/* What the test reads with dlsym. */
KILN_EXPORT int tripler_destroys, tripler_teardowns;

static int32_t triple(const float *x, float *y, int64_t size) {
  for (int64_t i = 0; i < size; ++i) y[i] = 3 * x[i];
  return size == 4 ? 8 : 0;
}

static void destroy(void *user) {
  (void)user;
  if (tripler_teardowns == 0) tripler_destroys++;
}

static kiln_error *setup(const kiln_host *host, kiln_context *context, void **out_state) {
  static const uint8_t uuid[16] = {3, 3, 3};
  static const char name[] = "tripler.triple", signature[] = "i32 (f32 data 0, f32 data 1, i64 size 0 0)";
  kiln_function function;
  (void)out_state;
  memset(&function, 0, sizeof function);
  function.struct_size = sizeof function;
  function.name = name;
  function.name_size = sizeof name - 1;
  function.signature = signature;
  function.signature_size = sizeof signature - 1;
  function.uuid = uuid;
  function.pointer = (void (*)(void))triple;
  function.destroy = destroy;
  return host->context->add_function(context, &function);
}

static void teardown(void *state) {
  (void)state;
  tripler_teardowns++;
}

KILN_EXPORT const kiln_plugin *kiln_plugin_entry_v1(void) {
  static const kiln_plugin plugin = {
      .struct_size = sizeof plugin,
      .abi_major = KILN_ABI_MAJOR,
      .magic = KILN_PLUGIN_MAGIC,
      .features_needed = KILN_FEATURE_FUNCTIONS,
      .name = "tripler",
      .name_size = 7,
      .setup = setup,
      .teardown = teardown,
  };
  return &plugin;
}
