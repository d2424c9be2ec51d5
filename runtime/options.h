// Options as tables: a row for each, which the schema that hosts are checked against, the key of graphs, `kiln options`
// and docs/options.md walk. An option is a member of a struct and a row, and nothing else.
#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jit/base/status.h"
#include "runtime/graph/attr.h"

namespace kiln {

template <class Options>
struct OptionRow {
  std::string_view name;
  std::string_view unkeyed;  // why its value need not be among the options in the key of a graph; empty: it is
  std::string_view doc;
  AttrValue (*get)(const Options &);
  Status (*set)(Options &, const AttrValue &);  // of the kind that get gives; errors go on from the option's name
};

// How members cross: as which kind, and what is refused. A type of an option's own declares both beside itself.
inline AttrValue to_attr(bool value) { return value; }
inline AttrValue to_attr(const std::string &value) { return value; }
inline AttrValue to_attr(const std::vector<std::string> &value) { return value; }
// None is shown as an empty list. An empty list that is given is one.
inline AttrValue to_attr(const std::optional<std::vector<std::string>> &value) {
  return value.value_or(std::vector<std::string>());
}
template <std::unsigned_integral T>
AttrValue to_attr(T value) {
  return static_cast<int64_t>(value);
}

inline Status from_attr(const AttrValue &value, bool &out) {
  out = value.boolean();
  return {};
}
inline Status from_attr(const AttrValue &value, std::string &out) {
  out = value.text_value();
  return {};
}
inline Status from_attr(const AttrValue &value, std::vector<std::string> &out) {
  out = std::get<std::vector<std::string>>(value.items);
  return {};
}
inline Status from_attr(const AttrValue &value, std::optional<std::vector<std::string>> &out) {
  return from_attr(value, out.emplace());
}
template <std::unsigned_integral T>
Status from_attr(const AttrValue &value, T &out) {
  if (!std::in_range<T>(value.i64())) return invalid("is ", value.i64(), ", out of its range");
  out = static_cast<T>(value.i64());
  return {};
}

template <class Options, class T>
Options options_of(T Options::*);

// option_row<&CompileOptions::fuse>("fuse", "", "...")
template <auto member>
constexpr auto option_row(std::string_view name, std::string_view unkeyed, std::string_view doc) {
  using Options = decltype(options_of(member));
  return OptionRow<Options>{name, unkeyed, doc, [](const Options &options) { return to_attr(options.*member); },
                            [](Options &options, const AttrValue &value) { return from_attr(value, options.*member); }};
}

}  // namespace kiln
