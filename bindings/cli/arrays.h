// Arrays that the program owns: random ones, and outputs that Kiln hands over.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "handles.h"

namespace kiln::cli {

// Row-major unless laid out otherwise, 64-byte aligned.
class Array {
 public:
  // Values drawn by (seed, name) alone, so that they do not depend on what else is drawn: matrices and inputs of any
  // rank from a uniform distribution around 0 (matrices with variance 1 / columns), vector and scalar parameters
  // (biases, scales, variances) from [0.5, 1.5), integers 0 or 1, so that they index whatever has two rows.
  static Array random(const std::string &dtype, std::vector<int64_t> shape, uint64_t seed, std::string_view name,
                      bool parameter);

  // Uniform, by the stream's name alone: floats in [low, high), integers in [int_low, int_high), booleans 0 or 1.
  struct Range {
    double low, high;
    int64_t int_low, int_high;
  };
  static Array within(const Range &range, const std::string &dtype, std::vector<int64_t> shape,
                      std::string_view stream);

  // The same elements, row-major whatever the strides of `tensor`.
  static Array copy_of(const DLTensor &tensor, std::string_view name);

  // The same elements with other strides, of which each may be 0 or below. Of elements that they place on each other
  // the last one stays; a Failure if these are not `equal`, as they have to be.
  static Array laid_out(const DLTensor &tensor, std::vector<int64_t> strides, std::string_view name, bool equal);

  const DLTensor *tensor() const { return &tensor_; }
  Array(Array &&) = default;
  Array &operator=(Array &&) = default;

 private:
  // A Failure that has `name` when there is no memory.
  Array(DLDataType type, std::vector<int64_t> shape, std::string_view name, std::vector<int64_t> strides = {});

  struct Free {
    void operator()(std::byte *bytes) const { ::operator delete[](bytes, std::align_val_t(64)); }
  };
  std::vector<int64_t> shape_, strides_;  // their elements stay where they are when the array moves
  std::unique_ptr<std::byte[], Free> bytes_;
  DLTensor tensor_ = {};
};

// "f32 [4, 10]  min -3.1  max 9.2  mean 0.31", for a person.
std::string summary_of(const DLTensor &tensor);
uint64_t bytes_of(const DLTensor &tensor);

}  // namespace kiln::cli
