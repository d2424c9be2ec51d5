// Random chains of views, longer than any model's: what they cost stays in proportion, and no element is lost.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

#include "tests/backend/backends.h"
#include "tests/backend/random/dice.h"
#include "tests/soak.h"

namespace kiln::testing {
namespace {

constexpr int views = 20;
constexpr int64_t most_elements = 600;
constexpr int64_t hint = 5;                         // of the symbol n: the size that chains are drawn for,
constexpr int64_t other_sizes[] = {1, 2, 7, 0, 9};  // and those that their executables are called with afterwards
// Twice and more of what 1,000 chains show at most; it is the sizes that grow from slice to slice, as expressions.
constexpr size_t most_nodes_a_view = 150, most_nodes_of_an_index = 2000;
// Nearly all views of a chain are in one kernel. Were each reshape of a reshape a copy, there would be 0.28 kernels a
// view and more, and 10 and more in the longest chain.
constexpr double most_kernels_a_view = 0.22;
constexpr size_t most_kernels_a_chain = 9;

int64_t size_at(const Dim &dim, int64_t n) {
  return dim.evaluate([&](const std::string &) { return n; });
}

enum class Size : uint8_t { known, symbolic, falling };

// Draws views one after the other, by their sizes where the symbol n is 5. So the same seed gives the same chain
// whether its first size is 5, n or 10 - n.
class Chain {
 public:
  Chain(uint64_t seed, Size size)
      : dice_(seed),
        size_(size),
        n_(size == Size::known      ? Expr(hint)
           : size == Size::symbolic ? Expr::symbol("n")
                                    : Expr(2 * hint) - Expr::symbol("n")) {}

  Result<GraphPtr> draw() {
    Shape dims = {n_};
    for (int64_t rank = dice_.between(2, 3); rank > 0; --rank) dims.push_back(dice_.between(2, 4));
    KILN_ASSIGN(value_, edit_.input("x", make_type(DType::f32, std::move(dims))));
    for (int k = 0; k < views; ++k) KILN_TRY(add_view());
    if (size_ == Size::falling) KILN_TRY(edit_.input("binds n", make_type(DType::f32, {Expr::symbol("n")})).status());
    KILN_TRY(edit_.set_outputs({{"y", value_}}));
    return edit_.finish();
  }

  GraphCall call_at(const Graph &graph, int64_t n) {
    GraphCall call{size_ == Size::known ? SymbolSizes() : SymbolSizes{{"n", n}}, {}};
    for (uint32_t input : graph.inputs()) {
      const std::vector<int64_t> shape = shape_at(graph.find(input)->results[0].dims, {{"n", n}});
      call.arguments.push_back(random_tensor(DType::f32, shape, {}, dice_.generator()));
    }
    return call;
  }

 private:
  const Shape &dims() const { return edit_.view().type(value_).dims; }
  int64_t elements() const { return size_at(product_of(dims()), hint); }
  size_t any_dim() { return static_cast<size_t>(dice_.below(static_cast<int64_t>(dims().size()))); }

  Status add(std::string_view op, AttrMap attrs) {
    KILN_ASSIGN(const uint32_t node, edit_.add(find_op(op), std::span(&value_, 1), std::move(attrs)));
    value_ = {node, 0};
    return {};
  }

  Status add_view() {
    switch (elements() > most_elements ? 2 : dice_.below(8)) {
      case 0:
        return expand();
      case 1:
        return pad();
      case 2:
        return slice();
      case 3:
      case 4:
        return permute();
      default:
        return reshape();
    }
  }

  Status permute() {
    std::vector<int64_t> order(dims().size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int64_t>(d);
    shuffle(order);
    return add("permute", {{"dims", AttrValue(order)}});
  }

  // To the same dims in another order, to fewer, or to more.
  Status reshape() {
    Shape shape = dims();
    const size_t d = any_dim();
    const auto at = shape.begin() + static_cast<ptrdiff_t>(d);
    if (dice_.chance(0.3) && shape.size() > 2 && d > 0) {
      shape[d - 1] *= shape[d];
      shape.erase(at);
    } else if (dice_.chance(0.3) && shape[d].is_integer() && shape[d].integer() % 2 == 0) {
      shape[d] = shape[d].integer() / 2;
      shape.insert(shape.begin() + static_cast<ptrdiff_t>(any_dim()), 2);
    } else {
      shuffle(shape);
    }
    return add("reshape", {{"shape", AttrValue(std::move(shape))}});
  }

  Status expand() {
    Shape shape = dims();
    for (Dim &dim : shape) {
      if (dim.is(1)) dim = 3;
    }
    if (shape.size() < 6) shape.insert(shape.begin(), 2);
    return add("expand", {{"shape", AttrValue(std::move(shape))}});
  }

  Status slice() {
    size_t longest = 0;
    for (size_t d = 0; d < dims().size(); ++d) {
      if (size_at(dims()[d], hint) > size_at(dims()[longest], hint)) longest = d;
    }
    const Dim size = dims()[longest];
    const int64_t begin = std::min<int64_t>(size_at(size, hint) - 1, dice_.below(2));
    return add("slice", {{"dim", AttrValue(static_cast<int64_t>(longest))},
                         {"start", AttrValue(Dim(begin))},
                         {"end", AttrValue(size)},
                         {"step", AttrValue(dice_.between(1, 2))}});
  }

  Status pad() {
    std::vector<int64_t> low(dims().size()), high(dims().size());
    low[any_dim()] = dice_.below(2);
    high[any_dim()] = 1;
    return add("pad", {{"low", AttrValue(low)}, {"high", AttrValue(high)}, {"value", AttrValue(0.5)}});
  }

  template <class List>
  void shuffle(List &list) {
    for (size_t k = list.size(); k > 1; --k)
      std::swap(list[k - 1], list[static_cast<size_t>(dice_.below(static_cast<int64_t>(k)))]);
  }

  Dice dice_;
  Size size_;
  Expr n_;
  Edit edit_;
  ValueId value_;
};

struct Cost {
  size_t kernels = 0, copies = 0, pads = 0, index_nodes = 0, largest_index = 0;
};

Result<Cost> cost_of(const Graph &graph) {
  KILN_ASSIGN(const Lowered lowered, lower(graph));
  KILN_ASSIGN(const kernel::Fused fused, kernel::fuse(lowered.program, *Target::by_name("v3"), {}));
  Cost cost{.kernels = fused.launches.size(), .copies = fused.materialised};
  for (const Node &node : graph.nodes()) cost.pads += node.op && node.op->name == "pad";
  for (const kernel::Launch &launch : fused.launches) {
    for (const kernel::Stage &stage : launch.kernel->stages) {
      for (const kernel::Value &value : stage.body.values) {
        if (value.op != kernel::Core::load && value.op != kernel::Core::index) continue;
        const size_t nodes = value.op == kernel::Core::load ? value.access.index[0].nodes() : value.expr.nodes();
        cost.index_nodes += nodes;
        cost.largest_index = std::max(cost.largest_index, nodes);
      }
    }
  }
  return cost;
}

// What is wrong with a chain's results, or "". `sizes` counts those that it was called with.
std::string check(const GraphPtr &graph, std::span<const GraphCall> calls, int &sizes) {
  std::vector<GraphCall> possible;
  std::vector<std::vector<TensorData>> expected;
  for (const GraphCall &call : calls) {
    Result<std::vector<TensorData>> results = run_on_reference(*graph, call.arguments);
    if (!results.ok() && possible.empty()) return str_cat("reference: ", results.status().message());
    if (!results.ok()) continue;  // a slice of less than it begins at
    possible.push_back(call);
    expected.push_back(std::move(*results));
  }
  sizes += static_cast<int>(possible.size());
  CompileOptions options;
  options.want_ir = true;
  const Result<std::vector<Results>> results = run_guarded(graph, possible, options, all_settings());
  if (!results.ok()) return results.status().message();
  for (size_t k = 0; k < possible.size(); ++k) {
    const std::string parts = difference((*results)[k][0], expected[k][0], 0);
    if (!parts.empty()) return str_cat("call ", k, ": ", parts);
  }
  return "";
}

class ViewChains : public ::testing::TestWithParam<Size> {};

TEST_P(ViewChains, AgreeWithTheReferenceAndCostInProportion) {
  // The last two read a row that their kernel keeps to itself at places which differ from point to point.
  std::vector<uint64_t> seeds(test::soak() ? 1000 : 100);
  std::iota(seeds.begin(), seeds.end(), uint64_t{0});
  if (!test::soak()) seeds.insert(seeds.end(), {379, 782});
  const size_t chains = seeds.size();
  double slowest_ms = 0;
  int sizes = 0;
  Cost most, all;
  for (const uint64_t seed : seeds) {
    Chain chain(seed, GetParam());
    const Result<GraphPtr> graph = chain.draw();
    ASSERT_TRUE(graph.ok()) << seed << ": " << graph.status().message();
    std::vector<GraphCall> calls = {chain.call_at(**graph, hint)};
    for (const int64_t n : other_sizes) {
      if (GetParam() != Size::known) calls.push_back(chain.call_at(**graph, n));
    }
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(check(*graph, calls, sizes), "") << seed;
    const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;
    slowest_ms = std::max(slowest_ms, ms.count());

    const Result<Cost> cost = cost_of(**graph);
    ASSERT_TRUE(cost.ok()) << seed << ": " << cost.status().message();
    EXPECT_LE(cost->kernels, 1 + cost->copies + cost->pads) << seed << ": a pad alone may be dear enough to be kept";
    EXPECT_LE(cost->kernels, most_kernels_a_chain) << seed;
    EXPECT_LE(cost->index_nodes, most_nodes_a_view * views) << seed;
    EXPECT_LE(cost->largest_index, most_nodes_of_an_index) << seed;
    most = {.kernels = std::max(most.kernels, cost->kernels),
            .index_nodes = std::max(most.index_nodes, cost->index_nodes),
            .largest_index = std::max(most.largest_index, cost->largest_index)};
    all.kernels += cost->kernels;
    all.index_nodes += cost->index_nodes;
  }
  const double kernels_a_view = static_cast<double>(all.kernels) / static_cast<double>(chains * views);
  EXPECT_LE(kernels_a_view, most_kernels_a_view);
  EXPECT_GE(sizes, static_cast<int>(chains) * (GetParam() == Size::known ? 1 : 4)) << "others cannot be sliced so";
  std::printf(
      "%d chains at %d sizes: slowest %.0f ms; %.2f kernels and %.0f index nodes a view, at most %d kernels a chain, "
      "%d index nodes a chain, %d an index\n",
      static_cast<int>(chains), sizes, slowest_ms, kernels_a_view,
      static_cast<double>(all.index_nodes) / static_cast<double>(chains * views), static_cast<int>(most.kernels),
      static_cast<int>(most.index_nodes), static_cast<int>(most.largest_index));
}

INSTANTIATE_TEST_SUITE_P(Sizes, ViewChains, ::testing::Values(Size::known, Size::symbolic, Size::falling),
                         [](const auto &instance) {
                           return instance.param == Size::known      ? "known"
                                  : instance.param == Size::symbolic ? "symbolic"
                                                                     : "falling";
                         });

}  // namespace
}  // namespace kiln::testing
