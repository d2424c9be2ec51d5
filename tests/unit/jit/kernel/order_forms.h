// Searches and sorts: what has to do with the order of kernel::Sort.
#pragma once
#include <limits>

#include "tests/unit/jit/kernel/store_forms.h"

namespace kiln::kernel::testing {

inline double nan_value() { return std::numeric_limits<double>::quiet_NaN(); }

// y[i, j] = the place of key[i, j] in row i: of memory, from the rightmost column of a transposed one, or of a copy in
// a row_local buffer. Keys of 3 are not searched: -7.
inline Form search_form(DType type, size_t number) {
  constexpr int64_t length = 21;
  const Expr m = Expr::symbol("s0"), n = Expr::symbol("s1"), i = axis(0, m), j = axis(1, n), e = axis(1, length);
  const bool local = number % 3 == 2, columns = number % 3 == 1, descending = number & 2;
  Form form{str_cat("search ", kiln::name_of(type), " ", number), {}, {9, 35}};
  Kernel &k = form.kernel;
  k.symbols = {"s0", "s1"};
  k.buffers = {in(type, m * length), in(type, m * n), out(DType::i64, m * n)};
  k.parallel = {parallel(m)};
  k.schedule.tiles = {8};
  k.schedule.vector = vector_of(number / 2);
  const Expr first = local ? Expr(0) : columns ? i : i * length, step = columns ? m : Expr(1);
  if (local) {
    k.buffers.push_back(row_local(type, length));
    Stage copy;
    copy.axes = {loop(length)};
    BodyBuilder b(copy.body);
    b.yield(b.load(0, type, {i * length + e}));
    copy.stores = {store_at(3, e)};
    k.stages = {copy};
  }
  Stage stage;
  stage.axes = {loop(n)};
  BodyBuilder b(stage.body);
  const int key = b.load(1, type, {i * n + j});
  const int wanted = b.op(Core::ne, b.convert(key, DType::f32), b.constant(DType::f32, 3));
  b.yield(b.search(key, local ? 3 : 0, {first, step}, length, number & 3, wanted, static_cast<uint64_t>(-7)));
  stage.stores = {store_at(2, i * n + j)};
  k.stages.push_back(stage);
  form.draw = [=](size_t buffer, size_t element, std::mt19937 &random) -> double {
    const bool is_float = dtype_info(type).is_float, is_signed = dtype_info(type).is_signed || is_float;
    if (buffer != 0)
      return is_float && random() % 8 == 0 ? nan_value() : static_cast<double>(random() % 14) - (is_signed ? 7 : 0);
    const size_t at = columns ? element / 9 : element % length;
    if (is_float && (descending ? at < 2 : at >= length - 2)) return nan_value();
    const auto rising = static_cast<double>(at / 2) - (is_signed ? 5 : 0);
    return !descending ? rising : is_signed ? -rising : 10 - rising;
  };
  return form;
}

// Rows of keys sorted, and where each of them came from. `runs`: in sorted runs of so many they come. `wanted`: so many
// of them alone, the others are not stored.
inline Form sort_form(DType type, size_t number, int64_t length, int64_t runs, int64_t wanted = -1) {
  const Expr m = Expr::symbol("s0"), n = Expr::symbol("s1"), i = axis(0, m), j = axis(1, n);
  Form form{str_cat("sort ", kiln::name_of(type), " ", length, " ", runs, " ", wanted), {}, {18, length}};
  Kernel &k = form.kernel;
  k.symbols = {"s0", "s1"};
  k.buffers = {in(type, m * n),    out(type, m * n),         out(DType::i32, m * n),  row_local(type, n),
               row_local(type, n), row_local(DType::i32, n), row_local(DType::i32, n)};
  k.parallel = {parallel(m)};
  k.schedule.tiles = {16};
  k.schedule.vector = vector_of(number / 2);
  Stage begin, sort, end;
  begin.axes = end.axes = {loop(n)};
  BodyBuilder first(begin.body), last(end.body);
  first.yield(first.load(0, type, {i * n + j}));
  first.yield(first.convert(first.index(j), DType::i32));
  begin.stores = {store_at(3, j, 0), store_at(5, j, 1)};
  sort.axes = {scan(n)};
  sort.sort = {.columns = {{3, 4}, {5, 6}}, .descending = number % 2 == 1, .runs = runs, .wanted = {}};
  if (wanted >= 0) {
    sort.sort->wanted = wanted;
    end.axes = {loop(wanted)};
  }
  const Expr at = wanted < 0 ? j : axis(1, wanted);
  last.yield(last.load(3, type, {at}));
  last.yield(last.load(5, DType::i32, {at}));
  end.stores = {store_at(1, i * n + at, 0), store_at(2, i * n + at, 1)};
  k.stages = {begin, sort, end};
  form.draw = [=](size_t, size_t element, std::mt19937 &random) -> double {
    const bool is_float = dtype_info(type).is_float;
    if (runs == 1) {
      if (length > 100 && random() % 2) return static_cast<double>(random() % 100000) - 50000;
      const auto drawn = static_cast<double>(random() % 12);
      if (is_float && drawn > 9) return random() % 2 ? nan_value() : -nan_value();
      return drawn == 0 && is_float ? -0.0 : drawn - 5;
    }
    const auto rising = static_cast<double>(element % static_cast<size_t>(length) % static_cast<size_t>(runs) / 2);
    return number % 2 == 1 ? 20 - rising : rising;
  };
  return form;
}

inline std::vector<Form> order_forms() {
  std::vector<Form> forms;
  size_t number = 0;
  for (DType type : {DType::f32, DType::i32, DType::f16, DType::u64, DType::boolean, DType::f64, DType::i8, DType::bf16,
                     DType::u16, DType::f8_e4m3fn, DType::i64, DType::u8}) {
    forms.push_back(search_form(type, number));
    constexpr int64_t lengths[] = {29, 64, 2, 1, 0, 33};
    forms.push_back(sort_form(type, number, lengths[number % 6], 1));
    if (number % 3 == 0) forms.push_back(sort_form(type, number, 29, 8));
    forms.push_back(sort_form(type, number, 700, 1));
    constexpr int64_t wanted[] = {3, 0, 64, 700, 699, 1};
    forms.push_back(sort_form(type, number + 1, 700, 1, wanted[number % 6]));
    ++number;
  }
  return forms;
}

}  // namespace kiln::kernel::testing
