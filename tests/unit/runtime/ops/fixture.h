// Shorthand for the tests of ops: one op on given types, or on given numbers.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/ops/op.h"
#include "runtime/ops/reference.h"
#include "runtime/ops/samples.h"

namespace kiln::testing {

// The node of one op on inputs of these types.
inline Result<Node> infer_op(std::string_view op, const std::vector<TensorType> &types, AttrMap attrs = {}) {
  Edit edit;
  std::vector<ValueId> inputs;
  for (const TensorType &type : types) {
    KILN_ASSIGN(ValueId input, edit.input(str_cat("x", inputs.size()), type));
    inputs.push_back(input);
  }
  KILN_ASSIGN(uint32_t id, edit.add(find_op(op), inputs, std::move(attrs)));
  return *edit.view().find(id);
}
// The result's type as text, or the error's message.
inline std::string inferred(std::string_view op, const std::vector<TensorType> &types, AttrMap attrs = {}) {
  Result<Node> node = infer_op(op, types, std::move(attrs));
  return node.ok() ? node->results[0].text() : node.status().message();
}
// What a call will have to check, as "n = m, ...".
inline std::string checked_at_a_call(std::string_view op, const std::vector<TensorType> &types, AttrMap attrs = {}) {
  Result<Node> node = infer_op(op, types, std::move(attrs));
  if (!node.ok()) return node.status().message();
  return join(node->equalities, ", ", [](const auto &e) { return str_cat(e.left.text(), " = ", e.right.text()); });
}

// One op on numbers, by its reference kernel.
inline Result<RefTensor> run_op(std::string_view op, const std::vector<RefTensor> &inputs, AttrMap attrs = {}) {
  Edit edit;
  std::vector<ValueId> values;
  std::vector<const RefTensor *> pointers;
  for (const RefTensor &input : inputs) {
    KILN_ASSIGN(ValueId value, edit.input(str_cat("x", values.size()),
                                          make_type(input.dtype, Shape(input.shape.begin(), input.shape.end()))));
    values.push_back(value);
    pointers.push_back(&input);
  }
  KILN_ASSIGN(uint32_t id, edit.add(find_op(op), values, std::move(attrs), "y"));
  const std::vector<ValueId> outputs = {{id, 0}};
  KILN_TRY(edit.set_output_values(outputs));
  KILN_ASSIGN(GraphPtr graph, edit.finish());
  KILN_ASSIGN(std::vector<RefTensor> results, run_reference(*graph, pointers));
  return results[0];
}

inline RefTensor floats(std::vector<int64_t> shape, std::vector<double> values) {
  return {DType::f32, std::move(shape), std::move(values), {}};
}
inline RefTensor integers(std::vector<int64_t> shape, std::vector<int64_t> values) {
  return {DType::i64, std::move(shape), {}, std::move(values)};
}
inline RefTensor booleans(std::vector<int64_t> shape, std::vector<int64_t> values) {
  return {DType::boolean, std::move(shape), {}, std::move(values)};
}

inline void expect_floats(const Result<RefTensor> &got, std::vector<int64_t> shape, std::vector<double> values) {
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(got->shape, shape);
  ASSERT_EQ(got->f.size(), values.size());
  for (size_t k = 0; k < values.size(); ++k) {
    if (std::isnan(values[k]))
      EXPECT_TRUE(std::isnan(got->f[k])) << "element " << k << " is " << got->f[k];
    else if (std::isinf(values[k]))
      EXPECT_EQ(got->f[k], values[k]) << "element " << k;
    else
      EXPECT_NEAR(got->f[k], values[k], 1e-6) << "element " << k;
  }
}
inline void expect_integers(const Result<RefTensor> &got, std::vector<int64_t> shape, std::vector<int64_t> values) {
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(got->shape, shape);
  EXPECT_EQ(got->i, values);
}

}  // namespace kiln::testing
