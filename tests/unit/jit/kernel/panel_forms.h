// Contractions whose panels hold narrow types, in groups of k: packed in advance or anew, multiplied in each way.
#pragma once
#include "tests/unit/jit/kernel/contraction_forms.h"

namespace kiln::kernel::testing {

struct PanelForm {
  DType a, b, accumulator;
  uint32_t group = 1;
  Schedule::Products products = Schedule::Products::widened;
  bool packed = true, transpose_a = false, transpose_b = false;
  int64_t depth = 38, kc = 16;
  uint32_t mr = 6, nr = 16;
  int64_t rows = 8;
};

inline std::string name_of(const PanelForm &p) {
  return str_cat(kiln::name_of(p.a), " by ", kiln::name_of(p.b), " in ", kiln::name_of(p.accumulator), ", groups of ",
                 p.group, ", products ", static_cast<int>(p.products), p.packed ? ", packed" : "",
                 p.transpose_a ? ", a^T" : "", p.transpose_b ? ", b^T" : "", ", k ", p.depth, " by ", p.kc, ", ", p.mr,
                 "x", p.nr);
}

// out[z, m, n] = sum over k of a[z, m, k] * b[z, k, n], of two products with 21 columns. Bytes take all their values,
// the least and the greatest more often than others.
inline Form panel_form(const PanelForm &p) {
  constexpr int64_t products = 2, columns = 19;
  const Expr rows = Expr::symbol("s0"), z = axis(0, products), m = axis(1, rows), n = axis(2, columns),
             k = axis(3, p.depth);
  Form form{name_of(p), {}, {p.rows}};
  Kernel &kernel = form.kernel;
  kernel.symbols = {"s0"};
  kernel.parallel = {parallel(products), parallel(rows), parallel(columns)};
  Schedule &s = kernel.schedule;
  s.vector = Schedule::Vector::inner;
  s.mr = p.mr;
  s.nr = p.nr;
  s.kc = static_cast<uint32_t>(p.kc);
  s.products = p.products;
  s.tiles = {1, 2 * s.mr, 2 * s.nr};

  Stage stage;
  stage.axes = {reduce(p.depth)};
  Contract &c = stage.contract.emplace();
  c.accumulator = p.accumulator;
  if (p.a != p.accumulator) c.a_factor = p.a;
  if (p.b != p.accumulator) c.b_factor = p.b;
  c.group = p.group;
  const int64_t g = p.group, nr = p.nr, step = k_step(c, s), groups = (p.depth + step - 1) / step * (step / g),
                panels = (columns + nr - 1) / nr, batch = panels * groups * nr * g;
  BodyBuilder a(c.a), b(c.b);
  a.yield(a.convert(a.load(0, p.a, {p.transpose_a ? (z * p.depth + k) * rows + m : (z * rows + m) * p.depth + k}),
                    p.accumulator));
  Expr place = p.transpose_b ? (z * columns + n) * p.depth + k : (z * p.depth + k) * columns + n;
  if (p.packed) {
    c.panel = s.nr;
    c.packed_buffer = 1;
    c.packed_offset = z * batch;
    place = z * batch + (floor_div(n, nr) * groups + floor_div(k, g)) * (nr * g) + mod(n, nr) * g + mod(k, g);
  }
  b.yield(b.convert(b.load(1, p.b, {place}), p.accumulator));
  stage.body.yields = {accumulator(stage.body, p.accumulator)};
  stage.stores = {store_at(2, (z * rows + m) * columns + n)};
  kernel.stages = {stage};
  kernel.buffers = {in(p.a, rows * (products * p.depth)),
                    in(p.b, p.packed ? products * batch : products * p.depth * columns),
                    out(p.accumulator, rows * (products * columns))};

  form.draw = [=](size_t buffer, size_t element, std::mt19937 &random) -> double {
    const auto e = static_cast<int64_t>(element);
    if (buffer == 1 && p.packed) {  // beyond K and N are zeros
      const int64_t q = e / (g * nr) % groups, panel = e / (g * nr * groups) % panels;
      if (q * g + e % g >= p.depth || panel * nr + e / g % nr >= columns) return 0;
    }
    const DType type = buffer == 0 ? p.a : p.b;
    if (size_of(type) > 1) return static_cast<double>(random() % 9) - 4;
    const double least = dtype_info(type).is_signed ? -128 : 0;
    const uint32_t drawn = random() % 4;
    return drawn == 0 ? least : drawn == 1 ? least + 255 : least + static_cast<double>(random() % 256);
  };
  return form;
}

// What every target runs.
inline std::vector<Form> panel_forms() {
  using Products = Schedule::Products;
  std::vector<Form> forms;
  const auto add = [&](PanelForm p) { forms.push_back(panel_form(p)); };
  for (DType a : {DType::i8, DType::u8}) {
    const PanelForm dot{a, DType::i8, DType::i32, 4, Products::dot};
    add(dot);
    for (const auto &[depth, kc] : {std::pair<int64_t, int64_t>{67, 68}, {3, 4}, {90, 64}, {0, 4}}) {
      PanelForm p = dot;
      p.depth = depth;
      p.kc = kc;
      p.nr = 32;
      p.mr = 12;
      p.rows = 13;
      add(p);
    }
    for (int layout = 0; layout < 4; ++layout) {
      PanelForm p = dot;
      p.packed = false;
      p.transpose_a = layout % 2 != 0;
      p.transpose_b = layout >= 2;
      p.depth = 73;
      p.kc = 68;
      add(p);
    }
    PanelForm thin = dot;
    thin.nr = 3;  // no width of vectors
    thin.mr = thin.rows = 1;
    add(thin);
    add({a, DType::i8, DType::i32, 4});
    add({a, DType::i8, DType::i32, 2});
    add({a, DType::i8, DType::i32, 1});
  }
  for (bool packed : {true, false}) {
    for (bool transpose : {true, false}) {
      add({.a = DType::bf16,
           .b = DType::bf16,
           .accumulator = DType::f32,
           .group = 2,
           .packed = packed,
           .transpose_a = transpose,
           .transpose_b = transpose});
      add({.a = DType::f32,
           .b = DType::f16,
           .accumulator = DType::f32,
           .packed = packed,
           .transpose_a = transpose,
           .transpose_b = transpose});
    }
  }
  add({DType::f32, DType::bf16, DType::f32});
  add({DType::f16, DType::f16, DType::f32, 4});
  add({DType::f32, DType::f32, DType::f64, 2});
  add({DType::f64, DType::i8, DType::f64, 2});
  add({DType::i16, DType::i16, DType::i64, 2});
  return forms;
}

// What the instructions of some targets are for.
inline PanelForm bf16_dot_form() { return {DType::bf16, DType::bf16, DType::f32, 2, Schedule::Products::dot}; }
inline std::vector<PanelForm> tile_forms() {
  std::vector<PanelForm> forms;
  for (uint32_t size : {16u, 32u}) {
    for (bool packed : {true, false}) {
      for (DType a : {DType::i8, DType::u8, DType::bf16}) {
        const bool bytes = a != DType::bf16;
        forms.push_back({.a = a,
                         .b = bytes ? DType::i8 : DType::bf16,
                         .accumulator = bytes ? DType::i32 : DType::f32,
                         .group = bytes ? 4u : 2u,
                         .products = Schedule::Products::tiles,
                         .packed = packed,
                         .transpose_a = !packed,
                         .depth = 150,
                         .kc = size == 16 ? 64 : 192,
                         .mr = size,
                         .nr = size,
                         .rows = 37});
      }
    }
  }
  return forms;
}

}  // namespace kiln::kernel::testing
