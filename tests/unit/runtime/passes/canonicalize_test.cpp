#include "tests/unit/runtime/passes/cleaned.h"

namespace kiln {
namespace {

using test::cleaned;
using test::Cleaned;

// y = OP(c, x), where c is a constant; or OP(x, c).
Cleaned of(std::string_view op, bool first = true, std::string_view annotations = "") {
  return cleaned(canonicalize_pass,
                 str_cat(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["n",2]}}],
      "constants":[{"name":"c","type":{"dtype":"f32","shape":[2]},"data":[1.5,2]}],"nodes":[{"name":"y","op":")",
                         op, first ? R"(","inputs":["c","x"])" : R"(","inputs":["x","c"])", R"(,"annotations":{)",
                         annotations, R"(}}],"outputs":[{"name":"y","value":"y"}]})"));
}

TEST(Canonicalize, PutsConstantsSecond) {
  for (const char *op : {"add", "mul", "maximum", "eq"}) {
    const Cleaned made = of(op);
    EXPECT_EQ(made.rewrites, 1u) << op;
    EXPECT_EQ(made.made().name + " " + std::string(made.made().op->name), str_cat("y ", op));
    EXPECT_EQ(made.read(0) + made.read(1), "xc") << op;
    EXPECT_EQ(of(op, false).rewrites, 0u) << op;
  }
  EXPECT_EQ(of("sub").rewrites, 0u);
}

TEST(Canonicalize, TurnsComparisonsRound) {
  EXPECT_EQ(of("lt").made().op->name, "gt");
  EXPECT_EQ(of("ge").made().op->name, "le");
  EXPECT_EQ(of("lt", false).rewrites, 0u);
}

TEST(Canonicalize, KeepsMarksAndWhatFunctionsRun) {
  const Cleaned made = of("add", true, R"("kiln.region":{"text":"r"})");
  EXPECT_EQ(made.rewrites, 1u);
  EXPECT_EQ(made.made().annotations.at("kiln.region"), AttrValue("r"));
  EXPECT_EQ(of("add", true, R"("kiln.fallback.function":{"text":"f"})").rewrites, 0u);
}

}  // namespace
}  // namespace kiln
