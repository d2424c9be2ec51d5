#include "runtime/ops/sample_forms.h"

#include <algorithm>

#include "runtime/ops/family.h"
#include "runtime/ops/reference.h"

namespace kiln {
namespace {

// As Edit::add would have it: a symbol that the op binds has a fresh name there.
bool is_accepted(const Op &op, const Sample &sample) {
  AttrMap attrs = sample.attrs;
  if (op.flags & op_flags::resolves) attrs.try_emplace("symbol", "fresh");
  return check_operands(op, sample.inputs).ok() && complete_attrs(op, attrs).ok() &&
         infer(op, sample.inputs, attrs).ok();
}

TensorData converted_data(const TensorData &data, DType type) {
  const RefTensor from = to_reference(data);
  RefTensor to{type, from.shape, {}, {}};
  std::vector<double> values = from.f;
  values.insert(values.end(), from.i.begin(), from.i.end());
  for (double value : values) {
    if (to.is_float())
      to.f.push_back(value);
    else
      to.i.push_back(ops::to_integer(value, type));
  }
  return from_reference(to);
}

}  // namespace

bool is_of(const Sample &sample, DType type) {
  return std::ranges::any_of(sample.inputs, [&](const TensorType &t) { return t.dtype == type; }) ||
         std::ranges::any_of(sample.attrs, [&](const auto &attr) {
           return attr.second.kind() == AttrKind::dtype && attr.second.dtype() == type;
         });
}

std::optional<Sample> retyped(const Op &op, Sample sample, DType type, DType from) {
  for (size_t k = 0; k < sample.inputs.size(); ++k) {
    if (sample.inputs[k].dtype != from) continue;
    sample.inputs[k].dtype = type;
    if (const auto given = sample.given.find(k); given != sample.given.end())
      given->second = converted_data(given->second, type);
  }
  for (auto &[name, value] : sample.attrs)
    if (value.kind() == AttrKind::dtype && value.dtype() == from) value = type;
  sample.tolerance = 0;
  return is_accepted(op, sample) ? std::optional(std::move(sample)) : std::nullopt;
}

std::vector<DType> other_types_of(const Op &op, const Sample &sample) {
  std::vector<DType> types;
  if (!is_of(sample, DType::f32)) return types;
  for (int number = 1; number <= dtype_count; ++number) {
    const auto type = static_cast<DType>(number);
    if (type != DType::f32 && retyped(op, sample, type)) types.push_back(type);
  }
  return types;
}

Sample at_sizes(Sample sample) {
  for (TensorType &type : sample.inputs) type = evaluate(type, sample.sizes);
  sample.attrs = evaluate(std::move(sample.attrs), sample.sizes);
  sample.sizes.clear();
  return sample;
}

}  // namespace kiln
