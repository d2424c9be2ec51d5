#include "runtime/plan/piece.h"

#include <algorithm>

namespace kiln {
namespace {

void renumber(Plan &plan, const PieceParts::Numbers &numbers, std::span<const uint32_t> constants,
              const NodeNames &names) {
  const auto rename = [&](Plan::NodeRef &node) {
    if (!node.name.empty()) node = names.find(node.name);
  };
  for (Plan::Check &check : plan.checks) rename(check.node);
  for (Plan::Symbol &symbol : plan.symbols) rename(symbol.node);
  for (Plan::Risk &risk : plan.risks) rename(risk.node);
  for (Plan::Slot &slot : plan.slots)
    if (slot.kind == Plan::Slot::Kind::constant) slot.index = constants[slot.index];
  for (std::vector<Plan::Step> *steps : {&plan.prepare, &plan.steps})
    for (Plan::Step &step : *steps) {
      rename(step.node);
      for (Plan::Origin &origin : step.origins) {
        Plan::NodeRef was = origin.node;
        rename(origin.node);
        origin.op = names.op(origin.node, origin.op);
        if (!origin.node.path.empty()) continue;  // passes made it of the whole graph
        origin.node = std::move(was);
        origin.node.path.clear();
      }
      if (step.kind == Plan::Step::Kind::launch) step.kernel = numbers.images[step.kernel];
      if (step.kind == Plan::Step::Kind::reference) step.graph = numbers.graphs[step.graph];
    }
  for (Plan &nested : plan.nested) renumber(nested, numbers, constants, names);
}

const Program *find_program(const std::map<uint32_t, Program> &programs, uint32_t graph) {
  const auto found = programs.find(graph);
  return found == programs.end() ? nullptr : &found->second;
}

}  // namespace

const PieceParts::Numbers &PieceParts::add(const std::shared_ptr<const Artifact> &program) {
  const auto [at, is_new] = known_.try_emplace(program.get());
  Numbers &numbers = at->second;
  if (!is_new) return numbers;
  for (size_t i = 0; i < program->images.size(); ++i) {
    // One kernel may rely on other sizes in another piece: then it is another image, with the same code.
    size_t number = 0;
    while (number < images.size() &&
           (images[number].kernel_key != program->images[i].kernel_key || contracts[number] != program->contracts[i]))
      ++number;
    if (number == images.size()) {
      images.push_back(program->images[i]);
      contracts.push_back(program->contracts[i]);
      kernels.push_back(program->kernels[i]);
    }
    numbers.images.push_back(static_cast<uint32_t>(number));
  }
  for (uint32_t i = 0; i < program->graphs.size(); ++i) {
    const Program *const own = find_program(program->programs, i);
    uint32_t number = 0;
    const auto is_same = [&](uint32_t other) {
      const Program *const of_other = find_program(programs, other);
      return graphs[other] == program->graphs[i] && (own && of_other ? *own == *of_other : own == of_other);
    };
    while (number < graphs.size() && !is_same(number)) ++number;
    numbers.graphs.push_back(number);
    if (number < graphs.size()) continue;
    graphs.push_back(program->graphs[i]);
    if (own) programs.emplace(number, *own);
  }
  return numbers;
}

Plan plan_of(const Piece &piece, const Graph &whole, const PieceParts::Numbers &numbers,
             std::span<const uint32_t> constants, const NodeNames &outer) {
  Plan plan = piece.program->plan;
  renumber(plan, numbers, constants, {outer.keyed, outer.prefix, piece.named.get(), &whole, piece.region.nodes});
  return plan;
}

std::vector<bool> written_by(const Plan::Step &step, std::span<const Plan> nested,
                             std::span<const Contract> contracts) {
  std::vector<bool> written(step.slots.size());
  size_t first = written.size();  // what a step runs nested plans for comes behind what they read
  switch (step.kind) {
    case Plan::Step::Kind::launch:
      for (size_t b = 0; b < written.size(); ++b) written[b] = contracts[step.kernel].buffers[b].written;
      break;
    case Plan::Step::Kind::copy:
      first = 1;
      break;
    case Plan::Step::Kind::call:
    case Plan::Step::Kind::loop:
    case Plan::Step::Kind::scan:
      first = nested[step.nested.back().plan].inputs.size();
      break;
    case Plan::Step::Kind::branch:
      first = 1 + nested[step.nested.back().plan].inputs.size();
      break;
    case Plan::Step::Kind::reference:  // of nested plans alone
    case Plan::Step::Kind::resolve:
      break;
  }
  for (size_t k = first; k < written.size(); ++k) written[k] = true;
  return written;
}

}  // namespace kiln
