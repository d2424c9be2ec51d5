// The plan's bytes: a table of expressions (expr_table.h), then the plan with numbers into it.
#include <algorithm>
#include <set>
#include <utility>

#include "runtime/graph/nesting.h"
#include "runtime/plan/table_walk.h"

namespace kiln {
namespace {

static_assert(deepest_plan == deepest_nesting + 1);

// ---- what the executor relies on

Status check_arguments(std::string_view what, const std::vector<Plan::Argument> &arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Plan::Argument &a = arguments[i];
    const auto dtype = static_cast<int>(a.dtype);
    if (dtype < 1 || dtype > last_dtype) return error(Code::corrupt, what, " ", i, ": unknown dtype ", dtype);
    if (a.dims.size() != a.strides.size())
      return error(Code::corrupt, what, " ", i, " has ", a.dims.size(), " dims and ", a.strides.size(), " strides");
  }
  return {};
}

Status check_presented(const Plan &plan) {
  using Kind = Plan::Presented::Kind;
  for (size_t i = 0; i < plan.presented.size(); ++i) {
    const Plan::Presented &p = plan.presented[i];
    const auto fail = [&](const auto &...what) { return error(Code::corrupt, "presented output ", i, ": ", what...); };
    const bool in_order = i == 0 || plan.presented[i - 1].output < p.output;
    if (p.output >= plan.outputs.size() || !in_order) return fail("output ", p.output, " is not there, or not next");
    if (p.kind != Kind::strided && p.kind != Kind::any && p.kind != Kind::view)
      return fail("unknown kind ", static_cast<int>(p.kind));
    const size_t rank = p.kind == Kind::any ? 0 : plan.outputs[p.output].dims.size();
    if (p.strides.size() != rank) return fail(p.strides.size(), " strides, expected ", rank);
    if (p.kind == Kind::view && p.input >= plan.inputs.size())
      return fail("of input ", p.input, ", expected below ", plan.inputs.size());
  }
  return {};
}

// The expressions that plans share, and the symbols of all of them.
struct ExprTable {
  std::span<const Expr> exprs;
  std::set<std::string> symbols = symbols_of(exprs);
};

// `used`: the plan's expressions, by their numbers in `table`; in any order.
Status check_symbols(const Plan &plan, std::vector<uint32_t> used, const ExprTable &table) {
  std::set<std::string> names;
  for (const Plan::Symbol &s : plan.symbols) {
    if (!names.insert(s.name).second) return error(Code::corrupt, "symbol '", s.name, "' is bound twice");
    if (s.divisor < 1) return error(Code::corrupt, "symbol '", s.name, "' has divisor ", s.divisor);
    if (s.resolved) continue;
    if (s.input >= plan.inputs.size() || s.dim >= plan.inputs[s.input].dims.size())
      return error(Code::corrupt, "symbol '", s.name, "' is bound by dim ", s.dim, " of input ", s.input,
                   ", which is not there");
    if (plan.inputs[s.input].dims[s.dim] != Expr::symbol(s.name))
      return error(Code::corrupt, "symbol '", s.name, "' is bound by dim ", s.dim, " of input ", s.input, ", which is ",
                   plan.inputs[s.input].dims[s.dim].text());
  }
  if (std::ranges::includes(names, table.symbols)) return {};
  // Plans in plans have symbols of their own.
  std::ranges::sort(used);
  used.erase(std::ranges::unique(used).begin(), used.end());
  std::set<std::string> symbols;
  for (const uint32_t number : used) table.exprs[number].collect_symbols(symbols);
  for (const std::string &name : symbols)
    if (!names.contains(name)) return error(Code::corrupt, "symbol '", name, "' is used and not bound");
  return {};
}

Status check_plan(const Plan &plan, std::vector<uint32_t> used, const ExprTable &table) {
  KILN_TRY(check_arguments("input", plan.inputs));
  KILN_TRY(check_arguments("parameter", plan.parameters));
  KILN_TRY(check_arguments("output", plan.outputs));
  std::set<std::string_view> names;
  for (const Plan::Argument &output : plan.outputs)
    if (!names.insert(output.name).second) return error(Code::corrupt, "two outputs are named '", output.name, "'");
  KILN_TRY(check_presented(plan));
  return check_symbols(plan, std::move(used), table);
}

class PlanReader : public TableReader<PlanReader> {
 public:
  PlanReader(ByteReader &in, std::span<const Expr> table) : TableReader(in, table), exprs_{.exprs = table} {}

  // Its own part is checked where the bytes were all there.
  void plan(Plan &p) {
    const std::vector<uint32_t> outer = std::exchange(used_, {});
    walk(*this, p, static_cast<const Plan *>(nullptr));
    if (in_.ok() && status_.ok()) status_ = check_plan(p, used_, exprs_);
    used_ = outer;
  }
  Status take_status() { return std::move(status_); }

  void nested(std::string_view, Plan &outer, std::vector<Plan> Plan::*member) {
    ++depth_;
    outer.*member = read_list<Plan>(in_, least_bytes<Plan>, [&](Plan &inner) {
      if (depth_ <= deepest_plan)
        plan(inner);
      else if (status_.ok())
        status_ = error(Code::corrupt, "plans are nested deeper than ", deepest_plan);
    });
    --depth_;
  }
  void used(uint32_t number) { used_.push_back(number); }

 private:
  const ExprTable exprs_;
  int depth_ = 1;
  std::vector<uint32_t> used_;  // numbers of the expressions of the plan that is being read
  Status status_;
};

}  // namespace

void serialize(const Plan &plan, std::span<const Expr> known, ByteWriter &out) {
  TableWriter writer(known);
  writer.put(plan);
  (void)std::move(writer).write_to(out);
}

Result<Plan> parse_plan(ByteReader &in, std::span<const Expr> known) {
  std::vector<Expr> table(known.begin(), known.end());
  KILN_TRY(read_exprs(in, table));
  PlanReader reader(in, table);
  Plan plan;
  reader.plan(plan);
  KILN_TRY(reader.take_status());
  if (!in.ok()) return error(Code::corrupt, "ends too early, or names an expression that is not there");
  return plan;
}

}  // namespace kiln
