// Stores that combine, have a predicate or scatter.
#pragma once
#include "tests/unit/jit/kernel/forms.h"

namespace kiln::kernel::testing {

using Mode = Store::Mode;
struct Combination {
  DType type;
  Mode mode;
};
// Each mode, and each size and kind of type.
inline constexpr Combination combinations[] = {
    {DType::f32, Mode::add},     {DType::i32, Mode::mul},        {DType::f64, Mode::min},      {DType::f32, Mode::max},
    {DType::u16, Mode::bit_and}, {DType::boolean, Mode::bit_or}, {DType::i64, Mode::add},      {DType::u8, Mode::min},
    {DType::i16, Mode::max},     {DType::u32, Mode::bit_or},     {DType::i8, Mode::mul},       {DType::u64, Mode::max},
    {DType::f16, Mode::plain},   {DType::f32, Mode::plain},      {DType::boolean, Mode::plain}};

inline std::string name_of(const Combination &c, std::string_view what) {
  return str_cat(what, " ", kiln::name_of(c.type), " ", core_info(core_of(c.mode, c.type)).name, " ",
                 c.mode == Mode::plain ? "plain" : "");
}

inline Schedule::Vector vector_of(size_t number) {
  return number % 2 == 0 ? Schedule::Vector::parallel : Schedule::Vector::inner;
}

// One axis of n points: parallel, or a loop of the one task.
inline Kernel line_kernel(bool is_parallel) {
  Kernel kernel;
  kernel.symbols = {"s0"};
  kernel.stages.resize(1);
  if (is_parallel) {
    kernel.parallel = {parallel(Expr::symbol("s0"))};
    kernel.schedule.tiles = {40};
  } else {
    kernel.stages[0].axes = {loop(Expr::symbol("s0"))};
  }
  kernel.schedule.vector = vector_of(is_parallel ? 0 : 1);
  return kernel;
}

// y[step * i] = y[step * i] <mode> x[i], where the other operand says so.
inline Form pointwise_store(const Combination &c, size_t number) {
  const Expr n = Expr::symbol("s0"), i = axis(0, n);
  const int64_t step = number % 3 == 2 ? 2 : 1;
  Form form{name_of(c, "points"), line_kernel(number % 2 == 0), {117}};
  Kernel &k = form.kernel;
  k.buffers = {in(c.type, n), in(DType::i32, n), out(c.type, n * step)};
  BodyBuilder b(k.stages[0].body);
  b.yield(b.load(0, c.type, {i}));
  b.yield(b.op(Core::gt, b.load(1, DType::i32, {i}), b.constant(DType::i32, 0)));
  k.stages[0].stores = {store_at(2, i * step, 0, c.mode, number % 4 == 3 ? -1 : 1)};
  return form;
}

// y[bin[i]] = y[bin[i]] <mode> x[i]: points meet, in one task. A bin that there is not sets the error word.
inline Form bins(const Combination &c, size_t number) {
  const Expr n = Expr::symbol("s0"), i = axis(0, n);
  const bool is_parallel = number % 2 == 0;
  Form form{name_of(c, "bins"), line_kernel(is_parallel), {39}, 2};
  Kernel &k = form.kernel;
  if (is_parallel) k.parallel[0].extent = 39;
  k.buffers = {in(c.type, 39), in(DType::i64, 39), out(c.type, 7)};
  const Expr at = is_parallel ? axis(0, 39) : i;
  BodyBuilder b(k.stages[0].body);
  const int bin = b.load(1, DType::i64, {at});
  b.yield(b.load(0, c.type, {at}));
  b.yield(bin);
  b.yield(b.op(Core::in_range, bin, b.index(7)));
  k.stages[0].stores = {store_at(2, Expr::value(1), 0, c.mode, 2)};
  form.draw = [](size_t buffer, size_t element, std::mt19937 &random) {
    const auto drawn = static_cast<double>(random() % 9);
    return buffer == 1 ? drawn - 1 : element % 5 == 0 ? 2 : drawn - 4;
  };
  return form;
}

// y[i, bin[i, j] % 8] = ... <mode> x[i, j]: rows are apart, so that they may be tasks. The second kernel collects them
// in a row_local buffer first.
inline Form rows_of_bins(const Combination &c, size_t number, bool local) {
  const Expr m = Expr::symbol("s0"), n = Expr::symbol("s1"), i = axis(0, m), j = axis(1, n), bin = axis(1, 8);
  Form form{name_of(c, local ? "local bins" : "rows of bins"), {}, {13, 37}};
  Kernel &k = form.kernel;
  k.symbols = {"s0", "s1"};
  k.buffers = {in(c.type, m * n), in(DType::i64, m * n), out(c.type, m * 8)};
  if (local) k.buffers.push_back(row_local(c.type, 8));
  k.parallel = {parallel(m)};
  k.schedule.tiles = {4};
  k.schedule.vector = vector_of(number);
  Stage collect;
  collect.axes = {loop(n)};
  BodyBuilder b(collect.body);
  b.yield(b.load(0, c.type, {i * n + j}));
  b.yield(b.load(1, DType::i64, {i * n + j}));
  const Expr chosen = mod(Expr::value(1), 8);
  collect.stores = {store_at(local ? 3 : 2, local ? chosen : i * 8 + chosen, 0, c.mode)};
  if (!local) {
    k.stages = {collect};
    return form;
  }
  Stage begin, end;
  begin.axes = end.axes = {loop(8)};
  BodyBuilder first(begin.body), last(end.body);
  first.yield(first.load(2, c.type, {i * 8 + bin}));
  begin.stores = {store_at(3, bin)};
  last.yield(last.load(3, c.type, {bin}));
  end.stores = {store_at(2, i * 8 + bin)};
  k.stages = {begin, collect, end};
  return form;
}

// The place and value of the greatest element, added where the place says.
inline Form store_of_reduction() {
  const Expr n = Expr::symbol("s0"), j = axis(0, n);
  Form form{"reduction that scatters", {}, {53}};
  Kernel &k = form.kernel;
  k.symbols = {"s0"};
  k.buffers = {in(DType::f32, n), out(DType::f32, n)};
  k.schedule.vector = Schedule::Vector::inner;
  Stage stage;
  stage.axes = {reduce(n)};
  BodyBuilder b(stage.body);
  b.yield(b.load(0, DType::f32, {j}));
  b.yield(b.index(j));
  stage.carriers = argmax_carriers(DType::f32);
  stage.stores = {store_at(1, Expr::value(1), 0, Mode::add)};
  k.stages = {stage};
  return form;
}

// y += a * b, where the product is above 0.
inline Form store_of_contraction() {
  const Expr m = Expr::symbol("s0"), i = axis(0, m), j = axis(1, 21), k_axis = axis(2, 9);
  Form form{"contraction that combines", {}, {11}};
  Kernel &k = form.kernel;
  k.symbols = {"s0"};
  k.buffers = {in(DType::f32, m * 9), in(DType::f32, 9 * 21), out(DType::f32, m * 21)};
  k.parallel = {parallel(m), parallel(21)};
  k.schedule = {.vector = Schedule::Vector::inner, .tiles = {8, 16}, .mr = 4, .nr = 8, .kc = 16};
  Stage stage;
  stage.axes = {reduce(9)};
  Contract &contract = stage.contract.emplace();
  BodyBuilder a(contract.a), b(contract.b), epilogue(stage.body);
  a.yield(a.load(0, DType::f32, {i * 9 + k_axis}));
  b.yield(b.load(1, DType::f32, {k_axis * 21 + j}));
  stage.body.values.push_back(
      {.op = Core::accumulator, .type = DType::f32, .args = {-1, -1, -1}, .immediate = 0, .access = {}, .expr = {}});
  epilogue.yield(0);
  epilogue.yield(epilogue.op(Core::gt, 0, epilogue.constant(DType::f32, 0)));
  stage.stores = {store_at(2, i * 21 + j, 0, Mode::add, 1)};
  k.stages = {stage};
  return form;
}

inline std::vector<Form> store_forms() {
  std::vector<Form> forms;
  size_t number = 0;
  for (const Combination &c : combinations) {
    forms.push_back(pointwise_store(c, number));
    forms.push_back(bins(c, number));
    if (c.mode != Mode::plain) forms.push_back(rows_of_bins(c, number, false));
    forms.push_back(rows_of_bins(c, number, true));
    ++number;
  }
  forms.push_back(store_of_reduction());
  forms.push_back(store_of_contraction());
  return forms;
}

}  // namespace kiln::kernel::testing
