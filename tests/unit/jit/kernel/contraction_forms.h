// Contractions among other stages: their operands, and what becomes of the sums, lie in row_local buffers.
#pragma once
#include "tests/unit/jit/kernel/store_forms.h"

namespace kiln::kernel::testing {

// sum over k of a * b, as its epilogue sees it.
inline int accumulator(Body &body, DType type) {
  body.values.push_back(
      {.op = Core::accumulator, .type = type, .args = {-1, -1, -1}, .immediate = 0, .access = {}, .expr = {}});
  return static_cast<int>(body.values.size()) - 1;
}

inline Stage map_stage(std::vector<Axis> axes) {
  Stage stage;
  stage.axes = std::move(axes);
  return stage;
}

// to[index] = from[index] of a type, over `axes`; from < 0: zeros.
inline Stage copy_stage(std::vector<Axis> axes, DType type, int from, const Expr &source, uint16_t to,
                        const Expr &place) {
  Stage stage = map_stage(std::move(axes));
  BodyBuilder b(stage.body);
  b.yield(from < 0 ? b.constant(type, 0) : b.load(static_cast<uint16_t>(from), type, {source}));
  stage.stores = {store_at(to, place)};
  return stage;
}

// Attention without its exponentials, so that it is exact: for each head, o = relu(q k^T) v, with the sum and the
// maximum of each row, in blocks of keys.
inline Form attention_form(DType type, size_t number) {
  constexpr int64_t queries = 4, width = 19, keys = 5, blocks = 3;
  const Expr heads = Expr::symbol("s0"), h = axis(0, heads), block = axis(1, blocks);
  Form form{str_cat("attention ", kiln::name_of(type)), {}, {18}};
  Kernel &k = form.kernel;
  k.symbols = {"s0"};
  k.buffers = {in(type, heads * (queries * width)),
               in(type, heads * (keys * blocks * width)),
               in(type, heads * (keys * blocks * width)),
               out(type, heads * (queries * width)),
               out(type, heads * queries),
               out(type, heads * queries),
               row_local(type, queries * keys),
               row_local(type, queries * width),
               row_local(type, queries),
               row_local(type, queries)};
  k.parallel = {parallel(heads)};
  k.schedule.tiles = {16};
  k.schedule.vector = vector_of(number);

  // Axis ids: with a block axis, a stage's own begin at 2, without at 1.
  const Expr q = axis(1, queries), d = axis(2, width);
  std::vector<Stage> &stages = k.stages;
  stages.push_back(copy_stage({loop(queries), loop(width)}, type, -1, 0, 7, q * width + d));
  stages.push_back(copy_stage({loop(queries)}, type, -1, 0, 8, q));
  stages.push_back(copy_stage({loop(queries)}, type, -1, 0, 9, q));

  const Axis in_blocks{blocks, Axis::Role::block};
  const Expr row = axis(2, queries), key = axis(3, keys), at = axis(4, width);
  Stage scores = map_stage({in_blocks, loop(queries), loop(keys), reduce(width)});
  Contract &qk = scores.contract.emplace();
  qk.accumulator = type;
  BodyBuilder a(qk.a), b(qk.b), epilogue(scores.body);
  a.yield(a.load(0, type, {(h * queries + row) * width + at}));
  b.yield(b.load(1, type, {((h * blocks + block) * keys + key) * width + at}));
  const int sum = accumulator(scores.body, type);
  epilogue.yield(epilogue.op(Core::max, sum, epilogue.constant(type, 0)));
  scores.stores = {store_at(6, row * keys + key)};
  stages.push_back(scores);

  for (const auto &[op, mode, to] :
       {std::tuple{Core::add, Mode::add, uint16_t{8}}, std::tuple{Core::max, Mode::max, uint16_t{9}}}) {
    Stage reduction = map_stage({in_blocks, loop(queries), reduce(keys)});
    BodyBuilder(reduction.body).yield(BodyBuilder(reduction.body).load(6, type, {row * keys + key}));
    reduction.carriers = carriers_of(op, type);
    reduction.stores = {store_at(to, row, 0, mode)};
    stages.push_back(reduction);
  }

  Stage weighted = map_stage({in_blocks, loop(queries), loop(width), reduce(keys)});
  const Expr column = axis(3, width), k_axis = axis(4, keys);
  Contract &sv = weighted.contract.emplace();
  sv.accumulator = type;
  BodyBuilder s(sv.a), v(sv.b);
  s.yield(s.load(6, type, {row * keys + k_axis}));
  v.yield(v.load(2, type, {((h * blocks + block) * keys + k_axis) * width + column}));
  weighted.body.yields = {accumulator(weighted.body, type)};
  weighted.stores = {store_at(7, row * width + column, 0, Mode::add)};
  stages.push_back(weighted);

  stages.push_back(copy_stage({loop(queries), loop(width)}, type, 7, q * width + d, 3, (h * queries + q) * width + d));
  stages.push_back(copy_stage({loop(queries)}, type, 8, q, 4, h * queries + q));
  stages.push_back(copy_stage({loop(queries)}, type, 9, q, 5, h * queries + q));
  return form;
}

// A row less its maximum, times two matrices; of the second product only the sum is kept.
inline Form shared_operand_form(DType type, size_t number, int64_t width = 21) {
  constexpr int64_t depth = 23;
  const Expr rows = Expr::symbol("s0"), i = axis(0, rows);
  Form form{str_cat("shared operand ", kiln::name_of(type)), {}, {17}};
  Kernel &k = form.kernel;
  k.symbols = {"s0"};
  k.buffers = {in(type, rows * depth), in(type, depth * width), in(type, depth * width), out(type, rows * width),
               out(type, rows),        row_local(type, 1),      row_local(type, depth),  row_local(type, width)};
  k.parallel = {parallel(rows)};
  k.schedule.tiles = {16};
  k.schedule.vector = vector_of(number);

  const Expr j = axis(1, depth);
  Stage greatest = map_stage({reduce(depth)});
  BodyBuilder(greatest.body).yield(BodyBuilder(greatest.body).load(0, type, {i * depth + j}));
  greatest.carriers = carriers_of(Core::max, type);
  greatest.stores = {store_at(5, 0)};
  Stage centred = map_stage({loop(depth)});
  BodyBuilder c(centred.body);
  const int x = c.load(0, type, {i * depth + j});
  c.yield(c.op(Core::sub, x, c.load(5, type, {0})));
  centred.stores = {store_at(6, j)};
  k.stages = {greatest, centred};

  for (uint16_t matrix : {uint16_t{1}, uint16_t{2}}) {
    Stage product = map_stage({loop(1), loop(width), reduce(depth)});
    const Expr n = axis(2, width), at = axis(3, depth);
    Contract &contract = product.contract.emplace();
    contract.accumulator = type;
    BodyBuilder a(contract.a), b(contract.b);
    a.yield(a.load(6, type, {at}));
    b.yield(b.load(matrix, type, {at * width + n}));
    product.body.yields = {accumulator(product.body, type)};
    product.stores = {matrix == 1 ? store_at(3, i * width + n) : store_at(7, n)};
    k.stages.push_back(product);
  }
  Stage total = map_stage({reduce(width)});
  BodyBuilder(total.body).yield(BodyBuilder(total.body).load(7, type, {axis(1, width)}));
  total.carriers = carriers_of(Core::add, type);
  total.stores = {store_at(4, i)};
  k.stages.push_back(total);
  return form;
}

// Sorted in blocks of 8, and each block written before the next is read.
inline Form sort_in_blocks() {
  const Expr rows = Expr::symbol("s0"), i = axis(0, rows), block = axis(1, 3), j = axis(2, 8);
  Form form{"sort in blocks", {}, {5}};
  Kernel &k = form.kernel;
  k.symbols = {"s0"};
  k.buffers = {in(DType::f32, rows * 24), out(DType::f32, rows * 24), row_local(DType::f32, 8),
               row_local(DType::f32, 8)};
  k.parallel = {parallel(rows)};
  k.schedule.tiles = {2};
  k.schedule.vector = Schedule::Vector::inner;
  const Axis in_blocks{3, Axis::Role::block};
  const Expr place = (i * 3 + block) * 8 + j;
  Stage sort = map_stage({in_blocks, scan(8)});
  sort.sort = {.columns = {{2, 3}}, .descending = true, .wanted = {}};
  k.stages = {copy_stage({in_blocks, loop(8)}, DType::f32, 0, place, 2, j), sort,
              copy_stage({in_blocks, loop(8)}, DType::f32, 2, j, 1, place)};
  return form;
}

inline std::vector<Form> contraction_forms() {
  std::vector<Form> forms;
  size_t number = 0;
  for (DType type : {DType::f32, DType::i32, DType::f64, DType::f32, DType::i64}) {
    forms.push_back(attention_form(type, number));
    forms.push_back(shared_operand_form(type, number++));
  }
  for (size_t vector : {0, 1}) forms.push_back(shared_operand_form(DType::f32, vector, 149));  // many columns at a time
  forms.push_back(sort_in_blocks());
  return forms;
}

}  // namespace kiln::kernel::testing
