// Small programs of computes for the tests of fusion: what op records would lower to, without the ops.
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "jit/kernel/fuse.h"

namespace kiln::kernel::testing {

class ProgramBuilder {
 public:
  Program program;

  uint32_t input(Shape dims, bool parameter = false, DType dtype = DType::f32) {
    program.tensors.push_back({dtype, dims, row_major_strides(dims), false, parameter});
    return last();
  }
  // Pointwise over one or two operands, broadcast as numpy does.
  uint32_t map(Core core, uint32_t a, int32_t b = -1) {
    Compute c;
    c.dims = program.tensors[a].dims;
    if (b >= 0) {
      const Shape &other = program.tensors[static_cast<uint32_t>(b)].dims;
      const Shape &longer = other.size() > c.dims.size() ? other : c.dims,
                  &shorter = other.size() > c.dims.size() ? c.dims : other;
      Shape dims = longer;
      for (size_t i = 0; i < shorter.size(); ++i) {
        Dim &d = dims[longer.size() - shorter.size() + i];
        if (d.is(1)) d = shorter[i];
      }
      c.dims = dims;
    }
    BodyBuilder body(c.body);
    const int x = body.load(0, DType::f32, broadcast(c.dims, program.tensors[a].dims));
    const int y =
        b >= 0 ? body.load(1, DType::f32, broadcast(c.dims, program.tensors[static_cast<uint32_t>(b)].dims)) : -1;
    body.yield(body.op(core, x, y));
    std::vector<uint32_t> operands = {a};
    if (b >= 0) operands.push_back(static_cast<uint32_t>(b));
    return define(std::move(c), std::move(operands));
  }
  // Over the last axis, which is kept with extent 1.
  uint32_t reduce_last(Core combine, uint32_t a) {
    Compute c;
    BodyBuilder body(c.body);
    body.yield(load_last(c, body, a));
    c.carriers = carriers_of(combine, DType::f32);
    return define(std::move(c), {a});
  }
  // The same, of two results: the sum, and the sum of squares.
  uint32_t moments_last(uint32_t a) {
    Compute c;
    BodyBuilder body(c.body);
    const int x = load_last(c, body, a);
    body.yield(x);
    body.yield(body.op(Core::mul, x, x));
    c.carriers.types = {DType::f32, DType::f32};
    c.carriers.identities = {0, 0};
    BodyBuilder combine(c.carriers.combine);
    std::array<int, 4> sides{};
    for (uint32_t i = 0; i < 4; ++i) sides[i] = combine.carrier(DType::f32, i);
    for (size_t i = 0; i < 2; ++i) combine.yield(combine.op(Core::add, sides[i], sides[i + 2]));
    c.results = {{DType::f32, 0}, {DType::f32, 1}};
    return define(std::move(c), {a});
  }
  // Of each window of 3 x 3 in the last two of three dims.
  uint32_t windows_of_3_by_3(Core combine, uint32_t a) {
    Compute c;
    c.dims = program.tensors[a].dims;
    for (size_t d = 1; d < 3; ++d) c.dims[d] = c.dims[d] - 2;
    c.reduce = {3, 3};
    std::vector<Expr> index = axes(c.dims);
    for (uint32_t d = 1; d < 3; ++d) index[d] += Expr::axis(2 + d, 3);
    BodyBuilder body(c.body);
    body.yield(body.load(0, DType::f32, index));
    c.carriers = carriers_of(combine, DType::f32);
    return define(std::move(c), {a});
  }
  // The running maximum along an axis.
  uint32_t running_max(uint32_t a, uint32_t along) {
    Compute c;
    c.dims = program.tensors[a].dims;
    c.scan = static_cast<int32_t>(along);
    BodyBuilder body(c.body);
    body.yield(body.load(0, DType::f32, axes(c.dims)));
    c.carriers = carriers_of(Core::max, DType::f32);
    return define(std::move(c), {a});
  }
  // The first `wanted` elements along an axis in order; and the negated ones, which go along.
  uint32_t sorted(uint32_t a, uint32_t along, const Dim &wanted, Compute::Order order) {
    Compute c;
    c.dims = program.tensors[a].dims;
    std::vector<Expr> index = axes(c.dims);
    c.reduce = {c.dims[along]};
    index[along] = Expr::axis(static_cast<uint32_t>(c.dims.size()), c.dims[along]);
    c.dims[along] = wanted;
    c.scan = static_cast<int32_t>(along);
    c.order = order;
    BodyBuilder body(c.body);
    const int x = body.load(0, DType::f32, index);
    body.yield(x);
    body.yield(body.op(Core::neg, x));
    c.results = {{DType::f32, 0}, {DType::f32, 1}};
    return define(std::move(c), {a});
  }
  // How many elements of the last row's order come before each of `a`: [.., n] in [.., t] sorted.
  uint32_t place_in(uint32_t a, uint32_t rows) {
    Compute c;
    c.dims = program.tensors[a].dims;
    std::vector<Expr> first = axes(program.tensors[rows].dims);
    first.back() = 0;
    BodyBuilder body(c.body);
    const int x = body.load(0, DType::f32, axes(c.dims));
    body.yield(body.convert(body.search(x, 1, first, program.tensors[rows].dims.back(), 0), DType::f32));
    return define(std::move(c), {a, rows});
  }
  // Pointwise, of two results: sine and cosine.
  uint32_t sine_and_cosine(uint32_t a) {
    Compute c;
    c.dims = program.tensors[a].dims;
    BodyBuilder body(c.body);
    const int x = body.load(0, DType::f32, axes(c.dims));
    body.yield(body.op(Core::sin, x));
    body.yield(body.op(Core::cos, x));
    c.results = {{DType::f32, 0}, {DType::f32, 1}};
    return define(std::move(c), {a});
  }
  // A view: result index -> operand index.
  uint32_t view(uint32_t a, Shape dims, const std::function<std::vector<Expr>(const std::vector<Expr> &)> &map) {
    Compute c;
    c.dims = std::move(dims);
    c.view = true;
    BodyBuilder body(c.body);
    body.yield(body.load(0, DType::f32, map(axes(c.dims))));
    return define(std::move(c), {a});
  }
  // [batch.., m, k] x [n, k] -> [batch.., m, n], as a linear layer.
  uint32_t linear(uint32_t x, uint32_t w, DType accumulator = DType::f32) {
    Compute c;
    c.results = {{accumulator}};
    c.dims = program.tensors[x].dims;
    const Expr k_extent = c.dims.back();
    c.dims.back() = program.tensors[w].dims[0];
    c.reduce = {k_extent};
    c.roles.assign(c.dims.size() - 1, ContractRole::m);
    c.roles.push_back(ContractRole::n);
    const std::vector<Expr> all = axes(c.dims);
    const Expr k = Expr::axis(static_cast<uint32_t>(c.dims.size()), k_extent);
    std::vector<Expr> a_index(all.begin(), all.end() - 1);
    a_index.push_back(k);
    Contract &contract = c.contract.emplace();
    contract.accumulator = accumulator;
    BodyBuilder a(contract.a), b(contract.b);
    a.yield(a.convert(a.load(0, program.tensors[x].dtype, a_index), accumulator));
    b.yield(b.convert(b.load(1, program.tensors[w].dtype, {all.back(), k}), accumulator));
    return define(std::move(c), {x, w});
  }
  // y = x, with row r of `source` added to row order[r] of y, both along dim `along`. `shown`: in a way that tells
  // verify() that rows keep apart.
  uint32_t add_rows(uint32_t x, uint32_t order, uint32_t source, uint32_t along, bool shown = true) {
    Compute c;
    c.dims = program.tensors[x].dims;
    c.reduce = {program.tensors[source].dims[along]};
    const Expr row = Expr::axis(static_cast<uint32_t>(c.dims.size()), c.reduce[0]);
    Scatter &scatter = c.scatter.emplace();
    BodyBuilder body(c.body), begin(scatter.begin);
    begin.yield(begin.load(0, DType::f32, axes(c.dims)));
    scatter.index = axes(c.dims);
    std::vector<Expr> from = scatter.index;
    from[along] = row;
    scatter.index[along] = Expr::value(1);
    scatter.mode = Store::Mode::add;
    scatter.valid = 2;
    const int to = body.load(1, program.tensors[order].dtype, {row});
    body.yield(body.load(2, DType::f32, from));
    body.yield(to);
    const int inside = body.op(Core::in_range, to, body.index(c.dims[along]));
    body.yield(shown ? inside : body.op(Core::logical_or, inside, inside));
    return define(std::move(c), {x, order, source});
  }
  // Gives the first result; the others follow it.
  uint32_t define(Compute c, std::vector<uint32_t> operands) {
    std::vector<uint32_t> results;
    for (const Compute::Output &output : c.results) {
      program.tensors.push_back({output.dtype, c.dims, row_major_strides(c.dims), false, false});
      results.push_back(last());
    }
    const uint32_t first = results[0];
    program.defs.push_back({std::move(results), std::move(operands), std::move(c)});
    return first;
  }
  void output(uint32_t tensor) { program.tensors[tensor].is_output = true; }

  static std::vector<Expr> axes(const Shape &dims) {
    std::vector<Expr> all;
    for (uint32_t d = 0; d < dims.size(); ++d) all.push_back(Expr::axis(d, dims[d]));
    return all;
  }

 private:
  // An element of `a`; c's dims become its, with the last axis reduced.
  int load_last(Compute &c, BodyBuilder &body, uint32_t a) const {
    c.dims = program.tensors[a].dims;
    c.reduce = {c.dims.back()};
    c.dims.back() = 1;
    std::vector<Expr> index = axes(c.dims);
    index.back() = Expr::axis(static_cast<uint32_t>(c.dims.size()), c.reduce[0]);
    return body.load(0, DType::f32, index);
  }

  static std::vector<Expr> broadcast(const Shape &to, const Shape &from) {
    std::vector<Expr> index;
    for (size_t d = 0; d < from.size(); ++d) {
      const size_t at = to.size() - from.size() + d;
      index.push_back(from[d].is(1) ? Expr(0) : Expr::axis(static_cast<uint32_t>(at), to[at]));
    }
    return index;
  }
  uint32_t last() const { return static_cast<uint32_t>(program.tensors.size()) - 1; }
};

inline Fused fused(const ProgramBuilder &b, bool fuse_all = true, std::string_view level = "v4") {
  Result<Fused> result = fuse(b.program, *Target::by_name(level), {.fuse = fuse_all});
  EXPECT_TRUE(result.ok()) << result.status().message();
  return std::move(result).value();
}

// Maps, reductions (some of two results), scans, views and linear layers over tensors with the symbols n and t, in a
// shape that the seed decides.
inline ProgramBuilder random_program(unsigned seed) {
  const Expr n = Expr::symbol("n"), t = Expr::symbol("t");
  std::mt19937 random(seed);
  const auto below = [&](size_t limit) { return static_cast<uint32_t>(random() % limit); };
  ProgramBuilder b;
  b.input({n, 4, t});
  b.input({n, 1, 1});
  b.input({4, t}, true);
  b.input({n, 4, t});
  const uint32_t w = b.input({6, 6}, true);
  b.input({n, 4, 6});
  const auto inputs = static_cast<uint32_t>(b.program.tensors.size());
  for (int step = 0; step < 12; ++step) {
    const uint32_t a = below(b.program.tensors.size()), c = below(b.program.tensors.size());
    const Shape ad = b.program.tensors[a].dims, cd = b.program.tensors[c].dims;
    bool fits = ad.size() == cd.size();
    for (size_t i = 0; fits && i < ad.size(); ++i) fits = ad[i] == cd[i] || ad[i].is(1) || cd[i].is(1);
    switch (below(9)) {
      case 0:
        b.map(Core::tanh, a);
        break;
      case 1:
        b.map(Core::tanh, b.reduce_last(below(2) ? Core::add : Core::max, a));  // sums stay small
        break;
      case 2:
        if (ad.back().is(6)) b.linear(a, w);
        break;
      case 3:
        if (ad.size() == 3)
          b.view(a, {ad[1], ad[0], ad[2]},
                 [](const std::vector<Expr> &i) { return std::vector<Expr>{i[1], i[0], i[2]}; });
        break;
      case 4:
        b.sine_and_cosine(a);
        break;
      case 5:
        b.map(Core::tanh, b.moments_last(a) + below(2));
        break;
      case 6:
        b.running_max(a, below(ad.size()));
        break;
      default:
        if (fits) b.map(below(2) ? Core::add : Core::mul, a, static_cast<int32_t>(c));
    }
  }
  for (int k = 0; k < 3; ++k) {
    const uint32_t tensor = below(b.program.tensors.size());
    if (tensor >= inputs) b.output(tensor);
  }
  return b;
}

}  // namespace kiln::kernel::testing
