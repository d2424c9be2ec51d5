#include "runtime/exec/step_times.h"

#include <optional>

namespace kiln {
namespace {

std::optional<std::string> path_to(const Plan &plan, const Plan &root) {
  if (&plan == &root) return "";
  for (size_t i = 0; i < root.nested.size(); ++i)
    if (const std::optional<std::string> rest = path_to(plan, root.nested[i]))
      return rest->empty() ? str_cat(i) : str_cat(i, ".", *rest);
  return std::nullopt;
}

}  // namespace

void StepTimes::clear(const Plan &root) {
  root_ = &root;
  entries_.clear();
  numbers_.clear();
}

void StepTimes::add(const Plan &plan, size_t step, Clock::duration time, std::span<const int64_t> symbols) {
  const auto [at, is_new] = numbers_.try_emplace({&plan, step}, entries_.size());
  if (is_new) entries_.push_back({&plan, step});
  last_ = at->second;
  last_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  ++entries_[last_].runs;
  entries_[last_].ns += last_ns_;
  entries_[last_].symbols.assign(symbols.begin(), symbols.end());
}

StepTimes::Row StepTimes::row_of(const Entry &entry) const {
  const Plan::Step &planned = entry.plan->steps[entry.step];
  return {.plan = path_to(*entry.plan, *root_).value_or("?"),
          .step = entry.step,
          .what = text_of(*entry.plan, planned),
          .runs = entry.runs,
          .ns = entry.ns,
          .planned = &planned,
          .symbols = entry.symbols};
}

std::string StepTimes::text_of_last() const {
  const Row row = row_of(entries_[last_]);
  const std::string in = row.plan.empty() ? "" : str_cat("plan ", row.plan, " ");
  return str_cat(in, "step ", row.step, ", ", last_ns_, " ns: ", row.what);
}

std::vector<StepTimes::Row> StepTimes::rows() const {
  std::vector<Row> rows;
  for (const Entry &entry : entries_) rows.push_back(row_of(entry));
  return rows;
}

}  // namespace kiln
