// Writes JSON documents: reports, headers of files. Commas and escapes are its business; nesting is the caller's.
//   JsonWriter json;
//   json.begin_object().member("lookup", "HIT").key("passes_run").begin_object().end_object().end_object();
#pragma once
#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "jit/base/str.h"

namespace kiln {

// A finite number as its shortest JSON that reads back the same bits, and as a float: readers take digits alone for an
// integer, which they refuse beyond 2^53.
template <std::floating_point T>
std::string json_number(T number) {
  std::string text = str_cat(number);
  if (std::abs(number) > T{0x1p53} && text.find_first_of(".e") == text.npos) text += ".0";
  return text;
}

class JsonWriter {
 public:
  JsonWriter &begin_object() { return open('{'); }
  JsonWriter &end_object() { return close('}'); }
  JsonWriter &begin_list() { return open('['); }
  JsonWriter &end_list() { return close(']'); }
  JsonWriter &key(std::string_view name) {
    separate();
    quote(name);
    out_ += ':';
    first_ = true;  // the value that follows needs no comma
    return *this;
  }

  JsonWriter &value(std::string_view text) {
    separate();
    quote(text);
    return *this;
  }
  JsonWriter &value(const char *text) { return value(std::string_view(text)); }
  JsonWriter &value(const std::string &text) { return value(std::string_view(text)); }
  JsonWriter &value(bool truth) { return raw(truth ? "true" : "false"); }
  // Integers beyond 2^53 and numbers that are not finite become strings: JSON's readers would round or refuse them.
  template <class T>
    requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>)
  JsonWriter &value(T number) {
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(number)) return value(std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
      return raw(json_number(number));
    } else {
      constexpr int64_t exact = int64_t{1} << 53;
      if (std::cmp_greater(number, exact) || std::cmp_less(number, -exact)) return value(str_cat(number));
      return raw(str_cat(number));
    }
  }
  // Text that is JSON already.
  JsonWriter &raw(std::string_view json) {
    separate();
    out_ += json;
    return *this;
  }
  template <class T>
  JsonWriter &member(std::string_view name, const T &content) {
    return key(name).value(content);
  }

  const std::string &text() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  JsonWriter &open(char bracket) {
    separate();
    out_ += bracket;
    first_ = true;
    return *this;
  }
  JsonWriter &close(char bracket) {
    out_ += bracket;
    first_ = false;
    return *this;
  }
  void separate() {
    if (!first_) out_ += ',';
    first_ = false;
  }
  void quote(std::string_view text) {
    constexpr std::string_view hex = "0123456789abcdef";
    out_ += '"';
    for (char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        out_ += '\\';
        out_ += c;
      } else if (c == '\n') {
        out_ += "\\n";
      } else if (byte < 0x20) {
        out_ += "\\u00";
        out_ += hex[byte >> 4];
        out_ += hex[byte & 15];
      } else {
        out_ += c;
      }
    }
    out_ += '"';
  }

  std::string out_;
  bool first_ = true;
};

}  // namespace kiln
