// Expressions that crossed the ABI: each distinct one has a number that stands for it in kiln_dim, for as long as its
// context lives. No two tables of a process give the same numbers, so that none is taken for another context's.
// Threads: any.
#pragma once
#include <atomic>
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
  // The number that stands for an expression, the same for equal ones; not 0.
  uint64_t number_of(const Expr &expr) {
    std::lock_guard lock(mutex_);
    return number_locked(expr);
  }
  std::optional<Expr> expr(uint64_t number) const {  // nullopt: no such number
    std::lock_guard lock(mutex_);
    if (number < first_ || number - first_ >= exprs_.size()) return std::nullopt;
    return exprs_[number - first_].expr;
  }
  // The expression's text, which lives as long as the table.
  const std::string &text_of(const Expr &expr) {
    std::lock_guard lock(mutex_);
    return exprs_[number_locked(expr) - first_].text;
  }

 private:
  struct Entry {
    Expr expr;
    std::string text;
  };
  uint64_t number_locked(const Expr &expr) {
    if (auto found = numbers_.find(expr); found != numbers_.end()) return found->second;
    exprs_.push_back({expr, expr.text()});
    return numbers_.emplace(expr, first_ + exprs_.size() - 1).first->second;
  }
  static uint64_t next_first() {
    static std::atomic<uint64_t> tables{0};
    return ++tables << 32;  // more expressions than that no memory holds
  }

  const uint64_t first_ = next_first();
  mutable std::mutex mutex_;
  std::map<Expr, uint64_t> numbers_;
  std::deque<Entry> exprs_;  // a deque does not move its elements
};

}  // namespace kiln
