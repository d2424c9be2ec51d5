// Writing JSON.
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::cli {

std::string json_text(std::string_view text);
std::string json_number(double value);  // what is not finite is a text

// An object, member by member, on one line.
class JsonObject {
 public:
  // `json` is a value that is JSON already.
  JsonObject &raw(std::string_view name, std::string_view json);
  JsonObject &add(std::string_view name, std::string_view value) { return raw(name, json_text(value)); }
  JsonObject &add(std::string_view name, const char *value) { return raw(name, json_text(value)); }  // no bool
  JsonObject &add(std::string_view name, double value) { return raw(name, json_number(value)); }
  JsonObject &add(std::string_view name, int64_t value) { return raw(name, std::to_string(value)); }
  JsonObject &add(std::string_view name, std::same_as<bool> auto value) { return raw(name, value ? "true" : "false"); }
  std::string text() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

}  // namespace kiln::cli
