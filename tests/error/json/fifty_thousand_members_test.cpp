// An object of fifty thousand members of which the last one stands twice.
#include "tests/error/expect.h"

namespace refused {

TEST(Json, FiftyThousandMembers) {
  const host::Context context = host::make_context();
  std::string text = R"({"kiln": 1, "symbols": {)";
  for (int i = 0; i < 50'000; i++) text += "\"s" + std::to_string(i) + "\": {},\n";
  text += R"("s49999": {}}})";
  kiln_graph *graph = nullptr;
  EXPECT_REFUSED(host::take(kiln_graph_parse(context.get(), text.data(), text.size(), &graph)), "INVALID_ARGUMENT",
                 "JSON, line 50001, column 1: key 's49999' stands twice in one object");
}

}  // namespace refused
