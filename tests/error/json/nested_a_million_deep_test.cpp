// A million brackets: refused at the 81st, not followed until the stack ends.
#include "tests/error/expect.h"

namespace refused {

TEST(Json, NestedAMillionDeep) {
  const host::Context context = host::make_context();
  const std::string text = R"({"kiln": 1, "inputs": )" + std::string(1'000'000, '[');
  kiln_graph *graph = nullptr;
  EXPECT_REFUSED(host::take(kiln_graph_parse(context.get(), text.data(), text.size(), &graph)), "INVALID_ARGUMENT",
                 "JSON, line 1, column 102: nested deeper than 80");
}

}  // namespace refused
