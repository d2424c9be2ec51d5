// The texts of bodies, expressions and constants in CUDA C++. Private to jit/cuda.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/kernel/kernel.h"

namespace kiln::cuda {

std::string_view value_type(DType type);   // "float"; booleans are bool
std::string_view memory_type(DType type);  // as stored: booleans are unsigned char
std::string expr_text(const Expr &e, std::string_view value_prefix = "v");
std::string immediate_text(DType type, uint64_t immediate);
// The template arguments that are the order of kernel::Sort.
std::string order_text(DType type, bool descending);

// One statement for each value, named PREFIX0, PREFIX1, ...
class BodyText {
 public:
  // `leaves`: what carriers are called; for an epilogue, the accumulator's name.
  BodyText(const kernel::Body &body, std::string_view prefix, std::span<const std::string> leaves);
  const std::vector<std::string> &statements() const { return statements_; }
  std::vector<std::string> yields() const;

 private:
  std::string text_of(const kernel::Value &value) const;
  std::string name(int32_t value) const { return str_cat(prefix_, value); }

  const kernel::Body &body_;
  std::string prefix_;
  std::span<const std::string> leaves_;
  std::vector<std::string> statements_;
};

}  // namespace kiln::cuda
