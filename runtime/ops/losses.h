// What both kinds of losses share: the attribute "reduction".
#pragma once
#include "runtime/ops/family.h"

namespace kiln::ops {

inline AttrDef reduction_attr(std::string_view doc) {
  return {.name = "reduction", .doc = doc, .kind = AttrKind::text, .fallback = "mean"};
}

inline Status require_reduction(const InferContext &c) { return require_word(c, "reduction", {"mean", "sum", "none"}); }

inline bool is_reduced(const AttrValue &reduction) { return reduction.text_value() != "none"; }

}  // namespace kiln::ops
