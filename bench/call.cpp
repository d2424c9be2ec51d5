// What a call costs beyond its arithmetic.
#include "figure.h"

namespace kiln::bench {
namespace {

void call_overhead_ns(benchmark::State &state) {
  Program program("{\"kiln\": 1, \"inputs\": [" + f32_json("a", "[16]") + ", " + f32_json("b", "[16]") +
                      "], \"nodes\": [{\"name\": \"s\", \"op\": \"add\", \"inputs\": [\"a\", \"b\"]}], "
                      "\"outputs\": [{\"name\": \"c\", \"value\": \"s\"}]}",
                  1);
  for (const char *name : {"a", "b", "c"}) program.bind(name, {16});
  const int calls = effort().size(10'000, 100);
  for (auto _ : state) {
    const double seconds = fastest(20, [&] {
      for (int i = 0; i < calls; ++i) program.run();
    });
    for (size_t i = 0; i < 16; ++i)
      expect_close(program.values("c")[i], double{program.values("a")[i]} + double{program.values("b")[i]}, "a sum");
    report(state, seconds / calls * 1e9, "ns", 300, Better::lower);
  }
}

KILN_FIGURE(call_overhead_ns)

}  // namespace
}  // namespace kiln::bench
