// The order of steps where one writes into what others read.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace kiln {

// What a step reads and writes, each tensor once.
struct StepUse {
  std::vector<uint32_t> reads, writes;
};
// A step that is to come after all others that read a tensor.
struct Overwrite {
  uint32_t step, tensor;
};

// The steps in an order in which they can run, as near to the given one as can be, with each step of `overwrites` put
// off until the others have read its tensor, or until a step reads what it writes. Linear.
std::vector<uint32_t> put_off(std::span<const StepUse> steps, std::span<const Overwrite> overwrites);

// Each number once, in order.
void sort_unique(std::vector<uint32_t> &numbers);

}  // namespace kiln
