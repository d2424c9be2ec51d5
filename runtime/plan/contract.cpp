#include "runtime/plan/contract.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "runtime/plan/signature_plan.h"

namespace kiln {
namespace {

// The symbols of a launch with what the signature says of them.
Result<std::vector<Contract::Symbol>> symbols_of(const kernel::Launch &launch, const Plan &signature) {
  std::vector<Contract::Symbol> symbols;
  for (const std::string &name : launch.symbols) {
    const auto declared = std::ranges::find(signature.symbols, name, &Plan::Symbol::name);
    if (declared == signature.symbols.end()) return unbound(name);
    symbols.push_back({name, declared->min, declared->max, declared->divisor});
  }
  return symbols;
}

Contract contract_of(const kernel::Kernel &kernel, std::vector<Contract::Symbol> symbols,
                     std::vector<Contract::Equality> equalities) {
  SymbolMap names;
  for (size_t i = 0; i < symbols.size(); ++i) names[kernel.symbols[i]] = Expr::symbol(symbols[i].name);
  Contract contract;
  for (const kernel::Buffer &buffer : kernel.buffers) {
    if (buffer.space == kernel::Buffer::Space::row_local) continue;
    contract.buffers.push_back({buffer.type, buffer.space == kernel::Buffer::Space::out,
                                renamed(buffer.size, names) * Expr(static_cast<int64_t>(size_of(buffer.type)))});
  }
  for (const auto &[read, written] : kernel::in_place(kernel)) contract.buffers[written].in_place.push_back(read);
  contract.tasks = renamed(kernel::task_count(kernel), names);
  contract.scratch_bytes = renamed(kernel::scratch_layout(kernel).size_bytes, names);
  contract.equalities = std::move(equalities);
  contract.symbols = std::move(symbols);
  return contract;
}

// A kernel that is launched with other symbols, too, relies on what holds for all of them alone.
void weaken(Contract &contract, std::span<const Contract::Symbol> symbols, const EqualSizes &equal) {
  SymbolMap names;
  for (size_t i = 0; i < symbols.size(); ++i) {
    Contract::Symbol &s = contract.symbols[i];
    names[s.name] = Expr::symbol(symbols[i].name);
    s.min = std::min(s.min, symbols[i].min);
    s.max = std::max(s.max, symbols[i].max);
    s.divisor = std::gcd(s.divisor, symbols[i].divisor);
  }
  std::erase_if(contract.equalities, [&](const Contract::Equality &e) {
    return !equal.contains(renamed(e.left, names), renamed(e.right, names));
  });
}

}  // namespace

Contract contract_of(const kernel::Kernel &kernel, const Contract &before) {
  return contract_of(kernel, before.symbols, before.equalities);
}

Expr renamed(const Expr &e, const SymbolMap &names) {
  if (names.empty()) return e;
  return e.substitute([&](const Expr &leaf) -> std::optional<Expr> {
    const auto at = leaf.kind() == Expr::Kind::symbol ? names.find(leaf.symbol_name()) : names.end();
    return at == names.end() ? std::nullopt : std::optional(at->second);
  });
}

EqualSizes::EqualSizes(std::span<const Plan::Check> checks) {
  const auto class_of = [&](const Expr &e) {
    for (size_t i = 0; i < classes_.size(); ++i)
      if (std::ranges::find(classes_[i], e) != classes_[i].end()) return i;
    classes_.push_back({e});
    return classes_.size() - 1;
  };
  for (const Plan::Check &check : checks) {
    const size_t a = class_of(check.left), b = class_of(check.right);
    if (a == b) continue;
    classes_[a].insert(classes_[a].end(), classes_[b].begin(), classes_[b].end());
    classes_.erase(classes_.begin() + static_cast<std::ptrdiff_t>(b));
  }
}

bool EqualSizes::contains(const Expr &left, const Expr &right) const {
  if (left == right) return true;
  return std::ranges::any_of(classes_, [&](const std::vector<Expr> &equal) {
    return std::ranges::find(equal, left) != equal.end() && std::ranges::find(equal, right) != equal.end();
  });
}

std::vector<Contract::Equality> EqualSizes::among(std::span<const Contract::Symbol> symbols) const {
  const auto is_known = [&](const Expr &e) {
    std::set<std::string> used;
    e.collect_symbols(used);
    return std::ranges::all_of(used, [&](const std::string &name) {
      return std::ranges::find(symbols, name, &Contract::Symbol::name) != symbols.end();
    });
  };
  std::vector<Contract::Equality> equalities;
  for (const std::vector<Expr> &equal : classes_) {
    const Expr *last = nullptr;
    for (const Expr &e : equal) {
      if (!is_known(e)) continue;
      if (last) equalities.push_back({*last, e});
      last = &e;
    }
  }
  return equalities;
}

Status ContractsMaker::add(const kernel::Fused &fused, std::span<const uint32_t> images, const Plan &signature) {
  const EqualSizes equal(signature.checks);
  for (size_t i = 0; i < fused.launches.size(); ++i) {
    const kernel::Launch &launch = fused.launches[i];
    const uint32_t image = images[i];
    if (image >= contracts_.size()) {
      contracts_.resize(image + 1);
      made_.resize(image + 1);
    }
    KILN_ASSIGN(std::vector<Contract::Symbol> symbols, symbols_of(launch, signature));
    if (!made_[image])
      contracts_[image] = contract_of(*launch.kernel, symbols, equal.among(symbols));
    else
      weaken(contracts_[image], symbols, equal);
    made_[image] = true;
  }
  return {};
}

}  // namespace kiln
