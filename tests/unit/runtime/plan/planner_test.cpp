#include "runtime/plan/planner.h"

#include <algorithm>

#include "tests/unit/runtime/plan/planned.h"

namespace kiln {
namespace {

using test::f32_graph;
using test::graph_of;
using test::planned;
using Slot = Plan::Slot;
using Step = Plan::Step;

std::string chain(int length) {
  std::string nodes;
  for (int i = 0; i < length; ++i) {
    const std::string from = i == 0 ? "x" : str_cat("n", i - 1);
    nodes += str_cat(i ? "," : "", R"({"name":"n)", i, R"(","op":"exp","inputs":[")", from, R"("]})");
  }
  return nodes;
}

TEST(Planner, TemporariesOfAChainLieInOneStorage) {
  const Plan p = planned(graph_of(f32_graph("x", "100", chain(50), "n49")), false).plan;
  EXPECT_EQ(p.steps.size(), 50u);
  ASSERT_EQ(p.arena.size(), 1u);
  EXPECT_EQ(p.arena[0].size_bytes, Expr(400));
}

TEST(Planner, NoLiveValueIsOverwritten) {
  // x is read by every second node, so that values of different lifetimes mix.
  std::string nodes;
  for (int i = 0; i < 40; ++i) {
    const std::string from = i == 0 ? "x" : str_cat("n", i - 1), far = i < 5 ? "x" : str_cat("n", i - 5);
    nodes += str_cat(i ? "," : "", R"({"name":"n)", i, R"(","op":"add","inputs":[")", from, R"(",")", far, R"("]})");
  }
  const GraphPtr graph = graph_of(f32_graph("x", "10", nodes, "n39"));
  const Plan p = planned(graph, false).plan;
  ASSERT_EQ(p.steps.size(), 40u);
  // Replays the steps: `holds[place]` is the node whose value lies there.
  std::map<std::pair<Slot::Kind, uint32_t>, int> holds = {{{Slot::Kind::input, 0}, -1}};
  const auto place = [&](uint32_t slot) { return std::pair(p.slots[slot].kind, p.slots[slot].index); };
  for (int i = 0; i < 40; ++i) {
    const std::vector<uint32_t> &slots = p.steps[static_cast<size_t>(i)].slots;
    std::multiset<int> read, expected = {i == 0 ? -1 : i - 1, i < 5 ? -1 : i - 5};
    for (size_t s = 0; s + 1 < slots.size(); ++s) read.insert(holds.at(place(slots[s])));
    for (int value : expected) EXPECT_TRUE(read.contains(value)) << "step " << i << " reads node " << value;
    holds[place(slots.back())] = i;
  }
}

TEST(Planner, BindsSymbolsAtTheFirstBareDimension) {
  const Plan p = planned(graph_of(R"({"kiln":1,"symbols":{"n":{"min":2,"max":64,"divisor":2}},
      "inputs":[{"name":"a","type":{"dtype":"f32","shape":["2*n"]}},{"name":"b","type":{"dtype":"f32","shape":[3,"n"]}}],
      "nodes":[{"name":"r","op":"reshape","inputs":["a"],"attrs":{"shape":[2,"n"]}},
               {"name":"s","op":"sum","inputs":["r"],"attrs":{"dims":[0]}},
               {"name":"y","op":"add","inputs":["b","s"]}],
      "outputs":[{"name":"y","value":"y"}]})"),
                         true)
                     .plan;
  ASSERT_EQ(p.symbols.size(), 1u);
  EXPECT_EQ(p.symbols[0].name, "n");
  EXPECT_EQ(p.symbols[0].input, 1u);
  EXPECT_EQ(p.symbols[0].dim, 1u);
  EXPECT_EQ(p.symbols[0].min, 2);
  EXPECT_EQ(p.symbols[0].max, 64);
  EXPECT_EQ(p.symbols[0].divisor, 2);
}

TEST(Planner, ChecksSymbolsThatMustBeEqual) {
  const Plan p = planned(graph_of(R"({"kiln":1,
      "inputs":[{"name":"a","type":{"dtype":"f32","shape":["n"]}},{"name":"b","type":{"dtype":"f32","shape":["m"]}}],
      "nodes":[{"name":"c","op":"add","inputs":["a","b"]},{"name":"d","op":"mul","inputs":["a","b"]},
               {"name":"y","op":"add","inputs":["c","d"]}],
      "outputs":[{"name":"y","value":"y"}]})"),
                         true)
                     .plan;
  ASSERT_EQ(p.checks.size(), 1u);  // once, not once for each node
  EXPECT_EQ((std::set<std::string>{p.checks[0].left.text(), p.checks[0].right.text()}),
            (std::set<std::string>{"n", "m"}));
  EXPECT_NE(p.checks[0].text().find("node 'c': [add]"), std::string::npos) << p.checks[0].text();
}

TEST(Planner, CopiesOutputsThatNoLaunchMakes) {
  const GraphPtr graph = graph_of(f32_graph("x", "8", R"({"name":"a","op":"exp","inputs":["x"]})", "x a a"));
  const Plan p = planned(graph, true).plan;
  ASSERT_EQ(p.steps.size(), 3u);
  const auto slot = [&](size_t step, size_t at) { return p.slots[p.steps[step].slots[at]]; };
  EXPECT_EQ(p.steps[0].kind, Step::Kind::launch);
  EXPECT_EQ(slot(0, 1).kind, Slot::Kind::output);
  EXPECT_EQ(slot(0, 1).index, 1u);
  EXPECT_EQ(p.steps[1].kind, Step::Kind::copy);
  EXPECT_EQ(slot(1, 0).kind, Slot::Kind::input);
  EXPECT_EQ(slot(1, 1).index, 0u);
  EXPECT_EQ(p.steps[2].kind, Step::Kind::copy);
  EXPECT_EQ(slot(2, 0).index, 1u);
  EXPECT_EQ(slot(2, 1).index, 2u);
}

// What the slots of a step are: "x", "arena 0".
std::vector<std::string> operands_of(const Plan &p, size_t step) {
  std::vector<std::string> names;
  for (const uint32_t number : p.steps.at(step).slots) {
    const Slot &slot = p.slots[number];
    names.push_back(slot.kind == Slot::Kind::input    ? p.inputs[slot.index].name
                    : slot.kind == Slot::Kind::output ? p.outputs[slot.index].name
                                                      : str_cat("arena ", slot.index));
  }
  return names;
}
using Names = std::vector<std::string>;

TEST(Planner, WritesAnInputWhenAllThatReadsItHasRun) {
  // One source is an input itself; the other was made of what is written.
  const GraphPtr graph = graph_of(f32_graph("xy", "8", R"({"name":"s","op":"add","inputs":["x","y"]},
      {"name":"a","op":"copy_","inputs":["x","y"]},{"name":"b","op":"copy_","inputs":["y","s"]})",
                                            "s"));
  const Plan p = planned(graph, true).plan;
  EXPECT_EQ(p.written_inputs, (std::vector<uint32_t>{0, 1}));
  ASSERT_EQ(p.steps.size(), 3u);
  EXPECT_EQ(operands_of(p, 0), (Names{"x", "y", "out0"}));
  EXPECT_EQ(operands_of(p, 1), (Names{"y", "x"})) << "x is read no more";
  EXPECT_EQ(p.steps[2].kind, Step::Kind::copy);
  EXPECT_EQ(operands_of(p, 2), (Names{"out0", "y"}));
}

// An f32 input of [64, 64] that is donated, and two matmuls: nothing of them can be made where it is read.
GraphPtr with_donated(std::string_view shape) {
  return graph_of(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":[64,64]},
      "annotations":{"kiln.donate":{"bool":true}}},{"name":"w","type":{"dtype":"f32","shape":)" +
                  std::string(shape) + R"(}}],"nodes":[{"name":"a","op":"matmul","inputs":["x","w"]},
      {"name":"b","op":"matmul","inputs":["a","a"]},{"name":"z","op":"matmul","inputs":["b","b"]}],
      "outputs":[{"name":"z","value":"z"}]})");
}

TEST(Planner, PutsWhatFollowsIntoADonatedInputOnceThatIsRead) {
  const Plan p = planned(with_donated("[64,64]"), true).plan;
  EXPECT_EQ(p.donated_inputs, std::vector<uint32_t>{0});
  ASSERT_EQ(p.steps.size(), 3u);
  EXPECT_EQ(operands_of(p, 0), (Names{"x", "w", "arena 0"}));
  EXPECT_EQ(operands_of(p, 1), (Names{"arena 0", "x"}));
  EXPECT_EQ(operands_of(p, 2), (Names{"x", "z"}));
  EXPECT_EQ(p.arena.size(), 1u);
}

TEST(Planner, ChangesAnInputInPlaceOnceAllOthersHaveReadIt) {
  const Plan p = planned(graph_of(f32_graph("xg", "\"n\", 8", R"({"name":"b","op":"add","inputs":["x","g"]},
      {"name":"s","op":"sum","inputs":["x"],"attrs":{"dims":[0]}},{"name":"w","op":"copy_","inputs":["x","b"]})",
                                            "s")),
                         true)
                     .plan;
  ASSERT_EQ(p.steps.size(), 2u);
  EXPECT_EQ(operands_of(p, 0), (Names{"x", "out0"}));
  EXPECT_EQ(operands_of(p, 1), (Names{"x", "g", "x"}));
  EXPECT_EQ(p.written_inputs, std::vector<uint32_t>{0});
  EXPECT_TRUE(p.arena.empty());
}

TEST(Planner, CopiesTheNewValueOfAnInputWhoseOldOneIsReadTooLate) {
  // At other points than are written; and by a step that needs the new one, too.
  const Plan turned =
      planned(graph_of(f32_graph("x", "8, 8", R"({"name":"b","op":"permute","inputs":["x"],"attrs":{"dims":[1,0]}},
      {"name":"w","op":"copy_","inputs":["x","b"]})",
                                 "")),
              true)
          .plan;
  ASSERT_EQ(turned.steps.size(), 2u);
  EXPECT_EQ(operands_of(turned, 0), (Names{"x", "arena 0"}));
  EXPECT_EQ(operands_of(turned, 1), (Names{"arena 0", "x"}));
  const Plan both =
      planned(graph_of(f32_graph("x", "8, 8", R"({"name":"b","op":"softmax","inputs":["x"],"attrs":{"dim":1}},
      {"name":"y","op":"matmul","inputs":["b","x"]},{"name":"w","op":"copy_","inputs":["x","b"]})",
                                 "y")),
              true)
          .plan;
  ASSERT_EQ(both.steps.size(), 3u) << print(both);
  EXPECT_EQ(operands_of(both, 0), (Names{"x", "arena 0"}));
  EXPECT_EQ(operands_of(both, 1), (Names{"arena 0", "x", "out0"}));
  EXPECT_EQ(operands_of(both, 2), (Names{"arena 0", "x"}));
}

// A cache of keys into which one more is written, and which is then read; how it is written is `write`.
Plan plan_of_cache(std::string_view write, std::string_view value = "new", std::string_view outputs = "") {
  return planned(graph_of(str_cat(R"({"kiln":1,"symbols":{"at":{"min":0,"max":63}},
      "inputs":[{"name":"cache","type":{"dtype":"f32","shape":[4,64,16]}},{"name":"k","type":{"dtype":"f32","shape":[4,1,16]}},
                {"name":"i","type":{"dtype":"i64","shape":[1]}},{"name":"n","type":{"dtype":"f32","shape":["at"]}}],
      "nodes":[)",
                                  write, R"(,{"name":"y","op":"sum","inputs":["new"],"attrs":{"dims":[0,2]}},
               {"name":"w","op":"copy_","inputs":["cache",")",
                                  value, R"("]}],"outputs":[{"name":"y","value":"y"})", outputs, "]}")),
                 true)
      .plan;
}

TEST(Planner, WritesIntoACacheWhatChangesAlone) {
  for (const char *write :
       {R"({"name":"new","op":"slice_scatter","inputs":["cache","k"],"attrs":{"dim":1,"start":"at","end":"at+1"}})",
        R"({"name":"new","op":"index_put","inputs":["cache","k","i"],"attrs":{"dim":1}})"}) {
    const Plan p = plan_of_cache(write);
    ASSERT_EQ(p.steps.size(), 2u) << print(p);
    EXPECT_EQ(operands_of(p, 0).back(), "cache");
    EXPECT_EQ(std::ranges::count(operands_of(p, 0), "cache"), 1) << "its old value is not read";
    EXPECT_EQ(operands_of(p, 1), (Names{"cache", "y"}));
    EXPECT_TRUE(p.arena.empty());
  }
}

TEST(Planner, WritesIntoACacheInSeveralSteps) {
  const Plan p = plan_of_cache(R"({"name":"first","op":"index_put","inputs":["cache","k","i"],"attrs":{"dim":1}},
      {"name":"new","op":"slice_scatter","inputs":["first","k"],"attrs":{"dim":1,"start":"at","end":"at+1"}})");
  ASSERT_EQ(p.steps.size(), 3u) << print(p);
  EXPECT_EQ(operands_of(p, 0), (Names{"i", "k", "cache"}));
  EXPECT_EQ(operands_of(p, 1), (Names{"k", "cache"}));
  EXPECT_EQ(operands_of(p, 2), (Names{"cache", "y"}));
}

TEST(Planner, CopiesACacheWhoseOldValueIsReadTogetherWithTheNewOne) {
  const Plan p = plan_of_cache(R"({"name":"new","op":"index_put","inputs":["cache","k","i"],"attrs":{"dim":1}},
      {"name":"d","op":"sub","inputs":["new","cache"]})",
                               "new", R"(,{"name":"d","value":"d"})");
  ASSERT_GE(p.steps.size(), 3u) << print(p);
  EXPECT_EQ(p.steps.front().kind, Step::Kind::copy);
  EXPECT_EQ(operands_of(p, 0), (Names{"cache", "arena 0"}));
  EXPECT_EQ(p.steps.back().kind, Step::Kind::copy);
  EXPECT_EQ(operands_of(p, p.steps.size() - 1), (Names{"arena 0", "cache"}));
}

TEST(Planner, AResultTakesTheMemoryOfAnOperandThatDies) {
  const Plan p = planned(graph_of(f32_graph("xi", "8", R"({"name":"a","op":"exp","inputs":["x"]},
      {"name":"b","op":"exp","inputs":["a"]},{"name":"c","op":"add","inputs":["a","b"]},
      {"name":"d","op":"flip","inputs":["c"],"attrs":{"dims":[0]}},{"name":"e","op":"exp","inputs":["d"]},
      {"name":"y","op":"neg","inputs":["e"]})",
                                            "y")),
                         false)
                     .plan;
  ASSERT_EQ(p.steps.size(), 6u) << print(p);
  EXPECT_EQ(operands_of(p, 1), (Names{"arena 0", "arena 1"})) << "a is read once more";
  EXPECT_EQ(operands_of(p, 2)[2], operands_of(p, 2)[0]);
  EXPECT_NE(operands_of(p, 3)[0], operands_of(p, 3)[1]) << "it reads elsewhere than it writes";
}

TEST(Planner, PreparesWhatDependsOnParametersAlone) {
  const GraphPtr graph = graph_of(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["n",16]}}],
      "parameters":[{"name":"w","type":{"dtype":"f32","shape":[16]}}],
      "nodes":[{"name":"e","op":"exp","inputs":["w"]},{"name":"t","op":"tanh","inputs":["e"]},
               {"name":"y","op":"mul","inputs":["x","t"]}],
      "outputs":[{"name":"y","value":"y"}]})");
  const Plan p = planned(graph, true).plan;
  EXPECT_EQ(p.prepare.size(), 1u);
  EXPECT_EQ(p.steps.size(), 1u);
  ASSERT_EQ(p.prepared.size(), 1u);
  EXPECT_EQ(p.prepared[0].size_bytes, Expr(64));
}

TEST(Planner, KeepsTheConstantsThatStepsRead) {
  const GraphPtr graph = graph_of(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":[2]}}],
      "constants":[{"name":"one","type":{"dtype":"f32","shape":[]},"data":[1.5]},
                   {"name":"two","type":{"dtype":"f32","shape":[2]},"data":[1,2]}],
      "nodes":[{"name":"a","op":"add","inputs":["x","one"]},{"name":"y","op":"mul","inputs":["a","two"]}],
      "outputs":[{"name":"y","value":"y"}]})");
  const Planned made = planned(graph, true);
  ASSERT_EQ(made.constants.size(), 1u);  // a constant of one element is part of the kernel
  EXPECT_EQ(made.constants[0]->shape, std::vector<int64_t>{2});
}

TEST(Planner, ContractsAreInTheSignaturesSymbols) {
  const Planned made = planned(graph_of(f32_graph("x", R"("rows", "cols")", chain(1), "n0")), true);
  ASSERT_EQ(made.contracts.size(), 1u);
  const Contract &c = made.contracts[0];
  const Expr bytes = 4 * Expr::symbol("rows") * Expr::symbol("cols");
  ASSERT_EQ(c.buffers.size(), 2u);
  EXPECT_EQ(c.buffers[0].size_bytes, bytes);
  EXPECT_FALSE(c.buffers[0].written);
  EXPECT_EQ(c.buffers[1].size_bytes, bytes);
  EXPECT_TRUE(c.buffers[1].written);
  std::set<std::string> used;
  c.tasks.collect_symbols(used);
  for (const std::string &name : used) EXPECT_TRUE(name == "rows" || name == "cols") << name;
}

// x[n] + y[m] walks both by one index: what it may touch of y follows from n = m, which comes by way of k here.
TEST(Planner, AContractSaysWhichSizesItsKernelTakesToBeEqual) {
  const Planned made = planned(graph_of(R"({"kiln":1,
      "inputs":[{"name":"x","type":{"dtype":"f32","shape":["n"]}},{"name":"y","type":{"dtype":"f32","shape":["m"]}},
                {"name":"z","type":{"dtype":"f32","shape":["k"]}}],
      "nodes":[{"name":"a","op":"add","inputs":["x","z"]},{"name":"b","op":"mul","inputs":["y","z"]},
               {"name":"c","op":"sub","inputs":["x","y"]}],
      "outputs":[{"name":"a","value":"a"},{"name":"b","value":"b"},{"name":"c","value":"c"}]})"),
                               false);
  ASSERT_EQ(made.contracts.size(), 3u);
  for (const Contract &c : made.contracts) {
    ASSERT_EQ(c.symbols.size(), 2u);
    ASSERT_EQ(c.equalities.size(), 1u);
    std::set<std::string> sides = {c.equalities[0].left.text(), c.equalities[0].right.text()};
    EXPECT_EQ(sides, (std::set<std::string>{c.symbols[0].name, c.symbols[1].name}));
  }
}

TEST(Planner, AKernelOfTwoLaunchesReliesOnWhatHoldsForBoth) {
  const GraphPtr graph = graph_of(R"({"kiln":1,"symbols":{"n":{"min":4,"max":64,"divisor":4},"m":{"min":2,"divisor":6}},
      "inputs":[{"name":"x","type":{"dtype":"f32","shape":["n"]}},{"name":"y","type":{"dtype":"f32","shape":["m"]}}],
      "nodes":[{"name":"a","op":"exp","inputs":["x"]},{"name":"b","op":"exp","inputs":["y"]}],
      "outputs":[{"name":"a","value":"a"},{"name":"b","value":"b"}]})");
  Result<LoweredGraphs> lowered = lower_graphs(graph, builtin_ops(), {.backend = cpu_backend});
  ASSERT_TRUE(fuse(*lowered, *Target::by_name("v3")).ok());
  ASSERT_EQ(lowered->graphs[0].regions[0].fused.launches.size(), 2u);
  const uint32_t one_image[] = {0, 0};
  Result<Planned> made = plan(*graph, *lowered, one_image);
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_EQ(made->contracts.size(), 1u);
  const Contract::Symbol &s = made->contracts[0].symbols.at(0);
  EXPECT_EQ(s.min, 2);
  EXPECT_EQ(s.max, INT64_MAX);
  EXPECT_EQ(s.divisor, 2);
}

// Columns of a wider array: what lies between them is part of the buffer, though it is not read.
TEST(Planner, ABufferReachesToItsLastElement) {
  const Planned made = planned(graph_of(R"({"kiln":1,
      "inputs":[{"name":"x","type":{"dtype":"f32","shape":[3,4],"strides":[10,1]}}],
      "nodes":[{"name":"y","op":"exp","inputs":["x"]}],"outputs":[{"name":"y","value":"y"}]})"),
                               true);
  ASSERT_EQ(made.contracts.size(), 1u);
  EXPECT_EQ(made.contracts[0].buffers[0].size_bytes, Expr(4 * (2 * 10 + 3 + 1)));
  EXPECT_EQ(made.contracts[0].buffers[1].size_bytes, Expr(4 * 12));
}

TEST(Planner, RefusesASymbolThatNoInputBinds) {
  Edit edit;  // the graph's invariants refuse this already; the planner does not rely on it
  ASSERT_TRUE(edit.input("x", make_type(DType::f32, {Expr::symbol("n") * 2})).ok());
  Result<GraphPtr> unbound = edit.finish(false);
  ASSERT_TRUE(unbound.ok());
  Result<Plan> made = plan_reference(**unbound);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("symbol 'n'"), std::string::npos);
}

TEST(Planner, ReferencePlanIsOneStepOverTheSignature) {
  const Result<Plan> p =
      plan_reference(*graph_of(f32_graph("xy", "8", R"({"name":"a","op":"copy_","inputs":["x","y"]})", "y")));
  ASSERT_TRUE(p.ok());
  ASSERT_EQ(p->steps.size(), 1u);
  EXPECT_EQ(p->steps[0].kind, Step::Kind::reference);
  EXPECT_EQ(p->steps[0].slots, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(p->written_inputs, std::vector<uint32_t>{0});
}

TEST(Planner, PlansTenThousandNodes) {
  const Plan p = planned(graph_of(f32_graph("x", R"("n")", chain(10000), "n9999")), false).plan;
  EXPECT_EQ(p.steps.size(), 10000u);
  EXPECT_EQ(p.arena.size(), 1u);
}

// x -> exp -> while (divide by two, at least 1) -> neg
constexpr std::string_view loop = R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["n"]}}],
    "nodes":[{"name":"e","op":"exp","inputs":["x"]},
             {"name":"w","op":"while","inputs":["e"],"attrs":{"cond_graph":"cond","body_graph":"body"}},
             {"name":"y","op":"neg","inputs":["w"]}],
    "outputs":[{"name":"y","value":"y"}],
    "graphs":{
      "cond":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k"]}}],
              "nodes":[{"name":"most","op":"max","inputs":["u"]},
                       {"name":"one","op":"full","inputs":[],"attrs":{"value":1,"dtype":"f32","shape":[]}},
                       {"name":"more","op":"gt","inputs":["most","one"]}],
              "outputs":[{"name":"more","value":"more"}]},
      "body":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k"]}}],
              "nodes":[{"name":"half","op":"full","inputs":[],"attrs":{"value":0.5,"dtype":"f32","shape":[]}},
                       {"name":"next","op":"mul","inputs":["u","half"]}],
              "outputs":[{"name":"next","value":"next"}]}}})";

TEST(Planner, ALoopIsAStepOverNestedPlans) {
  const Plan p = planned(graph_of(loop), true).plan;
  ASSERT_EQ(p.steps.size(), 3u);
  const Step &step = p.steps[1];
  ASSERT_EQ(step.kind, Step::Kind::loop);
  ASSERT_EQ(step.slots.size(), 3u) << "the operand, the result, and where every other turn leaves it";
  EXPECT_EQ(std::set<uint32_t>(step.slots.begin(), step.slots.end()).size(), 3u);
  ASSERT_EQ(step.nested.size(), 2u);
  ASSERT_EQ(p.nested.size(), 2u);
  for (const Plan::Nested &nested : step.nested) EXPECT_EQ(nested.symbols, std::vector<Expr>{Expr::symbol("n")});
  EXPECT_EQ(p.nested[step.nested[1].plan].steps.size(), 1u);
  EXPECT_EQ(p.nested[step.nested[0].plan].outputs[0].dtype, DType::boolean);
  EXPECT_TRUE(step.scan.turns.is(-1)) << "nothing bounds them";
}

// h = h w + x for each row x of s: a product, which is a kernel of its own.
constexpr std::string_view scan_of_products = R"({"kiln":1,
    "inputs":[{"name":"h","type":{"dtype":"f32","shape":["b",8]}},{"name":"s","type":{"dtype":"f32","shape":["t","b",8]}},
              {"name":"w","type":{"dtype":"f32","shape":[8,8]}}],
    "nodes":[{"name":"y","op":"scan","inputs":["h","s","w"],
              "attrs":{"body_graph":"turn","sequences":1,"reverse":true}}],
    "outputs":[{"name":"last","value":"y:0"},{"name":"all","value":"y:1"}],
    "graphs":{"turn":{"inputs":[{"name":"h","type":{"dtype":"f32","shape":["k",8]}},
                                {"name":"x","type":{"dtype":"f32","shape":["k",8]}},
                                {"name":"w","type":{"dtype":"f32","shape":[8,8]}}],
                      "nodes":[{"name":"p","op":"matmul","inputs":["h","w"]},{"name":"n","op":"add","inputs":["p","x"]}],
                      "outputs":[{"name":"h","value":"n"},{"name":"made","value":"p"}]}}})";

TEST(Planner, AScanIsAStepWhoseTurnsCopyNothing) {
  const Plan p = planned(graph_of(scan_of_products), true).plan;
  ASSERT_EQ(p.steps.size(), 1u);
  const Step &step = p.steps[0];
  ASSERT_EQ(step.kind, Step::Kind::scan);
  EXPECT_EQ(step.scan.carried, 1u);
  EXPECT_EQ(step.scan.sequences, 1u);
  EXPECT_TRUE(step.scan.reverse);
  EXPECT_EQ(step.scan.turns, Expr::symbol("t"));
  EXPECT_EQ(step.slots.size(), 6u) << "the operands, the results, and where every other turn leaves what it carries";
  EXPECT_EQ(step.nested[0].symbols, std::vector<Expr>{Expr::symbol("b")});
  for (const Step &of_turn : p.nested[0].steps) EXPECT_EQ(of_turn.kind, Step::Kind::launch) << "is no copy";
  EXPECT_LE(p.nested[0].steps.size(), 2u);
}

TEST(Planner, AScanWhosePointsCarryTheirOwnIsOneKernel) {
  std::string sums(scan_of_products);
  const std::string product = R"({"name":"p","op":"matmul","inputs":["h","w"]})";
  sums.replace(sums.find(product), product.size(),
               R"({"name":"r","op":"sum","inputs":["h"],"attrs":{"dims":[1],"keepdim":true}},
                  {"name":"p","op":"mul","inputs":["h","r"]})");
  const Planned fused = planned(graph_of(sums), true);
  ASSERT_EQ(fused.plan.steps.size(), 1u);
  EXPECT_EQ(fused.plan.steps[0].kind, Step::Kind::launch);
  EXPECT_TRUE(fused.plan.nested.empty());
  EXPECT_EQ(planned(graph_of(sums), false).plan.steps[0].kind, Step::Kind::scan) << "not fused";
}

TEST(Planner, AGraphThatTwoNodesCarryIsPlannedOnce) {
  std::string twice(loop);
  const std::string first = R"({"name":"y","op":"neg","inputs":["w"]})";
  twice.replace(twice.find(first), first.size(),
                R"({"name":"y","op":"while","inputs":["w"],"attrs":{"cond_graph":"cond","body_graph":"body"}})");
  const Planned made = planned(graph_of(twice), true);
  ASSERT_EQ(made.plan.steps.size(), 3u);
  EXPECT_EQ(made.plan.nested.size(), 2u);
  EXPECT_EQ(made.plan.steps[1].nested[1].plan, made.plan.steps[2].nested[1].plan);
}

}  // namespace
}  // namespace kiln
