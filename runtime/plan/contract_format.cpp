#include "runtime/plan/contract_format.h"

#include <algorithm>
#include <set>

#include "runtime/plan/table_walk.h"

namespace kiln {

namespace {

class ContractReader : public TableReader<ContractReader> {
 public:
  using TableReader::TableReader;
  void used(uint32_t) {}
};

// `all`: the symbols of all expressions.
Status check(const Contract &c, const std::set<std::string> &all) {
  for (const Contract::Symbol &s : c.symbols)
    if (s.divisor < 1) return error(Code::corrupt, "symbol '", s.name, "' has divisor ", s.divisor);
  for (const Contract::Buffer &b : c.buffers)
    if (const auto dtype = static_cast<int>(b.dtype); dtype < 1 || dtype > dtype_count)
      return error(Code::corrupt, "unknown dtype ", dtype);
  // What a contract says is over its own symbols.
  const auto is_own = [&](const std::string &name) {
    return std::ranges::find(c.symbols, name, &Contract::Symbol::name) != c.symbols.end();
  };
  if (std::ranges::all_of(all, is_own)) return {};
  std::set<std::string> used;
  for (const Contract::Buffer &b : c.buffers) b.size_bytes.collect_symbols(used);
  for (const Contract::Equality &e : c.equalities) e.left.collect_symbols(used), e.right.collect_symbols(used);
  c.tasks.collect_symbols(used);
  c.scratch_bytes.collect_symbols(used);
  for (const std::string &name : used)
    if (!is_own(name)) return error(Code::corrupt, "symbol '", name, "' is used and is none of the kernel's");
  return {};
}

}  // namespace

std::vector<Expr> serialize(const std::vector<Contract> &contracts, ByteWriter &out) {
  TableWriter writer;
  writer.put(contracts);
  return std::move(writer).write_to(out);
}

Result<std::vector<Contract>> parse_contracts(ByteReader &in, std::vector<Expr> &table) {
  KILN_TRY(read_exprs(in, table));
  ContractReader reader(in, table);
  std::vector<Contract> contracts;
  reader.get(contracts);
  if (!in.ok()) return error(Code::corrupt, "ends too early, or names an expression that is not there");
  const std::set<std::string> all = symbols_of(table);
  for (const Contract &contract : contracts) KILN_TRY(check(contract, all));
  return contracts;
}

}  // namespace kiln
