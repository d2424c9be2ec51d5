// The plan's bytes: a table of expressions (expr_table.h), then the plan with numbers into it.
#include <algorithm>
#include <set>
#include <utility>

#include "runtime/graph/nesting.h"
#include "runtime/plan/expr_table.h"
#include "runtime/plan/plan.h"

namespace kiln {
namespace {

bool names_node(Plan::Step::Kind kind) {
  return kind == Plan::Step::Kind::loop || kind == Plan::Step::Kind::scan || kind == Plan::Step::Kind::call;
}

static_assert(deepest_plan == deepest_nesting + 1);

class PlanWriter {
 public:
  explicit PlanWriter(std::span<const Expr> known) : exprs_(known) {}

  void plan(const Plan &p) {
    arguments(p.inputs);
    arguments(p.parameters);
    arguments(p.outputs);
    list(p.presented, [&](const Plan::Presented &o) {
      body_.put(o.output);
      body_.put(static_cast<uint8_t>(o.kind));
      exprs(o.strides);
      body_.put(o.input);
      expr(o.offset);
    });
    list(p.symbols, [&](const Plan::Symbol &s) {
      body_.text(s.name);
      body_.put(s.input);
      body_.put(s.dim);
      body_.put(s.min);
      body_.put(s.max);
      body_.put(s.divisor);
      body_.put(static_cast<uint8_t>(s.resolved));
      expr(s.bound);
      node(s.node);
    });
    list(p.checks, [&](const Plan::Check &c) {
      expr(c.left);
      expr(c.right);
      body_.text(c.what);
      node(c.node);
    });
    list(p.risks, [&](const Plan::Risk &r) {
      node(r.node);
      body_.text(r.op);
      body_.put(r.bits);
    });
    list(p.slots, [&](const Plan::Slot &s) {
      body_.put(static_cast<uint8_t>(s.kind));
      body_.put(s.index);
      expr(s.size_bytes);
    });
    list(p.arena, [&](const Plan::Storage &s) { expr(s.size_bytes); });
    list(p.prepared, [&](const Plan::Storage &s) { expr(s.size_bytes); });
    steps(p.prepare);
    steps(p.steps);
    list(p.nested, [&](const Plan &nested) { plan(nested); });
  }

  void write_to(ByteWriter &out) const {
    exprs_.write_to(out);
    out.raw(body_.bytes());
  }

 private:
  template <class T, class WriteOne>
  void list(const std::vector<T> &items, WriteOne write_one) {
    body_.put<uint64_t>(items.size());
    for (const T &item : items) write_one(item);
  }
  void node(const Plan::NodeRef &node) {
    numbers(node.path);
    body_.text(node.name);
  }

  void numbers(const std::vector<uint32_t> &items) {
    list(items, [&](uint32_t n) { body_.put(n); });
  }
  void exprs(const std::vector<Expr> &items) {
    list(items, [&](const Expr &e) { expr(e); });
  }
  void expr(const Expr &e) { body_.put(exprs_.number(e)); }
  void arguments(const std::vector<Plan::Argument> &items) {
    list(items, [&](const Plan::Argument &a) {
      body_.text(a.name);
      body_.put(static_cast<uint8_t>(a.dtype));
      exprs(a.dims);
      exprs(a.strides);
    });
  }
  void steps(const std::vector<Plan::Step> &items) {
    list(items, [&](const Plan::Step &s) {
      body_.put(static_cast<uint8_t>(s.kind));
      body_.put(s.kernel);
      body_.put(s.graph);
      numbers(s.slots);
      numbers(s.symbols);
      list(s.nested, [&](const Plan::Nested &nested) {
        body_.put(nested.plan);
        exprs(nested.symbols);
      });
      if (names_node(s.kind)) node(s.node);
      body_.put(s.scan.carried);
      body_.put(s.scan.sequences);
      body_.put(static_cast<uint8_t>(s.scan.reverse));
      expr(s.scan.turns);
    });
  }

  ByteWriter body_;
  ExprTableWriter exprs_;
};

// ---- what the executor relies on

Status check_arguments(std::string_view what, const std::vector<Plan::Argument> &arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Plan::Argument &a = arguments[i];
    const auto dtype = static_cast<int>(a.dtype);
    if (dtype < 1 || dtype > dtype_count) return error(Code::corrupt, what, " ", i, ": unknown dtype ", dtype);
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
  KILN_TRY(check_presented(plan));
  return check_symbols(plan, std::move(used), table);
}

class PlanReader {
 public:
  PlanReader(ByteReader &in, std::span<const Expr> table) : in_(in), table_{.exprs = table} {}

  // Its own part is checked where the bytes were all there.
  Plan plan(int depth = 1) {
    const std::vector<uint32_t> outer = std::exchange(used_, {});
    Plan p = unchecked_plan(depth);
    if (in_.ok() && status_.ok()) status_ = check_plan(p, used_, table_);
    used_ = outer;
    return p;
  }
  Status take_status() { return std::move(status_); }

 private:
  Plan unchecked_plan(int depth) {
    Plan p;
    p.inputs = arguments();
    p.parameters = arguments();
    p.outputs = arguments();
    p.presented = list<Plan::Presented>(21, [&](Plan::Presented &o) {
      o.output = in_.get<uint32_t>();
      o.kind = static_cast<Plan::Presented::Kind>(in_.get<uint8_t>());
      o.strides = exprs();
      o.input = in_.get<uint32_t>();
      o.offset = expr();
    });
    p.symbols = list<Plan::Symbol>(61, [&](Plan::Symbol &s) {
      s.name = in_.text();
      s.input = in_.get<uint32_t>();
      s.dim = in_.get<uint32_t>();
      s.min = in_.get<int64_t>();
      s.max = in_.get<int64_t>();
      s.divisor = in_.get<int64_t>();
      s.resolved = in_.get<uint8_t>() != 0;
      s.bound = expr();
      s.node = node();
    });
    p.checks = list<Plan::Check>(32, [&](Plan::Check &c) {
      c.left = expr();
      c.right = expr();
      c.what = in_.text();
      c.node = node();
    });
    p.risks = list<Plan::Risk>(28, [&](Plan::Risk &r) {
      r.node = node();
      r.op = in_.text();
      r.bits = in_.get<uint32_t>();
    });
    p.slots = list<Plan::Slot>(9, [&](Plan::Slot &s) {
      s.kind = static_cast<Plan::Slot::Kind>(in_.get<uint8_t>());
      s.index = in_.get<uint32_t>();
      s.size_bytes = expr();
    });
    p.arena = storages();
    p.prepared = storages();
    p.prepare = steps();
    p.steps = steps();
    p.nested = list<Plan>(least_plan_bytes, [&](Plan &nested) {
      if (depth < deepest_plan)
        nested = plan(depth + 1);
      else if (status_.ok())
        status_ = error(Code::corrupt, "plans are nested deeper than ", deepest_plan);
    });
    return p;
  }

  static constexpr uint64_t least_plan_bytes = 13 * sizeof(uint64_t);  // the counts of its lists

  template <class T, class ReadOne>
  std::vector<T> list(uint64_t bytes, ReadOne read_one) {
    return read_list<T>(in_, bytes, read_one);
  }
  Plan::NodeRef node() {
    Plan::NodeRef node;
    node.path = numbers();
    node.name = in_.text();
    return node;
  }

  std::vector<uint32_t> numbers() {
    return list<uint32_t>(4, [&](uint32_t &n) { n = in_.get<uint32_t>(); });
  }
  std::vector<Expr> exprs() {
    return list<Expr>(4, [&](Expr &e) { e = expr(); });
  }
  const Expr &expr() {
    const Expr &e = read_expr(in_, table_.exprs);
    if (in_.ok()) used_.push_back(static_cast<uint32_t>(&e - table_.exprs.data()));
    return e;
  }
  std::vector<Plan::Argument> arguments() {
    return list<Plan::Argument>(25, [&](Plan::Argument &a) {
      a.name = in_.text();
      a.dtype = static_cast<DType>(in_.get<uint8_t>());
      a.dims = exprs();
      a.strides = exprs();
    });
  }
  std::vector<Plan::Storage> storages() {
    return list<Plan::Storage>(4, [&](Plan::Storage &s) { s.size_bytes = expr(); });
  }
  std::vector<Plan::Step> steps() {
    return list<Plan::Step>(46, [&](Plan::Step &s) {
      s.kind = static_cast<Plan::Step::Kind>(in_.get<uint8_t>());
      s.kernel = in_.get<uint32_t>();
      s.graph = in_.get<uint32_t>();
      s.slots = numbers();
      s.symbols = numbers();
      s.nested = list<Plan::Nested>(12, [&](Plan::Nested &nested) {
        nested.plan = in_.get<uint32_t>();
        nested.symbols = exprs();
      });
      if (names_node(s.kind)) s.node = node();
      s.scan.carried = in_.get<uint32_t>();
      s.scan.sequences = in_.get<uint32_t>();
      s.scan.reverse = in_.get<uint8_t>() != 0;
      s.scan.turns = expr();
    });
  }

  ByteReader &in_;
  const ExprTable table_;
  std::vector<uint32_t> used_;  // numbers of the expressions of the plan that is being read
  Status status_;
};

}  // namespace

void serialize(const Plan &plan, std::span<const Expr> known, ByteWriter &out) {
  PlanWriter writer(known);
  writer.plan(plan);
  writer.write_to(out);
}

Result<Plan> parse_plan(ByteReader &in, std::span<const Expr> known) {
  std::vector<Expr> table(known.begin(), known.end());
  KILN_TRY(read_exprs(in, table));
  PlanReader reader(in, table);
  Plan plan = reader.plan();
  KILN_TRY(reader.take_status());
  if (!in.ok()) return error(Code::corrupt, "ends too early, or names an expression that is not there");
  return plan;
}

}  // namespace kiln
