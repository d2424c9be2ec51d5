// The plan's bytes: a table of the distinct expressions, then the plan with numbers into that table. Most sizes of a
// plan are the same few expressions, and an expression is the one thing in it that takes time to read.
#include <map>
#include <set>

#include "runtime/plan/plan.h"

namespace kiln {
namespace {

enum class ExprTag : uint8_t { integer = 1, text = 2 };

class PlanWriter {
 public:
  void plan(const Plan &p) {
    arguments(p.inputs);
    arguments(p.parameters);
    arguments(p.outputs);
    numbers(p.written_inputs);
    list(p.symbols, [&](const Plan::Symbol &s) {
      body_.text(s.name);
      body_.put(s.input);
      body_.put(s.dim);
      body_.put(s.min);
      body_.put(s.max);
      body_.put(s.divisor);
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
  }

  void write_to(ByteWriter &out) const {
    out.put<uint64_t>(table_.size());
    for (const Expr &e : table_) {
      out.put(static_cast<uint8_t>(e.is_integer() ? ExprTag::integer : ExprTag::text));
      if (e.is_integer()) {
        out.put(e.integer());
      } else {
        out.text(e.text());
      }
    }
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
  void expr(const Expr &e) {
    auto [at, is_new] = numbers_.try_emplace(e, static_cast<uint32_t>(table_.size()));
    if (is_new) table_.push_back(e);
    body_.put(at->second);
  }
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
      numbers(s.slots);
      numbers(s.symbols);
      expr(s.tasks);
      expr(s.scratch_bytes);
    });
  }

  ByteWriter body_;
  std::vector<Expr> table_;
  std::map<Expr, uint32_t> numbers_;
};

class PlanReader {
 public:
  explicit PlanReader(ByteReader &in) : in_(in) {}

  Status expr_table() {
    const uint64_t count = in_.count(1 + sizeof(uint64_t));
    table_.reserve(count);
    for (uint64_t i = 0; i < count && in_.ok(); ++i) {
      const auto tag = static_cast<ExprTag>(in_.get<uint8_t>());
      if (tag == ExprTag::integer) {
        table_.emplace_back(in_.get<int64_t>());
      } else if (tag == ExprTag::text) {
        Result<Expr> parsed = Expr::parse(in_.text());
        if (!parsed.ok()) return parsed.take_status().with_prefix(str_cat("expression ", i, ": "));
        table_.push_back(std::move(parsed).value());
      } else {
        return error(Code::corrupt, "expression ", i, " is of unknown kind ", static_cast<uint32_t>(tag));
      }
    }
    return {};
  }

  Plan plan() {
    Plan p;
    p.inputs = arguments();
    p.parameters = arguments();
    p.outputs = arguments();
    p.written_inputs = numbers();
    p.symbols = list<Plan::Symbol>(40, [&](Plan::Symbol &s) {
      s.name = in_.text();
      s.input = in_.get<uint32_t>();
      s.dim = in_.get<uint32_t>();
      s.min = in_.get<int64_t>();
      s.max = in_.get<int64_t>();
      s.divisor = in_.get<int64_t>();
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
    return p;
  }

  const std::vector<Expr> &table() const { return table_; }

 private:
  // `bytes` is the least that an element takes: a damaged count allocates no more than the file is large.
  template <class T, class ReadOne>
  std::vector<T> list(uint64_t bytes, ReadOne read_one) {
    std::vector<T> items;
    const uint64_t count = in_.count(bytes);
    items.reserve(count);
    for (uint64_t i = 0; i < count && in_.ok(); ++i) read_one(items.emplace_back());
    return items;
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
  Expr expr() {
    const auto number = in_.get<uint32_t>();
    if (number < table_.size()) return table_[number];
    in_.fail();
    return {};
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
    return list<Plan::Step>(29, [&](Plan::Step &s) {
      s.kind = static_cast<Plan::Step::Kind>(in_.get<uint8_t>());
      s.kernel = in_.get<uint32_t>();
      s.slots = numbers();
      s.symbols = numbers();
      s.tasks = expr();
      s.scratch_bytes = expr();
    });
  }

  ByteReader &in_;
  std::vector<Expr> table_;
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

Status check_symbols(const Plan &plan, const std::vector<Expr> &expressions) {
  std::set<std::string> names;
  for (const Plan::Symbol &s : plan.symbols) {
    if (!names.insert(s.name).second) return error(Code::corrupt, "symbol '", s.name, "' is bound twice");
    if (s.input >= plan.inputs.size() || s.dim >= plan.inputs[s.input].dims.size())
      return error(Code::corrupt, "symbol '", s.name, "' is bound by dim ", s.dim, " of input ", s.input,
                   ", which is not there");
    if (plan.inputs[s.input].dims[s.dim] != Expr::symbol(s.name))
      return error(Code::corrupt, "symbol '", s.name, "' is bound by dim ", s.dim, " of input ", s.input, ", which is ",
                   plan.inputs[s.input].dims[s.dim].text());
    if (s.divisor < 1) return error(Code::corrupt, "symbol '", s.name, "' has divisor ", s.divisor);
  }
  std::set<std::string> used;
  for (const Expr &e : expressions) e.collect_symbols(used);
  for (const std::string &name : used)
    if (!names.contains(name)) return error(Code::corrupt, "symbol '", name, "' is used and not bound");
  return {};
}

Status check_slots(const Plan &plan, size_t constant_count) {
  using Kind = Plan::Slot::Kind;
  const auto count_of = [&](Kind kind) -> size_t {
    switch (kind) {
      case Kind::input:
        return plan.inputs.size();
      case Kind::parameter:
        return plan.parameters.size();
      case Kind::constant:
        return constant_count;
      case Kind::output:
        return plan.outputs.size();
      case Kind::arena:
        return plan.arena.size();
      case Kind::prepared:
        return plan.prepared.size();
    }
    return 0;  // an unknown kind
  };
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    const Plan::Slot &s = plan.slots[i];
    if (s.index >= count_of(s.kind))
      return error(Code::corrupt, "slot ", i, " of kind ", static_cast<int>(s.kind), " has index ", s.index,
                   ", expected below ", count_of(s.kind));
  }
  for (uint32_t input : plan.written_inputs)
    if (input >= plan.inputs.size())
      return error(Code::corrupt, "written input ", input, ", expected below ", plan.inputs.size());
  return {};
}

Status check_step(const Plan &plan, const Plan::Step &step, size_t image_count) {
  for (uint32_t slot : step.slots)
    if (slot >= plan.slots.size()) return error(Code::corrupt, "slot ", slot, ", expected below ", plan.slots.size());
  for (uint32_t symbol : step.symbols)
    if (symbol >= plan.symbols.size())
      return error(Code::corrupt, "symbol ", symbol, ", expected below ", plan.symbols.size());
  switch (step.kind) {
    case Plan::Step::Kind::launch:
      if (step.kernel >= image_count)
        return error(Code::corrupt, "kernel ", step.kernel, ", expected below ", image_count);
      return {};
    case Plan::Step::Kind::copy:
      if (step.slots.size() != 2) return error(Code::corrupt, "a copy of ", step.slots.size(), " slots, expected 2");
      return {};
    case Plan::Step::Kind::reference: {
      const size_t expected = plan.inputs.size() + plan.parameters.size() + plan.outputs.size();
      if (step.slots.size() != expected)
        return error(Code::corrupt, "a reference step of ", step.slots.size(), " slots, expected the signature's ",
                     expected);
      return {};
    }
  }
  return error(Code::corrupt, "unknown kind ", static_cast<int>(step.kind));
}

// What is prepared is made once for all calls, so nothing of it may depend on the sizes of one.
Status check_prepare_step(const Plan &plan, const Plan::Step &step) {
  using Kind = Plan::Slot::Kind;
  if (step.kind == Plan::Step::Kind::reference) return error(Code::corrupt, "prepare cannot run the reference");
  bool sized = !step.symbols.empty() || !step.tasks.is_integer() || !step.scratch_bytes.is_integer();
  for (uint32_t slot : step.slots) {
    const Plan::Slot &s = plan.slots[slot];
    if (s.kind != Kind::parameter && s.kind != Kind::constant && s.kind != Kind::prepared)
      return error(Code::corrupt, "slot ", slot, " is neither parameter, constant nor prepared");
    sized |= !s.size_bytes.is_integer();
  }
  if (sized) return error(Code::corrupt, "it depends on symbols");
  return {};
}

Status check_steps(const Plan &plan, size_t image_count) {
  for (size_t i = 0; i < plan.prepare.size(); ++i) {
    Status status = check_step(plan, plan.prepare[i], image_count);
    if (status.ok()) status = check_prepare_step(plan, plan.prepare[i]);
    if (!status.ok()) return std::move(status).with_prefix(str_cat("prepare step ", i, ": "));
  }
  for (size_t i = 0; i < plan.prepared.size(); ++i)
    if (!plan.prepared[i].size_bytes.is_integer())
      return error(Code::corrupt, "prepared storage ", i, " depends on symbols");
  for (size_t i = 0; i < plan.steps.size(); ++i)
    if (Status status = check_step(plan, plan.steps[i], image_count); !status.ok())
      return std::move(status).with_prefix(str_cat("step ", i, ": "));
  return {};
}

}  // namespace

void serialize(const Plan &plan, ByteWriter &out) {
  PlanWriter writer;
  writer.plan(plan);
  writer.write_to(out);
}

Result<Plan> parse_plan(ByteReader &in, size_t image_count, size_t constant_count) {
  PlanReader reader(in);
  KILN_TRY(reader.expr_table());
  Plan plan = reader.plan();
  if (!in.ok()) return error(Code::corrupt, "ends too early, or names an expression that is not there");
  KILN_TRY(check_arguments("input", plan.inputs));
  KILN_TRY(check_arguments("parameter", plan.parameters));
  KILN_TRY(check_arguments("output", plan.outputs));
  KILN_TRY(check_symbols(plan, reader.table()));
  KILN_TRY(check_slots(plan, constant_count));
  KILN_TRY(check_steps(plan, image_count));
  return plan;
}

}  // namespace kiln
