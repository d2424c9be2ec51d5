#include "read_json.h"

#include <charconv>
#include <limits>

#include "../handles.h"

namespace kiln::cli::bench {
namespace {

constexpr int deepest = 64;

class Reader {
 public:
  Reader(std::string_view text, const std::string &what) : text_(text), what_(what) {}

  Json read() {
    Json value = value_of(0);
    skip_blanks();
    if (at_ < text_.size()) fail("nothing more");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string &expected) const {
    throw Failure(what_ + ": at byte " + std::to_string(at_) + " is no JSON, expected " + expected);
  }
  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool takes(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Json value_of(int depth) {
    if (depth > deepest) fail("fewer values in each other");
    skip_blanks();
    Json value;
    const auto is = [&](Json::Kind kind, double number) {
      value.kind = kind;
      value.number = number;
      return value;
    };
    if (takes("null")) return value;
    if (takes("true")) return is(Json::Kind::boolean, 1);
    if (takes("false")) return is(Json::Kind::boolean, 0);
    if (takes("NaN")) return is(Json::Kind::number, std::numeric_limits<double>::quiet_NaN());
    if (takes("Infinity")) return is(Json::Kind::number, std::numeric_limits<double>::infinity());
    if (takes("-Infinity")) return is(Json::Kind::number, -std::numeric_limits<double>::infinity());
    if (takes("\"")) {
      value.kind = Json::Kind::text;
      value.text = rest_of_text();
    } else if (takes("[")) {
      value.kind = Json::Kind::list;
      read_members(value, "]", depth);
    } else if (takes("{")) {
      value.kind = Json::Kind::object;
      read_members(value, "}", depth);
    } else {
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value.number);
      if (error != std::errc()) fail("a value");
      value.kind = Json::Kind::number;
      at_ = static_cast<size_t>(end - text_.data());
    }
    return value;
  }

  void read_members(Json &value, std::string_view end, int depth) {
    skip_blanks();
    if (takes(end)) return;
    for (;;) {
      if (value.kind == Json::Kind::object) {
        skip_blanks();
        if (!takes("\"")) fail("a name");
        value.names.push_back(rest_of_text());
        skip_blanks();
        if (!takes(":")) fail("':'");
      }
      value.values.push_back(value_of(depth + 1));
      skip_blanks();
      if (takes(end)) return;
      if (!takes(",")) fail("',' or '" + std::string(end) + "'");
    }
  }

  // Behind its first quote.
  std::string rest_of_text() {
    std::string text;
    while (!takes("\"")) {
      if (at_ >= text_.size()) fail("the end of a text");
      if (!takes("\\")) {
        text += text_[at_++];
        continue;
      }
      constexpr std::string_view escapes = "\"\\/bfnrt", stand_for = "\"\\/\b\f\n\r\t";
      const size_t escape = at_ < text_.size() ? escapes.find(text_[at_]) : std::string_view::npos;
      if (escape != std::string_view::npos) {
        text += stand_for[escape];
        ++at_;
      } else if (takes("u")) {
        append_utf8(text, code_point());
      } else {
        fail("an escape");
      }
    }
    return text;
  }

  uint32_t unit() {
    uint32_t number = 0;
    const char *begin = text_.data() + at_;
    if (text_.size() - at_ < 4 || std::from_chars(begin, begin + 4, number, 16).ptr != begin + 4)
      fail("four digits of a character");
    at_ += 4;
    return number;
  }
  uint32_t code_point() {
    const uint32_t high = unit();
    if (high < 0xd800 || high > 0xdbff || !takes("\\u")) return high;
    return 0x10000 + ((high - 0xd800) << 10) + ((unit() - 0xdc00) & 0x3ff);
  }
  static void append_utf8(std::string &text, uint32_t code) {
    if (code < 0x80) {
      text += static_cast<char>(code);
      return;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    constexpr uint32_t marks[] = {0, 0xc0, 0xe0, 0xf0};
    text += static_cast<char>(marks[more] | code >> (6 * more));
    for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
  }

  std::string_view text_;
  const std::string &what_;
  size_t at_ = 0;
};

}  // namespace

const Json *Json::find(std::string_view name) const {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return &values[i];
  return nullptr;
}

double Json::number_at(std::string_view name) const {
  const Json *found = find(name);
  return found && (found->kind == Kind::number || found->kind == Kind::boolean) ? found->number : 0;
}

std::string Json::text_at(std::string_view name) const {
  const Json *found = find(name);
  return found && found->kind == Kind::text ? found->text : "";
}

Json read_json(std::string_view text, const std::string &what) { return Reader(text, what).read(); }

}  // namespace kiln::cli::bench
