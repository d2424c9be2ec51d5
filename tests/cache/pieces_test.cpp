// compile() of graphs that are cut into pieces, with a fresh cache folder each: what is found and what is made.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/cache/compiling.h"

namespace kiln {
namespace {

using test::f32_graph;
using test::run;

class Pieces : public test::Compiling {
 protected:
  // "MISS HIT =0": how each piece's lookup ended, or which one it is equal to.
  std::string lookups() const {
    return join(report_.pieces, " ", [](const PieceReport &piece) {
      return piece.same_as ? str_cat("=", *piece.same_as) : std::string(name_of(piece.lookup));
    });
  }
  static CompileOptions split_at(std::vector<std::string> ops, Mode mode = Mode::all) {
    CompileOptions options;
    options.split_at = std::move(ops);
    options.mode = mode;
    return options;
  }
  // The results of the whole, and those piece by piece: cold and warm.
  void expect_bits_of_the_whole(const std::string &json, const CompileOptions &options,
                                const std::vector<std::vector<float>> &inputs) {
    CompileOptions uncut = options;
    uncut.split_at.clear();
    const Result<Compiled> whole = compile(json, uncut);
    ASSERT_TRUE(whole.ok()) << whole.status().message();
    const std::vector<float> expected = run(*whole, inputs);
    for (const Outcome outcome : {Outcome::miss, Outcome::hit}) {
      const Result<Compiled> cut = compile(json, options);
      ASSERT_TRUE(cut.ok()) << cut.status().message();
      EXPECT_EQ(report_.lookup, outcome) << report_.reason;
      EXPECT_EQ(report_.pieces.size() > 1, outcome == Outcome::miss);
      EXPECT_EQ(run(*cut, inputs), expected);
    }
  }
};

// sin and a product, `count` times, then `last`.
std::string growing_layers(int count, std::string_view last = "exp") {
  std::string nodes, before = "x";
  for (int k = 0; k < count; ++k) {
    str_append(nodes, str_cat(R"({"name":"m)", k, R"(","op":"mul","inputs":[")", before, R"(","y"]},{"name":"s)", k,
                              R"(","op":"sin","inputs":["m)", k, R"("]},)"));
    before = str_cat("s", k);
  }
  str_append(nodes, str_cat(R"({"name":"z","op":")", last, R"(","inputs":[")", before, R"("]})"));
  return f32_graph("xy", R"("n")", nodes, "z");
}
const std::vector<std::vector<float>> three = {{1, -2, 0.5}, {3, 0.25, -1}};

TEST_F(Pieces, AreLookedUpByThemselvesAndEqualOnesOnce) {
  ASSERT_TRUE(compile(growing_layers(3), split_at({"sin"})).ok());
  EXPECT_EQ(report_.lookup, Outcome::miss);
  EXPECT_EQ(lookups(), "MISS =0 =0 MISS");
  EXPECT_EQ(report_.kernels_compiled, 2u);
  EXPECT_EQ(report_.launches, 4u);

  ASSERT_TRUE(compile(growing_layers(3, "cos"), split_at({"sin"})).ok());  // another graph, of which one piece is new
  EXPECT_EQ(report_.lookup, Outcome::miss);
  EXPECT_EQ(lookups(), "HIT =0 =0 MISS");
  EXPECT_EQ(report_.kernels_compiled, 1u);

  ASSERT_TRUE(compile(growing_layers(5, "cos"), split_at({"sin"})).ok());  // and of which none is
  EXPECT_EQ(lookups(), "HIT =0 =0 =0 =0 HIT");
  EXPECT_EQ(report_.kernels_compiled + report_.kernels_from_cache, 0u);

  ASSERT_TRUE(compile(growing_layers(5, "cos"), split_at({"sin"})).ok());
  EXPECT_EQ(report_.lookup, Outcome::hit);
  EXPECT_EQ(lookups(), "");
  EXPECT_NE(report_.made.find(R"("pieces":[{"nodes":["m0","s0"],"inputs":["x","y"])"), std::string::npos)
      << report_.made;
}

TEST_F(Pieces, AreFoundWithoutTheWholesIdentity) {
  auto pass = std::make_shared<Pass>();
  pass->name = "unknown";
  pass->plugin = "test.so";
  pass->run = [](PassContext &context) {
    context.done = true;
    return Status();
  };
  ASSERT_TRUE(passes_.add(pass).ok());
  for (const std::string_view expected : {"MISS =0 MISS", "HIT =0 HIT"}) {
    ASSERT_TRUE(compile(growing_layers(2), split_at({"sin"})).ok());
    EXPECT_EQ(report_.lookup, Outcome::bypass);
    EXPECT_EQ(lookups(), expected);
  }
}

TEST_F(Pieces, GiveTheBitsOfTheWhole) {
  expect_bits_of_the_whole(growing_layers(3), split_at({"sin"}), three);
  expect_bits_of_the_whole(growing_layers(3), split_at({"mul", "sin"}, Mode::none), three);
}

TEST_F(Pieces, HandOnSizesThatNoInputOfTheirsTells) {
  // The second one's input has dim 2n + 1, and it tells n.
  const std::string json = f32_graph("x", R"("n")", R"(
      {"name":"c","op":"concat","inputs":["x","x","x"],"attrs":{"dim":0}},
      {"name":"t","op":"sin","inputs":["c"]},
      {"name":"s","op":"slice","inputs":["t"],"attrs":{"dim":0,"start":"n","end":"2*n"}})",
                                     "s");
  expect_bits_of_the_whole(json, split_at({"sin"}), {{1, -2, 0.5}});
}

TEST_F(Pieces, TellSizesToEachOtherAsTheyRun) {
  // Of x those elements that are not 0, each plus their sum, at the head of an array of x's size.
  const std::string json = f32_graph("x", R"("n")", R"(
      {"name":"nz","op":"nonzero","inputs":["x"]},
      {"name":"i","op":"squeeze","inputs":["nz:0"],"attrs":{"dims":[1]}},
      {"name":"g","op":"gather","inputs":["x","i"],"attrs":{"dim":0}},
      {"name":"e","op":"exp","inputs":["g"]},
      {"name":"t","op":"sum","inputs":["e"]},
      {"name":"y","op":"add","inputs":["x","t"]})",
                                     "y");
  const Result<Compiled> tried = compile(json, {});
  if (!tried.ok()) GTEST_FAIL() << tried.status().message();
  expect_bits_of_the_whole(json, split_at({"gather", "exp"}), {{0, 2, 0, -1}});
}

TEST_F(Pieces, KeepTheNamesOfTheirOwnNodesInMessages) {
  std::string json = R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"i64","shape":["n"]}},
      {"name":"y","type":{"dtype":"i64","shape":["n"]}}],"nodes":[
      {"name":"a","op":"floor_divide","inputs":["x","y"],"annotations":{"kiln.cut":{"bool":true}}},
      {"name":"b","op":"floor_divide","inputs":["a","y"]}],"outputs":[{"name":"z","value":"b"}]})";
  const auto risks = [&] {
    const Result<Compiled> compiled = compile(json);
    EXPECT_TRUE(compiled.ok()) << compiled.status().message();
    std::vector<std::string> texts;
    for (const Plan::Risk &risk : compiled->executable->plan().risks) texts.push_back(risk.text());
    return texts;
  };
  EXPECT_EQ(risks(), (std::vector<std::string>{"node 'a' [floor_divide]", "node 'b' [floor_divide]"}));
  EXPECT_EQ(lookups(), "MISS =0");
  EXPECT_EQ(risks(), (std::vector<std::string>{"node 'a' [floor_divide]", "node 'b' [floor_divide]"}));
  EXPECT_EQ(report_.lookup, Outcome::hit);
}

TEST_F(Pieces, HaveControlFlowConstantsAndCallsInThem) {
  std::string json = f32_graph("xy", R"("n")", R"(
      {"name":"c","op":"call","inputs":["x"],"attrs":{"graph":"half"},"annotations":{"kiln.cut":{"bool":true}}},
      {"name":"m","op":"max","inputs":["c"]},
      {"name":"zero","op":"full","attrs":{"shape":[],"value":0.0,"dtype":"f32"}},
      {"name":"p","op":"gt","inputs":["m","zero"]},
      {"name":"w","op":"cond","inputs":["p","c","y"],"attrs":{"then_graph":"first","else_graph":"second"}},
      {"name":"z","op":"sin","inputs":["w"]},
      {"name":"d","op":"call","inputs":["z"],"attrs":{"graph":"half"}})",
                               "d");
  json.insert(json.rfind('}'), R"(,"graphs":{
      "half":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k"]}}],
        "nodes":[{"name":"s","op":"add","inputs":["u","u"]},{"name":"t","op":"tanh","inputs":["s"]}],
        "outputs":[{"name":"t","value":"t"}]},
      "first":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k"]}},{"name":"v","type":{"dtype":"f32","shape":["k"]}}],
        "nodes":[{"name":"r","op":"sub","inputs":["u","v"]}],"outputs":[{"name":"r","value":"r"}]},
      "second":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k"]}},{"name":"v","type":{"dtype":"f32","shape":["k"]}}],
        "nodes":[{"name":"r","op":"mul","inputs":["u","v"]}],"outputs":[{"name":"r","value":"r"}]}})");
  expect_bits_of_the_whole(json, split_at({"sin"}), three);
  const std::vector<std::vector<float>> negative = {{-1, -2, -0.5}, three[1]};  // the other branch
  const Result<Compiled> whole = compile(json), cut = compile(json, split_at({"sin"}));
  ASSERT_TRUE(whole.ok() && cut.ok());
  EXPECT_EQ(run(*cut, negative), run(*whole, negative));
}

TEST_F(Pieces, ReadInputsBeforeTheLastOneWritesThem) {
  const std::string json = f32_graph("xy", R"("n")", R"(
      {"name":"a","op":"sin","inputs":["x"]},
      {"name":"b","op":"add","inputs":["a","y"]},
      {"name":"w","op":"copy_","inputs":["y","b"]})",
                                     "b");
  const Result<Compiled> compiled = compile(json, split_at({"sin"}));
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  EXPECT_EQ(report_.pieces.size(), 2u);
  const std::vector<float> sums = run(*compiled, three);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(sums[i], std::sin(double(three[0][i])) + three[1][i], 1e-6);
  EXPECT_EQ(compiled->executable->plan().written_inputs, (std::vector<uint32_t>{1}));
}

// In its own plan the scatter finds what it begins as in the storage that it writes.
TEST_F(Pieces, ScatterInPlaceIntoWhatTheyMade) {
  std::string json = f32_graph("xy", R"("n")", R"(
      {"name":"a","op":"sin","inputs":["x"]},
      {"name":"b","op":"exp","inputs":["a"]},
      {"name":"s","op":"cumsum","inputs":["b"],"attrs":{"dim":0}},
      {"name":"t","op":"cumsum","inputs":["a"],"attrs":{"dim":0}},
      {"name":"c","op":"scatter","inputs":["s","first","y"],"attrs":{"dim":0}},
      {"name":"d","op":"cumsum","inputs":["c"],"attrs":{"dim":0}},
      {"name":"e","op":"add","inputs":["d","t"]})",
                               "e");
  json.insert(json.find(R"("nodes")"),
              R"("constants":[{"name":"first","type":{"dtype":"i64","shape":[1]},"data":[1]}],)");
  expect_bits_of_the_whole(json, split_at({"sin"}), three);
  const Result<Compiled> cut = compile(json, split_at({"sin"}));
  ASSERT_TRUE(cut.ok());
  const std::vector<float> got = run(*cut, three);
  const double sines[] = {std::sin(1.0), std::sin(-2.0), std::sin(0.5)};
  const double exps[] = {std::exp(sines[0]), std::exp(sines[1]), std::exp(sines[2])};
  double sum = 0, sine = 0;  // of what was scattered, and of the sines
  for (size_t i = 0; i < 3; ++i) {
    sum += i == 1 ? three[1][0] : i == 0 ? exps[0] : exps[0] + exps[1] + exps[2];
    sine += sines[i];
    EXPECT_NEAR(got[i], sum + sine, 1e-5);
  }
}

TEST_F(Pieces, AreRefusedAtAnOpThatThereIsNot) {
  const Result<Compiled> compiled = compile(growing_layers(1), split_at({"sin", "sine"}));
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.status().code(), Code::unknown_name);
  EXPECT_EQ(compiled.status().message(), "option 'split_at' has 'sine'; no op is called so");
}

}  // namespace
}  // namespace kiln
