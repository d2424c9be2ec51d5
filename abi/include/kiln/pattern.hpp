// kiln/pattern.hpp: patterns of a pass in C++17 or later, for kiln/pass.hpp, which includes it. Nothing here is part of
// the ABI. docs/patterns.md says what each part of a pattern means. As JSON, or part by part:
//
//   kiln::pass::PatternBuilder pattern("drop_neg");
//   pattern.capture("x");
//   pattern.node("inner", "neg", {"x"});
//   pattern.node("outer", "neg", {"inner"});
//   pattern.replace({"outer"}, {"x"});
//   kiln::pass::Pattern made = pattern.build();
#ifndef KILN_PATTERN_HPP
#define KILN_PATTERN_HPP
#include <cstdio>
#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/types.h"

namespace kiln {
namespace pass {

// A pattern as JSON. Without `rewrite` the JSON has a replacement (calling() of pass.hpp makes one that calls a
// function).
struct Pattern {
  std::string json;
  kiln_error *(*rewrite)(void *user, kiln_pass_call *call) = nullptr;
};

// A JSON value as a part of a pattern takes it.
class Json {
 public:
  Json(bool truth) : text_(truth ? "true" : "false") {}
  Json(int number) : text_(std::to_string(number)) {}
  Json(int64_t number) : text_(std::to_string(number)) {
    constexpr int64_t exact = int64_t{1} << 53;
    if (number < -exact || number > exact) text_ = '"' + text_ + '"';  // which as a number would be another
  }
  Json(double number) {
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%.17g", number);
    text_ = buffer;
    for (char &c : text_)
      if (c == ',') c = '.';  // the host's locale writes numbers as it likes
    if (text_.find_first_of("ni") != std::string::npos) text_ = '"' + text_ + '"';  // "nan", "inf"
  }
  Json(std::string_view text) : text_(quoted(text)) {}
  Json(const char *text) : text_(quoted(text)) {}
  Json(const std::string &text) : text_(quoted(text)) {}
  Json(std::initializer_list<Json> items) : text_("[") {
    for (const Json &item : items) text_ += (text_.size() > 1 ? ", " : "") + item.text_;
    text_ += ']';
  }
  // An object of one member.
  static Json object(std::string_view name, const Json &value) {
    return of('{' + quoted(name) + ": " + value.text_ + '}');
  }
  static Json of(std::string json) {
    Json made(false);
    made.text_ = std::move(json);
    return made;
  }
  const std::string &text() const { return text_; }

  static std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
      char escaped[8];
      if (static_cast<unsigned char>(c) < 0x20) {
        std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
        out += escaped;
        continue;
      }
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    return out + '"';
  }

 private:
  std::string text_;
};

// A capture, a node, or a node of the replacement.
class PatternPart {
 public:
  PatternPart &optional() { return member("optional", true); }
  PatternPart &dtype(std::initializer_list<Json> any_of) { return member("dtype", any_of); }  // {"f32", "bf16"}
  PatternPart &shape(std::initializer_list<Json> sizes) { return member("shape", sizes); }    // {"...", "d", 3}

  // Of a capture
  PatternPart &from(std::string_view source) { return member("from", source); }  // "parameter", "fixed", ...
  PatternPart &number() { return member("number", "any"); }
  PatternPart &number(double value) { return member("number", value); }

  // Of a node
  PatternPart &attr(std::string_view name, const Json &value) { return set(name, value); }
  PatternPart &any(std::string_view name) { return set(name, Json::object("any", true)); }
  PatternPart &among(std::string_view name, std::initializer_list<Json> values) {
    return set(name, Json::object("among", values));
  }
  PatternPart &axes(std::string_view name, std::initializer_list<Json> axes) {
    return set(name, Json::object("axes", axes));
  }
  PatternPart &between(std::string_view name, double least, double most) {
    return set(name, Json::of("{\"least\": " + Json(least).text() + ", \"most\": " + Json(most).text() + '}'));
  }
  PatternPart &used_anywhere() { return member("uses", "anywhere"); }

  // Of a node of the replacement
  PatternPart &when(std::string_view part) { return member("when", part); }
  PatternPart &attr_of(std::string_view name, std::string_view node_and_attr) {
    return set(name, Json::object("attr", node_and_attr));
  }
  PatternPart &number_of(std::string_view name, std::string_view capture) {
    return set(name, Json::object("number", capture));
  }
  PatternPart &dtype_of(std::string_view name, std::string_view part) { return set(name, Json::object("dtype", part)); }

  std::string json() const {
    return '{' + members_ + (attrs_.empty() ? std::string() : ", \"attrs\": {" + attrs_ + '}') + '}';
  }
  PatternPart &member(std::string_view name, const Json &value) { return add(members_, name, value); }

 private:
  PatternPart &set(std::string_view name, const Json &value) { return add(attrs_, name, value); }
  PatternPart &add(std::string &to, std::string_view name, const Json &value) {
    to += (to.empty() ? "" : ", ") + Json::quoted(name) + ": " + value.text();
    return *this;
  }
  std::string members_, attrs_;
};

// Parts in order: a node after those that it names. What is wrong is said when the pass is registered.
class PatternBuilder {
 public:
  using Names = std::initializer_list<Json>;
  explicit PatternBuilder(std::string_view name) : head_("{\"kiln\": 1, \"pattern\": " + Json::quoted(name)) {}

  PatternPart &capture(std::string_view name) { return captures_.emplace_back().member("name", name); }
  PatternPart &node(std::string_view name, const Json &op, Names inputs) { return add(nodes_, name, op, inputs); }
  PatternPart &made(std::string_view name, std::string_view op, Names inputs) { return add(made_, name, op, inputs); }
  // The values that are replaced, and by which.
  void replace(Names outputs, Names by) { outputs_ = Json(outputs).text(), by_ = Json(by).text(); }
  // The values that a function replaces (calling()).
  void outputs(Names outputs) { outputs_ = Json(outputs).text(); }
  void any_annotations() { head_ += ", \"annotations\": \"any\""; }
  void expect_matches(int count) { head_ += ", \"expected_matches\": " + std::to_string(count); }

  Pattern build() const {
    std::string json =
        head_ + ", \"captures\": " + list(captures_) + ", \"nodes\": " + list(nodes_) + ", \"outputs\": " + outputs_;
    if (!by_.empty()) json += ", \"replacement\": {\"nodes\": " + list(made_) + ", \"outputs\": " + by_ + '}';
    return {json + '}'};
  }

 private:
  using Parts = std::deque<PatternPart>;  // whose elements stay where they are
  static PatternPart &add(Parts &to, std::string_view name, const Json &op, Names inputs) {
    return to.emplace_back().member("name", name).member("op", op).member("inputs", inputs);
  }
  static std::string list(const Parts &parts) {
    std::string text = "[";
    for (const PatternPart &part : parts) text += (text.size() > 1 ? ", " : "") + part.json();
    return text + ']';
  }
  std::string head_, outputs_ = "[]", by_;
  Parts captures_, nodes_, made_;
};

}  // namespace pass
}  // namespace kiln
#endif
