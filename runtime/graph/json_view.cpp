#include "runtime/graph/json_view.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/graph/json_scan.h"

namespace kiln::json {
namespace {

std::string described(const cJSON *item) {
  if (cJSON_IsString(item)) return str_cat("'", item->valuestring, "'");
  if (cJSON_IsNumber(item)) return str_cat(item->valuedouble);
  if (cJSON_IsBool(item)) return cJSON_IsTrue(item) ? "true" : "false";
  if (cJSON_IsArray(item)) return "a list";
  return cJSON_IsObject(item) ? "an object" : "null";
}

}  // namespace

Status View::expected(std::string_view what) const { return fail("expected ", what, ", found ", described(item_)); }

Result<std::string_view> View::as_text() const {
  if (!is_text()) return expected("a string");
  return text();
}

Result<int64_t> View::as_integer() const {
  if (is_number() && std::trunc(number()) == number() && std::abs(number()) <= 0x1p53)
    return static_cast<int64_t>(number());
  if (is_text()) {
    int64_t integer = 0;
    const char *end = text().data() + text().size();
    if (auto [at, failure] = std::from_chars(text().data(), end, integer); failure == std::errc() && at == end)
      return integer;
    return expected("an integer of 64 bits");
  }
  return expected("an integer");
}

Result<std::vector<View>> View::as_list() const {
  if (!is_list()) return expected("a list");
  std::vector<View> elements;
  for (const cJSON *child = item_->child; child; child = child->next)
    elements.emplace_back(child, str_cat(path_, "[", elements.size(), "]"), op_);
  return elements;
}

Result<std::vector<View>> View::as_object() const {
  if (!is_object()) return expected("an object");
  std::vector<View> members;
  for (const cJSON *child = item_->child; child; child = child->next)
    members.emplace_back(child, path_of(child->string), op_);
  return members;
}

Status View::allow_members(std::initializer_list<std::string_view> names) const {
  if (!is_object()) return expected("an object");
  for (const cJSON *child = item_->child; child; child = child->next)
    if (std::ranges::find(names, child->string) == names.end())
      return fail("unknown member '", child->string, "'; known are ",
                  join(names, ", ", [](std::string_view n) { return n; }));
  return {};
}

std::optional<View> View::member(std::string_view name) const {
  if (!is_object()) return std::nullopt;  // a list's elements have no names to compare
  for (const cJSON *child = item_->child; child; child = child->next)
    if (child->string == name) return View(child, path_of(name), op_);
  return std::nullopt;
}

Result<View> View::required(std::string_view name) const {
  if (!is_object()) return expected("an object");
  if (std::optional<View> found = member(name)) return *found;
  return fail("member '", name, "' is missing");
}

Result<Document> parse(std::string_view text) {
  KILN_TRY(scan_json(text));
  Document document(cJSON_ParseWithLength(text.data(), text.size()));
  if (!document) return error(Code::out_of_memory, "JSON: out of memory");  // the scan has left no other reason
  return document;
}

}  // namespace kiln::json
