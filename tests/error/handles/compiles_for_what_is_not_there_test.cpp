// A backend, a CPU, a pass, a listing that there is not.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, CompilesForWhatIsNotThere) {
  const host::Context context = host::make_context();
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  const auto compile_with = [&](const char *option, const char *value) {
    return host::compile(
               context.get(), graph.get(),
               [&](kiln_options *options) {
                 EXPECT_OK(kiln_options_set_text(options, option, std::strlen(option), value, std::strlen(value)));
               })
        .error;
  };
  EXPECT_REFUSED(compile_with("backend", "tpu"), "UNKNOWN_NAME",
                 "backend 'tpu' is not known; there are cpu, cuda, reference");
  EXPECT_REFUSED(compile_with("cpu", "z80"), "UNKNOWN_NAME",
                 "cpu 'z80' is unknown; expected native, x86-64, v3 (avx2) or v4 (avx512), then +FEATURE and "
                 "-FEATURE");
  const host::Compiled compiled = host::compile(context.get(), graph.get());
  kiln_blob *blob = nullptr;
  EXPECT_REFUSED(host::take(kiln_executable_text(compiled.executable.get(), "ptx", 3, &blob)), "UNKNOWN_NAME",
                 "no listing is named 'ptx'; there are: plan, steps, graph, kernels, llvm, asm, cuda");
}

}  // namespace refused
