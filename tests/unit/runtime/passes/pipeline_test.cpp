#include "runtime/passes/pipeline.h"

#include "tests/unit/runtime/graphs.h"

namespace kiln {
namespace {

std::shared_ptr<Pass> make_pass(std::string name, Stage stage = Stage::post_grad, int32_t priority = 0) {
  auto pass = std::make_shared<Pass>();
  pass->name = std::move(name);
  pass->plugin = "a test";
  pass->stage = stage;
  pass->priority = priority;
  pass->run = [](PassContext &context) {
    context.done = true;
    return Status();
  };
  return pass;
}

using Names = std::vector<std::string>;

std::string names(const PassList &list, const std::optional<Names> &only = {}, const Names &without = {}) {
  const auto selected = list.select(only, without);
  if (!selected.ok()) return selected.status().message();
  return join(*selected, " ", [](const auto &pass) { return pass->name; });
}

TEST(PassList, OrdersByStagePriorityAndRegistration) {
  PassList list;
  ASSERT_TRUE(list.add(make_pass("d")).ok());
  ASSERT_TRUE(list.add(make_pass("e")).ok());
  ASSERT_TRUE(list.add(make_pass("c", Stage::post_grad, -1)).ok());
  ASSERT_TRUE(list.add(make_pass("b", Stage::pre_grad, 2)).ok());
  ASSERT_TRUE(list.add(make_pass("a", Stage::pre_grad, 1)).ok());
  EXPECT_EQ(names(list), "a b c d e");
  EXPECT_EQ(names(list, Names{}), "") << "an empty list selects none";
  EXPECT_EQ(names(list, Names{"e", "a"}), "a e") << "selecting does not reorder";
  EXPECT_EQ(names(list, {}, {"a", "d"}), "b c e");
  EXPECT_EQ(names(list, Names{"a", "b"}, {"a"}), "b");
  EXPECT_EQ(names(list, Names{"z"}), "no pass is named 'z'; there are: d, e, c, b, a");
}

TEST(PassList, OnlyRegisteredPassesAreRemoved) {
  PassList list = PassList::built_in();
  const size_t built_in = list.all().size();
  EXPECT_FALSE(list.remove(0).ok()) << "number 0 is a built-in pass's";
  auto pass = make_pass("mine");
  pass->registration = 7;
  ASSERT_TRUE(list.add(pass).ok());
  EXPECT_TRUE(list.remove(7).ok());
  EXPECT_FALSE(list.remove(7).ok());
  EXPECT_EQ(list.all().size(), built_in);
}

TEST(PassIdentity, EachPartOfItCounts) {
  const auto bytes = [](const Pass &pass, uint64_t position) {
    Fingerprint out;
    EXPECT_TRUE(write_identity(pass, position, out).ok());
    return out.key.take();
  };
  const auto base = make_pass("p");
  base->options = {{"texts", AttrValue(std::vector<std::string>{"a", "b"})}};
  const Bytes expected = bytes(*base, 0);
  EXPECT_EQ(bytes(*base, 0), expected);
  EXPECT_NE(bytes(*base, 1), expected) << "its place in the list";
  const auto changed = [&](auto change) {
    Pass other = *base;
    change(other);
    return bytes(other, 0);
  };
  EXPECT_NE(changed([](Pass &p) { p.name = "q"; }), expected);
  EXPECT_NE(changed([](Pass &p) { p.version = "2"; }), expected);
  EXPECT_NE(changed([](Pass &p) { p.label = "l"; }), expected);
  EXPECT_NE(changed([](Pass &p) { p.top_only = true; }), expected);
  EXPECT_NE(changed([](Pass &p) { p.stage = Stage::pre_grad; }), expected);
  EXPECT_NE(changed([](Pass &p) { p.priority = 1; }), expected);
  EXPECT_NE(changed([](Pass &p) { p.uuid = Uuid{1}; }), expected);
  EXPECT_NE(changed([](Pass &p) { p.file = Digest(); }), expected);
  EXPECT_NE(changed([](Pass &p) { p.options["texts"] = AttrValue(std::vector<std::string>{"a, b"}); }), expected);
  EXPECT_NE(changed([](Pass &p) {
              p.fingerprint = [](Fingerprint &out) {
                out.key.text("environment");
                return Status();
              };
            }),
            expected);
}

TEST(RunPass, AFailureLeavesTheGraphAndNamesThePass) {
  const GraphPtr graph = test::graph_of(test::f32_graph("x", "4", R"({"name":"y","op":"exp","inputs":["x"]})", "y"));
  const std::string before = print(*graph);
  const auto pass = make_pass("vandal");
  pass->run = [](PassContext &context) {
    const ValueId x{context.edit.view().inputs()[0], 0};
    EXPECT_TRUE(context.edit.replace(context.edit.view().outputs()[0].value, x).ok());
    return invalid("second thoughts");
  };
  PassRun run;
  const Result<GraphPtr> after = run_pass(*pass, graph, builtin_ops(), run);
  ASSERT_FALSE(after.ok());
  EXPECT_EQ(after.status().message(), "pass 'vandal' of a test: failed: second thoughts");
  EXPECT_EQ(after.status().info()->plugin, "a test");
  EXPECT_EQ(print(*graph), before);
}

TEST(RunPass, TellsWhatItDid) {
  const GraphPtr graph = test::graph_of(test::f32_graph("x", "4", R"({"name":"y","op":"exp","inputs":["x"]})", "y"));
  const auto pass = make_pass("counts");
  pass->run = [](PassContext &context) {
    context.done = true;
    context.rewrites = 3;
    return Status();
  };
  PassRun run = run_of(*pass);
  ASSERT_TRUE(run_pass(*pass, graph, builtin_ops(), run).ok());
  EXPECT_EQ(run.name, "counts");
  EXPECT_EQ(run.stage, "post_grad");
  EXPECT_EQ(run.rewrites, 3u);
  EXPECT_EQ(run.nodes_before, 2u);
  EXPECT_EQ(run.nodes_after, 2u);
}

// x -> block(block(x)), where block calls inner.
constexpr std::string_view calls_of_calls = R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["n"]}}],
    "nodes":[{"name":"a","op":"call","inputs":["x"],"attrs":{"graph":"block"}},
             {"name":"b","op":"call","inputs":["a"],"attrs":{"graph":"block"}}],
    "outputs":[{"name":"y","value":"b"}],
    "graphs":{
      "inner":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k"]}}],
               "nodes":[{"name":"e","op":"exp","inputs":["u"]}],"outputs":[{"name":"v","value":"e"}]},
      "block":{"inputs":[{"name":"z","type":{"dtype":"f32","shape":["m"]}}],
               "nodes":[{"name":"c","op":"call","inputs":["z"],"attrs":{"graph":"inner"}}],
               "outputs":[{"name":"w","value":"c"}]}}})";

TEST(RunPass, VisitsEachNestedGraphOnceInnermostFirst) {
  const GraphPtr graph = test::graph_of(calls_of_calls);
  const auto pass = make_pass("exp_to_neg");
  std::vector<std::string> visited;
  pass->run = [&](PassContext &context) -> Status {
    Edit &edit = context.edit;
    visited.push_back(edit.view().find(edit.view().inputs()[0])->name);
    if (const Node *found = edit.view().find("e")) {
      KILN_ASSIGN(const uint32_t neg, edit.add(context.ops.find("neg"), found->inputs));
      KILN_TRY(edit.replace({found->id, 0}, {neg, 0}));
      context.rewrites = 1;
    }
    context.done = true;
    return {};
  };
  PassRun run;
  const Result<GraphPtr> after = run_pass(*pass, graph, builtin_ops(), run);
  ASSERT_TRUE(after.ok()) << after.status().message();
  EXPECT_EQ(visited, (std::vector<std::string>{"u", "z", "x"}));
  EXPECT_EQ(run.runs, 3u);
  EXPECT_EQ(run.rewrites, 1u);
  EXPECT_TRUE(verify(**after).ok()) << verify(**after).message();
  const GraphPtr block = (*after)->find("a")->attrs.at("graph").graph();
  EXPECT_EQ(block, (*after)->find("b")->attrs.at("graph").graph()) << "a graph that is used twice stays one";
  EXPECT_NE(block->find("c")->attrs.at("graph").graph()->find("neg"), nullptr);
  EXPECT_NE(graph->find("a")->attrs.at("graph").graph()->find("c")->attrs.at("graph").graph()->find("e"), nullptr)
      << "the graph that was given is as it was";
}

TEST(RunPass, AFailureInANestedGraphNamesTheNodesThatCarryIt) {
  const GraphPtr graph = test::graph_of(calls_of_calls);
  const auto pass = make_pass("picky");
  pass->run = [](PassContext &context) -> Status {
    if (context.edit.view().find("e")) return invalid("no exp, please");
    context.done = true;
    return {};
  };
  PassRun run;
  EXPECT_EQ(run_pass(*pass, graph, builtin_ops(), run).status().message(),
            "pass 'picky' of a test: in the graph of node 'c' of node 'a': failed: no exp, please");
}

TEST(RunPass, TheSignatureOfANestedGraphStays) {
  const GraphPtr graph = test::graph_of(calls_of_calls);
  const auto pass = make_pass("adds_an_output");
  pass->run = [](PassContext &context) -> Status {
    const auto before = context.edit.view().outputs();
    std::vector<GraphOutput> outputs(before.begin(), before.end());
    outputs.push_back({"more", outputs[0].value});
    context.done = true;
    return context.edit.set_outputs(outputs);
  };
  PassRun run;
  EXPECT_EQ(
      run_pass(*pass, graph, builtin_ops(), run).status().message(),
      "pass 'adds_an_output' of a test: in the graph of node 'c' of node 'a': invariant 'signature' broken by the "
      "graph: outputs were 1 and are 2");
}

}  // namespace
}  // namespace kiln
