// What lies at a path of a report, as JSON again.
#pragma once
#include <optional>
#include <string>

#include "../../handles.h"

namespace kiln::cli::plugin_check {

// Graphs in graphs lie in place in a report, and by name in a graph's JSON.
class ReportJson {
 public:
  explicit ReportJson(const Report &report) : report_(report) {}
  std::string json(const std::string &path);
  // The members of "graphs", each with what it needs before it.
  const std::string &graphs() const { return graphs_; }

 private:
  bool is_object(const std::string &path) const;
  std::optional<std::string> scalar(const std::string &path);
  std::optional<std::string> scalar_of_kind(const std::string &path, size_t kind) const;
  std::string list(const std::string &path);
  std::string object(const std::string &path);

  const Report &report_;
  std::string graphs_;
  size_t count_ = 0, last_kind_ = 0;
};
inline std::string json_at(const Report &report, const std::string &path) { return ReportJson(report).json(path); }

}  // namespace kiln::cli::plugin_check
