// The search: goals are met one after the other, each in the ways that it may be, and what a way has bound is undone
// when it leads nowhere.
#include "runtime/patterns/matcher.h"

#include <algorithm>

namespace kiln::patterns {

std::optional<Place> Matcher::match(const Pattern &pattern, const Node &root) {
  pattern_ = &pattern;
  root_ = &root;
  steps_ = 0;
  states_.assign(pattern.terms.size(), State::open);
  values_.assign(pattern.terms.size(), {});
  dims_.assign(pattern.dims.size(), std::nullopt);
  goals_.clear();
  trail_.clear();
  bound_dims_.clear();
  if (!at_node(pattern.root(), root, 0)) return std::nullopt;
  return Place{.values = values_, .dims = dims_};
}

void Matcher::bind(uint32_t term, State state, ValueId value) {
  states_[term] = state;
  values_[term] = value;
  trail_.push_back(term);
}

void Matcher::undo(const Mark &to) {
  goals_.resize(to.goals);
  for (; trail_.size() > to.trail; trail_.pop_back()) {
    states_[trail_.back()] = State::open;
    values_[trail_.back()] = {};
  }
  for (; bound_dims_.size() > to.dims; bound_dims_.pop_back()) dims_[bound_dims_.back()].reset();
}

void Matcher::note(std::string why) {
  miss_->met = trail_.size();
  miss_->node = root_->name;
  miss_->why = std::move(why);
}

std::string Matcher::called(const Term &term) {
  return term.name.empty() ? std::string("an operand") : str_cat("'", term.name, "'");
}

std::string Matcher::names_of_ops(const Term &term) {
  return join(term.ops, " or ", [](const OpSchema *op) { return op->name; });
}

bool Matcher::solve(size_t at) {
  if (++steps_ > most_steps) return miss_ && fail("there are more ways than are tried: ", most_steps, " steps");
  if (at == goals_.size()) return solve_join(at);
  const Goal goal = goals_[at];
  return pattern_->terms[goal.term].is_node() ? solve_node(goal, at) : solve_capture(goal, at);
}

bool Matcher::solve_capture(const Goal &goal, size_t at) {
  const Term &term = pattern_->terms[goal.term];
  if (states_[goal.term] == State::bound) {
    if (values_[goal.term] == goal.value) return solve(at + 1);
    return miss_ && fail(called(term), " is '", text_of(graph_, values_[goal.term]), "' in one place and ",
                         goal.value ? str_cat("'", text_of(graph_, goal.value), "'") : "not there", " in another");
  }
  if (states_[goal.term] == State::absent && goal.value)
    return miss_ && fail(called(term), " is not there in one place and '", text_of(graph_, goal.value), "' in another");
  if (!goal.value && !term.optional) return miss_ && fail(called(term), " is not there");
  if (!goal.value && states_[goal.term] == State::absent) return solve(at + 1);
  const Mark before = mark();
  if (goal.value && !fits_capture(term, goal.value)) {
    undo(before);
    return false;
  }
  bind(goal.term, goal.value ? State::bound : State::absent, goal.value);
  if (solve(at + 1)) return true;
  undo(before);
  return false;
}

bool Matcher::solve_node(const Goal &goal, size_t at) {
  const Term &term = pattern_->terms[goal.term];
  if (!goal.value) return miss_ && fail(called(term), " is not there");
  if (states_[goal.term] == State::bound) {
    if (values_[goal.term].node == goal.value.node && goal.output == goal.value.output) return solve(at + 1);
    return miss_ && fail(called(term), " is '", text_of(graph_, {values_[goal.term].node, goal.output}),
                         "' in one place and '", text_of(graph_, goal.value), "' in another");
  }
  const Mark before = mark();
  if (states_[goal.term] == State::open) {
    const Node &node = *node_at(goal.value);
    if (goal.value.output != goal.output)
      (void)(miss_ && fail("'", text_of(graph_, goal.value), "' is not result ", goal.output, " of ", called(term)));
    else if (at_node(goal.term, node, at + 1))
      return true;
    if (!term.optional) return false;
    bind(goal.term, State::absent, {});
  }
  const Operand &stands = term.operands.front();
  goals_.push_back({stands.term, stands.output, goal.value});
  if (solve(at + 1)) return true;
  undo(before);
  return false;
}

bool Matcher::at_node(uint32_t index, const Node &node, size_t at) {
  const Term &term = pattern_->terms[index];
  const Mark before = mark();
  if (fits_node(term, node)) {
    bind(index, State::bound, {node.id, 0});
    // An order that a look at the operands rules out is not worth a word where the other one is not.
    const bool either = term.commutes() && node.inputs.size() == 2, turned = either && plausible(term, node, true);
    if ((!turned || plausible(term, node, false)) && with_operands(term, node, false, at)) return true;
    if (turned && with_operands(term, node, true, at)) return true;
  }
  undo(before);
  return false;
}

// Whether a look at the operand's node already says that it is another.
bool Matcher::plausible(const Operand &operand, ValueId value) const {
  const Term &term = pattern_->terms[operand.term];
  if (!term.is_node() || term.optional || !value) return true;
  const Node &node = *node_at(value);
  return node.op && std::ranges::find(term.ops, node.op) != term.ops.end();
}

ValueId Matcher::given(const Node &node, size_t operand, bool turned) {
  const size_t from = turned ? 1 - operand : operand;
  return from < node.inputs.size() ? node.inputs[from] : ValueId();
}

bool Matcher::plausible(const Term &term, const Node &node, bool turned) const {
  for (size_t i = 0; i < term.operands.size(); ++i)
    if (!plausible(term.operands[i], given(node, i, turned))) return false;
  return true;
}

bool Matcher::with_operands(const Term &term, const Node &node, bool turned, size_t at) {
  const Mark before = mark();
  const size_t count = term.operands.size();
  for (size_t i = 0; i < count; ++i) {
    if (plausible(term.operands[i], given(node, i, turned))) continue;
    const Term &operand = pattern_->terms[term.operands[i].term];
    const Node &found = *node_at(given(node, i, turned));
    return miss_ && fail(called(operand), " is to be ", names_of_ops(operand), ", and '",
                         text_of(graph_, given(node, i, turned)), "' is ", found.op ? found.op->name : "no op's");
  }
  for (size_t i = 0; i < count; ++i)
    goals_.push_back({term.operands[i].term, term.operands[i].output, given(node, i, turned)});
  if (solve(at)) return true;
  undo(before);
  return false;
}

// When all goals are met: a node that none of them led to, among the users of what is known.
bool Matcher::solve_join(size_t at) {
  for (const Join &next : pattern_->joins) {
    if (states_[next.term] != State::open) continue;
    const Term &term = pattern_->terms[next.term];
    const Operand &shared = term.operands[next.operand];
    const ValueId value = {values_[shared.term].node,
                           pattern_->terms[shared.term].is_node() ? shared.output : values_[shared.term].output};
    bool any = false;
    for (const uint32_t user : graph_.users(value)) {
      if (is_gone(user) || is_matched(user)) continue;
      any = true;
      if (at_node(next.term, *graph_.find(user), at)) return true;
    }
    return !any && miss_ && fail("nothing else uses '", text_of(graph_, value), "', and ", called(term), " is to");
  }
  return finish();
}

bool Matcher::is_matched(uint32_t node) const {
  for (size_t i = 0; i < values_.size(); ++i)
    if (states_[i] == State::bound && pattern_->terms[i].is_node() && values_[i].node == node) return true;
  return false;
}

}  // namespace kiln::patterns
