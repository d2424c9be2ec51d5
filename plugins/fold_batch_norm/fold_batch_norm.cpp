// Folds a batch norm into the convolution before it:
//
//   batch_norm(conv2d(x, w, b), scale, bias, mean, variance; eps)   ->   conv2d(x, w * factor, bias - (mean - b) *
//   factor)
//
// with factor = scale * rsqrt(variance + eps), one number for each output channel. The new weight and bias depend on
// parameters alone, so that Kiln computes them once for each binding of the parameters, not at each call. A fold is
// refused when something else uses the convolution's result, when a weight or statistic is no parameter or constant,
// when a node carries an attribute that is not named here, or when the two nodes' annotations differ.
#include <kiln/pass.hpp>

KILN_PLUGIN_NOTE(0, 0, "fold_batch_norm");

namespace {

using kiln::pass::node_of;
using kiln::pass::result_of;
using kiln::pass::Rewriter;

struct Ops {
  kiln_op conv2d, batch_norm, full, add, sub, mul, rsqrt, reshape;
  explicit Ops(const Rewriter &graph)
      : conv2d(graph.op("conv2d")),
        batch_norm(graph.op("batch_norm")),
        full(graph.op("full")),
        add(graph.op("add")),
        sub(graph.op("sub")),
        mul(graph.op("mul")),
        rsqrt(graph.op("rsqrt")),
        reshape(graph.op("reshape")) {}
};

struct Pair {
  kiln_node conv, norm;
};

bool is_bound_once(const Rewriter &graph, kiln_value value) {
  const uint32_t kind = graph.kind(node_of(value));
  return kind == KILN_NODE_PARAMETER || kind == KILN_NODE_CONSTANT;
}

std::optional<Pair> match(const Rewriter &graph, const Ops &ops, kiln_node norm) {
  if (!graph.is(norm, ops.batch_norm, {"eps"})) return std::nullopt;
  const kiln_value convolved = graph.input(norm, 0);
  const kiln_node conv = node_of(convolved);
  if (!graph.is(conv, ops.conv2d, {"stride", "padding", "dilation", "groups"}) || !graph.used_once(convolved))
    return std::nullopt;
  if (!graph.same_annotations(conv, norm)) return std::nullopt;
  for (uint32_t i = 1; i < 5; i++)  // scale, bias, mean, variance
    if (!is_bound_once(graph, graph.input(norm, i))) return std::nullopt;
  const kiln_value conv_bias = graph.input(conv, 2);
  if (!is_bound_once(graph, graph.input(conv, 1)) || (conv_bias && !is_bound_once(graph, conv_bias)))
    return std::nullopt;
  return Pair{conv, norm};
}

void fold(Rewriter &graph, const Ops &ops, const Pair &pair) {
  const kiln_value x = graph.input(pair.conv, 0), weight = graph.input(pair.conv, 1);
  const kiln_value conv_bias = graph.input(pair.conv, 2);  // 0: none
  const kiln_value scale = graph.input(pair.norm, 1), bias = graph.input(pair.norm, 2);
  const kiln_value mean = graph.input(pair.norm, 3), variance = graph.input(pair.norm, 4);
  const double epsilon = graph.number(pair.norm, "eps").value();
  const std::vector<kiln_dim> channels = graph.dims(scale);

  const kiln_value eps =
      graph.add(ops.full, {}, {{"value", epsilon}, {"dtype", graph.dtype(scale)}, {"shape", std::vector<int64_t>()}});
  const kiln_value factor = graph.add(ops.mul, {scale, graph.add(ops.rsqrt, {graph.add(ops.add, {variance, eps})})});
  const std::vector<kiln_dim> for_each_kernel = {channels.front(), {1, 0}, {1, 0}, {1, 0}};
  const kiln_value by_kernel = graph.add(ops.reshape, {factor}, {{"shape", for_each_kernel}});
  const kiln_value centre = conv_bias ? graph.add(ops.sub, {mean, conv_bias}) : mean;
  const kiln_value folded = graph.add(
      ops.conv2d,
      {x, graph.add(ops.mul, {weight, by_kernel}), graph.add(ops.sub, {bias, graph.add(ops.mul, {centre, factor})})},
      {{"stride", graph.integers(pair.conv, "stride")},
       {"padding", graph.integers(pair.conv, "padding")},
       {"dilation", graph.integers(pair.conv, "dilation")},
       {"groups", graph.integers(pair.conv, "groups").front()}});
  graph.replace(result_of(pair.norm), folded);
}

uint64_t rewrite(Rewriter &graph) {
  const Ops ops(graph);
  uint64_t rewrites = 0;
  for (kiln_node node : graph.nodes()) {
    const std::optional<Pair> pair = match(graph, ops, node);
    if (!pair) continue;
    fold(graph, ops, *pair);
    rewrites++;
  }
  return rewrites;
}

constexpr kiln::pass::Definition definition = {
    "fold_batch_norm",
    "1",
    {0xb3, 0x70, 0x2e, 0x16, 0x48, 0xd9, 0x4f, 0x05, 0x8c, 0x5a, 0xe2, 0x31, 0x7f, 0x96, 0x0d, 0xba},
    KILN_STAGE_POST_GRAD,
    rewrite};

}  // namespace

const kiln_plugin *kiln_plugin_entry_v1(void) { return kiln::pass::plugin<definition>(); }
