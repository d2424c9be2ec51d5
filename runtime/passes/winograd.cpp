#include <algorithm>
#include <set>

#include "runtime/ops/op.h"
#include "runtime/passes/builtin.h"

namespace kiln {
namespace {

// Nodes that follow from parameters, and constants, alone: what they make is made once a binding.
std::set<uint32_t> bound_nodes(const Graph &graph) {
  std::set<uint32_t> bound;
  for (const Node &node : graph.nodes()) {
    const auto is_bound = [&](ValueId input) {
      return bound.contains(input.node) || graph.find(input.node)->kind == Node::Kind::constant;
    };
    const bool follows = node.kind == Node::Kind::op &&
                         std::ranges::any_of(node.inputs, [&](ValueId input) { return bound.contains(input.node); }) &&
                         std::ranges::all_of(node.inputs, is_bound);
    if (node.kind == Node::Kind::parameter || follows) bound.insert(node.id);
  }
  return bound;
}

// Both of x and of the result. Of fewer, transforms may take longer than what they spare (0.7 to 1.6 of 8 channels).
constexpr int64_t fewest_channels = 16;
constexpr int64_t most_cached = 6 << 20;  // of weights

// Results of a tile along each dim; 0: sums of products one by one are about as fast. A product of weights and tiles
// takes as long as it has rows, or as its weights take to come from a cache or from memory, whichever is longer (of 512
// by 512 channels and 4 tiles of 4 results twice as long as of 16 tiles of 2; of 256 by 256 half as long).
int64_t fastest_tile(int64_t images, int64_t height, int64_t width, int64_t weights) {
  const auto time = [&](int64_t points, int64_t tile) {
    const int64_t rows = images * ((height + tile - 1) / tile) * ((width + tile - 1) / tile);
    return points * std::max<int64_t>(rows, points * weights <= most_cached ? 4 : 12);
  };
  const int64_t direct = time(9, 1), of_two = time(16, 2), of_four = time(36, 4);
  if (std::min(of_two, of_four) * 5 > direct * 4) return 0;
  return of_two < of_four ? 2 : 4;
}

// The same of a node.
int64_t tile_of(const Graph &graph, const Node &node, const std::set<uint32_t> &bound) {
  if (node.kind != Node::Kind::op || node.op->name != "correlate2d" || !bound.contains(node.inputs[1].node)) return 0;
  const TensorType &x = graph.type(node.inputs[0]), &weight = graph.type(node.inputs[1]), &y = node.results[0];
  const auto attr = [&](std::string_view name) -> const AttrValue & { return node.attrs.find(name)->second; };
  const auto ones = [](const AttrValue &list) {
    return std::ranges::all_of(list.i64_list(), [](int64_t v) { return v == 1; });
  };
  if (y.dtype != DType::f32 || x.dtype != DType::f32 || attr("groups").i64() != 1 || !ones(attr("stride")) ||
      !ones(attr("dilation")) || !node.equalities.empty())
    return 0;
  for (const Dim *dim : {&x.dims[1], &x.dims[2], &x.dims[3], &weight.dims[0], &y.dims[2], &y.dims[3]})
    if (!dim->is_integer()) return 0;
  if (!weight.dims[2].is(3) || !weight.dims[3].is(3)) return 0;
  const int64_t inputs = x.dims[1].integer(), outputs = weight.dims[0].integer();
  if (inputs < fewest_channels || outputs < fewest_channels) return 0;
  const int64_t images = x.dims[0].is_integer() ? x.dims[0].integer() : 1;
  return fastest_tile(images, y.dims[2].integer(), y.dims[3].integer(), inputs * outputs);
}

class Transforming {
 public:
  Transforming(const GraphPtr &graph, const OpTable &ops) : edit_(graph), ops_(ops) {}

  Status replace(const Node &original, int64_t tile) {
    const Node node = *edit_.view().find(original.id);  // with the operands that it has by now
    const TensorType y = node.results[0];
    edit_.push_scope(node.annotations, node.name);
    Result<ValueId> made = transformed(node, y, tile);
    KILN_TRY(edit_.pop_scope());
    if (!made.ok()) return made.take_status().with_node(node.name);
    return edit_.replace({node.id, 0}, *made);
  }
  Result<GraphPtr> finish() { return edit_.finish(false); }

 private:
  Result<ValueId> add(std::string_view op, std::vector<ValueId> inputs, AttrMap attrs) {
    KILN_ASSIGN(const uint32_t id, edit_.add(ops_.find(op), inputs, std::move(attrs)));
    return ValueId{id, 0};
  }

  // Channels are last between the transforms: lanes go along them.
  Result<ValueId> transformed(const Node &node, const TensorType &y, int64_t tile) {
    const AttrMap of_tile = {{"tile", tile}};
    KILN_ASSIGN(ValueId x, add("permute", {node.inputs[0]}, {{"dims", std::vector<int64_t>{0, 2, 3, 1}}}));
    KILN_ASSIGN(x, add("winograd_input", {x}, {{"tile", tile}, {"padding", node.attrs.find("padding")->second}}));
    KILN_ASSIGN(const ValueId weight, add("winograd_weight", {node.inputs[1]}, of_tile));
    Shape tiles = edit_.view().type(x).dims;
    const Dim points = tiles[0], channels = tiles.back();
    KILN_ASSIGN(x, reshape(x, {points, tiles[1] * tiles[2] * tiles[3], channels}));
    KILN_ASSIGN(ValueId sums, add("matmul", {x, weight}, {}));
    tiles.back() = y.dims[1];
    KILN_ASSIGN(sums, reshape(sums, tiles));
    KILN_ASSIGN(sums, add("winograd_output", {sums}, of_tile));
    KILN_ASSIGN(sums, reshape(sums, {tiles[1], tiles[2] * tile, tiles[3] * tile, y.dims[1]}));
    for (const int64_t dim : {1, 2}) {
      const Dim &size = y.dims[static_cast<size_t>(dim) + 1];
      if (edit_.view().type(sums).dims[static_cast<size_t>(dim)] == size) continue;
      KILN_ASSIGN(sums, add("slice", {sums}, {{"dim", dim}, {"start", Dim(0)}, {"end", size}}));
    }
    return add("permute", {sums}, {{"dims", std::vector<int64_t>{0, 3, 1, 2}}});
  }
  Result<ValueId> reshape(ValueId value, Shape shape) {
    return add("reshape", {value}, {{"shape", AttrValue(std::move(shape))}});
  }

  Edit edit_;
  const OpTable &ops_;
};

}  // namespace

Result<GraphPtr> winograd(GraphPtr graph, const OpTable &ops) {
  const std::set<uint32_t> bound = bound_nodes(*graph);
  Transforming transforming(graph, ops);
  bool any = false;
  for (const Node &node : graph->nodes()) {
    const int64_t tile = tile_of(*graph, node, bound);
    if (tile == 0) continue;
    KILN_TRY(transforming.replace(node, tile));
    any = true;
  }
  if (!any) return graph;
  return transforming.finish();
}

}  // namespace kiln
