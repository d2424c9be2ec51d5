// What drives plan_walk.h to bytes and back: expressions are numbers into a table (expr_table.h).
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "jit/base/byte_walk.h"
#include "runtime/plan/expr_table.h"
#include "runtime/plan/plan_walk.h"

namespace kiln {

class TableWriter : public WalkWriter<TableWriter, uint64_t> {
 public:
  explicit TableWriter(std::span<const Expr> known = {}) : exprs_(known) {}

  using WalkWriter::put;
  void put(const Expr &e) { out_.put(exprs_.number(e)); }
  void nested(std::string_view, const Plan &plan, std::vector<Plan> Plan::*member) { put(plan.*member); }

  // The table, then what was put. Once; returns the table.
  std::vector<Expr> write_to(ByteWriter &out) && {
    exprs_.write_to(out);
    out.raw(out_.bytes());
    return exprs_.take();
  }

 private:
  ExprTableWriter exprs_;
};

// The fewest bytes of one: a damaged count allocates no more than the file is large.
template <class T>
inline constexpr uint64_t least_bytes = sizeof(T);
template <>
inline constexpr uint64_t least_bytes<Expr> = 4;
template <>
inline constexpr uint64_t least_bytes<Plan::Argument> = 25;
template <>
inline constexpr uint64_t least_bytes<Plan::Presented> = 21;
template <>
inline constexpr uint64_t least_bytes<Plan::Symbol> = 69;
template <>
inline constexpr uint64_t least_bytes<Plan::Check> = 40;
template <>
inline constexpr uint64_t least_bytes<Plan::Risk> = 36;
template <>
inline constexpr uint64_t least_bytes<Plan::Origin> = 32;
template <>
inline constexpr uint64_t least_bytes<Plan::Slot> = 9;
template <>
inline constexpr uint64_t least_bytes<Plan::Storage> = 4;
template <>
inline constexpr uint64_t least_bytes<Plan::Nested> = 12;
template <>
inline constexpr uint64_t least_bytes<Plan::Step> = 50;
template <>
inline constexpr uint64_t least_bytes<Plan> = 13 * sizeof(uint64_t) + 4;  // the counts of its lists, and one more
template <>
inline constexpr uint64_t least_bytes<Contract> = 32;
template <>
inline constexpr uint64_t least_bytes<Contract::Symbol> = 32;
template <>
inline constexpr uint64_t least_bytes<Contract::Buffer> = 14;
template <>
inline constexpr uint64_t least_bytes<Contract::Equality> = 8;

// Self is what derives from it: it has nested(), and hears of each expression that was read by its number.
template <class Self>
class TableReader : public WalkReader<Self> {
 public:
  TableReader(ByteReader &in, std::span<const Expr> table) : WalkReader<Self>(in), table_(table) {}

  using WalkReader<Self>::get;
  void get(Expr &e) {
    const Expr &read = read_expr(this->in_, table_);
    if (this->in_.ok()) this->self().used(static_cast<uint32_t>(&read - table_.data()));
    e = read;
  }
  template <class T>
  void get(std::vector<T> &items) {
    items = read_list<T>(this->in_, least_bytes<T>, [&](T &item) { get(item); });
  }

 private:
  const std::span<const Expr> table_;
};

}  // namespace kiln
