#include "runtime/ops/gradient.h"

#include "runtime/ops/family.h"

namespace kiln {

std::vector<std::string_view> differentiable_operands(const Op &op) {
  const Gradient &gradient = op.gradient;
  std::vector<std::string_view> names;
  if (gradient.kind != Gradient::Kind::rule && gradient.kind != Gradient::Kind::decomposition) return names;
  if (gradient.operands.empty()) {
    for (const ArgDef &arg : op.args)
      if (arg.dtypes & ops::float_types) names.push_back(arg.name);
    return names;
  }
  for (std::string_view rest = gradient.operands; !rest.empty();) {
    const size_t comma = rest.find(", ");
    names.push_back(rest.substr(0, comma));
    rest.remove_prefix(comma == rest.npos ? rest.size() : comma + 2);
  }
  return names;
}

}  // namespace kiln
