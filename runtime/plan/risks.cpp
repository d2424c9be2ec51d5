#include "runtime/plan/risks.h"

#include <utility>

namespace kiln {
namespace {

constexpr uint32_t unset = UINT32_MAX;

// Where the tensors of a program are made and read.
struct Uses {
  std::vector<uint32_t> writer;             // by tensor: the launch, or unset: it is not in memory
  std::vector<std::vector<uint32_t>> read;  // by tensor: the defs

  Uses(const kernel::Program &program, std::span<const kernel::Launch> launches)
      : writer(program.tensors.size(), unset), read(program.tensors.size()) {
    for (uint32_t i = 0; i < launches.size(); ++i) {
      const kernel::Launch &launch = launches[i];
      for (size_t b = 0; b < launch.buffers.size(); ++b) {
        const bool writes = launch.kernel->buffers[b].space == kernel::Buffer::Space::out;
        if (writes && launch.buffers[b] < writer.size()) writer[launch.buffers[b]] = i;
      }
    }
    for (uint32_t d = 0; d < program.defs.size(); ++d)
      for (const uint32_t operand : program.defs[d].operands) read[operand].push_back(d);
  }
};

}  // namespace

std::vector<std::vector<uint32_t>> risks_of_launches(const Lowered &region, std::span<const kernel::Launch> launches) {
  std::vector<std::vector<uint32_t>> risks(launches.size());
  if (region.risks.empty()) return risks;
  const kernel::Program &program = region.program;
  const Uses uses(program, launches);
  std::vector<uint32_t> seen(program.defs.size(), unset);  // the last risk that came by
  for (uint32_t risk = 0; risk < region.risks.size(); ++risk) {
    std::vector<uint32_t> open = {region.risks[risk].def};
    while (!open.empty()) {
      const uint32_t def = open.back();
      open.pop_back();
      if (std::exchange(seen[def], risk) == risk) continue;
      for (const uint32_t tensor : program.defs[def].results) {
        const uint32_t launch = uses.writer[tensor];
        if (launch == unset)
          open.insert(open.end(), uses.read[tensor].begin(), uses.read[tensor].end());
        else if (risks[launch].empty() || risks[launch].back() != risk)
          risks[launch].push_back(risk);
      }
    }
  }
  return risks;
}

}  // namespace kiln
