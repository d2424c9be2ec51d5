// Passes of stage lower: on each region once, before it is decomposed; in the key; not on a hit.
#include <cmath>

#include "runtime/graph/edit.h"
#include "runtime/report/compile_report.h"
#include "tests/cache/compiling.h"

namespace kiln {
namespace {

using test::f32_graph;

// What a pass saw: the op nodes of each graph that it ran on, by op.
using Seen = std::vector<std::string>;

std::shared_ptr<Pass> lower_pass(std::string name, std::function<Status(PassContext &)> run) {
  auto pass = std::make_shared<Pass>();
  pass->name = std::move(name);
  pass->plugin = "test.so";
  pass->uuid = Uuid{7};
  pass->stage = Stage::lower;
  pass->run = [run = std::move(run)](PassContext &context) {
    context.done = true;
    return run(context);
  };
  return pass;
}

// Makes `from` to `to` wherever it stands.
std::shared_ptr<Pass> replacing_pass(std::string from, std::string to, std::shared_ptr<Seen> seen) {
  return lower_pass("replaces", [=](PassContext &context) -> Status {
    std::vector<Node> nodes;
    std::string ops;
    for (const Node &node : context.edit.view().nodes()) {
      if (!node.op) continue;
      str_append(ops, str_cat(ops.empty() ? "" : " ", node.op->name));
      if (node.op->name == from) nodes.push_back(node);
    }
    seen->push_back(ops);
    for (const Node &node : nodes) {
      KILN_ASSIGN(const uint32_t id, context.edit.add(context.ops.find(to), node.inputs));
      KILN_TRY(context.edit.replace({node.id, 0}, {id, 0}));
      ++context.rewrites;
    }
    return {};
  });
}

std::string node_of(const std::string &name, const std::string &op, const std::string &input,
                    const std::string &region = "") {
  return str_cat(R"({"name":")", name, R"(","op":")", op, R"(","inputs":[")", input, R"("],"annotations":{)",
                 region.empty() ? "" : str_cat(R"("kiln.region":{"text":")", region, "\"}"), "}}");
}
std::string chain_of(const std::vector<std::string> &nodes, const std::string &output) {
  return f32_graph("x", R"("n")", join(nodes, ",", [](const std::string &node) { return node; }), output);
}

const CompileOptions only_marked{.mode = Mode::marked};

class LowerPasses : public test::Compiling {
 protected:
  void add(std::shared_ptr<Pass> pass) { ASSERT_TRUE(passes_.add(std::move(pass)).ok()); }
  const PassRun &run_named(std::string_view name) const {
    return *std::ranges::find(report_.passes, name, &PassRun::name);
  }
  const std::shared_ptr<Seen> seen_ = std::make_shared<Seen>();
};

TEST_F(LowerPasses, RunOnTheWholeGraphBeforeItIsDecomposedAndNotOnAHit) {
  add(replacing_pass("gelu", "sin", seen_));
  const std::string graph = chain_of({node_of("a", "gelu", "x"), node_of("b", "silu", "a")}, "b");
  Result<Compiled> cold = compile(graph);
  ASSERT_TRUE(cold.ok()) << cold.status().message();
  EXPECT_EQ(report_.lookup, Outcome::miss);
  EXPECT_EQ(*seen_, Seen{"gelu silu"}) << "neither is decomposed yet";
  EXPECT_EQ(run_named("replaces").stage, "lower");
  EXPECT_EQ(run_named("replaces").rewrites, 1u);
  EXPECT_EQ(run_named("replaces").runs, 1u);
  const float s = std::sin(2.0f);
  EXPECT_NEAR(test::run(*cold, {{2}})[0], s / (1 + std::exp(-s)), 1e-6);

  Result<Compiled> warm = compile(graph);
  ASSERT_TRUE(warm.ok()) << warm.status().message();
  EXPECT_EQ(report_.lookup, Outcome::hit);
  EXPECT_EQ(seen_->size(), 1u);
  EXPECT_EQ(test::run(*warm, {{2}}), test::run(*cold, {{2}}));
}

TEST_F(LowerPasses, AreInTheKeyWithTheirPlaceAndVersion) {
  auto pass = replacing_pass("gelu", "sin", seen_);
  const std::string graph = chain_of({node_of("a", "gelu", "x")}, "a");
  expect(Outcome::miss, "", graph);
  const Digest without = report_.key;
  add(pass);
  expect(Outcome::miss, "pass replaces", graph);
  const Digest with = report_.key;
  EXPECT_NE(with, without);
  passes_ = PassList::built_in();
  pass = std::make_shared<Pass>(*pass);
  pass->version = "2";
  add(pass);
  expect(Outcome::miss, "pass replaces", graph);
  EXPECT_NE(report_.key, with);
  passes_ = PassList::built_in();
  pass = std::make_shared<Pass>(*pass);
  pass->stage = Stage::post_grad;
  add(pass);
  expect(Outcome::miss, "pass replaces", graph);
}

TEST_F(LowerPasses, WithoutIdentityBypassTheCacheByName) {
  auto pass = replacing_pass("gelu", "sin", seen_);
  pass->uuid.reset();
  add(pass);
  const std::string graph = chain_of({node_of("a", "gelu", "x")}, "a");
  expect(Outcome::bypass, "pass 'replaces' of test.so has no identity", graph);
  expect(Outcome::bypass, "pass 'replaces' of test.so has no identity", graph);
  EXPECT_EQ(seen_->size(), 2u);
}

TEST_F(LowerPasses, RunOnEachDistinctRegionAndOnNothingElse) {
  add(replacing_pass("tanh", "sin", seen_));
  // Two equal regions, one other, between them nodes that fall back.
  const std::string graph =
      chain_of({node_of("a", "tanh", "x", "one"), node_of("b", "tanh", "a"), node_of("c", "tanh", "b", "two"),
                node_of("d", "exp", "c"), node_of("e", "tanh", "d", "three"), node_of("f", "abs", "e", "three")},
               "f");
  Result<Compiled> cold = compile(graph, only_marked);
  ASSERT_TRUE(cold.ok()) << cold.status().message();
  EXPECT_EQ(*seen_, (Seen{"tanh", "tanh abs"}));
  EXPECT_EQ(run_named("replaces").runs, 2u);
  EXPECT_EQ(run_named("replaces").rewrites, 2u);
  const float c = std::sin(std::tanh(std::sin(0.5f)));
  EXPECT_NEAR(test::run(*cold, {{0.5f}})[0], std::abs(std::sin(std::exp(c))), 1e-6);
  ASSERT_TRUE(report_.partition);
  EXPECT_EQ(report_.partition->parts[1].same_as, 0u);
  EXPECT_EQ(report_.partition->fallbacks.size(), 2u);

  expect(Outcome::hit, "hit", graph, only_marked);
  EXPECT_EQ(seen_->size(), 2u);
}

TEST_F(LowerPasses, RunOnNothingWhereNothingIsCompiledTogether) {
  add(replacing_pass("tanh", "sin", seen_));
  Result<Compiled> compiled = compile(chain_of({node_of("a", "tanh", "x", "one")}, "a"), {.mode = Mode::none});
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  EXPECT_EQ(seen_->size(), 0u);
  EXPECT_EQ(run_named("replaces").runs, 0u);
  EXPECT_NEAR(test::run(*compiled, {{0.5f}})[0], std::tanh(0.5f), 1e-6);
}

TEST_F(LowerPasses, SeeARegionWhoseSizesOthersBind) {
  add(replacing_pass("tanh", "sin", seen_));
  // The region's only input has n + n elements: nothing in it binds n.
  const std::string graph = f32_graph("x", R"("n")",
                                      R"({"name":"a","op":"concat","inputs":["x","x"],"attrs":{"dim":0}},
                                         {"name":"b","op":"tanh","inputs":["a"],
                                          "annotations":{"kiln.region":{"text":"r"}}})",
                                      "b");
  Result<Compiled> compiled = compile(graph, only_marked);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  EXPECT_EQ(*seen_, Seen{"tanh"});
  EXPECT_EQ(run_named("replaces").rewrites, 1u);
}

// A graph that calls one with tanh, and a cond with branches of which one calls it, too.
const std::string nested = R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["n"]}},
    {"name":"p","type":{"dtype":"bool","shape":[]}}],
    "nodes":[{"name":"c","op":"call","inputs":["x"],"attrs":{"graph":"t"}},
             {"name":"y","op":"cond","inputs":["p","c"],"attrs":{"then_graph":"t2","else_graph":"e"}}],
    "outputs":[{"name":"y","value":"y"}],
    "graphs":{"t":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["n"]}}],
                   "nodes":[{"name":"v","op":"tanh","inputs":["u"]}],"outputs":[{"name":"v","value":"v"}]},
              "t2":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["n"]}}],
                    "nodes":[{"name":"v","op":"call","inputs":["u"],"attrs":{"graph":"t"}},
                             {"name":"w","op":"exp","inputs":["v"]}],"outputs":[{"name":"w","value":"w"}]},
              "e":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["n"]}}],
                   "nodes":[{"name":"v","op":"abs","inputs":["u"]}],"outputs":[{"name":"v","value":"v"}]}}})";

TEST_F(LowerPasses, VisitNestedGraphsOnceWithTheirCallsInlined) {
  add(replacing_pass("tanh", "sin", seen_));
  Result<Compiled> compiled = compile(nested);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  std::ranges::sort(*seen_);
  EXPECT_EQ(*seen_, (Seen{"abs", "tanh cond", "tanh exp"}));
  EXPECT_EQ(run_named("replaces").rewrites, 2u);
  expect(Outcome::hit, "hit", nested);
}

TEST_F(LowerPasses, RunOnceOnTheBodyOfAScan) {
  add(replacing_pass("tanh", "sin", seen_));
  const std::string scan = R"({"kiln":1,"inputs":[{"name":"h","type":{"dtype":"f32","shape":[4]}},
      {"name":"xs","type":{"dtype":"f32","shape":[8,4]}}],
      "nodes":[{"name":"s","op":"scan","inputs":["h","xs"],"attrs":{"body_graph":"b","sequences":1}}],
      "outputs":[{"name":"y","value":"s"}],
      "graphs":{"b":{"inputs":[{"name":"h","type":{"dtype":"f32","shape":[4]}},
                               {"name":"x","type":{"dtype":"f32","shape":[4]}}],
                     "nodes":[{"name":"a","op":"add","inputs":["h","x"]},{"name":"t","op":"tanh","inputs":["a"]}],
                     "outputs":[{"name":"t","value":"t"}]}}})";
  Result<Compiled> compiled = compile(scan);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  EXPECT_EQ(*seen_, (Seen{"add tanh", "scan"}));
  EXPECT_EQ(run_named("replaces").rewrites, 1u);
}

TEST_F(LowerPasses, AreInTheKeysOfPieces) {
  const std::string graph =
      chain_of({node_of("a", "tanh", "x"), node_of("b", "exp", "a"), node_of("c", "tanh", "b")}, "c");
  const CompileOptions cut{.split_at = {"exp"}};
  expect(Outcome::miss, "", graph, cut);
  ASSERT_EQ(report_.pieces.size(), 2u);
  const Digest without = report_.pieces[1].key;
  add(replacing_pass("tanh", "sin", seen_));
  Result<Compiled> compiled = compile(graph, cut);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  EXPECT_EQ(report_.pieces[1].lookup, Outcome::miss);
  EXPECT_NE(report_.pieces[1].key, without);
  EXPECT_EQ(*seen_, (Seen{"tanh exp", "tanh"}));
  EXPECT_NEAR(test::run(*compiled, {{0.5f}})[0], std::sin(std::exp(std::sin(0.5f))), 1e-6);
  EXPECT_NE(report_.pieces[1].made.find("\"name\":\"replaces\""), std::string::npos) << report_.pieces[1].made;

  expect(Outcome::hit, "hit", graph, cut);
  // Another graph with one piece that is known: of that no pass runs.
  expect(Outcome::miss, "",
         chain_of({node_of("a", "abs", "x"), node_of("b", "exp", "a"), node_of("c", "tanh", "b")}, "c"), cut);
  EXPECT_EQ(report_.pieces[1].lookup, Outcome::hit);
  EXPECT_EQ(*seen_, (Seen{"tanh exp", "tanh", "abs exp"}));
}

TEST_F(LowerPasses, RunOnEntriesByTheCompileItself) {
  int later = 0;
  later_ = [&](LaterEntry) { ++later; };
  add(replacing_pass("tanh", "sin", seen_));
  const std::string graph = chain_of({node_of("a", "tanh", "x")}, "a");
  const CompileOptions sizes{.specialize = {"n=2"}, .specialize_when = SpecializeWhen::lazy};
  Result<Compiled> compiled = compile(graph, sizes);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  EXPECT_EQ(later, 0) << "passes run on the thread of the compile";
  EXPECT_EQ(*seen_, (Seen{"tanh", "tanh"}));
  ASSERT_EQ(report_.entries.size(), 1u);
  ASSERT_TRUE(report_.entries[0].made);
  EXPECT_EQ(report_.entries[0].made->lookup, Outcome::miss);
  EXPECT_NEAR(test::run(*compiled, {{0.5f, 1}})[1], std::sin(1.0f), 1e-6);
  expect(Outcome::hit, "hit", graph, sizes);
  EXPECT_EQ(report_.entries[0].made->lookup, Outcome::hit);
  EXPECT_EQ(seen_->size(), 2u);
}

TEST_F(LowerPasses, ThatChangeTheSignatureAreNamedWithTheRegion) {
  add(lower_pass("adds", [](PassContext &context) {
    return context.edit.input("more", make_type(DType::f32, {Dim(1)})).status();
  }));
  const Result<Compiled> compiled = compile(chain_of({node_of("a", "tanh", "x", "one")}, "a"), only_marked);
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.status().code(), Code::invariant);
  EXPECT_EQ(compiled.status().info()->plugin, "test.so");
  EXPECT_NE(compiled.status().message().find("pass 'adds' of test.so: in region 'one': "), std::string::npos)
      << compiled.status().message();
}

TEST_F(LowerPasses, ThatFailAreNamed) {
  add(lower_pass("fails", [](PassContext &) { return invalid("not today"); }));
  const Result<Compiled> compiled = compile(chain_of({node_of("a", "tanh", "x")}, "a"));
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.status().code(), Code::plugin_failed);
  EXPECT_EQ(compiled.status().message(), "pass 'fails' of test.so: failed: not today");
}

TEST_F(LowerPasses, AReportHasTheDigestBehindEachPassAndStage) {
  add(replacing_pass("tanh", "sin", seen_));
  const std::string graph = chain_of({node_of("a", "tanh", "x")}, "a");
  expect(Outcome::miss, "", graph);
  const auto stages = [this] {
    return join(report_.stages, " ", [](const StageDigest &stage) { return stage.stage; });
  };
  ASSERT_EQ(stages(), "early passes pre_grad post_grad lower");
  const Digest given = digest_of(*test::graph_of(graph));
  EXPECT_EQ(report_.stages[0].digest, given);
  EXPECT_EQ(report_.stages[1].digest, given) << "no pass ran";
  EXPECT_EQ(report_.stages[2].digest, run_named("cse").digest);
  EXPECT_EQ(report_.stages[2].digest, given) << "cse found nothing";
  EXPECT_NE(run_named("replaces").digest, Digest());
  const Digest lower = report_.stages[3].digest, replaced = run_named("replaces").digest;
  const std::string made = report_.made;
  EXPECT_NE(made.find(str_cat(R"("stage":"lower","digest":")", lower.hex())), std::string::npos) << made;
  EXPECT_NE(made.find(replaced.hex()), std::string::npos) << made;

  expect(Outcome::hit, "", graph);
  EXPECT_EQ(stages(), "early passes") << "the others did not run";
  EXPECT_EQ(report_.made, made);

  expect(Outcome::miss, "", chain_of({node_of("a", "sin", "x")}, "a"));
  EXPECT_EQ(report_.stages[3].digest, lower) << "the pass makes the same of both";
}

}  // namespace
}  // namespace kiln
