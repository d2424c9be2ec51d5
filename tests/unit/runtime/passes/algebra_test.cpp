#include "tests/unit/runtime/passes/cleaned.h"

namespace kiln {
namespace {

using test::cleaned;
using test::Cleaned;

// y is made of the input x by `nodes`; a and b are all one number each.
Cleaned simplified(std::string_view nodes, std::string_view a, std::string_view b = "2", std::string_view dtype = "f32",
                   std::string_view more = "") {
  const auto constant = [&](std::string_view name, std::string_view number) {
    return str_cat(R"({"name":")", name, R"(","type":{"dtype":")", dtype, R"(","shape":[2]},"data":[)", number, ",",
                   number, "]}");
  };
  return cleaned(algebra_pass,
                 str_cat(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":")", dtype,
                         R"(","shape":["n",2]}}],"constants":[)", constant("a", a), ",", constant("b", b),
                         R"(],"nodes":[)", nodes, R"(],"outputs":[{"name":"y","value":"y"})", more, "]}"));
}
constexpr std::string_view quotient = R"({"name":"y","op":"div","inputs":["x","a"]})";
constexpr std::string_view products = R"({"name":"i","op":"mul","inputs":["x","a"]},
    {"name":"y","op":"mul","inputs":["i","b"]})";
constexpr std::string_view sums = R"({"name":"i","op":"add","inputs":["x","a"]},
    {"name":"y","op":"add","inputs":["i","b"]})";
constexpr std::string_view common = R"({"name":"i","op":"mul","inputs":["x","a"]},
    {"name":"j","op":"mul","inputs":["x","b"]},{"name":"y","op":"add","inputs":["i","j"]})";
constexpr std::string_view inner_is_output = R"(,{"name":"i","value":"i"})";

// "mul(x, 1.5)": what makes y.
std::string made(const Cleaned &of) {
  const Node &y = of.made();
  const Node &number = *of.graph->find(y.inputs[1].node);
  EXPECT_EQ(y.name, "y");
  return str_cat(y.op->name, "(", of.read(), ", ", number.attrs.at("value").text(), ")");
}

TEST(Algebra, MultipliesByTheReciprocal) {
  EXPECT_EQ(made(simplified(quotient, "5", "2", "f64")), "mul(x, 0.2)");
  EXPECT_EQ(simplified(quotient, "3").made().op->name, "mul");
}

TEST(Algebra, JoinsNumbersOfProductsAndSums) {
  EXPECT_EQ(made(simplified(products, "3", "-2")), "mul(x, -6)");
  EXPECT_EQ(made(simplified(sums, "3", "2")), "add(x, 5)");
  EXPECT_EQ(made(simplified(sums, "-3", "-2", "f64")), "add(x, -5)");
  EXPECT_EQ(made(simplified(common, "3", "2")), "mul(x, 5)");
  EXPECT_EQ(made(simplified(R"({"name":"i","op":"mul","inputs":["x","a"]},{"name":"j","op":"mul","inputs":["i","a"]},
      {"name":"y","op":"mul","inputs":["j","b"]})",
                            "3", "2")),
            "mul(x, 18)");
}

TEST(Algebra, ADifferenceIsASum) {
  EXPECT_EQ(
      made(simplified(R"({"name":"i","op":"sub","inputs":["x","a"]},{"name":"y","op":"sub","inputs":["i","b"]})", "3")),
      "add(x, -5)");
  EXPECT_EQ(made(simplified(R"({"name":"i","op":"mul","inputs":["x","a"]},{"name":"j","op":"mul","inputs":["x","b"]},
      {"name":"y","op":"sub","inputs":["i","j"]})",
                            "3", "-2")),
            "mul(x, 5)");
}

TEST(Algebra, KeepsSumsOfNumbersOfDifferentSigns) {
  EXPECT_EQ(simplified(sums, "8388608", "-8388608").rewrites, 0u) << "it rounds to integers";
  EXPECT_EQ(simplified(common, "3", "-2").rewrites, 0u);
}

TEST(Algebra, KeepsWhatWouldOverflowOrLoseDigits) {
  EXPECT_EQ(simplified(quotient, "0").rewrites, 0u);
  EXPECT_EQ(simplified(quotient, "1e-39").rewrites, 0u) << "1e39 is no f32";
  EXPECT_EQ(simplified(quotient, "3e38").rewrites, 0u) << "the reciprocal is subnormal";
  EXPECT_EQ(simplified(quotient, "1e-39", "2", "f64").rewrites, 1u);
  EXPECT_EQ(simplified(products, "1e20", "1e20").rewrites, 0u);
  EXPECT_EQ(simplified(products, "1e-20", "1e-20").rewrites, 0u);
  EXPECT_EQ(simplified(products, "1e20", "1e-20").rewrites, 1u);
  EXPECT_EQ(simplified(sums, "3e38", "3e38").rewrites, 0u);
  EXPECT_EQ(simplified(common, "3e38", "3e38").rewrites, 0u);
  EXPECT_EQ(simplified(products, "0", "2").rewrites, 0u) << "0 * infinity is NaN";
}

TEST(Algebra, KeepsShortFloatsAndIntegers) {
  for (const char *dtype : {"f16", "bf16", "i32"})
    for (const std::string_view nodes : {quotient, products, sums, common})
      EXPECT_EQ(simplified(nodes, "3", "2", dtype).rewrites, 0u) << dtype << " " << nodes;
}

TEST(Algebra, KeepsWhatIsReadElsewhereToo) {
  for (const std::string_view nodes : {products, sums, common})
    EXPECT_EQ(simplified(nodes, "3", "2", "f32", inner_is_output).rewrites, 0u) << nodes;
}

TEST(Algebra, KeepsNodesOfDifferentMarks) {
  EXPECT_EQ(simplified(R"({"name":"i","op":"mul","inputs":["x","a"],"annotations":{"kiln.region":{"text":"r"}}},
      {"name":"y","op":"mul","inputs":["i","b"]})",
                       "3")
                .rewrites,
            0u);
}

}  // namespace
}  // namespace kiln
