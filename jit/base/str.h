// String building without <format> (g++ 12 has none): str_cat("rank ", 3, " != ", name).
#pragma once
#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace kiln {

inline void str_append(std::string &out, std::string_view text) { out.append(text); }
inline void str_append(std::string &out, const char *text) { out.append(text); }
inline void str_append(std::string &out, const std::string &text) { out.append(text); }
inline void str_append(std::string &out, char c) { out.push_back(c); }
inline void str_append(std::string &out, bool b) { out.append(b ? "true" : "false"); }
template <class T>
  requires(std::is_arithmetic_v<T> && !std::same_as<T, bool> && !std::same_as<T, char>)
void str_append(std::string &out, T number) {
  char buffer[64];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr);  // shortest form that reads back
}

template <class... Parts>
std::string str_cat(const Parts &...parts) {
  std::string out;
  (str_append(out, parts), ...);
  return out;
}

// Joins the text of each element: join(shape, ", ", [](auto &d) { return d.text(); }).
template <class Range, class ToText>
std::string join(const Range &range, std::string_view separator, ToText to_text) {
  std::string out;
  bool first = true;
  for (const auto &element : range) {
    if (!first) out.append(separator);
    first = false;
    str_append(out, to_text(element));
  }
  return out;
}

}  // namespace kiln
