// llvm_load: prints by how many milliseconds this process's first compile takes longer than its next ones.
#include <algorithm>
#include <cstdio>

#include "session.h"

int main() {
  using namespace kiln::cli;
  try {
    Options settings;
    settings.set("threads", int64_t{1});
    settings.set("cache", "off");
    const Context context = make<Context>(kiln_context_create, settings.get(), nullptr);
    const std::string json =
        R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
            "nodes": [{"name": "y", "op": "neg", "inputs": ["x"]}], "outputs": [{"name": "y", "value": "y"}]})";
    const Graph graph = make<Graph>(kiln_graph_parse, context.get(), json.data(), json.size());
    const auto compile_ms = [&] {
      kiln_executable *executable = nullptr;
      kiln_report *report = nullptr;
      check(kiln_compile(context.get(), graph.get(), nullptr, &executable, &report));
      const Executable owned(executable);
      return Report(report).f64("total_ms");
    };
    const double first = compile_ms();
    double next = compile_ms();
    for (int i = 0; i < 10; ++i) next = std::min(next, compile_ms());
    std::printf("%.9g\n", first - next);
    return 0;
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "llvm_load: %s\n", failure.what());
    return 1;
  }
}
