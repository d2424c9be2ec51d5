// Values whose elements are all one number that the graph tells.
#pragma once
#include <cmath>
#include <optional>

#include "runtime/graph/edit.h"

namespace kiln {

// As its dtype holds it; `f` of floats, else `i` (of u64 the bits).
struct Number {
  DType dtype = DType::f32;
  double f = 0;
  int64_t i = 0;

  bool is_float() const { return dtype_info(dtype).is_float; }
  bool is_one() const { return is_float() ? f == 1 : i == 1; }
  // Zeros of floats have signs.
  bool is_zero(bool negative = false) const { return is_float() ? f == 0 && std::signbit(f) == negative : i == 0; }
};

// Of full, of a size that is an integer, and of a constant, also through views. Nothing: they are several, or none.
std::optional<Number> number_of_all(const Graph &graph, ValueId value);
// The one number of all elements of the tensor, which has some.
std::optional<Number> number_of_all(const TensorData &tensor);

// The attributes of a `full` with that number; nothing: it has none.
std::optional<AttrMap> filled_with(const Number &number, const Shape &shape);

// Adds `x OP number` in the place of an op node of x's dtype (replacing.h); nothing: that does not have the number.
Result<ValueId> replacement_by_number(Edit &edit, const OpTable &ops, const Node &of, std::string_view op, ValueId x,
                                      double number);

}  // namespace kiln
