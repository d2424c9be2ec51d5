// Kernels in tiles of rows: contractions whose m is the last parallel axis, and what rows go through between them.
#pragma once
#include <limits>
#include <optional>

#include "tests/unit/jit/kernel/contraction_forms.h"

namespace kiln::kernel::testing {

struct RowTileForm {
  DType type = DType::f32;
  int64_t heads = 3, rows = 50, keys = 70, depth = 9, width = 21;
  uint32_t tile = 12, mr = 6, nr = 16, kc = 64;
  bool symbolic = false;               // rows and keys
  int64_t seen = 1000;                 // query i sees keys up to i + seen
  std::optional<int64_t> unseen = {};  // and of those from i - unseen on
};

// Attention without its exponentials, so that it is exact: for each head, o = relu(q k^T) v + the row's maximum, where
// hidden keys have -infinity (of integers -9), with the sum and the maximum of each row.
inline Form row_tile_form(const RowTileForm &p) {
  Form form{str_cat("tiles of ", p.tile, " rows, ", kiln::name_of(p.type), ", ", p.rows, "x", p.keys, ", ", p.depth,
                    ", ", p.width, ", seen ", p.seen, p.unseen ? str_cat(" from -", *p.unseen) : "",
                    p.symbolic ? ", symbolic" : ""),
            {},
            {}};
  Kernel &k = form.kernel;
  Expr rows = p.rows, keys = p.keys;
  if (p.symbolic) {
    k.symbols = {"s0", "s1"};
    form.sizes = {p.rows, p.keys};
    rows = Expr::symbol("s0");
    keys = Expr::symbol("s1");
  }
  k.buffers = {in(p.type, rows * (p.heads * p.depth)),
               in(p.type, keys * (p.heads * p.depth)),
               in(p.type, keys * (p.heads * p.width)),
               out(p.type, rows * (p.heads * p.width)),
               out(p.type, rows * p.heads),
               out(p.type, rows * p.heads),
               row_local(p.type, keys),
               row_local(p.type, 1)};
  k.parallel = {parallel(p.heads), parallel(rows)};
  k.schedule.vector = Schedule::Vector::inner;
  k.schedule.tiles = {1, p.tile};
  k.schedule.mr = p.mr;
  k.schedule.nr = p.nr;
  k.schedule.kc = p.kc;

  const bool is_float = dtype_info(p.type).is_float;
  const Expr h = axis(0, p.heads), i = axis(1, rows);
  Stage scores = map_stage({loop(1), loop(keys), reduce(p.depth)});
  {
    const Expr key = axis(3, keys), at = axis(4, p.depth);
    Contract &qk = scores.contract.emplace();
    qk.accumulator = p.type;
    BodyBuilder a(qk.a), b(qk.b), epilogue(scores.body);
    a.yield(a.load(0, p.type, {(h * rows + i) * p.depth + at}));
    b.yield(b.load(1, p.type, {(h * keys + key) * p.depth + at}));
    const int sum = accumulator(scores.body, p.type);
    const int last =
        epilogue.op(Core::add, epilogue.index(i), epilogue.constant(DType::i64, static_cast<double>(p.seen)));
    int visible = epilogue.op(Core::le, epilogue.index(key), last);
    if (p.unseen) {
      const int first =
          epilogue.op(Core::sub, epilogue.index(i), epilogue.constant(DType::i64, static_cast<double>(*p.unseen)));
      visible = epilogue.op(Core::logical_and, visible, epilogue.op(Core::ge, epilogue.index(key), first));
    }
    const double hidden = is_float ? -std::numeric_limits<double>::infinity() : -9;
    epilogue.yield(epilogue.op(Core::select, visible, sum, epilogue.constant(p.type, hidden)));
    scores.stores = {store_at(6, key)};
  }
  const Expr key = axis(2, keys);
  Stage greatest = map_stage({reduce(keys)});
  BodyBuilder(greatest.body).yield(BodyBuilder(greatest.body).load(6, p.type, {key}));
  greatest.carriers = carriers_of(Core::max, p.type);
  greatest.stores = {store_at(7, 0), store_at(4, h * rows + i)};
  Stage weights = map_stage({loop(keys)});
  BodyBuilder w(weights.body);
  w.yield(w.op(Core::max, w.load(6, p.type, {key}), w.constant(p.type, 0)));
  weights.stores = {store_at(6, key)};
  Stage total = map_stage({reduce(keys)});
  BodyBuilder(total.body).yield(BodyBuilder(total.body).load(6, p.type, {key}));
  total.carriers = carriers_of(Core::add, p.type);
  total.stores = {store_at(5, h * rows + i)};

  Stage weighted = map_stage({loop(1), loop(p.width), reduce(keys)});
  const Expr column = axis(3, p.width), k_axis = axis(4, keys);
  Contract &sv = weighted.contract.emplace();
  sv.accumulator = p.type;
  BodyBuilder s(sv.a), v(sv.b), end(weighted.body);
  s.yield(s.load(6, p.type, {k_axis}));
  v.yield(v.load(2, p.type, {(h * keys + k_axis) * p.width + column}));
  const int sum = accumulator(weighted.body, p.type);
  end.yield(end.op(Core::add, sum, end.load(7, p.type, {0})));
  weighted.stores = {store_at(3, (h * rows + i) * p.width + column)};
  k.stages = {scores, greatest, weights, total, weighted};
  return form;
}

inline std::vector<Form> row_tile_forms() {
  std::vector<RowTileForm> all;
  for (const DType type : {DType::f32, DType::f64, DType::i32}) {
    all.push_back({.type = type});
    all.push_back({.type = type, .symbolic = true});
  }
  all.push_back({.rows = 12, .keys = 64, .depth = 8, .width = 16, .seen = 0});   // all is whole
  all.push_back({.rows = 37, .keys = 200, .depth = 70, .width = 33, .kc = 48});  // several blocks of both depths
  all.push_back({.rows = 5, .keys = 1, .depth = 1, .width = 1, .tile = 96});
  all.push_back({.rows = 20, .keys = 30, .depth = 130, .width = 5, .tile = 7, .mr = 4, .nr = 8});
  all.push_back({.rows = 3, .keys = 0, .depth = 2, .width = 4, .symbolic = true});  // no keys
  for (const int64_t seen : {-60, -3, 0, 25}) {
    for (const bool symbolic : {false, true}) {
      all.push_back({.rows = 90, .keys = 150, .symbolic = symbolic, .seen = seen});
      all.push_back({.rows = 64, .keys = 192, .kc = 48, .symbolic = symbolic, .seen = seen});
      for (const int64_t unseen : {-70, 0, 40}) {
        all.push_back({.rows = 90, .keys = 150, .symbolic = symbolic, .seen = seen, .unseen = unseen});
        all.push_back(
            {.rows = 64, .keys = 320, .width = 32, .kc = 48, .symbolic = symbolic, .seen = seen, .unseen = unseen});
      }
    }
  }
  std::vector<Form> forms;
  for (const RowTileForm &p : all) forms.push_back(row_tile_form(p));
  return forms;
}

}  // namespace kiln::kernel::testing
