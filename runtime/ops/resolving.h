// What ops share that find some of their elements, as many as a run tells.
#pragma once
#include "runtime/ops/family.h"

namespace kiln::ops {

AttrDef symbol_attr();
AttrDef max_attr(std::string_view doc);
// How many of `elements` there are of a kind: at most all, and as many as "max" says. The attribute "symbol" names it
// from here on.
Result<Dim> infer_count(InferContext &c, const Dim &elements);

}  // namespace kiln::ops
