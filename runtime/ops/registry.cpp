// The built-in ops: the tables of all families, sorted by name.
#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/ops/backward.h"
#include "runtime/ops/families.h"
#include "runtime/ops/family.h"

namespace kiln {
namespace {

struct Table {
  std::string_view family;
  std::span<const Op> ops;
};

std::vector<Table> tables() {
  return {{"creation", ops::creation_ops()},
          {"creation", ops::conversion_ops()},
          {"random", ops::random_ops()},
          {"random", ops::sampling_ops()},
          {"pointwise", ops::unary_ops()},
          {"pointwise", ops::transcendental_ops()},
          {"pointwise", ops::rounding_ops()},
          {"pointwise", ops::bits_ops()},
          {"pointwise", ops::binary_ops()},
          {"pointwise", ops::blending_ops()},
          {"pointwise", ops::comparison_ops()},
          {"activation", ops::activation_ops()},
          {"activation", ops::smooth_ops()},
          {"activation", ops::piecewise_ops()},
          {"activation", ops::gated_ops()},
          {"activation", ops::softmax_ops()},
          {"reduction", ops::reduce_ops()},
          {"reduction", ops::statistics_ops()},
          {"reduction", ops::scans_ops()},
          {"reduction", ops::ordered_ops()},
          {"reduction", ops::counting_ops()},
          {"shape", ops::view_ops()},
          {"shape", ops::reshape_ops()},
          {"shape", ops::joining_ops()},
          {"shape", ops::rearrange_ops()},
          {"shape", ops::masks_ops()},
          {"shape", ops::shuffle_ops()},
          {"indexing", ops::indexing_ops()},
          {"indexing", ops::replacing_ops()},
          {"indexing", ops::picking_ops()},
          {"indexing", ops::scatter_ops()},
          {"indexing", ops::combining_ops()},
          {"indexing", ops::embedding_backward_ops()},
          {"contraction", ops::matmul_ops()},
          {"contraction", ops::einsum_ops()},
          {"contraction", ops::determinant_ops()},
          {"contraction", ops::grouped_matmul_ops()},
          {"convolution", ops::convolution_ops()},
          {"convolution", ops::transposed_convolution_ops()},
          {"convolution", ops::window_columns_ops()},
          {"convolution", ops::winograd_ops()},
          {"convolution", ops::convolution_backward_ops()},
          {"pooling", ops::pool_ops()},
          {"pooling", ops::adaptive_pool_ops()},
          {"pooling", ops::pool_backward_ops()},
          {"resize", ops::resize_ops()},
          {"resize", ops::grid_ops()},
          {"resize", ops::resize_backward_ops()},
          {"norm", ops::norm_ops()},
          {"norm", ops::channel_norms_ops()},
          {"norm", ops::norms_backward_ops()},
          {"loss", ops::losses_ops()},
          {"loss", ops::class_losses_ops()},
          {"attention", ops::attention_ops()},
          {"attention", ops::attention_backward_ops()},
          {"attention", ops::rope_ops()},
          {"quantisation", ops::quantization_ops()},
          {"recurrent", ops::recurrent_ops()},
          {"quantisation", ops::quantizing_ops()},
          {"signal", ops::fourier_ops()},
          {"detection", ops::detection_ops()},
          {"control", ops::nested_ops()},
          {"control", ops::custom_function_ops()},
          {"control", ops::scan_ops()},
          {"control", ops::associative_scan_ops()},
          {"control", ops::resolving_ops()},
          {"control", ops::token_ops()}};
}

std::vector<const Op *> collect() {
  std::vector<const Op *> all;
  for (const Table &table : tables())
    for (const Op &op : table.ops) all.push_back(&op);
  std::sort(all.begin(), all.end(), [](const Op *a, const Op *b) { return a->name < b->name; });
  return all;
}

// Levenshtein's: how many insertions, deletions and replacements lead from one to the other.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

class BuiltinOps final : public OpTable {
 public:
  const OpSchema *find(std::string_view name) const override { return find_op(name); }
  std::string suggest(std::string_view name) const override { return suggest_among(name, all_ops()); }
};

}  // namespace

std::string suggest_among(std::string_view name, std::span<const Op *const> ops) {
  constexpr size_t longest = 100;  // that names of ops are
  // What other libraries call an op that has another name here.
  constexpr std::pair<std::string_view, std::string_view> elsewhere[] = {
      {"transpose", "permute"}, {"view", "reshape"}, {"cat", "concat"},   {"mm", "matmul"},
      {"bmm", "matmul"},        {"dot", "matmul"},   {"cast", "convert"}, {"astype", "convert"},
      {"multiply", "mul"},      {"subtract", "sub"}, {"divide", "div"},   {"power", "pow"}};
  const Op *nearest = nullptr;
  // What is further away is no misspelling; of two that are as near, the one with the same first letter.
  size_t least = 2 * std::min<size_t>(3, name.size() / 2 + 1);
  for (const Op *op : ops) {
    if (name.size() > longest) break;
    for (const auto &[theirs, ours] : elsewhere)
      if (name == theirs && op->name == ours) return str_cat("; did you mean '", ours, "'?");
    const size_t distance = 2 * edit_distance(name, op->name) + (name.substr(0, 1) != op->name.substr(0, 1));
    if (distance < least) {
      nearest = op;
      least = distance;
    }
  }
  return nearest ? str_cat("; did you mean '", nearest->name, "'?") : "";
}

std::string_view family_of(const Op &op) {
  for (const Table &table : tables())
    for (const Op &one : table.ops)
      if (&one == &op) return table.family;
  return "registered";
}

std::span<const Op *const> all_ops() {
  static const std::vector<const Op *> all = collect();
  return all;
}

const Op *find_op(std::string_view name) {
  std::span<const Op *const> all = all_ops();
  auto at =
      std::lower_bound(all.begin(), all.end(), name, [](const Op *op, std::string_view n) { return op->name < n; });
  return at != all.end() && (*at)->name == name ? *at : nullptr;
}

const OpTable &builtin_ops() {
  static const BuiltinOps table;
  return table;
}

}  // namespace kiln
