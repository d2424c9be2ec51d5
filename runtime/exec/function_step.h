// The step that a function of the host's runs.
#pragma once
#include <kiln/dlpack.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/exec/memory.h"
#include "runtime/exec/node_step.h"
#include "runtime/functions/binding.h"
#include "runtime/functions/function.h"

namespace kiln {

class FunctionStep final : public NodeStep {
 public:
  // `binding` is of the function's signature and the node. All outlive the step.
  FunctionStep(const Function &function, const FunctionBinding &binding, const Node &node);

  Status resize(const Signature &signature, const ResolvedSizes &sizes) override;
  Status run(std::span<void *const> data) override;

 private:
  using Kind = FunctionSignature::Argument::Kind;
  // One that is told at each run where its array is.
  struct Placed {
    Kind kind;
    uint32_t argument, array, operand;
  };
  Status set_scalar(size_t argument, const std::vector<std::vector<int64_t>> &dims);
  Status check_sizes(const std::vector<std::vector<int64_t>> &dims) const;
  std::string of_function() const;
  void *call();

  const Function &function_;
  const FunctionBinding &binding_;
  const Node &node_;
  std::vector<uint64_t> words_;  // by argument: its value, or an address
  std::vector<void *> values_;   // where these are
  std::vector<Placed> placed_;
  std::vector<std::vector<int64_t>> dims_;  // by array
  std::vector<uint64_t> bytes_;             // likewise
  std::vector<DLTensor> tensors_;           // by argument
  // By argument: what a scalar's pointer leads to, and what is there when a call begins, for a function may write it.
  std::vector<std::vector<uint64_t>> pointees_, originals_;
  std::vector<uint32_t> pointers_;  // arguments that have some
  Areas scratch_;
  uint64_t returned_ = 0;
  const std::function<void *()> call_;  // made once, for what each run gives to the function's owner
};

}  // namespace kiln
