// Random graphs on the cpu backend, at every level and in every fusion, against the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/graph/json.h"
#include "runtime/ops/nested.h"
#include "tests/backend/backends.h"
#include "tests/backend/random/checking.h"
#include "tests/backend/random/dice.h"
#include "tests/backend/random/propose.h"
#include "tests/soak.h"

namespace kiln::testing {
namespace {

constexpr char test_name[] = "RandomGraphs";

// KILN_TEST_RANDOM_GRAPHS: how many graphs all shards draw together.
uint64_t graph_count() {
  const char *text = std::getenv("KILN_TEST_RANDOM_GRAPHS");
  return text ? std::strtoull(text, nullptr, 10) : test::soak() ? 20'000 : 1'500;
}

// One way to compile a graph and to call it.
struct Variant {
  std::string name;
  CompileOptions options;
  bool all_outputs = false;   // every value is an output, which cuts fusion everywhere
  bool both_fusions = false;  // and in the other fusion, too, to the same bits
  std::vector<Setting> settings;
};

Variant variant_of(const std::string &level, bool fuse, bool all_outputs) {
  Variant made{str_cat("cpu ", level, fuse ? "" : ", not fused", all_outputs ? ", every value an output" : ""),
               {},
               all_outputs,
               /*both_fusions=*/false,
               all_settings()};
  made.options.cpu = level;
  made.options.fuse = fuse;
  made.options.compile_threads = 1;
  return made;
}

const std::vector<std::string> &levels() {
  static const std::vector<std::string> all = levels_and_native();
  return all;
}

// Two that the seed draws, or one in both fusions; each is compiled once and called by one thread and by two.
std::vector<Variant> variants_of(uint64_t seed) {
  Dice dice(~seed);
  const bool all_outputs = dice.chance(0.25), fuse = dice.chance(0.7);
  std::vector<Variant> drawn = {variant_of(dice.pick(levels()), fuse, all_outputs)};
  drawn[0].both_fusions = dice.chance(0.5);
  if (!drawn[0].both_fusions) drawn.push_back(variant_of(dice.pick(levels()), dice.chance(0.7), all_outputs));
  while (drawn.back().name == drawn[0].name && drawn.size() > 1)
    drawn[1] = variant_of(dice.pick(levels()), dice.chance(0.7), all_outputs);
  for (Variant &variant : drawn) {
    variant.settings = {{1, GuardedBytes::Place::end}, {2, GuardedBytes::Place::begin}};
    if (dice.chance(0.5)) std::swap(variant.settings[0].place, variant.settings[1].place);
  }
  return drawn;
}

// Of a soak: two levels, each in both fusions and by all numbers of threads. What time there is goes into more graphs,
// of which each level gets half, rather than into more forms of one. Texts take time: one graph of four has its IR's
// forms held against the level's.
std::vector<Variant> soak_variants_of(uint64_t seed) {
  Dice dice(~seed);
  const bool all_outputs = dice.chance(0.25);
  std::vector<std::string> drawn = levels();
  while (drawn.size() > 2) drawn.erase(drawn.begin() + dice.below(static_cast<int64_t>(drawn.size())));
  std::vector<Variant> made;
  for (const std::string &level : drawn) {
    made.push_back(variant_of(level, /*fuse=*/true, all_outputs));
    made.back().both_fusions = true;
    made.back().options.want_ir = seed % 4 == 0;
  }
  return made;
}

Result<RandomCase> with_all_outputs(RandomCase made) {
  const Graph &graph = *made.graph;
  std::vector<GraphOutput> outputs(graph.outputs().begin(), graph.outputs().end());
  std::set<ValueId> written;
  for (const Node &node : graph.nodes())
    if (node.op && node.op->flags & op_flags::mutates) written.insert(node.inputs[0]);
  for (const Node &node : graph.nodes()) {
    if (!node.op || node.op->flags & op_flags::mutates || written.contains(graph.storage_of({node.id, 0}))) continue;
    for (uint32_t k = 0; k < node.results.size(); ++k)
      outputs.push_back({str_cat("all_", node.id, "_", k), {node.id, k}});
  }
  Edit edit(made.graph);
  KILN_TRY(edit.set_outputs(std::move(outputs)));
  KILN_ASSIGN(made.graph, edit.finish());
  return made;
}

// What is wrong, or "".
std::string check(const Expectation &expected, const Variant &variant) {
  if (expected.calls.empty()) return "";
  std::vector<Results> first;
  for (const bool fuse : {variant.options.fuse, !variant.options.fuse}) {
    CompileOptions options = variant.options;
    options.fuse = fuse;
    Result<std::vector<Results>> results =
        run_guarded(expected.made.graph, expected.made.calls, options, variant.settings);
    if (!results.ok()) return results.status().message();
    for (size_t k = 0; k < expected.calls.size(); ++k) {
      const std::string parts = difference((*results)[k], expected.calls[k]);
      if (!parts.empty()) return str_cat(fuse ? "" : "not fused, ", "call ", k, ": ", parts);
    }
    if (!variant.both_fusions) return "";
    if (first.empty())
      first = std::move(*results);
    else
      return other_bits(*results, first, "in both fusions");
  }
  return "";
}

Result<Expectation> expectation_of(const RandomCase &made, const Variant &variant) {
  if (!variant.all_outputs) return expectation_of(made);
  KILN_ASSIGN(RandomCase all, with_all_outputs(made));
  return expectation_of(std::move(all));
}
std::string check(const RandomCase &made, const Variant &variant) {
  const Result<Expectation> expected = expectation_of(made, variant);
  return expected.ok() ? check(*expected, variant) : expected.status().message();
}

// How often ops and types were drawn.
void count_drawn(const Graph &graph, std::map<std::string_view, int> &count) {
  for (const Node &node : graph.nodes()) {
    for (const TensorType &type : node.results) ++count[name_of(type.dtype)];
    if (!node.op) continue;
    ++count[node.op->name];
    for (const auto &[name, nested] : nested_graphs(node)) count_drawn(*nested, count);
  }
}

// Where sizes are spoken of that a run tells.
struct Resolved {
  int nodes = 0, graphs = 0;  // that resolve a size; that have such nodes
  int followed = 0;           // graphs in which others have it in their types
  int in_attributes = 0;      // or in an attribute
  int nested = 0;             // graphs that have such a node in a graph of theirs
};

bool speaks_of_resolved(const Graph &graph, const Shape &dims) {
  std::set<std::string> used;
  for (const Dim &dim : dims) dim.collect_symbols(used);
  return std::ranges::any_of(used, [&](const std::string &symbol) { return graph.resolver(symbol) != nullptr; });
}

void count_resolved(const Graph &graph, Resolved &count) {
  Resolved here;
  for (const Node &node : graph.nodes()) {
    if (!node.op) continue;
    here.nodes += !node.symbols.empty();
    for (const TensorType &type : node.results)
      here.followed += node.symbols.empty() && speaks_of_resolved(graph, type.dims);
    for (const auto &[name, value] : node.attrs)
      here.in_attributes += value.kind() == AttrKind::dim && speaks_of_resolved(graph, value.dim_list());
    for (const auto &[name, nested] : nested_graphs(node))
      here.nested += std::ranges::any_of(nested->nodes(), [](const Node &inner) { return !inner.symbols.empty(); });
  }
  count.nodes += here.nodes;
  count.graphs += here.nodes > 0;
  count.followed += here.followed > 0;
  count.in_attributes += here.in_attributes > 0;
  count.nested += here.nested > 0;
}

class RandomGraphs : public ::testing::TestWithParam<int> {};

TEST_P(RandomGraphs, AgreeWithTheReferenceInEveryFusion) {
  const CrashReport crash_report(test_name);
  const auto [begin, end] = seeds_of_shard(static_cast<uint64_t>(GetParam()), graph_count());
  std::map<std::string_view, int> count;
  Resolved resolved;
  int64_t nodes = 0, runs = 0, elements = 0, undetermined = 0, skipped = 0, failures = 0, calls = 0;
  double undetermined_parts = 0;  // of the elements of each call, added up
  for (uint64_t seed = begin; seed < end && failures < enough_failures; ++seed) {
    CrashReport::now_running(seed);
    const Result<RandomCase> made = draw_case(seed);
    ASSERT_TRUE(made.ok()) << "seed " << seed << ": " << made.status().message();
    count_drawn(*made->graph, count);
    count_resolved(*made->graph, resolved);
    nodes += static_cast<int64_t>(made->graph->nodes().size());
    if (is_single_seed()) std::printf("%s\n", write_json(*made->graph).c_str());
    std::optional<Expectation> expectation;  // of the variants that have the same outputs
    bool of_all_outputs = false;
    for (const Variant &variant : test::soak() ? soak_variants_of(seed) : variants_of(seed)) {
      if (!expectation || variant.all_outputs != of_all_outputs) {
        of_all_outputs = variant.all_outputs;
        Result<Expectation> expected = expectation_of(*made, variant);
        ASSERT_TRUE(expected.ok()) << "seed " << seed << ", " << variant.name << ": " << expected.status().message();
        expectation = std::move(expected).value();
      }
      ++runs;
      skipped += expectation->calls.empty();
      for (const Expected &call : expectation->calls) {
        elements += call.elements;
        undetermined += call.undetermined;
        ++calls;
        if (call.elements > 0)
          undetermined_parts += static_cast<double>(call.undetermined) / static_cast<double>(call.elements);
      }
      const std::string wrong = check(*expectation, variant);
      if (wrong.empty()) continue;
      ADD_FAILURE() << report(test_name, *made, variant.name, wrong,
                              [&](const RandomCase &smaller) { return check(smaller, variant); });
      ++failures;
    }
  }
  std::string_view rarest = "call";
  for (const Op *op : all_ops())  // a token, which orders effects, has no values to compare
    if (op->name != "token" && count[op->name] < count[rarest]) rarest = op->name;
  std::string_view rarest_type = name_of(DType::f32);
  for (int number = 1; number <= dtype_count; ++number)
    if (const std::string_view type = name_of(static_cast<DType>(number)); count[type] < count[rarest_type])
      rarest_type = type;
  std::printf(
      "graphs %llu to %llu: %d nodes, %d runs; rarest op: %s, %d times; rarest type: %s, %d values; %lld elements, "
      "%lld undetermined, %.2f %% of those of a call; %d skipped\n",
      static_cast<unsigned long long>(begin), static_cast<unsigned long long>(end), static_cast<int>(nodes),
      static_cast<int>(runs), std::string(rarest).c_str(), count[rarest], std::string(rarest_type).c_str(),
      count[rarest_type], static_cast<long long>(elements), static_cast<long long>(undetermined),
      100 * undetermined_parts / static_cast<double>(calls), static_cast<int>(skipped));
  std::printf(
      "sizes that a run tells: %d, in %d graphs; %d have values of them, %d have them in attributes, %d in nested "
      "graphs\n",
      resolved.nodes, resolved.graphs, resolved.followed, resolved.in_attributes, resolved.nested);
  if (failures > 0 || end - begin < all_ops().size()) return;  // too few to say anything of the whole
  EXPECT_GE(count[rarest], 1) << rarest;
  EXPECT_GE(count[rarest_type], 5) << rarest_type;
  EXPECT_GE(static_cast<uint64_t>(resolved.followed) * 10, end - begin);
  if (end - begin >= 1000) {  // a soak's: of fewer graphs chance may leave them all without
    EXPECT_GE(resolved.nested, 1);
  }
  // Mostly sizes that a run tells, which rounding changes (nms, unique). Some 2 % of all, of one shard up to 4.
  EXPECT_LE(skipped * 20, runs);
  // By call: one with a large result may have half of all elements.
  EXPECT_LE(undetermined_parts * 50, static_cast<double>(calls));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraphs, ::testing::Range(0, shards));

}  // namespace
}  // namespace kiln::testing
