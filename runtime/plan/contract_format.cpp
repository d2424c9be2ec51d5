#include "runtime/plan/contract_format.h"

#include <algorithm>
#include <set>

#include "runtime/plan/expr_table.h"

namespace kiln {

std::vector<Expr> serialize(std::span<const Contract> contracts, ByteWriter &out) {
  ExprTableWriter exprs;
  ByteWriter body;
  const auto list = [&](const auto &items, auto write_one) {
    body.put<uint64_t>(items.size());
    for (const auto &item : items) write_one(item);
  };
  list(contracts, [&](const Contract &c) {
    list(c.symbols, [&](const Contract::Symbol &s) {
      body.text(s.name);
      body.put(s.min);
      body.put(s.max);
      body.put(s.divisor);
    });
    list(c.buffers, [&](const Contract::Buffer &b) {
      body.put(static_cast<uint8_t>(b.dtype));
      body.put<uint8_t>(b.written);
      body.put(exprs.number(b.size_bytes));
      list(b.in_place, [&](uint32_t other) { body.put(other); });
    });
    list(c.equalities, [&](const Contract::Equality &e) {
      body.put(exprs.number(e.left));
      body.put(exprs.number(e.right));
    });
    body.put(exprs.number(c.tasks));
    body.put(exprs.number(c.scratch_bytes));
  });
  exprs.write_to(out);
  out.raw(body.bytes());
  return exprs.take();
}

Result<std::vector<Contract>> parse_contracts(ByteReader &in, std::vector<Expr> &table) {
  KILN_TRY(read_exprs(in, table));
  Status status;
  // What a contract says is over its own symbols.
  const std::set<std::string> all = symbols_of(table);
  const auto check_symbols = [&](const Contract &c) {
    const auto is_own = [&](const std::string &name) {
      return std::ranges::find(c.symbols, name, &Contract::Symbol::name) != c.symbols.end();
    };
    if (std::ranges::all_of(all, is_own)) return;
    std::set<std::string> used;
    for (const Contract::Buffer &b : c.buffers) b.size_bytes.collect_symbols(used);
    for (const Contract::Equality &e : c.equalities) e.left.collect_symbols(used), e.right.collect_symbols(used);
    c.tasks.collect_symbols(used);
    c.scratch_bytes.collect_symbols(used);
    for (const std::string &name : used)
      if (!is_own(name)) status = error(Code::corrupt, "symbol '", name, "' is used and is none of the kernel's");
  };
  std::vector<Contract> contracts = read_list<Contract>(in, 32, [&](Contract &c) {
    c.symbols = read_list<Contract::Symbol>(in, 32, [&](Contract::Symbol &s) {
      s.name = in.text();
      s.min = in.get<int64_t>();
      s.max = in.get<int64_t>();
      s.divisor = in.get<int64_t>();
      if (in.ok() && s.divisor < 1) status = error(Code::corrupt, "symbol '", s.name, "' has divisor ", s.divisor);
    });
    c.buffers = read_list<Contract::Buffer>(in, 14, [&](Contract::Buffer &b) {
      const int dtype = in.get<uint8_t>();
      b.written = in.get<uint8_t>() != 0;
      b.size_bytes = read_expr(in, table);
      b.in_place = read_list<uint32_t>(in, 4, [&](uint32_t &other) { other = in.get<uint32_t>(); });
      if (in.ok() && (dtype < 1 || dtype > dtype_count)) status = error(Code::corrupt, "unknown dtype ", dtype);
      b.dtype = static_cast<DType>(dtype);
    });
    c.equalities = read_list<Contract::Equality>(in, 8, [&](Contract::Equality &e) {
      e.left = read_expr(in, table);
      e.right = read_expr(in, table);
    });
    c.tasks = read_expr(in, table);
    c.scratch_bytes = read_expr(in, table);
    if (in.ok() && status.ok()) check_symbols(c);
  });
  KILN_TRY(status);
  if (!in.ok()) return error(Code::corrupt, "ends too early, or names an expression that is not there");
  return contracts;
}

}  // namespace kiln
