#include "runtime/plan/verify_plan.h"

#include <algorithm>
#include <optional>

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
    for (uint32_t i = 0; i < plan_.slots.size(); ++i)
      if (Status status = slot(i); !status.ok()) return std::move(status).with_prefix(str_cat("slot ", i, " "));
    for (size_t i = 0; i < plan_.prepared.size(); ++i)
      if (!plan_.prepared[i].size_bytes.is_integer())
        return error(Code::corrupt, "prepared storage ", i, " depends on symbols");
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
    const size_t expected = plan_.inputs.size() + plan_.parameters.size() + plan_.outputs.size();
    if (s.slots.size() == expected) return {};
    return error(Code::corrupt, "a reference step of ", s.slots.size(), " slots, expected the signature's ", expected);
  }

  Status copy(const Plan::Step &s, bool prepare) {
    if (s.slots.size() != 2) return error(Code::corrupt, "a copy of ", s.slots.size(), " slots, expected 2");
    const Plan::Slot &from = plan_.slots[s.slots[0]], &to = plan_.slots[s.slots[1]];
    if (same_memory(from, to)) return error(Code::corrupt, "a copy of slot ", s.slots[0], " onto itself");
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
    const Plan::Argument *argument = argument_of(given);
    const DType dtype = argument                       ? argument->dtype
                        : given.kind == Kind::constant ? constants_[given.index].dtype
                                                       : wanted.dtype;
    if (dtype != wanted.dtype)
      return error(Code::corrupt, "buffer ", number, " of ", name_of(wanted.dtype), " is slot ", slot, " of ",
                   name_of(dtype));
    if (Status status = fits(size, given.size_bytes, slot); !status.ok())
      return std::move(status).with_prefix(str_cat("buffer ", number, " "));
    if (!wanted.written) return {};
    KILN_TRY(writable(slot, prepare));
    for (size_t other = 0; other < s.slots.size(); ++other)
      if (other != number && same_memory(given, plan_.slots[s.slots[other]]))
        return error(Code::corrupt, "slot ", slot, " is written and used as buffer ", other, ", too");
    return {};
  }

  static bool same_memory(const Plan::Slot &a, const Plan::Slot &b) { return a.kind == b.kind && a.index == b.index; }

  Status writable(uint32_t number, bool prepare) const {
    const Plan::Slot &s = plan_.slots[number];
    if (prepare && s.kind == Kind::prepared) return {};
    if (!prepare && (s.kind == Kind::output || s.kind == Kind::arena)) return {};
    if (!prepare && s.kind == Kind::input &&
        std::ranges::find(plan_.written_inputs, s.index) != plan_.written_inputs.end())
      return {};
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
};

}  // namespace

Status verify_plan(Plan &plan, std::span<const Contract> contracts, std::span<const TensorData> constants) {
  return PlanVerifier(plan, contracts, constants).run();
}

}  // namespace kiln
