// The reference kernel of recurrent networks: row by row of the batch, cell by cell.
#include <cmath>

#include "runtime/ops/family.h"
#include "runtime/ops/recurrent.h"

namespace kiln::ops {
namespace {

// One row of the batch through one run: `h` and `cell` are what it carries.
template <class Wide>
class Cell {
 public:
  Cell(const ReferenceContext &c, std::span<const ReadElements<double>> operands, const Network &n, size_t run,
       size_t hidden)
      : c_(c), operands_(operands), n_(n), run_(run), hidden_(hidden), h(hidden), cell(hidden), gates_(hidden * 4) {}

  void step(std::span<const Wide> x) {
    const auto count = static_cast<size_t>(n_.gates());
    for (size_t gate = 0; gate < count; ++gate)
      for (size_t j = 0; j < hidden_; ++j) gates_[gate * hidden_ + j] = part(Network::of_input, x, gate, j);
    const bool reset_first = n_.cell == Network::Cell::gru && !c_.attr("linear_before_reset").boolean();
    for (size_t gate = 0; gate < count; ++gate) {
      if (n_.cell == Network::Cell::gru && gate == 2) break;
      for (size_t j = 0; j < hidden_; ++j) gates_[gate * hidden_ + j] += part(Network::of_state, h, gate, j);
    }
    std::vector<Wide> next(hidden_), before = h;
    if (reset_first)
      for (size_t j = 0; j < hidden_; ++j) before[j] *= sigmoid(gates_[j]);
    for (size_t j = 0; j < hidden_; ++j) {
      const Wide *gate = gates_.data() + j;
      if (n_.cell == Network::Cell::lstm) {
        cell[j] = sigmoid(gate[hidden_]) * cell[j] + sigmoid(gate[0]) * std::tanh(gate[2 * hidden_]);
        next[j] = sigmoid(gate[3 * hidden_]) * std::tanh(cell[j]);
      } else if (n_.cell == Network::Cell::gru) {
        const Wide late = part(Network::of_state, before, 2, j), z = sigmoid(gate[hidden_]);
        const Wide fresh = std::tanh(gate[2 * hidden_] + (reset_first ? late : sigmoid(gate[0]) * late));
        next[j] = (1 - z) * fresh + z * h[j];
      } else {
        const bool is_tanh = c_.attr("activation").text_value() == "tanh";
        next[j] = is_tanh ? std::tanh(gate[0]) : larger(gate[0], Wide(0));
      }
    }
    h = next;
  }

 private:
  static Wide sigmoid(Wide x) { return 1 / (1 + std::exp(-x)); }
  // Row `gate`, j of a weight times v, and the bias.
  Wide part(Network::Weight which, std::span<const Wide> v, size_t gate, size_t j) const {
    const size_t row = gate * hidden_ + j;
    const ReadElements<double> &weight = operands_[n_.weight(run_, which)];
    const size_t bias = which == Network::of_input ? Network::bias_of_input : Network::bias_of_state;
    Wide sum = n_.has_bias ? operands_[n_.weight(run_, static_cast<Network::Weight>(bias))][row] : 0;
    for (size_t k = 0; k < v.size(); ++k) sum += v[k] * Wide(weight[row * v.size() + k]);
    return sum;
  }

  const ReferenceContext &c_;
  const std::span<const ReadElements<double>> operands_;
  const Network &n_;
  const size_t run_, hidden_;

 public:
  std::vector<Wide> h, cell;

 private:
  std::vector<Wide> gates_;
};

}  // namespace

Status reference_recurrent(ReferenceContext &c) {
  const Network n(c.op.name, c.attrs);
  const RefTensor &x = *c.inputs[0];
  const auto batch = static_cast<size_t>(x.shape[n.batch_first ? 0 : 1]);
  const auto turns = static_cast<size_t>(x.shape[n.batch_first ? 1 : 0]);
  const auto hidden = static_cast<size_t>(c.inputs[n.weight(0, Network::of_state)]->shape[1]);
  const auto depth = static_cast<size_t>(x.shape[2]);
  const size_t width = hidden * n.directions();
  std::vector<ReadElements<double>> operands;
  for (const RefTensor *operand : c.inputs) operands.emplace_back(*operand);
  const ReadElements<int64_t> lengths(*c.inputs[n.has_lengths ? n.lengths() : 0]);
  std::vector<WriteElements<double>> results;
  for (RefTensor &result : c.results) results.emplace_back(result);
  return with_wide(x, [&](auto zero) {
    using Wide = decltype(zero);
    const auto run_row = [&](size_t b) {
      const auto row = [&](size_t t) { return n.batch_first ? b * turns + t : t * batch + b; };
      std::vector<std::vector<Wide>> sequence(turns);
      for (size_t t = 0; t < turns; ++t)
        for (size_t k = 0; k < depth; ++k) sequence[t].push_back(operands[0][row(t) * depth + k]);
      const auto length =
          n.has_lengths ? static_cast<size_t>(std::clamp<int64_t>(lengths[b], 0, static_cast<int64_t>(turns))) : turns;
      for (size_t run = 0; run < n.runs();) {
        std::vector<std::vector<Wide>> made(turns, std::vector<Wide>(width));
        for (size_t d = 0; d < n.directions(); ++d, ++run) {
          Cell<Wide> cell(c, operands, n, run, hidden);
          const size_t at = (run * batch + b) * hidden;
          for (size_t j = 0; n.has_state && j < hidden; ++j) {
            cell.h[j] = operands[n.state(0)][at + j];
            if (n.carried() > 1) cell.cell[j] = operands[n.state(1)][at + j];
          }
          for (size_t k = 0; k < length; ++k) {
            const size_t t = d == 0 ? k : length - 1 - k;
            cell.step(sequence[t]);
            std::ranges::copy(cell.h, made[t].begin() + static_cast<int64_t>(d * hidden));
          }
          for (size_t j = 0; j < hidden; ++j) {
            results[1].set(at + j, static_cast<double>(cell.h[j]));
            if (n.carried() > 1) results[2].set(at + j, static_cast<double>(cell.cell[j]));
          }
        }
        sequence = std::move(made);
      }
      for (size_t t = 0; t < turns; ++t)
        for (size_t j = 0; j < width; ++j) results[0].set(row(t) * width + j, static_cast<double>(sequence[t][j]));
    };
    const auto work = static_cast<int64_t>(turns * width * (depth + hidden));
    return c.for_ranges(static_cast<int64_t>(batch), work, [&](int64_t begin, int64_t end) -> Status {
      for (int64_t b = begin; b < end; ++b) run_row(static_cast<size_t>(b));
      return {};
    });
  });
}

}  // namespace kiln::ops
