// Replaces the composed RMS norm by the op rms_norm:
//
//   normed = (x * rsqrt(mean(x * x, last dim, keepdim) + eps)) * weight     ->     rms_norm(x, weight; eps)
//
// The operands of each mul and of the add may stand in any order. A match is refused when an intermediate value has
// other uses, when a node carries an attribute that the pattern does not name, or when the nodes' annotations differ.
#include <kiln/pass.hpp>

KILN_PLUGIN_NOTE(0, 0, "fuse_rms_norm");

namespace {

using kiln::pass::node_of;
using kiln::pass::result_of;
using kiln::pass::Rewriter;

struct Ops {
  kiln_op mul, mean, add, rsqrt, rms_norm;
  explicit Ops(const Rewriter &graph)
      : mul(graph.op("mul")),
        mean(graph.op("mean")),
        add(graph.op("add")),
        rsqrt(graph.op("rsqrt")),
        rms_norm(graph.op("rms_norm")) {}
};

// mean(x * x) + eps
struct Shifted {
  kiln_value x;
  double eps;
  kiln_node square, mean, shifted;
};

bool is_mean_of_last_dim(const Rewriter &graph, const Ops &ops, kiln_node node) {
  if (!graph.is(node, ops.mean, {"dims", "keepdim"}) || graph.truth(node, "keepdim") != 1) return false;
  const std::vector<int64_t> dims = graph.integers(node, "dims");
  const auto rank = static_cast<int64_t>(graph.dims(graph.input(node, 0)).size());
  return dims.size() == 1 && (dims[0] == -1 || dims[0] == rank - 1);
}

std::optional<Shifted> match_shifted(const Rewriter &graph, const Ops &ops, kiln_value value) {
  const kiln_node shifted = node_of(value);
  if (!graph.is(shifted, ops.add) || !graph.used_once(value)) return std::nullopt;
  for (uint32_t i = 0; i < 2; i++) {
    const kiln_value averaged = graph.input(shifted, i);
    const kiln_node mean = node_of(averaged);
    const std::optional<double> eps = graph.scalar(graph.input(shifted, 1 - i));
    if (!eps || !is_mean_of_last_dim(graph, ops, mean) || !graph.used_once(averaged)) continue;
    const kiln_value squared = graph.input(mean, 0);
    const kiln_node square = node_of(squared);
    if (!graph.is(square, ops.mul) || !graph.used_once(squared)) continue;
    const kiln_value x = graph.input(square, 0);
    if (x == graph.input(square, 1)) return Shifted{x, *eps, square, mean, shifted};
  }
  return std::nullopt;
}

// One dimension, the same as the last one of `x`.
bool fits_last_dim(const Rewriter &graph, kiln_value weight, kiln_value x) {
  const std::vector<kiln_dim> own = graph.dims(weight), dims = graph.dims(x);
  if (own.size() != 1 || dims.empty()) return false;
  return Rewriter::same(own[0], dims.back());
}

struct Match {
  kiln_value x, weight, normed;
  double eps;
};

// The pattern, from its rsqrt outwards.
std::optional<Match> match(const Rewriter &graph, const Ops &ops, kiln_node inverse) {
  if (!graph.is(inverse, ops.rsqrt)) return std::nullopt;
  const std::optional<Shifted> below = match_shifted(graph, ops, graph.input(inverse, 0));
  if (!below) return std::nullopt;
  const kiln_node scaled = graph.only_user(result_of(inverse));
  if (!graph.is(scaled, ops.mul) || graph.other_input(scaled, result_of(inverse)) != below->x) return std::nullopt;
  const kiln_node normed = graph.only_user(result_of(scaled));
  if (!graph.is(normed, ops.mul)) return std::nullopt;
  const kiln_value weight = graph.other_input(normed, result_of(scaled));
  if (!fits_last_dim(graph, weight, below->x)) return std::nullopt;
  for (kiln_node node : {below->square, below->mean, below->shifted, inverse, scaled})
    if (!graph.same_annotations(node, normed)) return std::nullopt;
  return Match{below->x, weight, result_of(normed), below->eps};
}

uint64_t rewrite(Rewriter &graph) {
  const Ops ops(graph);
  uint64_t rewrites = 0;
  for (kiln_node node : graph.nodes()) {
    const std::optional<Match> found = match(graph, ops, node);
    if (!found) continue;
    graph.replace(found->normed, graph.add(ops.rms_norm, {found->x, found->weight}, {{"eps", found->eps}}));
    rewrites++;
  }
  return rewrites;
}

constexpr kiln::pass::Definition definition = {
    "fuse_rms_norm",
    "1",
    {0x6d, 0x1f, 0x8a, 0x52, 0x0c, 0x3b, 0x4e, 0x97, 0xa4, 0x21, 0x5e, 0xd7, 0x90, 0x4b, 0xc8, 0x13},
    KILN_STAGE_POST_GRAD,
    rewrite};

}  // namespace

const kiln_plugin *kiln_plugin_entry_v1(void) { return kiln::pass::plugin<definition>(); }
