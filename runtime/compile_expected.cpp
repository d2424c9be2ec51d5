// Whether patterns were found as often as they say (docs/patterns.md).
#include <algorithm>

#include "runtime/compile_steps.h"
#include "runtime/graph/json_view.h"

namespace kiln {
namespace {

Status tell_expected(Work &work, std::string_view pass, const PatternRun &run) {
  if (run.matches >= run.expected) return {};
  std::string text =
      str_cat("pass '", pass, "': pattern '", run.name, "' has ", run.matches, run.matches == 1 ? " match" : " matches",
              ", and expects ", run.expected, " at least; kiln passes explain shows how near the graph came");
  return work.options.strict ? invalid(text) : warn(work, std::move(text));
}

// The same of what an artifact says of the passes that made it, but for those that ran now.
Status tell_of(Work &work, const json::View &pass) {
  KILN_ASSIGN(const json::View name_view, pass.required("name"));
  KILN_ASSIGN(const std::string_view name, name_view.as_text());
  const std::optional<json::View> list = pass.member("patterns");
  if (!list || std::ranges::find(work.report.passes, name, &PassRun::name) != work.report.passes.end()) return {};
  KILN_ASSIGN(const std::vector<json::View> patterns, list->as_list());
  for (const json::View &pattern : patterns) {
    PatternRun run;
    KILN_ASSIGN(const json::View pattern_name, pattern.required("name"));
    KILN_ASSIGN(run.name, pattern_name.as_text());
    for (const auto &[member, number] : {std::pair("matches", &run.matches), {"expected", &run.expected}})
      if (const std::optional<json::View> told = pattern.member(member)) {
        KILN_ASSIGN(const int64_t count, told->as_integer());
        *number = static_cast<uint64_t>(count);
      }
    KILN_TRY(tell_expected(work, name, run));
  }
  return {};
}

}  // namespace

Status check_expected_matches(Work &work, const Artifact *found) {
  for (const PassRun &pass : work.report.passes)
    for (const PatternRun &run : pass.patterns) KILN_TRY(tell_expected(work, pass.name, run));
  if (!found || found->report_json.find("\"expected\"") == std::string::npos) return {};
  KILN_ASSIGN(const json::Document report, json::parse(found->report_json));
  const std::optional<json::View> list = json::View(report.get(), "").member("passes");
  if (!list) return {};
  KILN_ASSIGN(const std::vector<json::View> passes, list->as_list());
  for (const json::View &pass : passes) KILN_TRY(tell_of(work, pass));
  return {};
}

}  // namespace kiln
