#include "jit/base/expr.h"

#include <gtest/gtest.h>

#include <random>

namespace kiln {
namespace {

Expr sym(const char *name) { return Expr::symbol(name); }
Expr parsed(std::string_view text) {
  Result<Expr> e = Expr::parse(text);
  EXPECT_TRUE(e.ok()) << e.status().message();
  return e.ok() ? *e : Expr();
}
std::string normal(std::string_view text) { return parsed(text).text(); }

}  // namespace

inline void PrintTo(const Expr &e, std::ostream *out) { *out << e.text(); }

namespace {

TEST(Expr, EqualPolynomialsAreEqual) {
  EXPECT_EQ(parsed("(a + b)*(a - b)"), parsed("a*a - b*b"));
  EXPECT_EQ(parsed("2*n + 1 - n - n"), Expr(1));
  EXPECT_EQ(parsed("n*(m + 2) - 2*n"), parsed("m*n"));
  EXPECT_NE(parsed("n + 1"), parsed("n + 2"));
}

TEST(Expr, PrintsReadably) {
  EXPECT_EQ(normal("1+2*n"), "2*n + 1");
  EXPECT_EQ(normal("-n + 1"), "-n + 1");
  EXPECT_EQ(normal("a - 2*b"), "a - 2*b");
  EXPECT_EQ(normal("(n+3)//4*4"), "4*((n + 3) // 4)");
  EXPECT_EQ(normal("min(a, b) % 3"), "min(a, b) % 3");
  EXPECT_EQ(normal("3 + (x // 2)"), "x // 2 + 3");
}

TEST(Expr, ParsesWithThePrecedenceOfPython) {
  EXPECT_EQ(parsed("a + b*c // d % e"), parsed("a + (((b*c) // d) % e)"));
  EXPECT_EQ(parsed("a - b - c"), parsed("(a - b) - c"));
  EXPECT_EQ(parsed("-a*b"), parsed("-(a*b)"));
  EXPECT_EQ(parsed("n / 2"), parsed("n // 2"));
  EXPECT_EQ(parsed("max(a, b, c)"), parsed("max(max(c, a), b)"));
}

TEST(Expr, ParseErrorsSayWhereAndWhatWasExpected) {
  auto message = [](std::string_view text) { return Expr::parse(text).status().message(); };
  EXPECT_EQ(message("2*(n+"), "expression '2*(n+': expected a number, a name or '(' at character 6, found the end");
  EXPECT_EQ(message("n n"), "expression 'n n': expected an operator or the end at character 3, found 'n'");
  EXPECT_EQ(message("min(a)"), "expression 'min(a)': expected ',' at character 6, found ')'");
  EXPECT_EQ(message("(a"), "expression '(a': expected ')' at character 3, found the end");
  EXPECT_EQ(message(""), "expression '': expected a number, a name or '(' at character 1, found the end");
  EXPECT_EQ(message("99999999999999999999"),
            "expression '99999999999999999999': the number at character 1 exceeds 64 bits");
  EXPECT_EQ(message("n // 0"), "expression 'n // 0': division by zero before character 7");
  EXPECT_EQ(message("9223372036854775808"),
            "expression '9223372036854775808': the number at character 1 exceeds 64 bits");
  EXPECT_FALSE(Expr::parse(std::string(5000, '(')).ok());
}

TEST(Expr, TheSmallestIntegerReadsBack) {
  EXPECT_EQ(parsed("-9223372036854775808"), Expr(INT64_MIN));
  EXPECT_EQ(parsed("n*(-9223372036854775808)").text(), "-9223372036854775808*n");
  EXPECT_EQ(parsed("-9223372036854775808*n"), sym("n") * Expr(INT64_MIN));
  for (const Expr &e : {sym("n") + INT64_MIN, sym("n") + sym("m") * INT64_MIN, floor_div(sym("n"), 3) * INT64_MIN + 1})
    EXPECT_EQ(parsed(e.text().c_str()), e) << e.text();
}

TEST(Expr, AShortTextOfAHugeExpressionIsRefused) {
  std::string text = "n";
  for (int i = 0; i < 12; ++i) text += " / 85 * 97 / 13 * n";  // each repeats what stands before it several times
  Status refused = Expr::parse(text).status();
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_NE(refused.message().find("takes more than 65536 characters when it is simplified"), std::string::npos)
      << refused.message();
}

TEST(Expr, DividesIntegersTowardMinusInfinity) {
  EXPECT_EQ(floor_div(Expr(-7), Expr(2)), Expr(-4));
  EXPECT_EQ(mod(Expr(-7), Expr(2)), Expr(1));
  EXPECT_EQ(floor_div(Expr(7), Expr(-2)), Expr(-4));
  EXPECT_EQ(mod(Expr(7), Expr(-2)), Expr(-1));
  EXPECT_EQ(ceil_div(Expr(7), Expr(2)), Expr(4));
  EXPECT_EQ(floor_div(Expr(7), Expr(0)), Expr(0));
  EXPECT_EQ(mod(Expr(7), Expr(0)), Expr(0));
}

TEST(Expr, ExtremeIntegersDoNotOverflow) {
  Expr least = INT64_MIN, n = sym("n");
  EXPECT_EQ(floor_div(least, -1), Expr(INT64_MAX));
  EXPECT_EQ(mod(least, 3), Expr(1));
  EXPECT_EQ(floor_div(least * n, -1 * n), Expr(INT64_MAX));
  EXPECT_EQ(mod(least + n, 3), mod(n + 1, 3));
  EXPECT_EQ(floor_div(n, least).evaluate([](auto &) -> int64_t { return 5; }), -1);
  EXPECT_EQ(floor_div(5 - n, 5 - n), Expr(1));
}

// What divides is positive also where its first term is not: it is taken as it stands.
TEST(Expr, DividesByWhatFallsAsASymbolGrows) {
  const Expr i = Expr::axis(0, 4 * (7 - sym("n")));
  EXPECT_EQ(floor_div(i, 7 - sym("n")).text(), "i0 // (-n + 7)");
  EXPECT_EQ(mod(i, 7 - sym("n")).text(), "i0 % (-n + 7)");
  EXPECT_EQ(floor_div(i, 7 - sym("n")).lower_bound(), 0);
  EXPECT_EQ(mod(i, 7 - sym("n")).lower_bound(), 0);
  EXPECT_EQ(mod(i, 7 - sym("n")).upper_bound(), 6);
  EXPECT_EQ(normal("((7 - n)*m + n - 7) // (7 - n)"), "m - 1");
  EXPECT_EQ(normal("(14 - 2*n) % (7 - n)"), "0");
  EXPECT_EQ(normal("(x // 3) // (7 - n)"), "x // (-3*n + 21)");
  EXPECT_EQ(normal("(x % (14 - 2*n)) // (7 - n)"), "(x // (-n + 7)) % 2");
}

TEST(Expr, TakesMultiplesOutOfADivision) {
  EXPECT_EQ(normal("(4*n + 9) // 4"), "n + 2");
  EXPECT_EQ(normal("(4*n + m + 9) // 4"), "n + (m + 1) // 4 + 2");
  EXPECT_EQ(normal("(4*n + m) % 4"), "m % 4");
  EXPECT_EQ(normal("(5*n) // 4"), "n + n // 4");
  EXPECT_EQ(normal("(n*m + n) // n"), "m + 1");
  EXPECT_EQ(normal("(x // 3) // 4"), "x // 12");
  EXPECT_EQ(normal("(x % 12) // 4"), "(x // 4) % 3");
  EXPECT_EQ(normal("(x % 12) % 4"), "x % 4");
  EXPECT_EQ(normal("(2*x) // (2*y)"), "x // y");
  EXPECT_EQ(normal("(n - 1) // 4 + 1"), "(n + 3) // 4");
}

// ((b*T + t)*H + h)*D + d, the offset of a row-major [B, T, H, D], with extents that are integers or symbols.
struct Radix {
  Expr B, T, H, D;
  Expr b = Expr::axis(0, B), t = Expr::axis(1, T), h = Expr::axis(2, H), d = Expr::axis(3, D);
  Expr flat = ((b * T + t) * H + h) * D + d;
};
void expect_digits(const Radix &r) {
  EXPECT_EQ(mod(r.flat, r.D), r.d);
  EXPECT_EQ(floor_div(r.flat, r.D), (r.b * r.T + r.t) * r.H + r.h);
  EXPECT_EQ(mod(floor_div(r.flat, r.D), r.H), r.h);
  EXPECT_EQ(floor_div(r.flat, r.H * r.D), r.b * r.T + r.t);
  EXPECT_EQ(mod(r.flat, r.H * r.D), r.h * r.D + r.d);
  EXPECT_EQ(mod(floor_div(r.flat, r.H * r.D), r.T), r.t);
  EXPECT_EQ(floor_div(r.flat, r.T * r.H * r.D), r.b);
  EXPECT_EQ(mod(r.flat, r.B * r.T * r.H * r.D), r.flat);
  EXPECT_EQ(floor_div(r.flat, r.B * r.T * r.H * r.D), Expr(0));
}

TEST(Expr, ReshapeFindsTheDigitsOfMixedRadix) {
  expect_digits({2, 3, 5, 7});
  expect_digits({sym("B"), 3, 5, 7});
  expect_digits({sym("B"), sym("T"), 4, 64});
  expect_digits({sym("B"), sym("T"), sym("H"), sym("D")});
  expect_digits({sym("B"), sym("T"), 4, sym("D")});
  expect_digits({sym("n"), sym("n"), sym("n"), sym("n")});
  expect_digits({sym("B"), sym("S") + sym("T"), 4, 16});
  expect_digits({sym("B"), 4, sym("S") + sym("T"), 16});
  expect_digits({sym("B"), 4, 3, sym("S") + sym("T")});
  expect_digits({sym("B"), 4, sym("S") * sym("T"), 2 * sym("n")});
  expect_digits({sym("B"), 4, floor_div(sym("n"), 2), floor_div(sym("n") + 1, 2) + 3});
}

TEST(Expr, FlatAxisSplitsAndJoinsAgain) {
  for (auto [T, H, D] : {std::array<Expr, 3>{3, 5, 7},
                         {sym("T"), 4, 64},
                         {sym("T"), sym("H"), sym("D")},
                         {sym("S") + sym("T"), sym("H"), 4},
                         {4, sym("S") + sym("T"), 4}}) {
    Expr i = Expr::axis(0, T * H * D);
    Expr d = mod(i, D), h = mod(floor_div(i, D), H), t = floor_div(i, H * D);
    EXPECT_EQ(t * H * D + h * D + d, i);
    EXPECT_EQ((t * H + h) * D + d, i);
    EXPECT_EQ(mod(t, T), t) << t.text();
    EXPECT_EQ(mod((t * H + h) * D + d, D), d);
  }
}

TEST(Expr, SplitsAnAxisAcrossATile) {
  Expr h = Expr::axis(0, 8), d = Expr::axis(1, sym("D"));
  Expr flat = h * sym("D") + d;
  EXPECT_EQ(floor_div(flat, 2 * sym("D")), floor_div(h, 2));
  EXPECT_EQ(mod(flat, 2 * sym("D")), mod(h, 2) * sym("D") + d);
  EXPECT_EQ(floor_div(flat, 8 * sym("D")), Expr(0));
  Expr i = Expr::axis(2, 4), k = Expr::axis(3, 4);
  EXPECT_EQ(floor_div(16 * h + 4 * i + k, 32), floor_div(h, 2));
  EXPECT_EQ(mod(16 * h + 4 * i + k, 32), 16 * mod(h, 2) + 4 * i + k);
}

TEST(Expr, ExtentsDecideDivisions) {
  Expr n = sym("n"), i = Expr::axis(0, n);
  EXPECT_EQ(floor_div(i, n), Expr(0));
  EXPECT_EQ(mod(i, n), i);
  EXPECT_EQ(floor_div(i, n + 1), Expr(0));
  EXPECT_EQ(floor_div(i, n * sym("m")), Expr(0));  // a divisor is positive, so m >= 1
  EXPECT_EQ(floor_div(i + n, n), Expr(1));
  EXPECT_EQ(floor_div(i - n, n), Expr(-1));
  EXPECT_EQ(mod(n - 1 - i, n), n - 1 - i);
  EXPECT_NE(floor_div(i, n - 1), Expr(0));
  EXPECT_NE(mod(i + 1, n), i + 1);
  EXPECT_EQ(mod(mod(n, 8), 8), mod(n, 8));
  EXPECT_EQ(floor_div(4 * floor_div(n, 4), n + 1), Expr(0));
}

TEST(Expr, NestedSplitsOfASplitAxis) {
  Expr i = Expr::axis(0, sym("n") * 6);
  EXPECT_EQ(mod(floor_div(i, 2), 3) * 2 + mod(i, 2), mod(i, 6));
  EXPECT_EQ(floor_div(mod(i, 6), 2), mod(floor_div(i, 2), 3));
  EXPECT_EQ(floor_div(floor_div(i, 2), 3 * sym("n")), Expr(0));
}

TEST(Expr, MinAndMaxKeepWhatIsNotDecided) {
  Expr n = sym("n"), m = sym("m"), i = Expr::axis(0, n);
  EXPECT_EQ(min(i, n - 1), i);
  EXPECT_EQ(max(n, 0), n);
  EXPECT_EQ(max(2 * n, n), 2 * n);
  EXPECT_EQ(min(n, m), min(m, n));
  EXPECT_EQ(min(min(n, m), n), min(n, m));
  EXPECT_EQ(min(n, min(m, 3)), min(3, min(n, m)));
  EXPECT_EQ(min(min(n, 5), 3), min(n, 3));
  Expr clamped = max(0, min(i - 1, m - 1));
  EXPECT_EQ(clamped.kind(), Expr::Kind::max);
  EXPECT_EQ(min(max(0, min(i, m)), m), min(i, m));
}

TEST(Expr, CoefficientIsTheStrideAlongAnAxis) {
  Expr n = sym("n"), i = Expr::axis(0, n), j = Expr::axis(1, 8);
  Expr e = i * n * 2 + j * 3 + 5;
  EXPECT_EQ(e.coefficient(0), std::optional<Expr>(2 * n));
  EXPECT_EQ(e.coefficient(1), std::optional<Expr>(3));
  EXPECT_EQ(e.coefficient(2), std::optional<Expr>(0));
  EXPECT_EQ((i * j).coefficient(0), std::optional<Expr>(j));
  EXPECT_EQ((i * i).coefficient(0), std::nullopt);
  EXPECT_EQ(floor_div(j, 3).coefficient(1), std::nullopt);
  EXPECT_EQ((j + floor_div(j, 3)).coefficient(1), std::nullopt);
  EXPECT_EQ((i * floor_div(i, 3)).coefficient(0), std::nullopt);
}

TEST(Expr, SubstituteReplacesLeavesAndSimplifies) {
  Expr i = Expr::axis(0, 12), n = sym("n");
  auto to = [](uint32_t id, Expr e) {
    return [=](const Expr &leaf) -> std::optional<Expr> {
      return leaf.kind() == Expr::Kind::axis && leaf.id() == id ? std::optional(e) : std::nullopt;
    };
  };
  Expr outer = Expr::axis(1, 3), inner = Expr::axis(2, 4);
  EXPECT_EQ(floor_div(i, 4).substitute(to(0, 4 * outer + inner)), outer);
  EXPECT_EQ(mod(i, 4).substitute(to(0, 4 * outer + inner)), inner);
  EXPECT_EQ((i * n + Expr::value(3)).substitute(to(0, 2)), 2 * n + Expr::value(3));
  auto rename = [](const Expr &leaf) -> std::optional<Expr> {
    return leaf.kind() == Expr::Kind::symbol ? std::optional(Expr::symbol("s0")) : std::nullopt;
  };
  EXPECT_EQ(Expr::axis(0, n).substitute(rename), Expr::axis(0, sym("s0")));
  EXPECT_EQ(min(n, 4).substitute([](const Expr &) { return std::optional<Expr>(9); }), Expr(4));
}

TEST(Expr, EvaluatesAndSaturates) {
  auto lookup = [](const std::string &s) -> int64_t { return s == "n" ? 10 : INT64_MAX; };
  EXPECT_EQ(parsed("(3*n + 1) // 4 + n % 3 - min(n, 4) + max(n, 12)").evaluate(lookup), 7 + 1 - 4 + 12);
  EXPECT_EQ(parsed("big*2").evaluate(lookup), INT64_MAX);
  EXPECT_EQ(parsed("7 // zero + 7 % zero").evaluate([](auto &) -> int64_t { return 0; }), 0);
  EXPECT_EQ(Expr(INT64_MAX) * Expr(4), Expr(INT64_MAX));
}

TEST(Expr, EvaluatesLeavesOfEachKind) {
  const Expr e = mod(Expr::axis(3, 100) * 7 + Expr::value(2), sym("n"));
  const auto leaf = [](const Expr &at) -> int64_t {
    return at.kind() == Expr::Kind::axis ? 10 * at.id() : at.kind() == Expr::Kind::value ? at.id() : 50;
  };
  EXPECT_EQ(e.evaluate_leaves(leaf), (7 * 30 + 2) % 50);
}

TEST(Expr, BoundsComeFromExtents) {
  Expr i = Expr::axis(0, 8), n = sym("n");
  EXPECT_EQ((3 * i - 1).lower_bound(), -1);
  EXPECT_EQ((3 * i - 1).upper_bound(), 20);
  EXPECT_EQ((n - i).lower_bound(), -7);
  EXPECT_EQ((i - n).lower_bound(), std::nullopt);
  EXPECT_EQ(mod(n, 8).upper_bound(), 7);
  EXPECT_EQ(floor_div(i, 3).upper_bound(), 2);
  EXPECT_EQ((n + 1).lower_bound(), 1);
  EXPECT_EQ(Expr::value(0).lower_bound(), std::nullopt);
}

TEST(Expr, CollectsSymbolsAndDependences) {
  std::set<std::string> symbols;
  (floor_div(sym("a"), 3) + Expr::axis(0, sym("b")) * sym("c")).collect_symbols(symbols);
  EXPECT_EQ(symbols, (std::set<std::string>{"a", "c"}));
  Expr e = floor_div(Expr::axis(4, sym("b")), 3) + Expr::value(1);
  EXPECT_TRUE(e.depends_on_axis(4));
  EXPECT_FALSE(e.depends_on_axis(3));
  EXPECT_TRUE(e.depends_on_value());
}

TEST(Expr, RowMajorStridesAreProductsOfLaterDims) {
  Shape shape{sym("b"), 3, sym("n") + 1};
  EXPECT_EQ(text_of(row_major_strides(shape)), "[3*n + 3, n + 1, 1]");
  EXPECT_EQ(product_of(shape), 3 * sym("b") * sym("n") + 3 * sym("b"));
  EXPECT_EQ(product_of({}), Expr(1));
}

TEST(Expr, SpanOfStridedElementsIsNeverBelowZero) {
  const auto span = [](Shape shape, Shape strides) { return span_elements(shape, strides); };
  EXPECT_EQ(span({3, 4}, {4, 1}), Expr(12));
  EXPECT_EQ(span({3, 4}, {10, 1}), Expr(24));
  EXPECT_EQ(span({0, 3}, {2, 0}), Expr(0));
  EXPECT_EQ(span({3, 0}, {10, 1}), Expr(0));
  const Expr n = sym("n");
  for (int64_t size : {0, 1, 5}) {
    const auto at = [&](const std::string &) { return size; };
    EXPECT_EQ(span({n, 4}, {10, 1}).evaluate(at), size == 0 ? 0 : 10 * (size - 1) + 4);
    EXPECT_EQ(span({n, 3}, {2, 0}).evaluate(at), size == 0 ? 0 : 2 * (size - 1) + 1);
  }
}

TEST(Expr, HugeProductsStayUnexpanded) {
  Expr product = 1;
  for (int i = 0; i < 40; ++i) product *= sym("a") + sym("b") + Expr(i);
  auto zero = [](const std::string &) -> int64_t { return 0; };
  EXPECT_EQ(product.evaluate(zero), 0);
  EXPECT_LT(product.text().size(), 5000u);
  EXPECT_EQ(parsed(product.text()).evaluate(zero), 0);
}

// Random expressions over two symbols and two axes (given as symbols to evaluate): what the rules make of them has the
// value that plain arithmetic gives, it reads back, and making it again from its parts changes nothing.
class RandomExpr {
 public:
  explicit RandomExpr(uint32_t seed) : random_(seed) {}
  Expr expr(int depth, int64_t &value) {
    int64_t a = 0, b = 0;
    switch (pick(depth == 0 ? 4 : 12)) {
      case 0:
        value = pick(9) - 3;
        return value;
      case 1:
        value = n;
        return sym("n");
      case 2:
        value = i;
        return Expr::axis(0, sym("n"));
      case 3:
        value = j;
        return Expr::axis(1, 6);
      case 4:
      case 5: {
        Expr x = expr(depth - 1, a), y = expr(depth - 1, b);
        value = a + b;
        return x + y;
      }
      case 6: {
        Expr x = expr(depth - 1, a), y = expr(depth - 1, b);
        value = a - b;
        return x - y;
      }
      case 7: {
        Expr x = expr(depth - 1, a), y = expr(depth - 1, b);
        value = a * b;
        return x * y;
      }
      case 8: {
        Expr x = expr(depth - 1, a);
        Expr d = divisor(b);
        value = floor(a, b);
        return floor_div(x, d);
      }
      case 9: {
        Expr x = expr(depth - 1, a);
        Expr d = divisor(b);
        value = a - b * floor(a, b);
        return mod(x, d);
      }
      case 10: {
        Expr x = expr(depth - 1, a), y = expr(depth - 1, b);
        value = std::min(a, b);
        return min(x, y);
      }
      default: {
        Expr x = expr(depth - 1, a), y = expr(depth - 1, b);
        value = std::max(a, b);
        return max(x, y);
      }
    }
  }
  int64_t n = 0, i = 0, j = 0;
  int64_t pick(int64_t below) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(below)); }

 private:
  static int64_t floor(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
  Expr divisor(int64_t &value) {
    switch (pick(6)) {
      case 0:
        value = n;
        return sym("n");
      case 3:
        value = 8 - n;
        return 8 - sym("n");
      case 4:
        value = 30 - 4 * n;
        return 30 - 4 * sym("n");
      case 1:
        value = 2 * n;
        return 2 * sym("n");
      case 2:
        value = n + 3;
        return sym("n") + 3;
      default:
        value = 1 + pick(6);
        return value;
    }
  }
  std::mt19937_64 random_;
};

TEST(Expr, RulesKeepTheValueOfRandomExpressions) {
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    RandomExpr random(seed);
    random.n = 1 + random.pick(7);
    random.i = random.pick(random.n);
    random.j = random.pick(6);
    int64_t expected = 0;
    Expr e = random.expr(4, expected);
    auto as_symbols = [&](const Expr &leaf) -> std::optional<Expr> {
      if (leaf.kind() != Expr::Kind::axis) return std::nullopt;
      return leaf.id() == 0 ? sym("i") : sym("j");
    };
    auto number = [&](const Expr &leaf) -> std::optional<Expr> {
      if (leaf.kind() == Expr::Kind::axis) return Expr(leaf.id() == 0 ? random.i : random.j);
      return Expr(random.n);
    };
    ASSERT_EQ(e.substitute(number), Expr(expected)) << "seed " << seed << ": " << e.text();
    Expr again = e.substitute([](const Expr &leaf) { return std::optional(leaf); });
    ASSERT_EQ(again, e) << "seed " << seed << ": " << e.text() << " became " << again.text();
    Expr symbols = e.substitute(as_symbols);
    ASSERT_EQ(parsed(symbols.text()), symbols) << "seed " << seed << ": " << symbols.text();
    ASSERT_LE(e.lower_bound().value_or(expected), expected) << "seed " << seed << ": " << e.text();
    ASSERT_GE(e.upper_bound().value_or(expected), expected) << "seed " << seed << ": " << e.text();
  }
}

}  // namespace
}  // namespace kiln
