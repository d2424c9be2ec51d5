// Expressions in files: each distinct one once, in a table; what uses them has numbers. Most sizes of a plan are the
// same few, and an expression is the one thing in it that takes time to read.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "jit/base/bytes.h"
#include "jit/base/expr.h"
#include "jit/base/status.h"

namespace kiln {

class ExprTableWriter {
 public:
  // Numbers go on from `known`, a table that the reader has read before.
  explicit ExprTableWriter(std::span<const Expr> known = {});
  uint32_t number(const Expr &e);
  void write_to(ByteWriter &out) const;  // without the known ones
  std::vector<Expr> take() { return std::move(table_); }

 private:
  std::vector<Expr> table_;
  std::map<Expr, uint32_t> numbers_;
  size_t known_;
};

// Appends what write_to() wrote to `table`. code corrupt.
Status read_exprs(ByteReader &in, std::vector<Expr> &table);

// The symbols of all of them: one look at a table settles most questions about what uses it.
std::set<std::string> symbols_of(std::span<const Expr> exprs);

// Reads a number; one that is not in the table makes `in` fail.
const Expr &read_expr(ByteReader &in, std::span<const Expr> table);

// Reads a count and as many items. `bytes` is the least that one takes: a damaged count allocates no more than the file
// is large.
template <class T, class ReadOne>
std::vector<T> read_list(ByteReader &in, uint64_t bytes, ReadOne read_one) {
  std::vector<T> items;
  const uint64_t count = in.count(bytes);
  items.reserve(count);
  for (uint64_t i = 0; i < count && in.ok(); ++i) read_one(items.emplace_back());
  return items;
}

}  // namespace kiln
