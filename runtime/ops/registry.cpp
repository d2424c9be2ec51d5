// The built-in ops: the tables of all families, sorted by name.
#include <algorithm>
#include <numeric>

#include "runtime/ops/family.h"

namespace kiln {
namespace {

std::vector<const Op *> collect() {
  std::vector<const Op *> all;
  for (std::span<const Op> family :
       {ops::creation_ops(),      ops::conversion_ops(),  ops::unary_ops(),        ops::rounding_ops(),
        ops::bits_ops(),          ops::activation_ops(),  ops::piecewise_ops(),    ops::gated_ops(),
        ops::binary_ops(),        ops::blending_ops(),    ops::comparison_ops(),   ops::reduce_ops(),
        ops::statistics_ops(),    ops::ordered_ops(),     ops::view_ops(),         ops::reshape_ops(),
        ops::joining_ops(),       ops::rearrange_ops(),   ops::masks_ops(),        ops::indexing_ops(),
        ops::matmul_ops(),        ops::convolution_ops(), ops::pool_ops(),         ops::norm_ops(),
        ops::channel_norms_ops(), ops::softmax_ops(),     ops::losses_ops(),       ops::class_losses_ops(),
        ops::attention_ops(),     ops::rope_ops(),        ops::quantization_ops(), ops::nested_ops(),
        ops::resolving_ops()})
    for (const Op &op : family) all.push_back(&op);
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
  std::string suggest(std::string_view name) const override {
    const Op *nearest = nullptr;
    size_t least = std::min<size_t>(3, name.size() / 2 + 1);  // what is further away is no misspelling
    for (const Op *op : all_ops())
      if (const size_t distance = edit_distance(name, op->name); distance < least) {
        nearest = op;
        least = distance;
      }
    return nearest ? str_cat("; did you mean '", nearest->name, "'?") : "";
  }
};

}  // namespace

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
