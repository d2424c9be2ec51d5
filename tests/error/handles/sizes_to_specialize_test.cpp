// The option `specialize` names sizes that the graph does not have.
#include "tests/abi/host.h"
#include "tests/error/expect.h"

namespace refused {
namespace {

host::Error compile(std::vector<std::string_view> entries, std::string_view when = "ahead",
                    std::string_view backend = "cpu") {
  const host::Context context = host::make_context();
  const host::Graph graph = host::parse(context.get(), R"({"kiln": 1,
    "symbols": {"batch": {"min": 1, "max": 64, "divisor": 8}},
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["batch", "length"]}}],
    "nodes": [{"name": "found", "op": "nonzero", "inputs": ["x"], "attrs": {"symbol": "count"}}],
    "outputs": [{"name": "found", "value": "found:0"}]})");
  return host::compile(context.get(), graph.get(),
                       [&](kiln_options *options) {
                         std::vector<kiln_text> texts;
                         for (std::string_view entry : entries) texts.push_back({entry.data(), entry.size()});
                         const kiln_attr attr =
                             host::attr("specialize", KILN_ATTR_TEXT | KILN_ATTR_LIST, texts.size(), texts.data());
                         ASSERT_OK(kiln_options_set(options, &attr));
                         ASSERT_OK(kiln_options_set_text(options, "specialize_when", 15, when.data(), when.size()));
                         ASSERT_OK(kiln_options_set_text(options, "backend", 7, backend.data(), backend.size()));
                       })
      .error;
}

TEST(SizesToSpecialize, ThatAreNoSizes) {
  EXPECT_REFUSED(compile({"batch"}), "INVALID_ARGUMENT",
                 "option 'specialize', 'batch': 'batch' is not SYMBOL=SIZE; expected texts like 'batch=1,length=128'");
  EXPECT_REFUSED(compile({"batch=8,length=x"}), "INVALID_ARGUMENT",
                 "option 'specialize', 'batch=8,length=x': 'length=x' is not SYMBOL=SIZE; expected texts like "
                 "'batch=1,length=128'");
  EXPECT_REFUSED(compile({"batch=8,batch=8"}), "INVALID_ARGUMENT",
                 "option 'specialize', 'batch=8,batch=8': symbol 'batch' is there twice; expected texts like "
                 "'batch=1,length=128'");
}

TEST(SizesToSpecialize, OfASymbolThatThereIsNot) {
  EXPECT_REFUSED(compile({"bacth=8"}), "UNKNOWN_NAME",
                 "option 'specialize', 'bacth=8': there is no symbol 'bacth'; the graph has batch, length");
}

TEST(SizesToSpecialize, ThatTheSymbolCannotHave) {
  EXPECT_REFUSED(compile({"batch=0"}), "INVALID_ARGUMENT",
                 "option 'specialize', 'batch=0': batch is 0, expected at least 1");
  EXPECT_REFUSED(compile({"batch=72"}), "INVALID_ARGUMENT",
                 "option 'specialize', 'batch=72': batch is 72, expected at most 64");
  EXPECT_REFUSED(compile({"batch=12"}), "INVALID_ARGUMENT",
                 "option 'specialize', 'batch=12': batch is 12, expected a multiple of 8");
  EXPECT_REFUSED(compile({"length=-1"}), "INVALID_ARGUMENT",
                 "option 'specialize', 'length=-1': length is -1, expected at least 0");
}

TEST(SizesToSpecialize, ThatARunTells) {
  EXPECT_REFUSED(
      compile({"count=3"}), "INVALID_ARGUMENT",
      "option 'specialize', 'count=3': symbol 'count' is what node 'found' tells in a run; only inputs' sizes "
      "are known before");
}

TEST(SizesToSpecialize, Twice) {
  EXPECT_REFUSED(compile({"batch=8,length=2", "length=2,batch=8"}), "INVALID_ARGUMENT",
                 "option 'specialize', 'length=2,batch=8': the sizes are there already, as 'batch=8,length=2'");
}

TEST(SizesToSpecialize, AtATimeThatThereIsNot) {
  EXPECT_REFUSED(compile({"batch=8"}, "now"), "INVALID_ARGUMENT",
                 "option 'specialize_when' is 'now', expected one of ahead, background, lazy");
}

TEST(SizesToSpecialize, OnTheReference) {
  EXPECT_REFUSED(compile({"batch=8"}, "ahead", "reference"), "INVALID_ARGUMENT",
                 "option 'specialize': backend reference runs the graph as it is; there is nothing to specialize");
}

}  // namespace
}  // namespace refused
