// What a figure's rounds come to.
#pragma once
#include <span>
#include <vector>

namespace kiln::cli::bench {

struct Quartiles {
  double low = 0, median = 0, high = 0;  // of what lies between two values, a part of the way
};
// Of no values all 0.
Quartiles quartiles_of(std::vector<double> values);
double mean_of(std::span<const double> values);
// Of a sample: of fewer than two values 0.
double deviation_of(std::span<const double> values);

// How a figure stands to the same of before. Beyond noise is a change where the quartiles lie apart (the lower one of
// the slower is above the upper one of the faster) and the medians differ by more than this part of the one before.
enum class Change { none, slower, faster };
Change change_of(const Quartiles &before, const Quartiles &now, double least);

}  // namespace kiln::cli::bench
