#include "ops.h"

#include <algorithm>

namespace onednn {
namespace {

// Of those that lose NaN: exp(NaN) is +inf, of relu it is 0, and the largest element of a window of -inf is the least
// finite number. tests/backend/onednn_test.cpp says why others are not here.
constexpr Op known[] = {
    {"linear", Family::product},
    {"matmul", Family::product},
    {"conv1d", Family::convolution},
    {"conv2d", Family::convolution},
    {"conv3d", Family::convolution},
    {"relu", Family::function, Algorithm::eltwise_relu, 0, 0, true},
    {"leaky_relu", Family::function, Algorithm::eltwise_relu},
    {"elu", Family::function, Algorithm::eltwise_elu},
    {"tanh", Family::function, Algorithm::eltwise_tanh},
    {"sigmoid", Family::function, Algorithm::eltwise_logistic},
    {"exp", Family::function, Algorithm::eltwise_exp, 0, 0, true},
    {"abs", Family::function, Algorithm::eltwise_abs},
    {"sqrt", Family::function, Algorithm::eltwise_sqrt},
    {"square", Family::function, Algorithm::eltwise_square},
    {"log", Family::function, Algorithm::eltwise_log},
    {"gelu", Family::function, Algorithm::eltwise_gelu_erf},
    {"silu", Family::function, Algorithm::eltwise_swish, 1},
    {"mish", Family::function, Algorithm::eltwise_mish},
    {"hardswish", Family::function, Algorithm::eltwise_hardswish},
    {"round", Family::function, Algorithm::eltwise_round},
    {"neg", Family::function, Algorithm::eltwise_linear, -1},
    {"relu6", Family::function, Algorithm::eltwise_clip, 0, 6, true},
    {"clamp", Family::function, Algorithm::eltwise_clip, 0, 0, true},
    {"add", Family::binary, Algorithm::binary_add},
    {"sub", Family::binary, Algorithm::binary_sub},
    {"mul", Family::binary, Algorithm::binary_mul},
    {"div", Family::binary, Algorithm::binary_div},
    {"maximum", Family::binary, Algorithm::binary_max, 0, 0, true},
    {"minimum", Family::binary, Algorithm::binary_min, 0, 0, true},
    {"softmax", Family::softmax, Algorithm::undef, 0, 0, true},
    {"max_pool1d", Family::pooling, Algorithm::pooling_max, 0, 0, true},
    {"max_pool2d", Family::pooling, Algorithm::pooling_max, 0, 0, true},
    {"max_pool3d", Family::pooling, Algorithm::pooling_max, 0, 0, true},
    {"avg_pool1d", Family::pooling, Algorithm::pooling_avg_include_padding},
    {"avg_pool2d", Family::pooling, Algorithm::pooling_avg_include_padding},
    {"avg_pool3d", Family::pooling, Algorithm::pooling_avg_include_padding},
    {"batch_norm", Family::norm},
    {"reshape", Family::reshape},
};

bool is_product(Family family) { return family == Family::product || family == Family::convolution; }
bool is_zero(const kiln_dim &dim) { return is_known(dim) && dim.value == 0; }
bool is_too_wide(const Dims &window) {
  return std::any_of(window.begin(), window.end(), [](int64_t size) { return size > most_window; });
}
bool is_one(const kiln_dim &dim) { return is_known(dim) && dim.value == 1; }

// Whether `from` broadcasts to `to` by dims of 1 alone: sizes that a call tells may not turn out to be 1.
bool broadcasts(const std::vector<kiln_dim> &from, const std::vector<kiln_dim> &to) {
  if (from.size() > to.size()) return false;
  const size_t skipped = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d)
    if (!is_one(from[d]) && !is_same(from[d], to[skipped + d])) return false;
  return true;
}

constexpr Why too_wide = "a padding, stride or dilation is too large for oneDNN";

}  // namespace

Ops find_ops(const kiln_host *host, kiln_context *context) {
  Ops ops;
  for (const Op &op : known) {
    kiln_op number = 0;
    check(host->op->find(context, op.name, std::string_view(op.name).size(), &number));
    ops.emplace(number, &op);
  }
  return ops;
}

const Op *Taker::op_of(kiln_node node) const {
  if (graph_.kind(node) != KILN_NODE_OP) return nullptr;
  const auto found = ops_.find(graph_.op(node));
  return found == ops_.end() ? nullptr : found->second;
}

// One result, and operands of one element type that oneDNN has, with as many dims as its primitives have.
Why Taker::unfit(kiln_node node, bool f32_only) const {
  if (graph_.output_count(node) != 1) return "it has several results";
  const kiln_dtype dtype = graph_.dtype(node << 32);
  if (dtype == KILN_BF16 && !has_bf16_) return "this processor has no AVX-512, without which oneDNN has no bf16";
  if (dtype == KILN_BF16 && f32_only) return "of this oneDNN has f32 alone";
  if (dtype != KILN_F32 && dtype != KILN_BF16) return "oneDNN runs f32 and bf16 alone";
  const auto unfit = [&](kiln_value value) -> Why {
    if (graph_.dims(value).size() > most_rank) return "it has more dims than oneDNN's primitives";
    return graph_.dtype(value) == dtype ? nullptr : "its operands and its result are of several element types";
  };
  if (const Why why = unfit(node << 32)) return why;
  for (uint32_t i = 0; i < graph_.input_count(node); ++i)
    if (const Why why = unfit(graph_.input(node, i))) return why;
  return nullptr;
}

Op Taker::function_of(kiln_node node) const {
  Op op = *op_of(node);
  const std::string_view name = op.name;
  if (name == "leaky_relu") {
    op.alpha = static_cast<float>(graph_.real(node, "negative_slope"));
    op.loses_not_finite = op.alpha == 0;  // which is relu
  } else if (name == "elu") {
    op.alpha = static_cast<float>(graph_.real(node, "alpha"));
  } else if (name == "gelu" && graph_.text(node, "approximate") == "tanh") {
    op.algorithm = Algorithm::eltwise_gelu_tanh;
  } else if (name == "clamp") {
    op.alpha = static_cast<float>(graph_.real(node, "min"));
    op.beta = static_cast<float>(graph_.real(node, "max"));
  }
  return op;
}

bool Taker::runs_binary(kiln_node node) const {
  const auto result = graph_.dims(node << 32);
  const auto a = graph_.dims(graph_.input(node, 0)), b = graph_.dims(graph_.input(node, 1));
  const Algorithm algorithm = op_of(node)->algorithm;
  const bool commutes = algorithm != Algorithm::binary_sub && algorithm != Algorithm::binary_div;
  return (is_same(a, result) && broadcasts(b, result)) || (commutes && is_same(b, result) && broadcasts(a, result));
}

bool Taker::is_fixed(kiln_value value) const {
  const uint32_t kind = graph_.kind(node_of(value));
  return kind == KILN_NODE_PARAMETER || kind == KILN_NODE_CONSTANT;
}

Why Taker::convolution_not_run(kiln_node node) const {
  const kiln_value x = graph_.input(node, 0), weight = graph_.input(node, 1);
  for (const kiln_dim &dim : graph_.dims(weight))
    if (!is_known(dim) || is_zero(dim)) return "its weight has a size that is not known, or 0";
  if (!is_known(graph_.dims(x)[1])) return "how many channels it has is not known";
  // oneDNN leaves out what is beyond the edge. Kiln multiplies it, as zeros: times a weight that is not finite that is
  // NaN. Weights that are bound can be looked at.
  const Dims padding = graph_.integers(node, "padding");
  if (is_too_wide(padding) || is_too_wide(graph_.integers(node, "stride")) ||
      is_too_wide(graph_.integers(node, "dilation")))
    return too_wide;
  const bool is_padded = std::any_of(padding.begin(), padding.end(), [](int64_t size) { return size > 0; });
  const bool keeps = !is_padded || options_.lose_not_finite || is_fixed(weight);
  return keeps ? nullptr
               : "it is padded, and its weights, which may not be finite, are inputs (not_finite=lost takes it)";
}

Why Taker::pooling_not_run(kiln_node node) const {
  const bool is_wide =
      is_too_wide(graph_.integers(node, "kernel")) || is_too_wide(graph_.integers(node, "stride")) ||
      (op_of(node)->algorithm == Algorithm::pooling_max && is_too_wide(graph_.integers(node, "dilation")));
  if (is_wide) return too_wide;
  return graph_.truth(node, "ceil_mode") ? "with ceil_mode a mean over windows beyond the padding is not oneDNN's"
                                         : nullptr;
}

Why Taker::not_run(kiln_node node) const {
  if (!op_of(node)) return "it is no op that this backend knows";
  const Op op = function_of(node);
  if (const Why why = unfit(node, op.family == Family::norm || op.algorithm == Algorithm::eltwise_round)) return why;
  if (op.loses_not_finite && !options_.lose_not_finite)
    return "oneDNN makes numbers of its NaN or infinities (not_finite=lost takes it)";
  const auto x = graph_.dims(graph_.input(node, 0));
  switch (op.family) {
    case Family::product: {  // a sum of nothing is 0, which oneDNN leaves to others
      const auto b = graph_.dims(graph_.input(node, 1));
      const bool is_linear = std::string_view(op.name) == "linear";
      const bool transposes = is_linear || graph_.truth(node, "transpose_b");
      const kiln_dim &inner = b.size() == 1 || transposes ? b.back() : b[b.size() - 2];
      return is_known(inner) && inner.value > 0 ? nullptr : "its inner size is not known, or 0";
    }
    case Family::convolution:
      return convolution_not_run(node);
    case Family::function:  // bounds that cross are Kiln's
      return op.algorithm != Algorithm::eltwise_clip || op.alpha <= op.beta ? nullptr : "its bounds cross";
    case Family::binary:
      return runs_binary(node) ? nullptr : "neither operand has the shape of the result";
    case Family::softmax:
      return nullptr;
    case Family::pooling:
      return pooling_not_run(node);
    case Family::norm:
      return is_known(x[1]) ? nullptr : "how many channels it has is not known";
    case Family::reshape: {
      int open = 0;
      for (const kiln_dim &dim : graph_.dims(node << 32)) {
        if (is_zero(dim)) return "it has no elements";
        open += is_known(dim) ? 0 : 1;
      }
      return open <= 1 ? nullptr : "several of its sizes are not known";
    }
  }
  return "it is no op that this backend knows";
}

// Through what can be computed where the product is made, or where its result lies.
bool Taker::comes_of_product(kiln_value value, int depth) const {
  const kiln_node node = node_of(value);
  const Op *op = op_of(node);
  if (!op || depth == 0 || !runs(node)) return false;
  if (is_product(op->family) || op->family == Family::pooling) return true;
  const uint32_t operands = op->family == Family::binary ? 2 : 1;
  for (uint32_t i = 0; i < operands; ++i) {
    const kiln_value operand = graph_.input(node, i);
    const bool is_chain = op->family == Family::reshape || is_same(graph_.dims(operand), graph_.dims(value));
    if (is_chain && graph_.use_count(operand) == 1 && comes_of_product(operand, depth - 1)) return true;
  }
  return false;
}

Why Taker::not_taken(kiln_node node) const {
  if (const Why why = not_run(node)) return why;
  const Op *op = op_of(node);
  if (options_.all || is_product(op->family) || op->family == Family::pooling) return nullptr;
  constexpr int depth = 8;  // of a chain whose nodes may have two operands
  constexpr Why alone = "it follows no product, and `cpu` fuses it with more (take=all takes it)";
  if (!comes_of_product(node << 32, depth)) return alone;
  if (op->family != Family::reshape) return op->family != Family::softmax ? nullptr : alone;
  // Of no use unless a product follows: otherwise it is a view, which `cpu` has for nothing.
  const auto users = graph_.users(node << 32);
  const bool is_between = !users.empty() && std::all_of(users.begin(), users.end(), [&](kiln_node user) {
    const Op *follower = op_of(user);
    return follower && is_product(follower->family) && runs(user);
  });
  return is_between ? nullptr : "it does not lie between products, and is a view on `cpu`";
}

bool Taker::may_be_followed(kiln_value value) const { return options_.relaxed || graph_.dtype(value) == KILN_F32; }

bool Taker::follows(kiln_node binary, uint32_t operand, Family product) const {
  const auto result = graph_.dims(binary << 32);
  if (!is_same(graph_.dims(graph_.input(binary, operand)), result)) return false;
  const Algorithm algorithm = op_of(binary)->algorithm;
  // b - a is -a + b, to the bit; b / a has no such form.
  if (operand == 1 && algorithm == Algorithm::binary_div) return false;
  const auto other = graph_.dims(graph_.input(binary, 1 - operand));
  if (!broadcasts(other, result)) return false;
  if (is_same(other, result) || std::all_of(other.begin(), other.end(), is_one)) return true;
  const size_t channel = product == Family::product ? result.size() - 1 : 1;  // as the result counts dims
  if (other.size() + channel < result.size()) return false;
  for (size_t d = 0; d < other.size(); ++d)
    if (!is_one(other[d]) && d + result.size() - other.size() != channel) return false;
  return true;
}

bool Taker::norm_follows(kiln_node norm) const {
  const kiln_value x = graph_.input(norm, 0);
  const Op *op = op_of(node_of(x));
  if (!op || op->family != Family::convolution || graph_.use_count(x) != 1 || graph_.dtype(x) != KILN_F32) return false;
  // Weights that each run has anew are not worth it.
  for (uint32_t i = 1; i < graph_.input_count(node_of(x)); ++i)
    if (!is_fixed(graph_.input(node_of(x), i))) return false;
  for (uint32_t i = 1; i < 5; ++i)
    if (!is_fixed(graph_.input(norm, i))) return false;
  return true;
}

}  // namespace onednn
