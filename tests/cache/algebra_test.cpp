// The option `algebra`: its place in the key, and its numbers.
#include <cmath>

#include "tests/cache/compiling.h"

namespace kiln {
namespace {

using test::f32_graph;
using test::run;

class Algebra : public test::Compiling {
 protected:
  // y of x by `nodes`; c is 3, d is 0.7.
  static std::string graph(std::string_view nodes) {
    return f32_graph("x", R"("n")",
                     str_cat(R"({"name":"c","op":"full","attrs":{"value":3,"dtype":"f32","shape":[]}},
        {"name":"d","op":"full","attrs":{"value":0.7,"dtype":"f32","shape":[]}},)",
                             nodes),
                     "y");
  }
  uint64_t rewrites() const {
    const auto found = std::ranges::find(report_.passes, "algebra", &PassRun::name);
    return found == report_.passes.end() ? 0 : found->rewrites;
  }
};

constexpr std::string_view quotient = R"({"name":"y","op":"div","inputs":["x","c"]})";

TEST_F(Algebra, IsAKeyOfItsOwn) {
  expect(Outcome::miss, "", graph(quotient));
  EXPECT_FALSE(ran("algebra"));
  const Digest off = report_.key;
  expect(Outcome::miss, "options", graph(quotient), {.algebra = true});
  EXPECT_EQ(rewrites(), 1u);
  EXPECT_NE(report_.key, off);
  expect(Outcome::hit, "", graph(quotient));
  EXPECT_EQ(report_.key, off);
  expect(Outcome::hit, "", graph(quotient), {.algebra = true});
  expect(Outcome::miss, "", graph(quotient), {.disable_passes = {"algebra"}, .algebra = true});
  EXPECT_FALSE(ran("algebra"));
}

TEST_F(Algebra, RoundsOtherwiseByALittleAndNotAtAllUnlessAskedFor) {
  const double c = 3, d = static_cast<double>(0.7f);
  struct Rule {
    std::string_view nodes;
    double (*exact)(double x, double c, double d);
    float (*strict)(float x, float c, float d);
    double beside = 0;  // of what numbers there is an error besides that of the result
  };
  const Rule rules[] = {
      {quotient, [](double x, double by, double) { return x / by; }, [](float x, float by, float) { return x / by; }},
      {R"({"name":"i","op":"mul","inputs":["x","c"]},{"name":"y","op":"mul","inputs":["i","d"]})",
       [](double x, double a, double b) { return x * a * b; }, [](float x, float a, float b) { return (x * a) * b; }},
      {R"({"name":"i","op":"add","inputs":["x","c"]},{"name":"y","op":"add","inputs":["i","d"]})",
       [](double x, double a, double b) { return x + a + b; }, [](float x, float a, float b) { return (x + a) + b; },
       4},
      {R"({"name":"i","op":"mul","inputs":["x","c"]},{"name":"j","op":"mul","inputs":["x","d"]},
          {"name":"y","op":"add","inputs":["i","j"]})",
       [](double x, double a, double b) { return x * a + x * b; }, nullptr}};
  std::vector<float> x = {0, -0.0f, INFINITY, -INFINITY, 1e-42f, 1e38f};
  for (int i = 1; i <= 1000; ++i) x.push_back(static_cast<float>(i) * 0.37f - 200);
  for (const Rule &rule : rules) {
    const Result<Compiled> strict = compile(graph(rule.nodes));
    ASSERT_TRUE(strict.ok()) << strict.status().message();
    const std::vector<float> before = run(*strict, {x});
    const Result<Compiled> made = compile(graph(rule.nodes), {.algebra = true});
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(rewrites(), 1u) << rule.nodes;
    const std::vector<float> after = run(*made, {x});
    size_t others = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (rule.strict) {
        EXPECT_EQ(before[i], rule.strict(x[i], 3, 0.7f)) << rule.nodes << " of " << x[i];
      }
      const double exact = rule.exact(static_cast<double>(x[i]), c, d);
      others += after[i] != before[i];
      if (std::isfinite(exact) && std::abs(exact) < 3.4e38) {
        EXPECT_LE(std::abs(static_cast<double>(after[i]) - exact), (std::abs(exact) + rule.beside) * 0x1p-22 + 0x1p-149)
            << rule.nodes << " of " << x[i];
      } else {
        EXPECT_EQ(after[i], static_cast<float>(exact)) << rule.nodes << " of " << x[i];
      }
      EXPECT_EQ(std::signbit(after[i]), std::signbit(before[i])) << rule.nodes << " of " << x[i];
    }
    EXPECT_GT(others, 0u) << rule.nodes << " rounds otherwise somewhere";
  }
}

}  // namespace
}  // namespace kiln
