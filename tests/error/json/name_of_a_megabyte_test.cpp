// A name of a megabyte with line breaks in it: the message stays one line that a person can read.
#include "tests/error/expect.h"

namespace refused {

TEST(Json, NameOfAMegabyte) {
  const host::Context context = host::make_context();
  std::string name = "a\\nb";
  name.append(1'000'000, 'x');
  const std::string text = R"({"kiln": 1, ")" + name + R"(": 1})";
  kiln_graph *graph = nullptr;
  const host::Error error = host::take(kiln_graph_parse(context.get(), text.data(), text.size(), &graph));
  EXPECT_EQ(name_of(error.code), "INVALID_ARGUMENT");
  EXPECT_TRUE(error.message.starts_with("at the top: unknown member 'a\\x0abxxxx")) << error.message;
  EXPECT_LT(error.message.size(), 1100u);
}

}  // namespace refused
