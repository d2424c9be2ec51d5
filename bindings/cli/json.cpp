#include "json.h"

#include <cmath>
#include <cstdio>

namespace kiln::cli {

std::string json_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result.append("\\").push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      result += escape;
    } else {
      result.push_back(c);
    }
  }
  return result + "\"";
}

std::string json_number(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"";
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.9g", value);
  return buffer;
}

JsonObject &JsonObject::raw(std::string_view name, std::string_view json) {
  members_.append(members_.empty() ? "" : ", ").append(json_text(name)).append(": ").append(json);
  return *this;
}

}  // namespace kiln::cli
