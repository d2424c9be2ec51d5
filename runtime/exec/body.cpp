#include "runtime/exec/body.h"

#include <utility>

namespace kiln {

struct Body::Nested {
  explicit Nested(PlanPart part) : signature(part.plan), sizes(part.plan, signature, part.numbers) {}

  void set_inputs(std::span<void *const> data) const {
    for (uint32_t i = 0; i < data.size(); ++i) body->set_array(i, data[i]);
  }
  void set_outputs(std::span<void *const> data) const {
    for (uint32_t i = 0; i < data.size(); ++i) body->set_array(signature.outputs().begin + i, data[i]);
  }
  Status run(std::span<void *const> operands) const { return body->run_on(operands); }

  const Signature signature;
  ResolvedSizes sizes;
  std::unique_ptr<Body> body;
  std::vector<int64_t> symbols;  // that it was placed for
  // Why it is not placed, as long as it is not.
  Status failed = error(Code::internal, "a nested plan is run before it is placed");
  bool placed = false;
};

Body::Body(PlanPart part, const Signature &signature, ResolvedSizes &sizes, LoopWatch &watch)
    : part_(part), signature_(signature), sizes_(sizes), watch_(watch), plan_slots_(signature.count()) {
  const std::vector<Plan::Slot> &slots = part.plan.slots;
  for (uint32_t i = 0; i < slots.size(); ++i) {
    if (slots[i].kind == Plan::Slot::Kind::input) plan_slots_[slots[i].index].push_back(i);
    if (slots[i].kind == Plan::Slot::Kind::output) plan_slots_[signature.outputs().begin + slots[i].index].push_back(i);
  }
}

Body::~Body() = default;

void Body::make_all_nested() {
  for (const Plan::Step &step : part_.plan.steps) {
    auto &all = nested_.emplace_back();
    for (const Plan::Nested &n : step.nested) {
      const PlanPart part{part_.plan.nested[n.plan], part_.numbers.nested[n.plan]};
      Nested &made = *all.emplace_back(std::make_unique<Nested>(part));
      made.body = make_nested(part, made.signature, made.sizes);
      made.body->caller_ = &step;
    }
  }
}

Body &Body::nested_body(size_t step) { return *nested_[step][0]->body; }

Status Body::place() {
  KILN_TRY(ready().resolve(sizes_));
  KILN_TRY(place_memory());
  return place_nested();
}

Status Body::place_nested() {
  std::vector<int64_t> symbols;
  for (size_t step = 0; step < nested_.size(); ++step) {
    for (size_t k = 0; k < nested_[step].size(); ++k) {
      symbols.clear();
      for (const uint32_t number : part_.numbers.steps[step].nested[k]) symbols.push_back(sizes_[number]);
      Nested &n = *nested_[step][k];
      if (n.placed && n.symbols == symbols) continue;
      n.failed = named(step, place(n, symbols));
      n.placed = n.failed.ok();
      // Before steps have told all sizes it is placed for the largest, which need not hold its checks.
      if (!n.placed && sizes_.is_complete()) return n.failed;
    }
  }
  return {};
}

Status Body::place(Nested &n, const std::vector<int64_t> &symbols) {
  KILN_TRY(n.sizes.resolve(symbols));
  KILN_TRY(n.sizes.check_bounds());
  KILN_TRY(n.body->place());
  n.symbols = symbols;
  return {};
}

Status Body::run_on(std::span<void *const> operands) {
  for (uint32_t slot = 0; slot < operands.size(); ++slot) set_array(slot, operands[slot]);
  return run();
}

void Body::set_array(uint32_t slot, void *data) {
  for (const uint32_t plan_slot : plan_slots_[slot]) ready().set(plan_slot, data);
}

uint64_t Body::size_bytes() const {
  uint64_t bytes = own_bytes();
  for (const auto &step : nested_)
    for (const auto &n : step) bytes += n->body->size_bytes();
  return bytes;
}

Status Body::run_control(size_t step) {
  for (const std::unique_ptr<Nested> &n : nested_[step])
    if (!n->placed) return n->failed;
  switch (part_.plan.steps[step].kind) {
    case Plan::Step::Kind::call:
      return call(step);
    case Plan::Step::Kind::branch:
      return branch(step);
    case Plan::Step::Kind::loop:
      return loop(step);
    case Plan::Step::Kind::scan:
      return scan(step);
    case Plan::Step::Kind::resolve:
      return resolve(step);
    case Plan::Step::Kind::launch:
    case Plan::Step::Kind::copy:
    case Plan::Step::Kind::reference:
      break;
  }
  return error(Code::internal, "step ", step, " is not for a body to run");
}

Result<bool> Body::is_true(const void *flag) {
  uint8_t value = 0;
  KILN_TRY(read(&value, flag, sizeof value));
  return value != 0;
}

// The arena was laid out for the largest size: what follows alone is told the one that it is.
Status Body::resolve(size_t step) {
  int64_t size = 0;
  KILN_TRY(read(&size, ready().operands_of(step)[0], sizeof size));
  KILN_TRY(sizes_.set(part_.plan.steps[step].symbols[0], size));
  KILN_TRY(ready().resolve(sizes_));
  return place_nested();
}

Status Body::call(size_t step) { return named(step, nested_[step][0]->run(ready().operands_of(step))); }

namespace {

bool names_nested(const Plan::Step &step) { return step.kind == Plan::Step::Kind::call && !step.node.name.empty(); }

}  // namespace

bool Body::is_named() const { return caller_ && names_nested(*caller_); }

Status Body::named(size_t step, Status status) const {
  const Plan::Step &calls = part_.plan.steps[step];
  return status.ok() || !names_nested(calls) ? std::move(status) : std::move(status).at_node(calls.node.name);
}

Status Body::branch(size_t step) {
  const std::span<void *const> operands = ready().operands_of(step);
  KILN_ASSIGN(const bool taken, is_true(operands[0]));
  return nested_[step][taken ? 0 : 1]->run(operands.subspan(1));
}

// What is carried lies by turns in the results and in as many spare arrays.
Status Body::loop(size_t step) {
  const std::span<void *const> operands = ready().operands_of(step);
  const int64_t most = sizes_[part_.numbers.steps[step].turns];
  const Nested &go_on = *nested_[step][0], &turn = *nested_[step][1];
  const uint32_t inputs = turn.signature.inputs().end;
  const uint32_t carried = turn.signature.count() - inputs;
  const std::span<void *const> fixed = operands.subspan(carried, inputs - carried);
  const std::span<void *const> results = operands.subspan(inputs, carried), spare = operands.subspan(inputs + carried);
  const auto copy_all = [&](std::span<void *const> from, std::span<void *const> to) -> Status {
    for (uint32_t i = 0; i < carried; ++i) KILN_TRY(copy(to[i], from[i], turn.sizes.argument(i).span_bytes));
    return {};
  };
  for (const Nested *n : {&go_on, &turn})
    for (uint32_t i = 0; i < fixed.size(); ++i) n->body->set_array(carried + i, fixed[i]);
  void *const more = flag();
  go_on.set_outputs({&more, 1});

  KILN_TRY(copy_all(operands, results));
  Status failed;
  std::span<void *const> now = results, next = spare;
  for (int64_t turns = 0; turns != most; std::swap(now, next)) {
    go_on.set_inputs(now);
    KILN_TRY(run_turn(go_on, step, turns + 1, failed));
    KILN_ASSIGN(const bool goes_on, is_true(more));
    if (!goes_on) break;
    turn.set_inputs(now);
    turn.set_outputs(next);
    KILN_TRY(run_turn(turn, step, ++turns, failed));
    KILN_TRY(watch_.turned(part_.plan.steps[step].node.name, turns));
  }
  if (now.data() != results.data()) KILN_TRY(copy_all(now, results));
  return failed;
}

// What is carried lies by turns in the results and in as many spare arrays, in the end in the results.
Status Body::scan(size_t step) {
  const std::span<void *const> operands = ready().operands_of(step);
  const Plan::Scan &how = part_.plan.steps[step].scan;
  const int64_t turns = sizes_[part_.numbers.steps[step].turns];
  if (turns < 0) return error(Code::corrupt, "a scan of ", turns, " turns");
  const Nested &turn = *nested_[step][0];
  const uint32_t carried = how.carried, inputs = turn.signature.inputs().end, slots = turn.signature.count();
  std::span<void *const> now = operands.subspan(inputs, carried), next = operands.subspan(slots);
  if (turns % 2) std::swap(now, next);
  for (uint32_t i = 0; i < carried; ++i) KILN_TRY(copy(now[i], operands[i], turn.sizes.argument(i).span_bytes));
  const auto step_through = [&](uint32_t begin, uint32_t end, int64_t at) {
    for (uint32_t i = begin; i < end; ++i)
      turn.body->set_array(
          i, static_cast<uint8_t *>(operands[i]) + static_cast<uint64_t>(at) * turn.sizes.argument(i).span_bytes);
  };
  for (uint32_t i = carried + how.sequences; i < inputs; ++i) turn.body->set_array(i, operands[i]);
  Status failed;
  for (int64_t n = 0; n < turns; ++n, std::swap(now, next)) {
    const int64_t at = how.reverse ? turns - 1 - n : n;
    turn.set_inputs(now);
    for (uint32_t i = 0; i < carried; ++i) turn.body->set_array(inputs + i, next[i]);
    step_through(carried, carried + how.sequences, at);
    step_through(inputs + carried, slots, at);
    KILN_TRY(run_turn(turn, step, n + 1, failed));
    KILN_TRY(watch_.turned(part_.plan.steps[step].node.name, n + 1));
  }
  return failed;
}

Status Body::run_turn(const Nested &n, size_t step, int64_t turn, Status &failed) {
  Status status = first_of(failed, n.body->run(), watch_);
  if (status.ok() || !watch_.is_cancelled()) return status;
  return LoopWatch::ended_in(part_.plan.steps[step].node.name, turn);
}

}  // namespace kiln
