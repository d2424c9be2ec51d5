// Which slots share memory: storages are taken and given back as lifetimes begin and end.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "runtime/plan/plan.h"

namespace kiln {

// Whether a <= b whatever the symbols are.
bool never_above(const Expr &a, const Expr &b);

// Deterministic; a call takes logarithmic time in the number of free sizes.
class StoragePool {
 public:
  // A storage of at least `size_bytes`: a free one of equal size if there is one; else a free one that is larger at all
  // sizes of a call, or one that is smaller at all of them and grows; else a new one.
  uint32_t take(const Expr &size_bytes);
  void give_back(uint32_t storage);
  std::vector<Plan::Storage> finish() && { return std::move(storages_); }

 private:
  using FreeBySize = std::map<Expr, std::vector<uint32_t>>;
  uint32_t take_from(FreeBySize::iterator bucket, const Expr &size_bytes);

  std::vector<Plan::Storage> storages_;
  FreeBySize free_;  // no bucket is empty
};

}  // namespace kiln
