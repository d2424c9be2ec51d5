// A constant of a million elements of which one is missing.
#include "tests/error/expect.h"

namespace refused {

TEST(Json, ListOfAMillionNumbers) {
  const host::Context context = host::make_context();
  std::string text =
      R"({"kiln": 1, "constants": [{"name": "c", "type": {"dtype": "f32", "shape": [1000000]}, "data": [0)";
  for (int i = 2; i < 1'000'000; i++) text += ",0";
  text += R"(]}], "outputs": [{"name": "c", "value": "c"}]})";
  kiln_graph *graph = nullptr;
  EXPECT_REFUSED(host::take(kiln_graph_parse(context.get(), text.data(), text.size(), &graph)), "INVALID_ARGUMENT",
                 "constants[0].data: 999999 elements, expected 1000000 for f32[1000000]");
}

}  // namespace refused
