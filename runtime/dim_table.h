// Expressions that crossed the ABI: each distinct one has a number that stands for it in kiln_dim, for as long as its
// context lives. Threads: any.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "jit/base/expr.h"

namespace kiln {

class DimTable {
 public:
  // The number of an expression that is not a plain integer; numbers start at 1.
  uint64_t number_of(const Expr &expr) {
    std::lock_guard lock(mutex_);
    auto [found, is_new] = numbers_.try_emplace(expr, exprs_.size() + 1);
    if (is_new) exprs_.push_back({expr, expr.text()});
    return found->second;
  }
  std::optional<Expr> expr(uint64_t number) const {
    std::lock_guard lock(mutex_);
    if (number == 0 || number > exprs_.size()) return std::nullopt;
    return exprs_[number - 1].expr;
  }
  // Stable for the table's life; null: no such number.
  const std::string *text(uint64_t number) const {
    std::lock_guard lock(mutex_);
    return number == 0 || number > exprs_.size() ? nullptr : &exprs_[number - 1].text;
  }

 private:
  struct Entry {
    Expr expr;
    std::string text;
  };
  mutable std::mutex mutex_;
  std::map<Expr, uint64_t> numbers_;
  std::deque<Entry> exprs_;  // a deque does not move its elements
};

}  // namespace kiln
