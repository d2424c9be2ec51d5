// Reports: JSON documents, read by path and type; and blobs.
#include <cjson/cJSON.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "abi/src/entry.h"

namespace kiln::abi {

namespace {

const cJSON *element(const kiln_report &report, const cJSON *list, size_t index) {
  const auto indexed = report.elements.find(list);
  if (indexed == report.elements.end())
    return cJSON_GetArrayItem(list, static_cast<int>(std::min<size_t>(index, INT_MAX)));
  return index < indexed->second.size() ? indexed->second[index] : nullptr;
}

// The element of `node` that `path` names. Members' names may hold dots, so every prefix that ends at a dot is tried.
const cJSON *find(const kiln_report &report, const cJSON *node, std::string_view path) {
  if (path.empty()) return node;
  for (size_t end = path.find('.');; end = path.find('.', end + 1)) {
    const std::string name(path.substr(0, end));
    const std::string_view rest = end == path.npos ? std::string_view() : path.substr(end + 1);
    const cJSON *child = nullptr;
    if (cJSON_IsObject(node)) {
      child = cJSON_GetObjectItemCaseSensitive(node, name.c_str());
    } else if (cJSON_IsArray(node)) {
      size_t index = 0;
      const auto [stop, failure] = std::from_chars(name.data(), name.data() + name.size(), index);
      if (failure == std::errc() && stop == name.data() + name.size()) child = element(report, node, index);
    }
    if (child)
      if (const cJSON *found = find(report, child, rest)) return found;
    if (end == path.npos) return nullptr;
  }
}

Result<const cJSON *> at(const Checks &check, const kiln_report *report, const char *path, uint64_t path_size,
                         const void *out) {
  KILN_TRY(check.handle(report, "report"));
  KILN_ASSIGN(const std::string_view where, check.text(path, path_size, "path"));
  KILN_TRY(check.pointer(out, "out"));
  if (const cJSON *node = find(*report, report->root.get(), where)) return node;
  return error(Code::unknown_name, "the report has no '", where, "'");
}

Status wrong_type(const char *path, uint64_t path_size, std::string_view expected) {
  return error(Code::type_mismatch, "'", std::string_view(path ? path : "", path_size), "' of the report is no ",
               expected);
}

// Numbers that JSON cannot hold exactly are written as strings.
std::optional<int64_t> as_i64(const cJSON *node) {
  if (cJSON_IsNumber(node)) {
    constexpr double exact = 9007199254740992.0;  // 2^53
    if (std::floor(node->valuedouble) != node->valuedouble || std::fabs(node->valuedouble) > exact) return std::nullopt;
    return static_cast<int64_t>(node->valuedouble);
  }
  if (!cJSON_IsString(node)) return std::nullopt;
  const std::string_view text = node->valuestring;
  int64_t value = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || failure != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> as_f64(const cJSON *node) {
  if (cJSON_IsNumber(node)) return node->valuedouble;
  if (!cJSON_IsString(node)) return std::nullopt;
  const std::string_view text = node->valuestring;
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (std::optional<int64_t> integer = as_i64(node)) return static_cast<double>(*integer);
  return std::nullopt;
}

}  // namespace

}  // namespace kiln::abi

using namespace kiln;
using namespace kiln::abi;

kiln_error *kiln_report_get_i64(const kiln_report *report, const char *path, uint64_t path_size, int64_t *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const cJSON *node, at(check, report, path, path_size, out));
    const std::optional<int64_t> value = as_i64(node);
    if (!value) return wrong_type(path, path_size, "integer");
    *out = *value;
    return {};
  });
}

kiln_error *kiln_report_get_f64(const kiln_report *report, const char *path, uint64_t path_size, double *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const cJSON *node, at(check, report, path, path_size, out));
    const std::optional<double> value = as_f64(node);
    if (!value) return wrong_type(path, path_size, "number");
    *out = *value;
    return {};
  });
}

kiln_error *kiln_report_get_bool(const kiln_report *report, const char *path, uint64_t path_size, uint32_t *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const cJSON *node, at(check, report, path, path_size, out));
    if (!cJSON_IsBool(node)) return wrong_type(path, path_size, "boolean");
    *out = cJSON_IsTrue(node) ? 1 : 0;
    return {};
  });
}

kiln_error *kiln_report_get_text(const kiln_report *report, const char *path, uint64_t path_size, kiln_text *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const cJSON *node, at(check, report, path, path_size, out));
    if (!cJSON_IsString(node)) return wrong_type(path, path_size, "text");
    *out = text_view(node->valuestring);
    return {};
  });
}

kiln_error *kiln_report_count(const kiln_report *report, const char *path, uint64_t path_size, uint64_t *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const cJSON *node, at(check, report, path, path_size, out));
    if (!cJSON_IsObject(node) && !cJSON_IsArray(node)) return wrong_type(path, path_size, "object or list");
    const auto indexed = report->elements.find(node);
    *out = indexed != report->elements.end() ? indexed->second.size() : static_cast<uint64_t>(cJSON_GetArraySize(node));
    return {};
  });
}

kiln_error *kiln_report_key(const kiln_report *report, const char *path, uint64_t path_size, uint64_t index,
                            kiln_text *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const cJSON *node, at(check, report, path, path_size, out));
    if (!cJSON_IsObject(node)) return wrong_type(path, path_size, "object");
    const uint64_t count = static_cast<uint64_t>(cJSON_GetArraySize(node));
    if (index >= count) return error(Code::out_of_range, "member ", index, " of ", count);
    *out = text_view(cJSON_GetArrayItem(node, static_cast<int>(index))->string);
    return {};
  });
}

kiln_error *kiln_report_json(const kiln_report *report, kiln_blob **out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(report, "report"));
    KILN_TRY(check.pointer(out, "out"));
    const std::unique_ptr<char, void (*)(void *)> text(cJSON_Print(report->root.get()), cJSON_free);
    if (!text) throw std::bad_alloc();
    *out = make_blob(text.get());
    return {};
  });
}

void kiln_report_destroy(kiln_report *report) {
  if (report && report->magic.ok() && !report->is_view) delete report;
}

const void *kiln_blob_data(const kiln_blob *blob, uint64_t *out_size) {
  const bool ok = blob && blob->magic.ok();
  if (out_size) *out_size = ok ? blob->bytes.size() : 0;
  return ok ? blob->bytes.data() : nullptr;
}

void kiln_blob_destroy(kiln_blob *blob) {
  if (blob && blob->magic.ok()) delete blob;
}
