// Symbols that nodes resolve: bound once, after what resolves them, and no part of the signature.
#include "runtime/ops/samples.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln {
namespace {

using ops::f32;
using ops::i64;
using ops::sym;

class ResolvedSymbols : public ::testing::Test {
 protected:
  ResolvedSymbols() {
    count_ = *edit_.input("count", i64({}));
    x_ = *edit_.input("x", f32({sym("n")}));
  }
  Result<uint32_t> resolve(std::string_view symbol, std::string_view name = "r") {
    return edit_.add(find_op("resolve"), {&count_, 1}, {{"bound", Dim(8)}, {"symbol", std::string(symbol)}}, name);
  }
  uint32_t full(const Dim &size) {
    return *edit_.add(find_op("full"), {}, {{"value", 1.0}, {"dtype", DType::f32}, {"shape", AttrValue(Shape{size})}});
  }

  Edit edit_;
  ValueId count_, x_;
};

TEST_F(ResolvedSymbols, GetAFreshNameUnlessOneIsGiven) {
  ASSERT_TRUE(resolve("k").ok());
  const Result<uint32_t> fresh = resolve("", "size of it");
  ASSERT_TRUE(fresh.ok()) << fresh.status().message();
  EXPECT_EQ(edit_.view().find(*fresh)->attrs.at("symbol"), AttrValue("_size_of_it"));
  const Result<uint32_t> accented = resolve("",
                                            "gr\xc3\xb6\xc3\x9f"
                                            "e");
  ASSERT_TRUE(accented.ok()) << accented.status().message();
  EXPECT_EQ(edit_.view().find(*accented)->attrs.at("symbol"), AttrValue("_gr____e"));
  EXPECT_TRUE(edit_.view().symbols().contains("k"));
  EXPECT_EQ(edit_.view().resolver("_size_of_it")->id, *fresh);
}

TEST_F(ResolvedSymbols, AreBoundOnce) {
  EXPECT_EQ(resolve("n").status().message(), "[resolve] symbol 'n' is bound already; name another, or none");
  ASSERT_TRUE(resolve("k").ok());
  EXPECT_EQ(resolve("k", "again").status().message(), "[resolve] symbol 'k' is bound already; name another, or none");
  EXPECT_EQ(resolve("1k", "bad").status().message(),
            "[resolve] symbol is '1k', expected a letter or '_', then letters, digits, '_' or '.'");
}

TEST_F(ResolvedSymbols, NodesThatSpeakOfThemComeAfterAndKeepTheirResolver) {
  const uint32_t early = full(sym("n"));  // stands before
  ASSERT_TRUE(resolve("k").ok());
  const uint32_t late = full(sym("k"));
  const uint32_t both = *edit_.add(find_op("concat"), std::vector<ValueId>{{late, 0}, {early, 0}}, {{"dim", 0}});
  ASSERT_TRUE(edit_.set_outputs({{"y", {both, 0}}}).ok());
  const Result<GraphPtr> graph = edit_.finish();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Node *resolver = (*graph)->resolver("k");
  ASSERT_NE(resolver, nullptr) << "no node reads its result";
  EXPECT_LT((*graph)->position(resolver->id), (*graph)->position(late));
}

TEST_F(ResolvedSymbols, OfNodesThatAreLeftOutAreGone) {
  ASSERT_TRUE(resolve("k").ok());
  ASSERT_TRUE(edit_.set_outputs({{"y", x_}}).ok());
  const Result<GraphPtr> graph = edit_.finish();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_FALSE((*graph)->symbols().contains("k"));
}

TEST_F(ResolvedSymbols, OfARetiredNodeAreFreeForOnesThatTakeItsPlace) {
  const uint32_t old = *resolve("k", "r"), user = full(sym("k"));
  ASSERT_TRUE(edit_.set_outputs({{"y", {user, 0}}, {"count", {old, 0}}}).ok());
  edit_.retire(old);
  EXPECT_EQ(edit_.view().resolver("k"), nullptr);
  EXPECT_EQ(edit_.view().find("r"), nullptr);
  const Result<uint32_t> taking = resolve("k", "r");
  ASSERT_TRUE(taking.ok()) << taking.status().message();
  ASSERT_TRUE(edit_.replace({old, 0}, {*taking, 0}).ok());
  const Result<GraphPtr> graph = edit_.finish();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ((*graph)->resolver("k")->id, *taking);
  EXPECT_EQ((*graph)->find("r")->id, *taking);
  EXPECT_EQ((*graph)->find(old), nullptr);
  EXPECT_LT((*graph)->position(*taking), (*graph)->position(user));
}

TEST_F(ResolvedSymbols, AnInputCannotSpeakOfThem) {
  ASSERT_TRUE(edit_.input("late", f32({2 * sym("k")})).ok());
  ASSERT_TRUE(resolve("k").ok());
  ASSERT_TRUE(edit_.set_outputs({{"y", {full(sym("k")), 0}}}).ok());
  EXPECT_EQ(edit_.finish().status().message(),
            "invariant 'symbols' broken at node 'late': no input has symbol 'k' as a dimension, so nothing binds it");
}

TEST_F(ResolvedSymbols, APassMayAddAndRemoveThem) {
  ASSERT_TRUE(edit_.set_outputs({{"y", x_}}).ok());
  const GraphPtr without = *edit_.finish();
  ASSERT_TRUE(resolve("k").ok());
  ASSERT_TRUE(edit_.set_outputs({{"y", x_}, {"k", {edit_.view().find("r")->id, 0}}}).ok());
  const GraphPtr with = *edit_.finish();
  EXPECT_EQ(verify_same_signature(*without, *with).message(),
            "invariant 'signature' broken by the graph: outputs were 1 and are 2")
      << "and not that its symbols are others";
}

TEST(ResolvedSymbolsInJson, ReadBack) {
  const GraphPtr graph = test::graph_of(R"({"kiln":1,"symbols":{"k":{"max":6}},
      "inputs":[{"name":"c","type":{"dtype":"i64","shape":[]}},{"name":"x","type":{"dtype":"f32","shape":[8]}}],
      "nodes":[{"name":"r","op":"resolve","inputs":["c"],"attrs":{"bound":8,"symbol":"k"}},
               {"name":"y","op":"slice","inputs":["x"],"attrs":{"dim":0,"end":"k"}}],
      "outputs":[{"name":"y","value":"y"}]})");
  EXPECT_EQ(graph->symbols().at("k").max, 6);
  EXPECT_EQ(digest_of(*test::graph_of(write_json(*graph))), digest_of(*graph));
}

TEST(ResolvedSymbolsInNestedGraphs, CannotLeaveThem) {
  const Result<GraphPtr> graph = read_json(R"({"kiln":1,
      "inputs":[{"name":"c","type":{"dtype":"i64","shape":[]}},{"name":"x","type":{"dtype":"f32","shape":[8]}}],
      "nodes":[{"name":"a","op":"call","inputs":["c","x"],"attrs":{"graph":"g"}}],
      "outputs":[{"name":"y","value":"a"}],
      "graphs":{"g":{"inputs":[{"name":"c","type":{"dtype":"i64","shape":[]}},
                               {"name":"u","type":{"dtype":"f32","shape":[8]}}],
        "nodes":[{"name":"r","op":"resolve","inputs":["c"],"attrs":{"bound":8,"symbol":"k"}},
                 {"name":"h","op":"slice","inputs":["u"],"attrs":{"dim":0,"end":"k"}}],
        "outputs":[{"name":"h","value":"h"}]}}})",
                                           builtin_ops());
  EXPECT_NE(graph.status().message().find("output 'h' of the graph is f32[k]; sizes that a node of a nested graph "
                                          "resolves cannot leave it"),
            std::string::npos)
      << graph.status().message();
}

}  // namespace
}  // namespace kiln
