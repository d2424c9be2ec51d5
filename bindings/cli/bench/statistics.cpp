#include "statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kiln::cli::bench {

Quartiles quartiles_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const auto at = [&](double part) {
    const double place = part * static_cast<double>(values.size() - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
  };
  return {at(.25), at(.5), at(.75)};
}

double mean_of(std::span<const double> values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation_of(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

Change change_of(const Quartiles &before, const Quartiles &now, double least) {
  const double apart = now.median - before.median, needed = least * before.median;
  if (now.low > before.high && apart > needed) return Change::slower;
  if (now.high < before.low && -apart > needed) return Change::faster;
  return Change::none;
}

}  // namespace kiln::cli::bench
