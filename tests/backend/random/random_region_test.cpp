// Random graphs with random marks, phases and fallbacks: however they are cut, results are those of the whole.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <set>

#include "runtime/graph/edit.h"
#include "runtime/ops/nested.h"
#include "runtime/regions/region.h"
#include "tests/backend/random/checking.h"
#include "tests/backend/random/dice.h"
#include "tests/soak.h"

namespace kiln::testing {
namespace {

constexpr char test_name[] = "RandomRegions";

uint64_t graph_count() {
  const char *text = std::getenv("KILN_TEST_RANDOM_GRAPHS");
  return text ? std::strtoull(text, nullptr, 10) : test::soak() ? 10'000 : 300;
}

// In stretches, so that regions are of several nodes; some fall back, some are kept whole, some are of the backward
// pass. So in graphs that nodes carry, too; of the outermost some nodes end a piece.
class Marking {
 public:
  explicit Marking(uint64_t seed) : dice_(seed ^ 0x726567696f6e73) {}

  Result<GraphPtr> of(const GraphPtr &graph, bool is_nested = false) {
    Edit edit(graph);
    std::string region;
    for (const Node &node : graph->nodes()) {
      if (!node.op) continue;
      if (dice_.chance(0.3)) region = std::array{"", "a", "b", "c"}[static_cast<size_t>(dice_.below(4))];
      KILN_TRY(edit.annotate(node.id, "kiln.region", region));
      if (dice_.chance(0.1)) KILN_TRY(edit.annotate(node.id, "kiln.fallback", true));
      if (dice_.chance(0.1) && !is_call(node) && may_be_kept(*graph, node, is_nested))
        KILN_TRY(edit.annotate(node.id, "kiln.decompose", "keep"));
      if (dice_.chance(0.2))
        KILN_TRY(edit.annotate(node.id, "kiln.phase", dice_.chance(0.5) ? "backward" : "recompute"));
      if (!is_nested && dice_.chance(0.05)) KILN_TRY(edit.annotate(node.id, "kiln.cut", true));
      for (const auto &[attr, carried] : nested_graphs(node)) {
        KILN_ASSIGN(GraphPtr inner, nested(carried));
        KILN_TRY(edit.set_attr(node.id, attr, AttrValue(std::move(inner))));
      }
    }
    return edit.finish();
  }

 private:
  // Whether something runs it by itself. What calls a graph may put an expression for a symbol of it, of which operands
  // tell less.
  static bool may_be_kept(const Graph &graph, const Node &node, bool is_nested) {
    const auto is_told = [&](ValueId input) {
      return std::ranges::all_of(graph.type(input).dims, [](const Dim &dim) { return dim.is_integer(); });
    };
    return runs_as_reference(graph, node) && (!is_nested || std::ranges::all_of(node.inputs, is_told));
  }

  // One that several nodes carry stays one.
  Result<GraphPtr> nested(const GraphPtr &graph) {
    if (const auto known = known_.find(graph.get()); known != known_.end()) return known->second;
    KILN_ASSIGN(GraphPtr made, of(graph, true));
    return known_.emplace(graph.get(), std::move(made)).first->second;
  }
  Dice dice_;
  std::map<const Graph *, GraphPtr> known_;
};

Result<RandomCase> marked(RandomCase made) {
  KILN_ASSIGN(made.graph, Marking(made.seed).of(made.graph));
  return made;
}

// Of stage lower: makes every number anew and negates it twice, so that its bits stay what they are.
Status negate_twice(PassContext &context) {
  const Graph before = context.edit.view();
  for (const Node &node : before.nodes()) {
    if (!node.op || node.op->flags != 0 || node.results.size() != 1) continue;
    const DType dtype = node.results[0].dtype;
    if (size_of(dtype) == 1 && dtype_info(dtype).is_float) continue;  // which are not computed with
    if (!dtype_info(dtype).is_signed) continue;
    const Node now = *context.edit.view().find(node.id);  // its operands may be others by now
    KILN_ASSIGN(uint32_t made, context.edit.add(now.op, now.inputs, now.attrs));
    for (int k = 0; k < 2; ++k) {
      KILN_ASSIGN(made, context.edit.add(context.ops.find("neg"), std::array{ValueId{made, 0}}));
    }
    KILN_TRY(context.edit.replace({node.id, 0}, {made, 0}));
    ++context.rewrites;
  }
  context.done = true;
  return {};
}
const PassList &with_a_lower_pass() {
  static const PassList passes = [] {
    PassList all = PassList::built_in();
    Pass pass{.name = "negate_twice", .plugin = "test.so", .stage = Stage::lower, .uuid = Uuid{1}, .run = negate_twice};
    if (!all.add(std::make_shared<Pass>(std::move(pass))).ok()) std::abort();
    return all;
  }();
  return passes;
}

struct Variant {
  std::string name;
  CompileOptions options;
  bool passes = false;  // one of stage lower
};

// The ops of two of its nodes; of which there may be more.
std::vector<std::string> some_ops(const Graph &graph, Dice &dice) {
  std::vector<std::string> all, some;
  for (const Node &node : graph.nodes())
    if (node.op) all.emplace_back(node.op->name);
  for (int k = 0; k < 2 && !all.empty(); ++k) some.push_back(all[static_cast<size_t>(dice.below(int64_t(all.size())))]);
  return some;
}

// A region that some node is marked for is fused, or is not, whatever the rest is.
NamedRegionOptions some_options(const Graph &graph, const Modes &modes, Dice &dice) {
  std::set<std::string> names;
  for (const Node &node : graph.nodes())
    if (const auto mark = node.annotations.find("kiln.region"); mark != node.annotations.end())
      names.insert(mark->second.text_value());
  NamedRegionOptions options;
  std::vector<const char *> phases = {""};
  if (modes.forward != Mode::all) phases.push_back(".forward");  // which has regions, then
  if (modes.backward != Mode::all) phases.push_back(".backward");
  for (const std::string &name : names)
    if (dice.chance(0.3)) options.emplace(str_cat("region.", name, dice.pick(phases), ".fuse"), dice.chance(0.3));
  return options;
}

// Two ways to cut it, of a soak four, of which one falls back to the reference's kernels. Half of them go piece by
// piece.
std::vector<Variant> variants_of(const Graph &graph, uint64_t seed) {
  Dice dice(~seed);
  const auto mode = [&] { return static_cast<Mode>(dice.below(4)); };
  std::vector<Variant> made;
  for (int k = 0; k < (test::soak() ? 4 : 2); ++k) {
    Variant variant;
    variant.options.mode = mode();
    if (dice.chance(0.3)) variant.options.mode_backward = static_cast<Mode>(dice.below(4));
    if (k == 1) variant.options.fallback = Fallback::reference;
    variant.options.fuse = dice.chance(0.8);
    if (dice.chance(0.5)) variant.options.split_at = some_ops(graph, dice);
    if (const Modes modes = variant.options.modes(); modes.cut())
      variant.options.of_regions = some_options(graph, modes, dice);
    variant.passes = dice.chance(0.3);
    variant.name = str_cat("mode ", name_of(variant.options.mode), ", backward ",
                           name_of(variant.options.mode_backward.value_or(variant.options.mode)),
                           k == 1 ? ", by the reference" : "", variant.options.fuse ? "" : ", not fused",
                           variant.passes ? ", with a pass" : "", variant.options.split_at.empty() ? "" : ", split at ",
                           join(variant.options.split_at, " and ", [](const std::string &op) { return op; }));
    for (const auto &[name, value] : variant.options.of_regions)
      str_append(variant.name, str_cat(", ", name, "=", value.text()));
    made.push_back(std::move(variant));
  }
  return made;
}

Result<std::vector<Results>> run(const RandomCase &made, CompileOptions options, bool passes = false) {
  constexpr std::array settings = {Setting{1, GuardedBytes::Place::end}, Setting{2, GuardedBytes::Place::begin}};
  options.compile_threads = 1;
  return run_guarded(made.graph, made.calls, options, settings, nullptr, passes ? &with_a_lower_pass() : nullptr);
}

// What is wrong, or "". Kernels of nodes alone give the bits of the whole, reference kernels what is near enough.
std::string check(const Expectation &expected, const std::vector<Results> &whole, const Variant &variant) {
  const Result<std::vector<Results>> cut = run(expected.made, variant.options, variant.passes);
  if (!cut.ok()) return cut.status().message();
  if (variant.options.fallback == Fallback::kernel) return other_bits(*cut, whole, "when it is cut");
  for (size_t k = 0; k < expected.calls.size(); ++k)
    if (const std::string parts = difference((*cut)[k], expected.calls[k]); !parts.empty())
      return str_cat("call ", k, ": ", parts);
  return "";
}
std::string check(const RandomCase &made, const Variant &variant) {
  const Result<Expectation> expected = expectation_of(made);
  if (!expected.ok() || expected->calls.empty()) return "";
  const Result<std::vector<Results>> whole = run(made, {});
  return whole.ok() ? check(*expected, *whole, variant) : "";  // a fault that is not of cutting
}

class RandomRegions : public ::testing::TestWithParam<int> {};

TEST_P(RandomRegions, GiveTheResultsOfTheWholeInEveryMode) {
  const CrashReport crash_report(test_name);
  const auto [begin, end] = seeds_of_shard(static_cast<uint64_t>(GetParam()), graph_count());
  int runs = 0, failures = 0;
  for (uint64_t seed = begin; seed < end && failures < enough_failures; ++seed) {
    CrashReport::now_running(seed);
    Result<RandomCase> drawn = draw_case(seed);
    ASSERT_TRUE(drawn.ok()) << "seed " << seed << ": " << drawn.status().message();
    const Result<RandomCase> made = marked(std::move(*drawn));
    ASSERT_TRUE(made.ok()) << "seed " << seed << ": " << made.status().message();
    const Result<Expectation> expected = expectation_of(*made);
    ASSERT_TRUE(expected.ok()) << "seed " << seed << ": " << expected.status().message();
    if (expected->calls.empty()) continue;
    const Result<std::vector<Results>> whole = run(*made, {});
    ASSERT_TRUE(whole.ok()) << "seed " << seed << ": " << whole.status().message();
    for (const Variant &variant : variants_of(*made->graph, seed)) {
      ++runs;
      const std::string wrong = check(*expected, *whole, variant);
      if (wrong.empty()) continue;
      ++failures;
      ADD_FAILURE() << report(test_name, *made, variant.name, wrong,
                              [&](const RandomCase &smaller) { return check(smaller, variant); });
    }
  }
  std::printf("graphs %llu to %llu: %d runs\n", static_cast<unsigned long long>(begin),
              static_cast<unsigned long long>(end), runs);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomRegions, ::testing::Range(0, shards));

}  // namespace
}  // namespace kiln::testing
