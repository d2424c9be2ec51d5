// Reductions that are cut into groups of points, and what combines their results.
#pragma once
#include "tests/unit/jit/kernel/store_forms.h"

namespace kiln::kernel::testing {

// y[g, i] = the sum of the points of group g of row i, or column i: `size` of them, but for the last group's.
inline Form group_form(DType type, size_t number, int64_t size) {
  const Expr m = Expr::symbol("s0"), n = Expr::symbol("s1"), groups = max(1, ceil_div(n, size));
  const Expr g = axis(0, groups), i = axis(1, m), point = g * size + axis(2, size);
  const bool columns = number & 1;
  Form form{str_cat("group ", kiln::name_of(type), " ", number, " ", size), {}, {150, size + 77}};
  Kernel &k = form.kernel;
  k.symbols = {"s0", "s1"};
  k.buffers = {in(type, m * n), out(type, groups * m)};
  k.parallel = {parallel(groups), parallel(m)};
  k.schedule.tiles = {1, 128};
  k.schedule.vector = vector_of(number / 2);
  k.schedule.ordered = number < 4;
  Stage stage;
  stage.axes = {reduce(size)};
  BodyBuilder b(stage.body);
  b.yield(b.load(0, type, {columns ? point * m + i : i * n + point}));
  stage.carriers = carriers_of(Core::add, type);
  stage.carriers.until = min(size, n - g * size);
  stage.stores = {store_at(1, g * m + i)};
  k.stages = {stage};
  return form;
}

// y[i] = the sum of what the groups of column i came to.
inline Form pairs_form(DType type, size_t number, int64_t groups) {
  const Expr m = Expr::symbol("s0"), n = Expr::symbol("s1"), i = axis(0, m);
  Form form{str_cat("pairs ", kiln::name_of(type), " ", number, " ", groups), {}, {37, groups}};
  Kernel &k = form.kernel;
  k.symbols = {"s0", "s1"};
  k.buffers = {in(type, m * n), out(type, m)};
  k.parallel = {parallel(m)};
  k.schedule.tiles = {16};
  k.schedule.vector = vector_of(number);
  Stage stage;
  stage.axes = {reduce(n)};
  BodyBuilder b(stage.body);
  b.yield(b.load(0, type, {axis(1, n) * m + i}));
  stage.carriers = carriers_of(Core::add, type);
  stage.carriers.in_pairs = true;
  stage.stores = {store_at(1, i)};
  k.stages = {stage};
  return form;
}

inline std::vector<Form> group_forms() {
  std::vector<Form> forms;
  for (size_t number = 0; number < 8; ++number) forms.push_back(group_form(DType::f32, number, 64));
  for (size_t number : {1, 2, 5}) forms.push_back(group_form(DType::f32, number, 4100));  // more than a chunk
  for (size_t number : {1, 2}) forms.push_back(group_form(DType::f64, number, 64));
  for (size_t number : {0, 1})
    for (int64_t groups : {1, 2, 255, 700}) forms.push_back(pairs_form(DType::f32, number, groups));
  return forms;
}

}  // namespace kiln::kernel::testing
