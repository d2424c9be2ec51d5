// What a recurrent network's operands are. For the files of this folder.
#pragma once
#include "runtime/ops/op.h"

namespace kiln::ops {

// What attributes and the op's name say. Operands: x; for each layer and direction the weights of the input and of the
// state, and their biases; the states; the lengths.
struct Network {
  enum class Cell : uint8_t { rnn, gru, lstm } cell;
  int64_t layers;
  bool both_directions, batch_first, has_bias, has_state, has_lengths;

  Network(std::string_view op, const AttrMap &attrs)
      : cell(op == "rnn"   ? Cell::rnn
             : op == "gru" ? Cell::gru
                           : Cell::lstm),
        layers(attrs.find("layers")->second.i64()),
        both_directions(attrs.find("bidirectional")->second.boolean()),
        batch_first(attrs.find("batch_first")->second.boolean()),
        has_bias(attrs.find("bias")->second.boolean()),
        has_state(attrs.find("initial_state")->second.boolean()),
        has_lengths(attrs.find("lengths")->second.boolean()) {}

  size_t directions() const { return both_directions ? 2 : 1; }
  size_t runs() const { return static_cast<size_t>(layers) * directions(); }  // state k is of run k
  int64_t gates() const { return cell == Cell::rnn ? 1 : cell == Cell::gru ? 3 : 4; }
  size_t carried() const { return cell == Cell::lstm ? 2 : 1; }
  size_t weights_of_run() const { return has_bias ? 4 : 2; }
  // The numbers of operands.
  enum Weight : size_t { of_input, of_state, bias_of_input, bias_of_state };
  size_t weight(size_t run, Weight which) const { return 1 + run * weights_of_run() + which; }
  size_t state(size_t k) const { return 1 + runs() * weights_of_run() + k; }
  size_t lengths() const { return state(has_state ? carried() : 0); }
  size_t operands() const { return lengths() + has_lengths; }
};

Status reference_recurrent(ReferenceContext &c);

}  // namespace kiln::ops
