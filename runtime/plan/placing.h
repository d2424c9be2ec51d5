// Where tensors lie: from steps over tensors to a plan's steps over slots. Steps are put in order, each tensor gets a
// place of its own, of what it is made of, or of what is dead by then, and what lies elsewhere in the end is copied.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "runtime/graph/attr.h"
#include "runtime/plan/contract.h"
#include "runtime/plan/plan.h"

namespace kiln {

struct StepsToPlace {
  static constexpr uint32_t none = UINT32_MAX;
  struct Tensor {
    Expr size_bytes;
    DType dtype = DType::none;              // none: not known
    uint32_t lies_in = none;                // the tensor whose memory it has, with others at other times
    uint32_t slot = none;                   // of an input or parameter
    uint32_t made_by = none, last_use = 0;  // items; last_use none: final copies read it
    TensorPtr constant = nullptr;
  };
  // What becomes a step.
  struct Item {
    Plan::Step step = {};
    std::vector<uint32_t> tensors = {};  // for the step's slots
    std::vector<bool> written = {};      // which of them
    bool prepared = false;
    // Of which tensors those are that the step writes in part: by slot. Their memory holds that before.
    std::map<size_t, uint32_t> bases = {};
    // Of a node that a function runs: where a result (by slot) may lie where an operand lies.
    std::map<size_t, size_t> in_place = {};
  };
  // In the end an input is what `source` is.
  struct WriteBack {
    uint32_t source, input;
    std::vector<Plan::Origin> origins = {};  // who says so
  };
  struct Output {
    uint32_t tensor;
    Plan::Origin origin;
  };
  std::vector<Tensor> tensors;
  std::vector<Item> items;      // in an order in which they can run
  std::vector<Output> outputs;  // those that the plan makes
  std::vector<WriteBack> write_backs;
};

using ContractOf = std::function<const Contract &(uint32_t kernel)>;
using NumberOfConstant = std::function<uint32_t(const TensorPtr &)>;

// Adds slots, storages, steps and written inputs to a plan that has the slots of its signature.
Status place(StepsToPlace given, const ContractOf &contract_of, const NumberOfConstant &constant, Plan &plan);

}  // namespace kiln
