// Replaces composed attention by the op attention:
//
//   softmax(q k^T * scale + mask, last dim) v     ->     attention(q, k, v, mask; scale)
//
// q, k and v are [B, H, T, D] of f32 or f64. k^T is a permute of k, or matmul's transpose_b. The scale is a scalar that
// multiplies (in either order) or divides the scores, or is not there. The mask is not there, or is
// added in either order, or is the condition of a where whose other side is -inf. A match is refused when a value
// inside has other uses, when a node has an attribute that the pattern does not name, or when annotations differ.
#include <cmath>
#include <kiln/pass.hpp>

KILN_PLUGIN_NOTE(0, 0, "fuse_attention");

namespace {

using kiln::pass::node_of;
using kiln::pass::result_of;
using kiln::pass::Rewriter;

struct Ops {
  kiln_op matmul, permute, softmax, mul, div, add, where, attention;
  explicit Ops(const Rewriter &graph)
      : matmul(graph.op("matmul")),
        permute(graph.op("permute")),
        softmax(graph.op("softmax")),
        mul(graph.op("mul")),
        div(graph.op("div")),
        add(graph.op("add")),
        where(graph.op("where")),
        attention(graph.op("attention")) {}
};

// What is found on the way from the softmax down; the nodes are those that the match takes the place of.
struct Match {
  kiln_value q = 0, k = 0, v = 0, mask = 0;
  double scale = 1;
  std::vector<kiln_node> inside;
};

class Matcher {
 public:
  Matcher(const Rewriter &graph, const Ops &ops) : graph_(graph), ops_(ops) {}

  // Of the product with v.
  std::optional<Match> match(kiln_node product) {
    if (!graph_.is(product, ops_.matmul)) return std::nullopt;
    found_ = {};
    found_.v = graph_.input(product, 1);
    if (!match_softmax(graph_.input(product, 0)) || !fits()) return std::nullopt;
    for (kiln_node node : found_.inside)
      if (!graph_.same_annotations(node, product)) return std::nullopt;
    return found_;
  }

 private:
  // The node that makes a value that is used nowhere else.
  kiln_node inner(kiln_value value) {
    if (!graph_.used_once(value)) return 0;
    found_.inside.push_back(node_of(value));
    return node_of(value);
  }

  bool match_softmax(kiln_value value) {
    const kiln_node node = inner(value);
    if (!node || !graph_.is(node, ops_.softmax, {"dim"})) return false;
    const int64_t dim = graph_.integer(node, "dim").value_or(-1);
    return (dim == -1 || dim == 3) && match_masked(graph_.input(node, 0));
  }

  // Scores with a mask, or without.
  bool match_masked(kiln_value value) {
    const Match before = found_;
    const auto attempt = [&](kiln_value scores, kiln_value mask) {
      found_ = before;
      inner(value);
      found_.mask = mask;
      return match_scaled(scores);
    };
    const kiln_node node = node_of(value);
    if (!graph_.used_once(value)) return false;
    if (graph_.is(node, ops_.add) && graph_.either_order(node, attempt)) return true;
    if (graph_.is(node, ops_.where)) {
      const std::optional<double> hidden = graph_.scalar(graph_.input(node, 2));
      if (hidden && std::isinf(*hidden) && *hidden < 0) return attempt(graph_.input(node, 1), graph_.input(node, 0));
    }
    found_ = before;
    return match_scaled(value);
  }

  bool match_scaled(kiln_value value) {
    if (!graph_.used_once(value)) return false;
    const kiln_node node = node_of(value);
    if (graph_.is(node, ops_.div)) {
      const std::optional<double> by = graph_.scalar(graph_.input(node, 1));
      return by && *by != 0 && inner(value) && scale(1 / *by) && match_scores(graph_.input(node, 0));
    }
    if (!graph_.is(node, ops_.mul)) return match_scores(value);
    inner(value);
    return graph_.either_order(node, [&](kiln_value scores, kiln_value factor) {
      const std::optional<double> by = graph_.scalar(factor);
      return by && scale(*by) && match_scores(scores);
    });
  }

  // attention's own scale of 0 stands for another.
  bool scale(double by) {
    found_.scale = by;
    return by != 0 && std::isfinite(by);
  }

  bool match_scores(kiln_value value) {
    const kiln_node node = inner(value);
    if (!node || !graph_.is(node, ops_.matmul, {"transpose_b"})) return false;
    found_.q = graph_.input(node, 0);
    found_.k = graph_.input(node, 1);
    if (graph_.truth(node, "transpose_b").value_or(0)) return true;
    const kiln_node turned = node_of(found_.k);  // a view, which may stay for others
    if (!graph_.is(turned, ops_.permute, {"dims"}) ||
        graph_.integers(turned, "dims") != std::vector<int64_t>{0, 1, 3, 2})
      return false;
    found_.k = graph_.input(turned, 0);
    return true;
  }

  // That nothing is broadcast but the mask, and that attention computes in the same type.
  bool fits() const {
    const auto q = graph_.dims(found_.q), k = graph_.dims(found_.k), v = graph_.dims(found_.v);
    const kiln_dtype dtype = graph_.dtype(found_.q);
    if (q.size() != 4 || k.size() != 4 || v.size() != 4 || (dtype != KILN_F32 && dtype != KILN_F64)) return false;
    const auto same = [](const kiln_dim &a, const kiln_dim &b) { return Rewriter::same(a, b); };
    return same(q[0], k[0]) && same(q[1], k[1]) && same(q[3], k[3]) && same(q[0], v[0]) && same(q[1], v[1]) &&
           same(k[2], v[2]) && (!found_.mask || fits_scores(graph_.dims(found_.mask), {q[0], q[1], q[2], k[2]}));
  }
  // A mask may be of fewer dims, and of 1 where the scores have more; it does not widen them.
  static bool fits_scores(const std::vector<kiln_dim> &mask, const std::vector<kiln_dim> &scores) {
    if (mask.size() > scores.size()) return false;
    for (size_t i = 1; i <= mask.size(); i++) {
      const kiln_dim &dim = mask[mask.size() - i];
      if (!(dim.expr == 0 && dim.value == 1) && !Rewriter::same(dim, scores[scores.size() - i])) return false;
    }
    return true;
  }

  const Rewriter &graph_;
  const Ops &ops_;
  Match found_;
};

uint64_t rewrite(Rewriter &graph) {
  const Ops ops(graph);
  uint64_t rewrites = 0;
  for (kiln_node node : graph.nodes()) {
    const std::optional<Match> found = Matcher(graph, ops).match(node);
    if (!found) continue;
    graph.replace(result_of(node),
                  graph.add(ops.attention, {found->q, found->k, found->v, found->mask}, {{"scale", found->scale}}));
    rewrites++;
  }
  return rewrites;
}

constexpr kiln::pass::Definition definition = {
    "fuse_attention",
    "1",
    {0xd2, 0x48, 0x9e, 0x03, 0x6f, 0xb7, 0x4c, 0x81, 0xad, 0x10, 0xe5, 0x34, 0x72, 0xfb, 0x09, 0xc6},
    KILN_STAGE_POST_GRAD,
    rewrite};

}  // namespace

const kiln_plugin *kiln_plugin_entry_v1(void) { return kiln::pass::plugin<definition>(); }
