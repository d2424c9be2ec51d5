#include "runtime/regions/modes.h"

namespace kiln {
namespace {

const AttrValue *annotation(const Node &node, std::string_view name) {
  const auto found = node.annotations.find(name);
  return found == node.annotations.end() ? nullptr : &found->second;
}

}  // namespace

std::string described(const Modes &modes) {
  const std::string forward(name_of(modes.forward));
  return modes.backward == modes.forward ? forward : str_cat(forward, ", backward ", name_of(modes.backward));
}

bool is_decomposed_always(const Node &node) {
  const AttrValue *mark = annotation(node, "kiln.decompose");
  return mark && mark->text_value() == "always";
}

std::optional<std::string> region_of(const Node &node, const Modes &modes) {
  const AttrValue *mark = annotation(node, "kiln.region");
  const bool falls_back = annotation(node, "kiln.fallback") != nullptr;  // false is not kept
  switch (annotation(node, "kiln.phase") ? modes.backward : modes.forward) {
    case Mode::all:
      return "";
    case Mode::marked:
      return mark && !falls_back ? std::optional(mark->text_value()) : std::nullopt;
    case Mode::except_fallback:
      return falls_back ? std::nullopt : std::optional(mark ? mark->text_value() : std::string());
    case Mode::none:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace kiln
