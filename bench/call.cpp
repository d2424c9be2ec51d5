// What a call costs beyond its arithmetic.
#include <algorithm>

#include "figure.h"

namespace kiln::bench {
namespace {

Program small_sum() {
  Program program("{\"kiln\": 1, \"inputs\": [" + f32_json("a", "[16]") + ", " + f32_json("b", "[16]") +
                      "], \"nodes\": [{\"name\": \"s\", \"op\": \"add\", \"inputs\": [\"a\", \"b\"]}], "
                      "\"outputs\": [{\"name\": \"c\", \"value\": \"s\"}]}",
                  1);
  for (const char *name : {"a", "b", "c"}) program.bind(name, {16});
  return program;
}

void expect_sum(Program &program) {
  for (size_t i = 0; i < 16; ++i)
    expect_close(program.values("c")[i], double{program.values("a")[i]} + double{program.values("b")[i]}, "a sum");
}

void call_overhead_ns(benchmark::State &state) {
  Program program = small_sum();
  const int calls = effort().size(10'000, 100);
  for (auto _ : state) {
    const double seconds = fastest(20, [&] {
      for (int i = 0; i < calls; ++i) program.run();
    });
    expect_sum(program);
    report(state, seconds / calls * 1e9, "ns", 300, Better::lower);
  }
}

// What it costs to have a run in flight and to wait for it, beyond a run that waits; by turns.
void call_in_flight_extra_ns(benchmark::State &state) {
  Program program = small_sum();
  const int calls = effort().size(10'000, 100);
  for (auto _ : state) {
    double waits = 1e30, in_flight = 1e30;
    for (int round = 0; round < effort().rounds(10); ++round) {
      waits = std::min(waits, fastest(2, [&] {
                         for (int i = 0; i < calls; ++i) program.run();
                       }));
      std::ranges::fill(program.values("c"), 0.0f);
      in_flight = std::min(in_flight, fastest(2, [&] {
                             for (int i = 0; i < calls; ++i) program.run_and_wait();
                           }));
      expect_sum(program);
    }
    report(state, (in_flight - waits) / calls * 1e9, "ns", 1000, Better::lower);
  }
}

KILN_FIGURE(call_overhead_ns)
KILN_FIGURE(call_in_flight_extra_ns)

}  // namespace
}  // namespace kiln::bench
