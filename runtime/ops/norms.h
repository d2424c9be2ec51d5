// What norms share. For the files of this folder.
#pragma once
#include "runtime/ops/composer.h"
#include "runtime/ops/family.h"

namespace kiln::ops {

// Further results, in f32 or f64: what a norm's gradients are computed from.
inline AttrDef statistics_attr(std::string_view doc) { return flag("statistics", doc, false); }
template <class Context>
bool wants_statistics(const Context &c) {
  return c.attr("statistics").boolean();
}
inline TensorType statistic_of(const TensorType &x, Shape dims) {
  return make_type(dtype_info(x.dtype).computes_as, std::move(dims));
}
// A statistic as a result.
inline Result<ValueId> as_statistic(DecomposeContext &c, ValueId value) {
  const DType dtype = c.type(value).dtype, wide = dtype_info(dtype).computes_as;
  return dtype == wide ? Result<ValueId>(value) : c.add("convert", {value}, {{"dtype", wide}});
}

}  // namespace kiln::ops
