// Handles may go in any order: what is left goes on working, and at the end all memory is free.
#include <functional>

#include "tests/error/expect.h"

namespace refused {

TEST(Handles, DestructionInAnyOrder) {
  for (uint32_t order = 0; order < 24; order++) {
    host::Context context = host::make_context();
    host::Graph graph = host::parse(context.get(), host::small_graph);
    host::Compiled compiled = host::compile(context.get(), graph.get());
    ASSERT_EQ(compiled.error.code, KILN_OK) << compiled.error.message;
    kiln_call *made = nullptr;
    ASSERT_OK(kiln_call_create(compiled.executable.get(), &made));
    host::Call call(made);
    const host::Array x({1, 2}, {1, 2}), w({2}, {10, 20});
    ASSERT_OK(kiln_call_bind(made, 1, &w.tensor));
    const DLTensor *args[] = {&x.tensor};
    const std::function<void()> destroy[] = {[&] { context.reset(); }, [&] { graph.reset(); },
                                             [&] { compiled.executable.reset(); }, [&] { call.reset(); }};
    std::vector<int> left = {0, 1, 2, 3};
    for (uint32_t rest = order, choices = 4; choices > 0; rest /= choices, choices--) {
      const auto chosen = left.begin() + static_cast<std::ptrdiff_t>(rest % choices);
      destroy[*chosen]();
      left.erase(chosen);
      if (call) {
        EXPECT_OK(kiln_call_run(call.get(), args, 1, nullptr));
      }
      if (graph) {
        EXPECT_NE(host::write(graph.get(), "text"), "");
      }
    }
  }
}

}  // namespace refused
