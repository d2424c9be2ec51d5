// What drives plan_walk.h to bytes and back: expressions are numbers into a table (expr_table.h).
#pragma once
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/plan/expr_table.h"
#include "runtime/plan/plan_walk.h"

namespace kiln {

class TableWriter {
 public:
  explicit TableWriter(std::span<const Expr> known = {}) : exprs_(known) {}

  template <class T, class M>
  void field(std::string_view, const T &item, M T::*member) {
    put(item.*member);
  }
  void nested(std::string_view, const Plan &plan, std::vector<Plan> Plan::*member) { put(plan.*member); }

  template <class T>
    requires std::is_arithmetic_v<T>
  void put(T value) {
    body_.put(value);
  }
  void put(bool value) { body_.put<uint8_t>(value); }
  template <class T>
    requires std::is_enum_v<T>
  void put(T value) {
    body_.put(static_cast<uint8_t>(value));
  }
  void put(const Expr &e) { body_.put(exprs_.number(e)); }
  void put(const std::string &text) { body_.text(text); }
  template <class T>
  void put(const std::vector<T> &items) {
    body_.put<uint64_t>(items.size());
    for (const T &item : items) put(item);
  }
  template <class T>
    requires std::is_class_v<T>
  void put(const T &item) {
    walk(*this, item, static_cast<const T *>(nullptr));
  }

  // The table, then what was put. Once; returns the table.
  std::vector<Expr> write_to(ByteWriter &out) && {
    exprs_.write_to(out);
    out.raw(body_.bytes());
    return exprs_.take();
  }

 private:
  ByteWriter body_;
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
inline constexpr uint64_t least_bytes<Plan::Symbol> = 61;
template <>
inline constexpr uint64_t least_bytes<Plan::Check> = 32;
template <>
inline constexpr uint64_t least_bytes<Plan::Risk> = 28;
template <>
inline constexpr uint64_t least_bytes<Plan::Slot> = 9;
template <>
inline constexpr uint64_t least_bytes<Plan::Storage> = 4;
template <>
inline constexpr uint64_t least_bytes<Plan::Nested> = 12;
template <>
inline constexpr uint64_t least_bytes<Plan::Step> = 46;
template <>
inline constexpr uint64_t least_bytes<Plan> = 13 * sizeof(uint64_t);  // the counts of its lists
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
class TableReader {
 public:
  TableReader(ByteReader &in, std::span<const Expr> table) : in_(in), table_(table) {}

  template <class T, class M>
  void field(std::string_view, T &item, M T::*member) {
    get(item.*member);
  }

  template <class T>
    requires std::is_arithmetic_v<T>
  void get(T &value) {
    value = in_.get<T>();
  }
  void get(bool &value) { value = in_.get<uint8_t>() != 0; }
  template <class T>
    requires std::is_enum_v<T>
  void get(T &value) {
    value = static_cast<T>(in_.get<uint8_t>());
  }
  void get(Expr &e) {
    const Expr &read = read_expr(in_, table_);
    if (in_.ok()) self().used(static_cast<uint32_t>(&read - table_.data()));
    e = read;
  }
  void get(std::string &text) { text = in_.text(); }
  template <class T>
  void get(std::vector<T> &items) {
    items = read_list<T>(in_, least_bytes<T>, [&](T &item) { get(item); });
  }
  template <class T>
    requires std::is_class_v<T>
  void get(T &item) {
    walk(self(), item, static_cast<const T *>(nullptr));
  }

 protected:
  Self &self() { return static_cast<Self &>(*this); }
  ByteReader &in_;
  const std::span<const Expr> table_;
};

}  // namespace kiln
