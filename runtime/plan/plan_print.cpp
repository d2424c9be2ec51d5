#include <algorithm>

#include "runtime/plan/plan.h"

namespace kiln {
namespace {

std::string_view name_of(Plan::Slot::Kind kind) {
  switch (kind) {
    case Plan::Slot::Kind::input:
      return "input";
    case Plan::Slot::Kind::parameter:
      return "parameter";
    case Plan::Slot::Kind::constant:
      return "constant";
    case Plan::Slot::Kind::output:
      return "output";
    case Plan::Slot::Kind::arena:
      return "arena";
    case Plan::Slot::Kind::prepared:
      return "prepared";
  }
  return "?";
}

void print_arguments(std::string_view what, const std::vector<Plan::Argument> &arguments, std::string &out) {
  for (const Plan::Argument &a : arguments) {
    str_append(out, str_cat(what, " ", a.name, ": ", name_of(a.dtype), text_of(a.dims)));
    if (a.strides != row_major_strides(a.dims)) str_append(out, str_cat(" strides ", text_of(a.strides)));
    str_append(out, "\n");
  }
}

// "arena 2": what the slot stands for, which reads better than its number.
std::string slot_text(const Plan &plan, uint32_t slot) {
  const Plan::Slot &s = plan.slots[slot];
  switch (s.kind) {
    case Plan::Slot::Kind::input:
      return plan.inputs[s.index].name;
    case Plan::Slot::Kind::parameter:
      return plan.parameters[s.index].name;
    case Plan::Slot::Kind::output:
      return plan.outputs[s.index].name;
    default:
      return str_cat(name_of(s.kind), " ", s.index);
  }
}

// "if cond(plan 0 or plan 1)(x) -> y"
std::string nested_text(const Plan &plan, const Plan::Step &s) {
  const auto name = [&](uint32_t slot) { return slot_text(plan, slot); };
  const auto run = [&](const Plan::Nested &nested) {
    const auto &symbols = plan.nested[nested.plan].symbols;
    std::string sizes;
    for (size_t i = 0; i < symbols.size(); ++i)
      str_append(sizes, str_cat(i ? ", " : " with ", symbols[i].name, " = ", nested.symbols[i].text()));
    return str_cat("plan ", nested.plan, sizes);
  };
  const size_t first = s.kind == Plan::Step::Kind::branch ? 1 : 0;
  const size_t results = first + plan.nested[s.nested.back().plan].inputs.size();
  const std::span<const uint32_t> slots = s.slots;
  const std::string operands = join(slots.subspan(first, results - first), ", ", name);
  const std::string made = join(slots.subspan(results), ", ", name);
  const std::string what =
      s.kind == Plan::Step::Kind::call ? run(s.nested[0])
      : s.kind == Plan::Step::Kind::scan
          ? str_cat("scan of ", s.scan.turns.text(), " turns, ", s.scan.carried, " carried, ", s.scan.sequences,
                    " sequences", s.scan.reverse ? ", reverse" : "", ": ", run(s.nested[0]))
      : first ? str_cat("if ", name(slots[0]), ": ", run(s.nested[0]), "; else: ", run(s.nested[1]))
              : str_cat("while ", run(s.nested[0]),
                        s.scan.turns.is(-1) ? "" : str_cat(", at most ", s.scan.turns.text(), " turns"), ": ",
                        run(s.nested[1]));
  return str_cat(what, "; (", operands, ") -> (", made, ")");
}

// What it comes to besides.
std::string details_of(const Plan &plan, const Plan::Step &s) {
  if (s.kind == Plan::Step::Kind::copy)
    return str_cat(", ", plan.slots[s.slots[0]].size_bytes.text(), " bytes",
                   s.origins.empty() ? "" : str_cat(" of ", text_of(s.origins)), ": ", why_text(s));
  if (s.kind != Plan::Step::Kind::launch) return "";
  const auto symbol = [&](uint32_t n) { return plan.symbols[n].name; };
  std::string text = s.symbols.empty() ? "" : str_cat(" sizes [", join(s.symbols, ", ", symbol), "]");
  str_append(text, str_cat(" tasks ", s.tasks.text()));
  if (!s.scratch_bytes.is(0)) str_append(text, str_cat(" scratch ", s.scratch_bytes.text(), " bytes"));
  if (!s.origins.empty()) str_append(text, str_cat(" of ", text_of(s.origins)));
  return text;
}

void print_steps(std::string_view what, const Plan &plan, const std::vector<Plan::Step> &steps, std::string &out) {
  for (size_t i = 0; i < steps.size(); ++i)
    str_append(out, str_cat(what, " ", i, ": ", text_of(plan, steps[i]), details_of(plan, steps[i]), "\n"));
}

}  // namespace

std::string text_of(const Plan &plan, const Plan::Step &s) {
  const auto name = [&](uint32_t slot) { return slot_text(plan, slot); };
  switch (s.kind) {
    case Plan::Step::Kind::launch:
      return str_cat("kernel ", s.kernel, "(", join(s.slots, ", ", name), ")");
    case Plan::Step::Kind::copy:
      return str_cat("copy ", name(s.slots[0]), " -> ", name(s.slots[1]));
    case Plan::Step::Kind::reference:
      return "reference";
    case Plan::Step::Kind::call:
    case Plan::Step::Kind::branch:
    case Plan::Step::Kind::loop:
    case Plan::Step::Kind::scan:
      return nested_text(plan, s);
    case Plan::Step::Kind::resolve:
      return str_cat(plan.symbols[s.symbols[0]].name, " = ", name(s.slots[0]));
  }
  return "?";
}

std::string why_text(const Plan::Step &copy) {
  using Why = Plan::Step::Why;
  switch (copy.why) {
    case Why::given:
      return "it is an argument or a constant";
    case Why::prepared:
      return "it is made once for all calls";
    case Why::elsewhere:
      return "it is made where another output or input lies";
    case Why::read:
      return str_cat(copy.node.name.empty() ? "a step" : str_cat("the step of '", copy.node.name, "'"),
                     " reads later what it would overwrite");
    case Why::kept:
      return "what it would overwrite is an output, or what an input becomes";
    case Why::order:
      return "the step that makes it reads other elements than it would overwrite";
    case Why::shared:
      return "it has its memory in common with other values of its piece";
    case Why::written:
      return "it is what an input was that is written, too";
  }
  return "?";
}

const Plan::Presented *Plan::presented_as(size_t output) const {
  const auto found = std::ranges::find(presented, output, &Presented::output);
  return found == presented.end() ? nullptr : &*found;
}

bool Plan::makes(size_t output) const {
  const Presented *as = presented_as(output);
  return !as || as->kind != Presented::Kind::view;
}

namespace {

// " (debug.line=model.py:12)"
std::string debug_text(const Plan::NodeRef &node) { return node.debug.empty() ? "" : str_cat(" (", node.debug, ")"); }

}  // namespace

std::string Plan::Check::text() const {
  return node.path.empty() ? what : str_cat("node '", node.name, "'", debug_text(node), ": ", what);
}

std::string Plan::Risk::text() const {
  if (node.path.empty()) return str_cat("a pass's [", op, "]", debug_text(node));
  return str_cat("node '", node.name, "' [", op, "]", debug_text(node));
}

std::string Plan::Origin::text() const {
  return str_cat(node.name.empty() ? "a pass's" : str_cat("'", node.name, "'"), " [", op, "]");
}

std::string text_of(std::span<const Plan::Origin> origins) {
  constexpr size_t most = 4;  // they may be thousands
  std::string text = join(origins.first(std::min(most, origins.size())), ", ", [](const auto &o) { return o.text(); });
  if (origins.size() > most) str_append(text, str_cat(" and ", origins.size() - most, " more"));
  return text;
}

std::string print(const Plan &plan) {
  std::string out;
  print_arguments("input", plan.inputs, out);
  print_arguments("parameter", plan.parameters, out);
  print_arguments("output", plan.outputs, out);
  for (const Plan::Presented &p : plan.presented) {
    str_append(out, str_cat("given ", plan.outputs[p.output].name));
    if (p.kind == Plan::Presented::Kind::any) str_append(out, " by any strides\n");
    if (p.kind == Plan::Presented::Kind::strided) str_append(out, str_cat(" by strides ", text_of(p.strides), "\n"));
    if (p.kind == Plan::Presented::Kind::view)
      str_append(out, str_cat(" as a view of ", plan.inputs[p.input].name, ", strides ", text_of(p.strides), " from ",
                              p.offset.text(), " on\n"));
  }
  for (uint32_t input : plan.written_inputs) str_append(out, str_cat("writes input ", plan.inputs[input].name, "\n"));
  for (uint32_t input : plan.donated_inputs)
    str_append(out, str_cat("may overwrite input ", plan.inputs[input].name, "\n"));
  for (const Plan::Symbol &s : plan.symbols) {
    const std::string where =
        s.resolved ? str_cat("resolved, at most ", s.bound.text()) : str_cat(plan.inputs[s.input].name, " dim ", s.dim);
    str_append(out, str_cat("symbol ", s.name, " = ", where, ", at least ", s.min));
    if (s.max != INT64_MAX) str_append(out, str_cat(", at most ", s.max));
    if (s.divisor != 1) str_append(out, str_cat(", a multiple of ", s.divisor));
    str_append(out, "\n");
  }
  for (const Plan::Check &c : plan.checks)
    str_append(out, str_cat("check ", c.left.text(), " = ", c.right.text(), " (", c.text(), ")\n"));
  for (size_t i = 0; i < plan.arena.size(); ++i)
    str_append(out, str_cat("arena ", i, ": ", plan.arena[i].size_bytes.text(), " bytes\n"));
  for (size_t i = 0; i < plan.prepared.size(); ++i)
    str_append(out, str_cat("prepared ", i, ": ", plan.prepared[i].size_bytes.text(), " bytes\n"));
  if (plan.in_place) str_append(out, str_cat("made in place: ", plan.in_place, "\n"));
  print_steps("prepare", plan, plan.prepare, out);
  print_steps("step", plan, plan.steps, out);
  for (size_t i = 0; i < plan.nested.size(); ++i) {
    str_append(out, str_cat("plan ", i, ":\n"));
    const std::string text = print(plan.nested[i]);
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at) + 1;
      str_append(out, "  " + text.substr(at, end - at));
      at = end;
    }
  }
  return out;
}

}  // namespace kiln
