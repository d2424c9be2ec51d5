#include "runtime/plan/expr_table.h"

namespace kiln {
namespace {

enum class ExprTag : uint8_t { integer = 1, text = 2 };

}  // namespace

ExprTableWriter::ExprTableWriter(std::span<const Expr> known) : known_(known.size()) {
  for (const Expr &e : known) number(e);
}

uint32_t ExprTableWriter::number(const Expr &e) {
  const auto [at, is_new] = numbers_.try_emplace(e, static_cast<uint32_t>(table_.size()));
  if (is_new) table_.push_back(e);
  return at->second;
}

void ExprTableWriter::write_to(ByteWriter &out) const {
  out.put<uint64_t>(table_.size() - known_);
  for (const Expr &e : std::span(table_).subspan(known_)) {
    out.put(static_cast<uint8_t>(e.is_integer() ? ExprTag::integer : ExprTag::text));
    if (e.is_integer()) {
      out.put(e.integer());
    } else {
      out.text(e.text());
    }
  }
}

Status read_exprs(ByteReader &in, std::vector<Expr> &table) {
  const uint64_t count = in.count(1 + sizeof(uint64_t));
  table.reserve(table.size() + count);
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    const auto tag = static_cast<ExprTag>(in.get<uint8_t>());
    if (tag == ExprTag::integer) {
      table.emplace_back(in.get<int64_t>());
    } else if (tag == ExprTag::text) {
      Result<Expr> parsed = Expr::parse(in.text());
      if (!parsed.ok()) return parsed.take_status().with_prefix(str_cat("expression ", i, ": "));
      table.push_back(std::move(parsed).value());
    } else {
      return error(Code::corrupt, "expression ", i, " is of unknown kind ", static_cast<uint32_t>(tag));
    }
  }
  return {};
}

std::set<std::string> symbols_of(std::span<const Expr> exprs) {
  std::set<std::string> symbols;
  for (const Expr &e : exprs) e.collect_symbols(symbols);
  return symbols;
}

const Expr &read_expr(ByteReader &in, std::span<const Expr> table) {
  static const Expr nothing;
  const auto number = in.get<uint32_t>();
  if (number < table.size()) return table[number];
  in.fail();
  return nothing;
}

}  // namespace kiln
