// What the code of a kernel relies on, and each launch of it must keep. A contract goes with its image as a declaration
// goes with a function: both come from the compiler, and neither can be told from the other's bytes alone. A plan is
// held to it when it is loaded (verify_plan.h).
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "jit/base/dtype.h"
#include "jit/base/expr.h"
#include "jit/base/status.h"
#include "jit/kernel/fuse.h"
#include "runtime/plan/plan.h"

namespace kiln {

struct Contract {
  // A size that the kernel gets. The names are what the expressions below are over; a launch may give other sizes.
  struct Symbol {
    std::string name;
    int64_t min = 0, max = INT64_MAX, divisor = 1;
    bool operator==(const Symbol &) const = default;
  };
  struct Buffer {
    DType dtype = DType::f32;
    bool written = false;
    Expr size_bytes;                      // it touches no more than these
    std::vector<uint32_t> in_place = {};  // of a written one: buffers that it may share its memory with
    bool operator==(const Buffer &) const = default;
  };
  struct Equality {
    Expr left, right;
    bool operator==(const Equality &) const = default;
  };
  std::vector<Symbol> symbols;  // in the order of kiln_kernel_args.sizes
  std::vector<Buffer> buffers;  // in the order of kiln_kernel_args.buffers
  // What must be equal, by the checks of the plan that it was compiled with: an index may run to one side of a buffer
  // that is as long as the other side.
  std::vector<Equality> equalities;
  Expr tasks, scratch_bytes;
  bool operator==(const Contract &) const = default;
};

// What the code of a kernel relies on that is to take the place of another one with as many symbols: the sizes that it
// gets stay what they are.
Contract contract_of(const kernel::Kernel &kernel, const Contract &before);

// `e` with other symbols for those that are named; the others stay.
using SymbolMap = std::map<std::string, Expr>;
Expr renamed(const Expr &e, const SymbolMap &names);

// Sizes that a plan's checks make equal, also by way of each other.
class EqualSizes {
 public:
  explicit EqualSizes(std::span<const Plan::Check> checks);
  bool contains(const Expr &left, const Expr &right) const;
  // What follows for these symbols alone.
  std::vector<Contract::Equality> among(std::span<const Contract::Symbol> symbols) const;

 private:
  std::vector<std::vector<Expr>> classes_;
};

// One contract for each image of a compile.
class ContractsMaker {
 public:
  // `images` has the image of each launch, first of `fused`; `signature` the symbols and checks of their plan.
  Status add(const kernel::Fused &fused, std::span<const uint32_t> images, const Plan &signature);
  const Contract &of(uint32_t image) const { return contracts_[image]; }
  std::vector<Contract> finish() && { return std::move(contracts_); }

 private:
  std::vector<Contract> contracts_;
  std::vector<bool> made_;
};

}  // namespace kiln
