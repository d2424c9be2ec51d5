// A region's graph to steps.
#include "region.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace onednn {
namespace {

constexpr int64_t likely = 64;  // of a size that a call tells

class Builder {
 public:
  Builder(const Taker &taker, const Reader &graph) : taker_(taker), graph_(graph) {}

  Program build() {
    add_arrays();
    const std::vector<kiln_node> nodes = graph_.nodes();
    for (const kiln_node node : nodes) find_followers(node);
    for (const kiln_node node : nodes) {
      if (graph_.kind(node) == KILN_NODE_CONSTANT) add_constant(node);
      if (graph_.kind(node) == KILN_NODE_OP) add_op(node);
    }
    for (const auto &[slot, value] : copies_) {
      Step step;
      step.operands = {slots_.at(value)};
      step.result = slot;
      program_.steps.push_back(std::move(step));
    }
    return std::move(program_);
  }

 private:
  uint32_t add_slot(kiln_value value) {
    Slot slot;
    slot.dtype = graph_.dtype(value);
    slot.rank = static_cast<uint32_t>(graph_.dims(value).size());
    program_.slots.push_back(slot);
    return static_cast<uint32_t>(program_.slots.size() - 1);
  }

  void add_arrays() {
    const auto inputs = graph_.side(KILN_SIDE_INPUTS), parameters = graph_.side(KILN_SIDE_PARAMETERS),
               outputs = graph_.side(KILN_SIDE_OUTPUTS);
    program_.inputs = static_cast<uint32_t>(inputs.size());
    program_.parameters = static_cast<uint32_t>(parameters.size());
    program_.outputs = static_cast<uint32_t>(outputs.size());
    for (const kiln_value value : inputs) slots_[value] = add_slot(value);
    for (const kiln_value value : parameters) {
      const uint32_t slot = slots_[value] = add_slot(value);
      program_.slots[slot].is_bound = true;
      for (const kiln_dim &dim : graph_.dims(value)) {
        // Nothing is prepared of a parameter whose size a call tells: it is found by what the call gives.
        if (!is_known(dim)) throw Failure(KILN_UNIMPLEMENTED, "onednn: a parameter has a size that a call tells");
        program_.slots[slot].shape.push_back(dim.value);
      }
    }
    for (const kiln_value value : outputs) {
      const uint32_t slot = add_slot(value);
      if (graph_.kind(node_of(value)) == KILN_NODE_OP && !slots_.contains(value))
        slots_[value] = slot;
      else
        copies_.emplace_back(slot, value);
    }
  }

  void add_constant(kiln_node node) {
    const kiln_value value = node << 32;
    if (const kiln_dtype dtype = graph_.dtype(value); dtype != KILN_F32 && dtype != KILN_BF16)
      return;  // none's operand
    const uint32_t index = slots_[value] = add_slot(value);
    Slot &slot = program_.slots[index];
    const DLTensor &tensor = graph_.constant(node);
    slot.is_constant = true;
    slot.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
    size_t size = size_of(slot.dtype);
    for (const int64_t dim : slot.shape) size *= static_cast<size_t>(dim);
    const auto *begin = static_cast<const unsigned char *>(tensor.data) + tensor.byte_offset;
    slot.bytes.assign(begin, begin + size);
  }

  uint32_t slot_of(kiln_value value) const { return value ? slots_.at(value) : no_slot; }
  uint32_t result_of(kiln_node node) {
    const auto found = slots_.find(node << 32);
    return found != slots_.end() ? found->second : slots_[node << 32] = add_slot(node << 32);
  }

  // ---- what is computed with a product

  // From a product on as long as what it makes has one user, which can be computed with it. The step then stands where
  // the last of them stood: what others bring is made before.
  void find_followers(kiln_node product) {
    const Op *op = taker_.op_of(product);
    if (!op || (op->family != Family::product && op->family != Family::convolution)) return;
    std::vector<kiln_node> &chain = followers_[product];
    const size_t most = 16;  // of oneDNN's 32, of which b - a takes two
    for (kiln_value value = product << 32; chain.size() < most; value = chain.back() << 32) {
      if (graph_.use_count(value) != 1 || !taker_.may_be_followed(value)) break;
      const std::vector<kiln_node> users = graph_.users(value);
      if (users.size() != 1 || led_.contains(users[0])) break;
      const kiln_node user = users[0];
      const Op *next = taker_.op_of(user);
      if (!next || !taker_.runs(user)) break;
      const uint32_t place = graph_.input(user, 0) == value ? 0 : 1;
      const bool fits = next->family == Family::function ||
                        (next->family == Family::binary && taker_.follows(user, place, op->family)) ||
                        (next->family == Family::norm && chain.empty() && taker_.norm_follows(user));
      if (!fits) break;
      chain.push_back(user);
      led_[user] = product;
    }
  }

  void add_op(kiln_node node) {
    const auto led = led_.find(node);
    const kiln_node head = led == led_.end() ? node : led->second;
    const auto chain = followers_.find(head);
    if (chain == followers_.end()) return add_step(node, node, {});
    const kiln_node last = chain->second.empty() ? head : chain->second.back();
    if (node == last) add_step(head, last, chain->second);
  }

  void add_post(Step &step, kiln_node node, kiln_value value) {
    const Op op = taker_.function_of(node);
    if (op.family == Family::function) {
      step.posts.push_back({false, op.algorithm, op.alpha, op.beta, no_slot});
      return;
    }
    const bool is_second = graph_.input(node, 1) == value;
    const uint32_t other = slot_of(graph_.input(node, is_second ? 0 : 1));
    Algorithm algorithm = op.algorithm;
    if (is_second && algorithm == Algorithm::binary_sub) {
      step.posts.push_back({false, Algorithm::eltwise_linear, -1, 0, no_slot});
      algorithm = Algorithm::binary_add;
    }
    step.posts.push_back({true, algorithm, 0, 0, other});
  }

  // ---- steps

  void add_step(kiln_node node, kiln_node last, const std::vector<kiln_node> &chain) {
    const Op op = taker_.function_of(node);
    Step step;
    for (uint32_t i = 0; i < graph_.input_count(node); ++i) step.operands.push_back(slot_of(graph_.input(node, i)));
    for (const kiln_dim &dim : graph_.dims(graph_.input(node, 0)))
      step.nominal.push_back(is_known(dim) ? std::max<int64_t>(dim.value, 1) : likely);
    step.algorithm = op.algorithm;
    step.alpha = op.alpha;
    step.beta = op.beta;
    switch (op.family) {
      case Family::product: {
        const bool is_linear = std::string_view(op.name) == "linear";
        step.kind = Kind::product;
        step.transpose_a = !is_linear && graph_.truth(node, "transpose_a");
        step.transpose_b = is_linear || graph_.truth(node, "transpose_b");
        step.operands.resize(3, no_slot);
        // The inner size, which a call may tell of a, is known of b.
        if (const auto b = graph_.dims(graph_.input(node, 1)); b.size() == 2) {
          const bool is_column = step.transpose_a && step.nominal.size() > 1;
          step.nominal[step.nominal.size() - (is_column ? 2 : 1)] = b[step.transpose_b ? 1 : 0].value;
        }
        break;
      }
      case Family::convolution:
        step.kind = Kind::convolution;
        step.groups = graph_.integer(node, "groups");
        step.strides = graph_.integers(node, "stride");
        step.steps = graph_.integers(node, "dilation");
        set_padding(step, graph_.integers(node, "padding"));
        step.is_padding_zero = !taker_.loses_not_finite() && (has_any(step.padding_low) || has_any(step.padding_high));
        step.operands.resize(7, no_slot);
        break;
      case Family::function:
        step.kind = Kind::eltwise;
        break;
      case Family::binary:
        step.kind = Kind::binary;  // the second is the one that broadcasts
        if (!is_same(graph_.dims(graph_.input(node, 0)), graph_.dims(node << 32)))
          std::swap(step.operands[0], step.operands[1]);
        step.nominal.clear();
        break;
      case Family::softmax:
        step.kind = Kind::softmax;
        step.axis = graph_.integer(node, "dim");
        if (step.axis < 0) step.axis += static_cast<int64_t>(graph_.dims(node << 32).size());
        break;
      case Family::pooling:
        step.kind = Kind::pooling;
        set_window(step, node);
        break;
      case Family::norm:
        step.kind = Kind::norm;
        step.alpha = static_cast<float>(graph_.real(node, "eps"));
        break;
      case Family::reshape:
        step.kind = Kind::reshape;
        for (const kiln_dim &dim : graph_.dims(node << 32)) step.shape.push_back(is_known(dim) ? dim.value : -1);
        break;
    }
    if (!is_moderate(step.nominal)) step.nominal.clear();  // prepared when a run tells its sizes
    kiln_value value = node << 32;
    for (const kiln_node follower : chain) {
      if (taker_.op_of(follower)->family == Family::norm) {
        for (uint32_t i = 1; i < 5; ++i) step.operands[2 + i] = slot_of(graph_.input(follower, i));
        step.alpha = static_cast<float>(graph_.real(follower, "eps"));
      } else {
        add_post(step, follower, value);
      }
      value = follower << 32;
    }
    step.result = result_of(last);
    program_.steps.push_back(std::move(step));
  }

  static bool has_any(const Dims &padding) {
    return std::any_of(padding.begin(), padding.end(), [](int64_t size) { return size > 0; });
  }
  // One number a dim for both ends, or two, before and after.
  static void set_padding(Step &step, const Dims &padding) {
    const size_t space = step.strides.size();
    for (size_t d = 0; d < space; ++d) {
      const bool is_paired = padding.size() == 2 * space;
      step.padding_low.push_back(padding[is_paired ? 2 * d : d]);
      step.padding_high.push_back(padding[is_paired ? 2 * d + 1 : d]);
    }
  }

  void set_window(Step &step, kiln_node node) const {
    step.kernel = graph_.integers(node, "kernel");
    step.strides = graph_.integers(node, "stride");
    if (step.strides.empty()) step.strides = step.kernel;
    set_padding(step, graph_.integers(node, "padding"));
    step.steps.assign(step.kernel.size(), 1);
    if (step.algorithm == Algorithm::pooling_max) {
      if (const Dims dilation = graph_.integers(node, "dilation"); !dilation.empty()) step.steps = dilation;
    } else if (!graph_.truth(node, "count_include_pad")) {
      step.algorithm = Algorithm::pooling_avg_exclude_padding;
    }
  }

  const Taker &taker_;
  const Reader &graph_;
  Program program_;
  std::map<kiln_value, uint32_t> slots_;
  std::vector<std::pair<uint32_t, kiln_value>> copies_;    // outputs that are another value's, too
  std::map<kiln_node, std::vector<kiln_node>> followers_;  // of each product, in order
  std::map<kiln_node, kiln_node> led_;                     // what follows a product, and that product
};

}  // namespace

Program build(const Taker &taker, const Reader &graph) { return Builder(taker, graph).build(); }

}  // namespace onednn
