#include "report_json.h"

#include <cstdlib>

#include "../../json.h"

namespace kiln::cli::plugin_check {
namespace {

template <class Function, class T>
bool got(const Report &report, Function function, const std::string &path, T *out) {
  kiln_error *error = function(report.get(), path.data(), path.size(), out);
  kiln_error_destroy(error);
  return error == nullptr;
}

}  // namespace

std::string ReportJson::json(const std::string &path) {
  if (std::optional<std::string> value = scalar(path)) return *std::move(value);
  return is_object(path) ? object(path) : list(path);
}

bool ReportJson::is_object(const std::string &path) const {
  try {
    return report_.count(path) == 0 ? path.ends_with("attrs") : !report_.key(path, 0).empty();
  } catch (const Failure &) {
    return false;
  }
}

// What kind there was last is tried first: lists are long, and each wrong guess costs an error.
std::optional<std::string> ReportJson::scalar(const std::string &path) {
  const size_t begin = last_kind_;
  for (size_t i = 0; i < 4; ++i) {
    last_kind_ = (begin + i) % 4;
    if (std::optional<std::string> value = scalar_of_kind(path, last_kind_)) return value;
  }
  last_kind_ = 0;
  return std::nullopt;
}

std::optional<std::string> ReportJson::scalar_of_kind(const std::string &path, size_t kind) const {
  kiln_text text = {};
  int64_t integer = 0;
  double number = 0;
  uint32_t truth = 0;
  switch (kind) {
    case 0:
      return got(report_, kiln_report_get_text, path, &text) ? std::optional(json_text(view(text))) : std::nullopt;
    case 1:
      if (!got(report_, kiln_report_get_i64, path, &integer)) return std::nullopt;
      return std::abs(integer) >> 53 ? json_text(std::to_string(integer)) : std::to_string(integer);
    case 2:
      if (!got(report_, kiln_report_get_f64, path, &number)) return std::nullopt;
      return json_number(number);
    default:
      if (!got(report_, kiln_report_get_bool, path, &truth)) return std::nullopt;
      return truth ? "true" : "false";
  }
}

std::string ReportJson::list(const std::string &path) {
  std::string text = "[";
  for (size_t i = 0; i < report_.count(path); ++i) text += (i ? ", " : "") + json(path_of(path, i));
  return text + "]";
}

std::string ReportJson::object(const std::string &path) {
  bool is_graph = false;
  std::string text;
  for (size_t i = 0; i < report_.count(path); ++i) {
    const std::string key = report_.key(path, i);
    if (key == "kiln") continue;
    is_graph = is_graph || key == "outputs";
    last_kind_ = 0;  // a text of digits may be read as a number, too
    text += (text.empty() ? "" : ", ") + json_text(key) + ": " + json(path + "." + key);
  }
  if (!is_graph) return "{" + text + "}";
  const std::string name = json_text("g" + std::to_string(count_++));
  graphs_ += (graphs_.empty() ? "" : ", ") + name + ": {" + text + "}";
  return name;
}

}  // namespace kiln::cli::plugin_check
