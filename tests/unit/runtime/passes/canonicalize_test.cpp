#include "tests/unit/runtime/passes/cleaned.h"

namespace kiln {
namespace {

using test::cleaned;
using test::Cleaned;

// y = OP(c, x), where c is a constant; or OP(x, c).
Cleaned canonical(std::string_view op, bool first = true, std::string_view annotations = "") {
  return cleaned(canonicalize_pass,
                 str_cat(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["n",2]}}],
      "constants":[{"name":"c","type":{"dtype":"f32","shape":[2]},"data":[1.5,2]}],"nodes":[{"name":"y","op":")",
                         op, first ? R"(","inputs":["c","x"])" : R"(","inputs":["x","c"])", R"(,"annotations":{)",
                         annotations, R"(}}],"outputs":[{"name":"y","value":"y"}]})"));
}

TEST(Canonicalize, PutsConstantsSecond) {
  for (const char *op : {"add", "mul", "maximum", "eq"}) {
    const Cleaned made = canonical(op);
    EXPECT_EQ(made.rewrites, 1u) << op;
    EXPECT_EQ(made.made().name + " " + std::string(made.made().op->name), str_cat("y ", op));
    EXPECT_EQ(made.read(0) + made.read(1), "xc") << op;
    EXPECT_EQ(canonical(op, false).rewrites, 0u) << op;
  }
  EXPECT_EQ(canonical("sub").rewrites, 0u);
}

TEST(Canonicalize, TurnsComparisonsRound) {
  EXPECT_EQ(canonical("lt").made().op->name, "gt");
  EXPECT_EQ(canonical("ge").made().op->name, "le");
  EXPECT_EQ(canonical("lt", false).rewrites, 0u);
}

// y = x / c, all of whose elements are `number`.
Cleaned divided(std::string_view number, std::string_view dtype = "f32") {
  return cleaned(canonicalize_pass, str_cat(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":")", dtype,
                                            R"(","shape":["n",2]}}],"constants":[{"name":"c","type":{"dtype":")", dtype,
                                            R"(","shape":[2]},"data":[)", number, ",", number,
                                            R"(]}],"nodes":[{"name":"y","op":"div","inputs":["x","c"]}],
      "outputs":[{"name":"y","value":"y"}]})"));
}

TEST(Canonicalize, MultipliesInPlaceOfDividingByAPowerOfTwo) {
  for (const auto &[number, reciprocal] : {std::pair("8", 0.125), std::pair("-0.25", -4.0)})
    for (const char *dtype : {"f32", "f64", "f16", "bf16"}) {
      const Cleaned made = divided(number, dtype);
      ASSERT_EQ(made.rewrites, 1u) << number << " " << dtype;
      EXPECT_EQ(made.made().name + " " + std::string(made.made().op->name), "y mul");
      EXPECT_EQ(made.read(), "x");
      const Node &full = *made.graph->find(made.made().inputs[1].node);
      EXPECT_EQ(full.attrs.at("value"), AttrValue(reciprocal)) << dtype;
    }
}

TEST(Canonicalize, DividesWhereTheReciprocalIsNotExact) {
  for (const char *number : {"3", "0", "1", "1.7014118346046923e38", "5.877471754111438e-39"})
    EXPECT_EQ(divided(number).rewrites, number == std::string("5.877471754111438e-39") ? 1u : 0u) << number;
  EXPECT_EQ(divided("1.401298464324817e-45").rewrites, 0u) << "2^149 is no f32";
  EXPECT_EQ(divided("1.7014118346046923e38", "f64").rewrites, 1u) << "2^-127 is a normal f64";
  EXPECT_EQ(divided("1.52587890625e-05", "f16").rewrites, 0u) << "2^16 is no f16, where it is an f32";
  EXPECT_EQ(divided("3.0517578125e-05", "f16").rewrites, 1u);
  EXPECT_EQ(divided("32768", "f16").rewrites, 0u) << "2^-15 is no normal f16";
  EXPECT_EQ(divided("1.52587890625e-05", "bf16").rewrites, 1u);
  EXPECT_EQ(divided("4", "i32").rewrites, 0u);
}

TEST(Canonicalize, KeepsMarksAndWhatFunctionsRun) {
  const Cleaned made = canonical("add", true, R"("kiln.region":{"text":"r"})");
  EXPECT_EQ(made.rewrites, 1u);
  EXPECT_EQ(made.made().annotations.at("kiln.region"), AttrValue("r"));
  EXPECT_EQ(canonical("add", true, R"("kiln.fallback.function":{"text":"f"})").rewrites, 0u);
}

}  // namespace
}  // namespace kiln
