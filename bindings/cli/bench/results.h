// What is made of the figures: a table, JSON, and a comparison with figures of before.
#pragma once
#include <string>
#include <vector>

#include "measure.h"
#include "read_json.h"
#include "statistics.h"

namespace kiln::cli::bench {

// For a person: each figure with its variants below it, the kernels of each variant, and what is to be told of it.
std::string table_of(const std::vector<Measured> &all);

// A figure of a file of before beside its own of now, in seconds or bytes.
struct Compared {
  std::string name;
  Quartiles before, now;
  bool is_memory = false;
  Change change = Change::none;
};
struct Comparison {
  std::vector<Compared> figures;
  std::vector<std::string> only_before, only_now;  // names
  bool is_slower() const;                          // beyond noise; memory does not count
};
// `before` is JSON of Google Benchmark's, of file `path`; what fails there, or here, is in none of the two. Throws a
// Failure where it has no figures.
Comparison compared_with(const Json &before, const std::string &path, const std::vector<Measured> &all, double least);
std::string table_of(const Comparison &comparison, const std::string &path);

// In the format of Google Benchmark's JSON reporter. Members of Kiln's own stand beside "benchmarks": "kernels",
// "failures", "differences" and, of a comparison (may be NULL), "against".
std::string json_of(const std::vector<Measured> &all, const Comparison *comparison);

}  // namespace kiln::cli::bench
