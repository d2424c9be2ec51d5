#include "runtime/plan/verify_plan.h"

#include <algorithm>
#include <optional>
#include <set>

namespace kiln {
namespace {

using Kind = Plan::Slot::Kind;

// The bytes that an array of static shape has; nothing where it depends on symbols, or no array can be that large.
std::optional<int64_t> static_bytes(const Plan::Argument &a) {
  const auto is_integer = [](const Expr &e) { return e.is_integer(); };
  if (!std::ranges::all_of(a.dims, is_integer) || !std::ranges::all_of(a.strides, is_integer)) return std::nullopt;
  const Expr bytes = span_elements(a.dims, a.strides) * Expr(static_cast<int64_t>(size_of(a.dtype)));
  return bytes.is_integer() ? std::optional(bytes.integer()) : std::nullopt;
}

class PlanVerifier {
 public:
  PlanVerifier(Plan &plan, std::span<const Contract> contracts, std::span<const TensorData> constants)
      : plan_(plan), contracts_(contracts), constants_(constants), equal_(plan.checks) {}

  Status run() {
    plan_.bounds.clear();
    for (uint32_t input : plan_.written_inputs)
      if (input >= plan_.inputs.size())
        return error(Code::corrupt, "written input ", input, ", expected below ", plan_.inputs.size());
    for (uint32_t input : plan_.donated_inputs)
      if (input >= plan_.inputs.size())
        return error(Code::corrupt, "donated input ", input, ", expected below ", plan_.inputs.size());
    for (const Plan::Argument &a : plan_.outputs)
      if (a.strides != row_major_strides(a.dims))
        return error(Code::corrupt, "output '", a.name, "' is not made row-major");
    for (uint32_t i = 0; i < plan_.slots.size(); ++i)
      if (Status status = slot(i); !status.ok()) return std::move(status).with_prefix(str_cat("slot ", i, " "));
    for (size_t i = 0; i < plan_.prepared.size(); ++i)
      if (!plan_.prepared[i].size_bytes.is_integer())
        return error(Code::corrupt, "prepared storage ", i, " depends on symbols");
    for (size_t i = 0; i < plan_.nested.size(); ++i)
      if (Status status = nested(plan_.nested[i]); !status.ok())
        return std::move(status).with_prefix(str_cat("nested plan ", i, ": "));
    KILN_TRY(steps(plan_.prepare, true));
    return steps(plan_.steps, false);
  }

 private:
  // ---- slots
  size_t count_of(Kind kind) const {
    switch (kind) {
      case Kind::input:
        return plan_.inputs.size();
      case Kind::parameter:
        return plan_.parameters.size();
      case Kind::constant:
        return constants_.size();
      case Kind::output:
        return plan_.outputs.size();
      case Kind::arena:
        return plan_.arena.size();
      case Kind::prepared:
        return plan_.prepared.size();
    }
    return 0;  // an unknown kind
  }

  // The argument of the signature that a slot stands for; null: it is none.
  const Plan::Argument *argument_of(const Plan::Slot &s) const {
    switch (s.kind) {
      case Kind::input:
        return &plan_.inputs[s.index];
      case Kind::parameter:
        return &plan_.parameters[s.index];
      case Kind::output:
        return &plan_.outputs[s.index];
      default:
        return nullptr;
    }
  }

  Status slot(uint32_t number) {
    const Plan::Slot &s = plan_.slots[number];
    if (s.index >= count_of(s.kind))
      return error(Code::corrupt, "of kind ", static_cast<int>(s.kind), " has index ", s.index, ", expected below ",
                   count_of(s.kind));
    if (const Plan::Argument *a = argument_of(s)) {
      const std::optional<int64_t> bytes = static_bytes(*a);  // otherwise a call compares it with its array
      return bytes ? fits(s.size_bytes, Expr(*bytes), number) : Status();
    }
    if (s.kind == Kind::constant)
      return fits(s.size_bytes, Expr(static_cast<int64_t>(constants_[s.index].bytes.size())), number);
    return fits(s.size_bytes, (s.kind == Kind::arena ? plan_.arena : plan_.prepared)[s.index].size_bytes, number);
  }

  // Whether `size` bytes lie within `room` bytes, now or at each call.
  Status fits(const Expr &size, const Expr &room, uint32_t slot) {
    if (size == room) return {};
    if (!size.is_integer() || !room.is_integer()) {
      plan_.bounds.push_back({size, room, slot});
      return {};
    }
    if (size.integer() <= std::max<int64_t>(room.integer(), 0)) return {};
    return error(Code::corrupt, "of ", size.integer(), " bytes lies in ", room.integer(), " bytes");
  }

  // ---- plans that steps run
  Status nested(Plan &plan) const {
    if (!plan.parameters.empty() || !plan.prepared.empty() || !plan.prepare.empty())
      return error(Code::corrupt, "it has parameters, or something to prepare");
    if (!plan.written_inputs.empty()) return error(Code::corrupt, "it writes its inputs");
    if (!plan.donated_inputs.empty()) return error(Code::corrupt, "it overwrites its inputs");
    if (!plan.presented.empty()) return error(Code::corrupt, "its outputs are not all row-major");
    for (const auto *arguments : {&plan.inputs, &plan.outputs})
      for (const Plan::Argument &a : *arguments) KILN_TRY(argument_of_nested(plan, a));
    return PlanVerifier(plan, contracts_, constants_).run();
  }

  // What runs the plan knows how large they are before it does.
  static Status argument_of_nested(const Plan &plan, const Plan::Argument &a) {
    if (a.strides != row_major_strides(a.dims)) return error(Code::corrupt, "'", a.name, "' is not row-major");
    std::set<std::string> used;
    for (const Expr &dim : a.dims) dim.collect_symbols(used);
    for (const Plan::Symbol &symbol : plan.symbols)
      if (symbol.resolved && used.contains(symbol.name))
        return error(Code::corrupt, "the size of '", a.name, "' is symbol '", symbol.name,
                     "', which it resolves itself");
    return {};
  }

  // Arguments of a nested plan, as slots of the step from `first` on, which hold `times` of each.
  Status give(const Plan::Step &s, const SymbolMap &names, std::span<const Plan::Argument> arguments, size_t first,
              const Expr &times = 1) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Plan::Argument &a = arguments[i];
      const uint32_t slot = s.slots[first + i];
      KILN_TRY(same_dtype(str_cat("'", a.name, "'"), a.dtype, slot));
      const Expr size = span_elements(a.dims, a.strides) * Expr(static_cast<int64_t>(size_of(a.dtype)));
      KILN_TRY(fits(renamed(size, names) * times, plan_.slots[slot].size_bytes, slot)
                   .with_prefix(str_cat("'", a.name, "' ")));
    }
    return {};
  }

  // What the symbols of a step's nested plans are.
  Result<std::vector<SymbolMap>> names_in_nested(const Plan::Step &s, size_t wanted) const {
    if (s.nested.size() != wanted) return error(Code::corrupt, s.nested.size(), " nested plans, expected ", wanted);
    std::vector<SymbolMap> names;
    for (const Plan::Nested &n : s.nested) {
      if (n.plan >= plan_.nested.size())
        return error(Code::corrupt, "nested plan ", n.plan, ", expected below ", plan_.nested.size());
      const std::vector<Plan::Symbol> &symbols = plan_.nested[n.plan].symbols;
      if (n.symbols.size() != symbols.size())
        return error(Code::corrupt, n.symbols.size(), " sizes for a nested plan of ", symbols.size(), " symbols");
      SymbolMap &map = names.emplace_back();
      for (size_t i = 0; i < symbols.size(); ++i) map.insert_or_assign(symbols[i].name, n.symbols[i]);
    }
    return names;
  }

  Status run_nested(Plan::Step &s) {
    const bool is_loop = s.kind == Plan::Step::Kind::loop, is_branch = s.kind == Plan::Step::Kind::branch;
    KILN_ASSIGN(const std::vector<SymbolMap> names, names_in_nested(s, is_loop || is_branch ? 2 : 1));
    const Plan &last = plan_.nested[s.nested.back().plan];  // whose outputs are the results
    const size_t first = is_branch ? 1 : 0, results = first + last.inputs.size(), count = last.outputs.size();
    if (s.slots.size() != results + count * (is_loop ? 2 : 1))
      return error(Code::corrupt, s.slots.size(), " slots, its nested plans have ", last.inputs.size(), " inputs and ",
                   count, " outputs");
    if (is_branch) KILN_TRY(predicate(s.slots[0]));
    for (size_t i = 0; i < s.nested.size(); ++i) {
      const Plan &plan = plan_.nested[s.nested[i].plan];
      if (plan.inputs.size() != last.inputs.size())
        return error(Code::corrupt, "nested plans of ", plan.inputs.size(), " and ", last.inputs.size(), " inputs");
      KILN_TRY(give(s, names[i], plan.inputs, first));
      if (is_loop && i == 0) {
        if (plan.outputs.size() != 1 || plan.outputs[0].dtype != DType::boolean || !plan.outputs[0].dims.empty())
          return error(Code::corrupt, "whether a loop goes on is not one bool");
        continue;
      }
      if (plan.outputs.size() != count)
        return error(Code::corrupt, "nested plans of ", plan.outputs.size(), " and ", count, " outputs");
      KILN_TRY(give(s, names[i], plan.outputs, results));
    }
    if (is_loop) KILN_TRY(turns(s, names, results));
    // Code that Kiln did not make runs the node then, or reference kernels, which write results when they have read
    // all: neither relies on where operands lie.
    const bool is_one_step = s.kind == Plan::Step::Kind::call && only_reference_step(last);
    return distinct_results(s, results, is_one_step ? results : 0);
  }

  // What one turn leaves is what the next one reads, and what asks whether there is one.
  Status turns(const Plan::Step &s, std::span<const SymbolMap> names, size_t results) {
    const Plan &go_on = plan_.nested[s.nested[0].plan], &turn = plan_.nested[s.nested[1].plan];
    const size_t count = turn.outputs.size();
    if (count > turn.inputs.size())
      return error(Code::corrupt, "a turn makes ", count, " arrays of ", turn.inputs.size());
    for (const size_t first : {results, results + count}) {
      KILN_TRY(give(s, names[0], std::span(go_on.inputs).first(count), first));
      KILN_TRY(give(s, names[1], std::span(turn.inputs).first(count), first));
      KILN_TRY(give(s, names[1], turn.outputs, first));
    }
    for (size_t i = 0; i < count; ++i) {
      for (const Plan *plan : {&go_on, &turn}) KILN_TRY(carried_on(turn.outputs[i], plan->inputs[i]));
    }
    return {};
  }

  Status scan(const Plan::Step &s) {
    KILN_ASSIGN(const std::vector<SymbolMap> all_names, names_in_nested(s, 1));
    const SymbolMap &names = all_names[0];
    const Plan &turn = plan_.nested[s.nested[0].plan];
    const std::span<const Plan::Argument> inputs = turn.inputs, outputs = turn.outputs;
    const size_t carried = s.scan.carried, sequences = s.scan.sequences;
    if (carried > inputs.size() || carried > outputs.size() || sequences > inputs.size() - carried)
      return error(Code::corrupt, "a scan of ", carried, " carried arrays and ", sequences, " sequences, its plan has ",
                   inputs.size(), " inputs and ", outputs.size(), " outputs");
    if (s.scan.turns.is_integer() && s.scan.turns.integer() < 0)
      return error(Code::corrupt, "a scan of ", s.scan.turns.integer(), " turns");
    const size_t results = inputs.size(), spare = results + outputs.size();
    if (s.slots.size() != spare + carried)
      return error(Code::corrupt, s.slots.size(), " slots for a scan, expected ", spare + carried);
    KILN_TRY(give(s, names, inputs.first(carried), 0));
    KILN_TRY(give(s, names, inputs.subspan(carried, sequences), carried, s.scan.turns));
    KILN_TRY(give(s, names, inputs.subspan(carried + sequences), carried + sequences));
    KILN_TRY(give(s, names, outputs.subspan(carried), results + carried, s.scan.turns));
    for (const size_t first : {results, spare}) {
      KILN_TRY(give(s, names, inputs.first(carried), first));
      KILN_TRY(give(s, names, outputs.first(carried), first));
    }
    for (size_t i = 0; i < carried; ++i) KILN_TRY(carried_on(outputs[i], inputs[i]));
    return distinct_results(s, results);
  }

  static Status carried_on(const Plan::Argument &made, const Plan::Argument &read) {
    if (made.dtype == read.dtype) return {};
    return error(Code::corrupt, "a turn makes ", name_of(made.dtype), " of '", read.name, "', which is ",
                 name_of(read.dtype));
  }

  // ---- sizes that steps resolve
  // What a step's sizes depend on is known when it runs: what bounds say is checked as soon as it is.
  Status is_resolved(const Plan::Step &s) const {
    if (!resolves_) return {};
    std::set<std::string> used;
    for (const uint32_t slot : s.slots) plan_.slots[slot].size_bytes.collect_symbols(used);
    for (const Plan::Nested &n : s.nested)
      for (const Expr &e : n.symbols) e.collect_symbols(used);
    s.scan.turns.collect_symbols(used);
    if (s.kind == Plan::Step::Kind::launch)
      for (const uint32_t symbol : s.symbols) used.insert(plan_.symbols[symbol].name);
    if (s.kind == Plan::Step::Kind::reference) return {};  // it resolves them on its way
    for (const Plan::Symbol &symbol : plan_.symbols)
      if (symbol.resolved && !resolved_.contains(symbol.name) && used.contains(symbol.name))
        return error(Code::corrupt, "it speaks of symbol '", symbol.name, "' before that is resolved");
    return {};
  }

  Status resolve(const Plan::Step &s, bool prepare) {
    if (prepare) return error(Code::corrupt, "prepare cannot resolve a symbol");
    if (s.slots.size() != 1 || s.symbols.size() != 1)
      return error(Code::corrupt, "resolves ", s.symbols.size(), " symbols from ", s.slots.size(),
                   " slots, expected 1");
    const Plan::Symbol &symbol = plan_.symbols[s.symbols[0]];
    if (!symbol.resolved || !resolved_.insert(symbol.name).second)
      return error(Code::corrupt, "symbol '", symbol.name, "' is bound already");
    std::set<std::string> used;
    symbol.bound.collect_symbols(used);
    for (const Plan::Symbol &other : plan_.symbols)
      if (other.resolved && used.contains(other.name) && (other.name == symbol.name || !resolved_.contains(other.name)))
        return error(Code::corrupt, "the bound of symbol '", symbol.name, "' is not known");
    KILN_TRY(same_dtype("the size", DType::i64, s.slots[0]));
    return fits(8, plan_.slots[s.slots[0]].size_bytes, s.slots[0]);
  }

  Status predicate(uint32_t slot) {
    KILN_TRY(same_dtype("the predicate", DType::boolean, slot));
    return fits(1, plan_.slots[slot].size_bytes, slot);
  }

  // What a step writes is writable, and no other operand of it but for the first `shared`.
  Status distinct_results(const Plan::Step &s, size_t first, size_t shared = 0) const {
    for (size_t i = first; i < s.slots.size(); ++i) {
      KILN_TRY(writable(s.slots[i], false));
      for (size_t other = shared; other < s.slots.size(); ++other)
        if (other != i && Plan::same_memory(plan_.slots[s.slots[i]], plan_.slots[s.slots[other]]))
          return error(Code::corrupt, "slot ", s.slots[i], " is written and used as operand ", other, ", too");
    }
    return {};
  }

  // A slot of the arena has the type of whoever uses it.
  Status same_dtype(const std::string &what, DType wanted, uint32_t number) const {
    const Plan::Slot &slot = plan_.slots[number];
    const Plan::Argument *argument = argument_of(slot);
    const DType dtype = argument                      ? argument->dtype
                        : slot.kind == Kind::constant ? constants_[slot.index].dtype
                                                      : wanted;
    if (dtype == wanted) return {};
    return error(Code::corrupt, what, " of ", name_of(wanted), " is slot ", number, " of ", name_of(dtype));
  }

  // ---- steps
  Status steps(std::vector<Plan::Step> &steps, bool prepare) {
    for (size_t i = 0; i < steps.size(); ++i)
      if (Status status = step(steps[i], prepare); !status.ok())
        return std::move(status).with_prefix(str_cat(prepare ? "prepare step " : "step ", i, ": "));
    return {};
  }

  Status step(Plan::Step &s, bool prepare) {
    for (uint32_t slot : s.slots)
      if (slot >= plan_.slots.size())
        return error(Code::corrupt, "slot ", slot, ", expected below ", plan_.slots.size());
    for (uint32_t symbol : s.symbols)
      if (symbol >= plan_.symbols.size())
        return error(Code::corrupt, "symbol ", symbol, ", expected below ", plan_.symbols.size());
    for (const uint32_t risk : s.risks)
      if (risk >= plan_.risks.size())
        return error(Code::corrupt, "risk ", risk, ", expected below ", plan_.risks.size());
    KILN_TRY(is_resolved(s));
    switch (s.kind) {
      case Plan::Step::Kind::launch:
        KILN_TRY(launch(s, prepare));
        break;
      case Plan::Step::Kind::copy:
        KILN_TRY(copy(s, prepare));
        break;
      case Plan::Step::Kind::reference:
        KILN_TRY(reference(s, prepare));
        break;
      case Plan::Step::Kind::resolve:
        KILN_TRY(resolve(s, prepare));
        break;
      case Plan::Step::Kind::call:
      case Plan::Step::Kind::branch:
      case Plan::Step::Kind::loop:
        if (prepare) return error(Code::corrupt, "prepare cannot run a nested plan");
        KILN_TRY(run_nested(s));
        break;
      case Plan::Step::Kind::scan:
        if (prepare) return error(Code::corrupt, "prepare cannot run a nested plan");
        KILN_TRY(scan(s));
        break;
      default:
        return error(Code::corrupt, "unknown kind ", static_cast<int>(s.kind));
    }
    return prepare ? depends_on_no_call(s) : Status();
  }

  // What is prepared is made once for all calls.
  Status depends_on_no_call(const Plan::Step &s) const {
    bool sized = !s.symbols.empty() || !s.tasks.is_integer() || !s.scratch_bytes.is_integer();
    for (uint32_t number : s.slots) {
      const Plan::Slot &slot = plan_.slots[number];
      if (slot.kind != Kind::parameter && slot.kind != Kind::constant && slot.kind != Kind::prepared)
        return error(Code::corrupt, "slot ", number, " is neither parameter, constant nor prepared");
      sized |= !slot.size_bytes.is_integer();
    }
    return sized ? error(Code::corrupt, "it depends on symbols") : Status();
  }

  Status reference(const Plan::Step &s, bool prepare) const {
    if (prepare) return error(Code::corrupt, "prepare cannot run the reference");
    const size_t inputs = plan_.inputs.size(), parameters = plan_.parameters.size();
    const size_t expected = inputs + parameters + plan_.outputs.size();
    if (s.slots.size() != expected)
      return error(Code::corrupt, "a reference step of ", s.slots.size(), " slots, expected the signature's ",
                   expected);
    for (size_t i = 0; i < expected; ++i) {
      const auto [kind, first] = i < inputs                ? std::pair(Kind::input, size_t{0})
                                 : i < inputs + parameters ? std::pair(Kind::parameter, inputs)
                                                           : std::pair(Kind::output, inputs + parameters);
      const Plan::Slot &slot = plan_.slots[s.slots[i]];
      if (slot.kind != kind || slot.index != i - first)
        return error(Code::corrupt, "operand ", i, " of a reference step is slot ", s.slots[i],
                     ", which is not that of the signature");
    }
    return {};
  }

  Status copy(const Plan::Step &s, bool prepare) {
    if (s.slots.size() != 2) return error(Code::corrupt, "a copy of ", s.slots.size(), " slots, expected 2");
    if (s.why < Plan::Step::Why::given || s.why > Plan::Step::Why::written)
      return error(Code::corrupt, "a copy for unknown reason ", static_cast<int>(s.why));
    const Plan::Slot &from = plan_.slots[s.slots[0]], &to = plan_.slots[s.slots[1]];
    if (Plan::same_memory(from, to)) return error(Code::corrupt, "a copy of slot ", s.slots[0], " onto itself");
    KILN_TRY(writable(s.slots[1], prepare));
    // Sizes with symbols are compared when they are known (exec/steps.h).
    if (from.size_bytes == to.size_bytes || !from.size_bytes.is_integer() || !to.size_bytes.is_integer()) return {};
    return error(Code::corrupt, "copies ", from.size_bytes.integer(), " bytes to a slot of ", to.size_bytes.integer());
  }

  Status launch(Plan::Step &s, bool prepare) {
    if (s.kernel >= contracts_.size())
      return error(Code::corrupt, "kernel ", s.kernel, ", expected below ", contracts_.size());
    const Contract &c = contracts_[s.kernel];
    if (s.slots.size() != c.buffers.size())
      return error(Code::corrupt, s.slots.size(), " slots for a kernel of ", c.buffers.size(), " buffers");
    if (s.symbols.size() != c.symbols.size())
      return error(Code::corrupt, s.symbols.size(), " symbols for a kernel of ", c.symbols.size(), " sizes");
    for (size_t i = 0; i < c.symbols.size(); ++i) KILN_TRY(range(plan_.symbols[s.symbols[i]], c.symbols[i]));
    const auto names = names_of(s, c);
    for (size_t b = 0; b < c.buffers.size(); ++b)
      KILN_TRY(buffer(s, c, b, renamed(c.buffers[b].size_bytes, names), prepare));
    for (const Contract::Equality &e : c.equalities) KILN_TRY(equal(renamed(e.left, names), renamed(e.right, names)));
    s.tasks = renamed(c.tasks, names);
    s.scratch_bytes = renamed(c.scratch_bytes, names);
    return {};
  }

  static Status range(const Plan::Symbol &s, const Contract::Symbol &relied_on) {
    const bool holds =
        std::max<int64_t>(s.min, 0) >= relied_on.min && s.max <= relied_on.max && s.divisor % relied_on.divisor == 0;
    if (holds) return {};
    return error(Code::corrupt, "symbol '", s.name, "' is ", s.min, " to ", s.max, " by ", s.divisor,
                 ", its kernel relies on ", relied_on.min, " to ", relied_on.max, " by ", relied_on.divisor);
  }

  Status buffer(const Plan::Step &s, const Contract &c, size_t number, const Expr &size, bool prepare) {
    const Contract::Buffer &wanted = c.buffers[number];
    const uint32_t slot = s.slots[number];
    const Plan::Slot &given = plan_.slots[slot];
    KILN_TRY(same_dtype(str_cat("buffer ", number), wanted.dtype, slot));
    if (Status status = fits(size, given.size_bytes, slot); !status.ok())
      return std::move(status).with_prefix(str_cat("buffer ", number, " "));
    if (!wanted.written) return {};
    KILN_TRY(writable(slot, prepare));
    for (uint32_t other = 0; other < s.slots.size(); ++other)
      if (other != number && Plan::same_memory(given, plan_.slots[s.slots[other]]) &&
          (c.buffers[other].written || std::ranges::find(wanted.in_place, other) == wanted.in_place.end()))
        return error(Code::corrupt, "slot ", slot, " is written and used as buffer ", other, ", too");
    return {};
  }

  Status writable(uint32_t number, bool prepare) const {
    const Plan::Slot &s = plan_.slots[number];
    if (prepare && s.kind == Kind::prepared) return {};
    if (!prepare && (s.kind == Kind::output || s.kind == Kind::arena)) return {};
    const auto has = [&](const std::vector<uint32_t> &inputs) {
      return std::ranges::find(inputs, s.index) != inputs.end();
    };
    if (!prepare && s.kind == Kind::input && (has(plan_.written_inputs) || has(plan_.donated_inputs))) return {};
    return error(Code::corrupt, "slot ", number, " of kind ", static_cast<int>(s.kind), " cannot be written");
  }

  Status equal(const Expr &left, const Expr &right) {
    if (equal_.contains(left, right)) return {};
    if (left.is_integer() && right.is_integer())
      return error(Code::corrupt, "its kernel relies on ", left.integer(), " = ", right.integer());
    plan_.bounds.push_back({left, right, Plan::Bound::no_slot});
    plan_.bounds.push_back({right, left, Plan::Bound::no_slot});
    return {};
  }

  // ---- a contract in the plan's symbols. Empty: its names are the plan's already, as for most launches.
  SymbolMap names_of(const Plan::Step &s, const Contract &c) const {
    SymbolMap names;
    bool differ = false;
    for (size_t i = 0; i < c.symbols.size(); ++i) differ |= c.symbols[i].name != plan_.symbols[s.symbols[i]].name;
    for (size_t i = 0; differ && i < c.symbols.size(); ++i)
      names.insert_or_assign(c.symbols[i].name, Expr::symbol(plan_.symbols[s.symbols[i]].name));
    return names;
  }

  Plan &plan_;
  const std::span<const Contract> contracts_;
  const std::span<const TensorData> constants_;
  const EqualSizes equal_;
  const bool resolves_ = std::ranges::any_of(plan_.symbols, &Plan::Symbol::resolved);
  std::set<std::string> resolved_;  // by the steps so far
};

}  // namespace

Status verify_plan(Plan &plan, std::span<const Contract> contracts, std::span<const TensorData> constants) {
  return PlanVerifier(plan, contracts, constants).run();
}

}  // namespace kiln
