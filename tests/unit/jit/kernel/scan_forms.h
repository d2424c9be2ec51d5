// Scans, and what is made of them.
#pragma once
#include "tests/unit/jit/kernel/store_forms.h"

namespace kiln::kernel::testing {

// y[i, j] = the scan of x[i, ..] at j, along rows or (vectors along the parallel axis) down columns.
inline Form scan_form(DType type, Core op, size_t number) {
  const Expr m = Expr::symbol("s0"), n = Expr::symbol("s1"), i = axis(0, m), j = axis(1, n);
  const bool columns = number & 4;
  const Expr at = columns ? j * m + i : i * n + j;
  Form form{str_cat("scan ", kiln::name_of(type), " ", core_info(op).name, " ", number), {}, {19, 23}};
  Kernel &k = form.kernel;
  k.symbols = {"s0", "s1"};
  k.buffers = {in(type, m * n), out(type, m * n)};
  k.parallel = {parallel(m)};
  k.schedule.tiles = {columns ? 16u : 3u};
  k.schedule.vector = vector_of(columns ? 0 : 1);
  Stage stage;
  stage.axes = {scan(n)};
  BodyBuilder b(stage.body);
  b.yield(b.load(0, type, {at}));
  stage.carriers = carriers_of(op, type);
  stage.carriers.exclusive = number & 1;
  stage.carriers.reverse = number & 2;
  stage.stores = {store_at(1, at)};
  k.stages = {stage};
  if (op == Core::mul) {  // a power of two: exact
    form.draw = [](size_t, size_t, std::mt19937 &random) {
      constexpr double factors[] = {1, -1, 2, -0.5, 1};
      return factors[random() % 5];
    };
  }
  return form;
}

// The greatest so far and its place, over three rows a point; NaN wins.
inline Form running_argmax() {
  const Expr m = Expr::symbol("s0"), n = Expr::symbol("s1"), i = axis(0, m), row = axis(1, 3), j = axis(2, n);
  const Expr at = (i * 3 + row) * n + j;
  Form form{"running argmax", {}, {5, 31}};
  Kernel &k = form.kernel;
  k.symbols = {"s0", "s1"};
  k.buffers = {in(DType::f32, m * n * 3), out(DType::f32, m * n * 3), out(DType::i64, m * n * 3)};
  k.parallel = {parallel(m)};
  k.schedule.tiles = {2};
  k.schedule.vector = Schedule::Vector::inner;
  Stage stage;
  stage.axes = {loop(3), scan(n)};
  BodyBuilder b(stage.body);
  b.yield(b.load(0, DType::f32, {at}));
  b.yield(b.index(j));
  stage.carriers = argmax_carriers(DType::f32);
  stage.stores = {store_at(1, at, 0), store_at(2, at, 1)};
  k.stages = {stage};
  form.draw = [](size_t, size_t element, std::mt19937 &random) {
    return element % 31 == 29 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(random() % 100);
  };
  return form;
}

// Those elements of each row that are above 0, close together, and how many they are: the number of such elements
// before an element, an exclusive scan, is its place.
inline Form compaction(size_t number) {
  const Expr m = Expr::symbol("s0"), n = Expr::symbol("s1"), i = axis(0, m), j = axis(1, n);
  Form form{str_cat("compaction ", number), {}, {21, 29}};
  Kernel &k = form.kernel;
  k.symbols = {"s0", "s1"};
  k.buffers = {in(DType::f32, m * n), out(DType::f32, m * n), out(DType::i64, m)};
  k.parallel = {parallel(m)};
  k.schedule.tiles = {4};
  k.schedule.vector = vector_of(number);
  Stage place, count;
  place.axes = {scan(n)};
  count.axes = {reduce(n)};
  for (Stage *stage : {&place, &count}) {
    BodyBuilder b(stage->body);
    const int x = b.load(0, DType::f32, {i * n + j});
    const int kept = b.op(Core::gt, x, b.constant(DType::f32, 0));
    b.yield(b.convert(kept, DType::i64));
    stage->carriers = carriers_of(Core::add, DType::i64);
    if (stage == &count) continue;
    b.yield(kept);
    b.yield(x);
  }
  place.carriers.exclusive = true;
  place.stores = {store_at(1, i * n + mod(Expr::value(0), n), 2, Mode::plain, 1)};
  count.stores = {store_at(2, i)};
  k.stages = {place, count};
  return form;
}

inline std::vector<Form> scan_forms() {
  std::vector<Form> forms;
  size_t number = 0;
  for (DType type : {DType::f32, DType::i32, DType::f64, DType::u8, DType::i64})
    for (Core op : {Core::add, Core::mul, Core::min, Core::max}) forms.push_back(scan_form(type, op, number++));
  forms.push_back(running_argmax());
  forms.push_back(compaction(0));
  forms.push_back(compaction(1));
  return forms;
}

}  // namespace kiln::kernel::testing
