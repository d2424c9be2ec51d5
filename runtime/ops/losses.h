// What both kinds of losses share: the attribute "reduction".
#pragma once
#include "runtime/ops/family.h"

namespace kiln::ops {

inline AttrDef reduction_attr(std::string_view doc) {
  return {.name = "reduction", .doc = doc, .kind = AttrKind::text, .fallback = "mean"};
}

inline Status require_reduction(const InferContext &c) { return require_word(c, "reduction", {"mean", "sum", "none"}); }

inline bool is_reduced(const AttrValue &reduction) { return reduction.text_value() != "none"; }

// A reference kernel's end: the losses themselves, their sum, or the sum over `divisor`.
template <class Wide>
void store_losses(ReferenceContext &c, const std::vector<Wide> &losses, Wide divisor) {
  RefTensor &y = c.results[0];
  const std::string &reduction = c.attr("reduction").text_value();
  if (reduction == "none") {
    std::ranges::transform(losses, y.f.begin(), [](Wide loss) { return static_cast<double>(loss); });
    return;
  }
  Wide sum = 0;
  for (const Wide loss : losses) sum += loss;
  y.f[0] = static_cast<double>(reduction == "sum" ? sum : sum / divisor);
}

}  // namespace kiln::ops
