// Weights in the layouts that primitives like: made once for a binding of parameters, and kept.
#pragma once
#include <map>
#include <mutex>
#include <set>

#include "primitives.h"

namespace onednn {

const dnnl::engine &cpu();

class Weights {
 public:
  // `parameters`: their arrays, which stay as long as this does; none where a region has none. Prepares what each step
  // is likely to want, by its nominal sizes.
  Weights(const Program &program, const DLTensor *const *parameters, uint64_t count);
  Weights(const Weights &) = delete;

  // The weights of a step in this layout, from several threads: made when they are not there, as where the sizes of a
  // run make oneDNN choose another layout.
  memory get(uint32_t step, const memory::desc &layout);
  // The bias of a step, with the batch norm that follows it in it. The step has one (has_bias), and it is fixed.
  memory bias(uint32_t step);
  // The steps whose padding has to be multiplied: it is zero, and they have weights that are not finite.
  const std::set<uint32_t> &padded() const { return padded_; }
  uint64_t serial() const { return serial_; }

 private:
  struct Kept {
    std::vector<float> scaled, bias;  // of a batch norm
    std::vector<std::pair<memory::desc, memory>> layouts;
  };
  const unsigned char *bytes_of(uint32_t slot) const;
  void fold_norm(const Step &step, Kept &kept) const;
  bool is_finite(uint32_t step);
  void prepare(uint32_t step);

  const Program &program_;
  std::vector<const DLTensor *> parameters_;
  uint64_t serial_;
  std::set<uint32_t> padded_;
  std::mutex mutex_;
  std::map<uint32_t, Kept> kept_;
};

inline bool has_norm(const Step &step) { return step.kind == Kind::convolution && step.operands[3] != no_slot; }
inline bool has_bias(const Step &step) { return step.operands[2] != no_slot || has_norm(step); }

// Whether a step's weights are given to it in a layout of its own: they are fixed, and one matrix.
inline bool is_prepared(const Program &program, const Step &step) {
  if (!program.is_fixed(step.operands[1])) return false;
  return step.kind == Kind::convolution || (program.slots[step.operands[1]].rank == 2 &&
                                            (!step.transpose_a || program.slots[step.operands[0]].rank <= 2));
}

}  // namespace onednn
