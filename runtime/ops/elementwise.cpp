#include "runtime/ops/elementwise.h"

#include <array>
#include <cmath>

namespace kiln::ops {

Status walk_blocks(ReferenceContext &c, size_t operands, bool of_floats, BlockFunction function) {
  constexpr size_t most = 64;
  constexpr int64_t work = 8;  // a function takes longer than an element's move
  RefTensor &y = c.results[0];
  // Those that there are not are as the first.
  const auto operand = [&](size_t k) -> const RefTensor & { return *c.inputs[k < operands ? k : 0]; };
  const std::array floats = {ReadElements<double>(operand(0)), ReadElements<double>(operand(1)),
                             ReadElements<double>(operand(2))};
  const std::array integers = {ReadElements<int64_t>(operand(0)), ReadElements<int64_t>(operand(1)),
                               ReadElements<int64_t>(operand(2))};
  const WriteElements<double> float_results(y);
  const WriteElements<int64_t> integer_results(y);
  std::array<std::vector<int64_t>, 3> strides;
  for (size_t k = 0; k < strides.size(); ++k) strides[k] = broadcast_strides(operand(k).shape, y.shape);
  return c.for_ranges(y.size(), work, [&](int64_t begin, int64_t end) -> Status {
    Number x[3][most], made[most];
    size_t count = 0;
    const auto make = [&](size_t first) {
      function(c, {x[0], x[1], x[2]}, made, count, y.is_float());
      for (size_t k = 0; k < count; ++k)
        y.is_float() ? float_results.set(first + k, made[k].f) : integer_results.set(first + k, made[k].i);
      count = 0;
    };
    walk_range<3>(y.shape, strides, begin, end, [&](size_t k, const auto &at) {
      for (size_t j = 0; j < operands; ++j) {
        const auto from = static_cast<size_t>(at[j]);
        if (of_floats)
          x[j][count].f = floats[j][from];
        else
          x[j][count].i = integers[j][from];
      }
      if (++count == most) make(k + 1 - most);
    });
    make(static_cast<size_t>(end) - count);
    return {};
  });
}

Status require_divisors(const ReferenceContext &c) {
  const RefTensor &b = *c.inputs[1];
  if (b.is_float() || c.results[0].size() == 0) return {};
  const ReadElements<int64_t> divisors(b);
  for (size_t k = 0; k < static_cast<size_t>(b.size()); ++k)
    if (divisors[k] == 0) return error(Code::out_of_range, "integer division by zero: operand b holds 0");
  return {};
}

void unary_samples(SampleSink &out, double low, double high, const std::vector<float> &edges) {
  const Dim n = sym("n");
  out.push_back({.name = "vector", .inputs = {f32({257})}, .low = low, .high = high});
  out.push_back({.name = "matrix", .inputs = {f32({7, 33})}, .low = low, .high = high});
  out.push_back({.name = "one", .inputs = {f32({1})}, .low = low, .high = high});
  out.push_back({.name = "scalar", .inputs = {f32({})}, .low = low, .high = high});
  out.push_back({.name = "empty", .inputs = {f32({0, 5})}});
  out.push_back({.name = "symbolic", .inputs = {f32({n, 3, n})}, .sizes = {{"n", 5}}, .low = low, .high = high});
  out.push_back({.name = "symbolic_empty", .inputs = {f32({n})}, .sizes = {{"n", 0}}});
  const auto count = static_cast<int64_t>(edges.size());
  out.push_back({.name = "edges", .inputs = {f32({count})}, .given = {{0, f32_data({count}, edges)}}});
}

void samples_line(SampleSink &out) {
  unary_samples(out, -8, 8, {0.f, -0.f, INFINITY, -INFINITY, NAN, 1e-30f, -1e-30f, 88.f, -87.f, 1e-5f, 20.f, -20.f});
}
void samples_rounding(SampleSink &out) {
  unary_samples(
      out, -20, 20,
      {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 0.f, -0.f, 1e30f, -1e30f, INFINITY, NAN, 8388609.f, 0.49999997f});
}

void binary_samples(SampleSink &out, double low, double high) {
  const Dim n = sym("n"), m = sym("m");
  auto sample = [&](const char *name, Shape a, Shape b, std::map<std::string, int64_t> sizes = {}) {
    out.push_back({.name = name,
                   .inputs = {f32(std::move(a)), f32(std::move(b))},
                   .sizes = std::move(sizes),
                   .low = low,
                   .high = high});
  };
  sample("vectors", {257}, {257});
  sample("matrices", {7, 33}, {7, 33});
  sample("scalars", {}, {});
  sample("scalar_right", {5, 17}, {});
  sample("scalar_left", {}, {65});
  sample("row", {9, 33}, {33});
  sample("column", {9, 33}, {9, 1});
  sample("both", {7, 1, 5}, {3, 1});
  sample("ones", {1, 1}, {1});
  sample("empty", {0, 3}, {3});
  sample("empty_broadcast", {0}, {1});
  sample("symbolic", {n, 3}, {n, 3}, {{"n", 17}});
  sample("symbolic_broadcast", {n, 1, m}, {3, m}, {{"n", 2}, {"m", 33}});
  sample("symbolic_equal_at_the_call", {n}, {m}, {{"n", 7}, {"m", 7}});
  sample("symbolic_one", {n, m}, {n, m}, {{"n", 1}, {"m", 1}});
}

void integer_pairs(SampleSink &out) {
  out.push_back({.name = "integers", .inputs = {i64({5, 7}), i64({7})}});
  out.push_back({.name = "integers_wrap",
                 .inputs = {i64({4}), i64({4})},
                 .given = {{0, i64_data({4}, {i64_max, i64_min, i64_min, i64_max})},
                           {1, i64_data({4}, {2, -1, i64_min, i64_max})}}});
}

void edge_pairs(SampleSink &out) {
  const std::vector<float> edges = {0.f, -0.f, 1.f, -2.5f, INFINITY, -INFINITY, NAN};
  out.push_back({.name = "edges",
                 .inputs = {f32({7, 1}), f32({7})},
                 .given = {{0, f32_data({7, 1}, edges)}, {1, f32_data({7}, edges)}}});
}

void samples_divide(SampleSink &out) {
  binary_samples(out, 0.5, 4);
  out.push_back({.name = "negative", .inputs = {f32({65}), f32({65})}, .low = -4, .high = -0.5});
  for (Sample &sample : out) {  // as integers, too, no divisor is 0
    sample.int_low = sample.low > 0 ? 1 : -9;
    sample.int_high = sample.low > 0 ? 10 : 0;
  }
  out.push_back({.name = "integer_signs",
                 .inputs = {i64({4, 1}), i64({3})},
                 .given = {{0, i64_data({4, 1}, {7, -7, 6, i64_min})}, {1, i64_data({3}, {3, -3, -1})}}});
}

Op unary(std::string_view name, std::string_view doc, DTypes types, OpMeaning meaning, std::vector<AttrDef> attrs) {
  return {{.name = name,
           .doc = doc,
           .args = {{"x", "any shape", types}},
           .result_names = {"y"},
           .attrs = std::move(attrs),
           .infer = infer_same},
          meaning};
}

Op with_infer(Op op, Status (*infer)(InferContext &)) {
  op.infer = infer;
  return op;
}

Op binary(std::string_view name, std::string_view doc, DTypes types, OpMeaning meaning) {
  return {{.name = name,
           .doc = doc,
           .args = {{"a", "any shape", types}, {"b", "broadcasts with a", types}},
           .result_names = {"y"},
           .infer = infer_broadcast},
          meaning};
}

Op commuting(Op op) {
  op.flags |= op_flags::commutes;
  return op;
}

Op moving(std::string_view name, std::string_view doc, std::string_view x_doc, std::vector<AttrDef> attrs,
          Status (*infer)(InferContext &), OpMeaning meaning) {
  Op op = unary(name, doc, any_type, meaning, std::move(attrs));
  op.flags = op_flags::moves;
  op.args[0].doc = x_doc;
  op.gradient = by_rule("x");
  op.infer = infer;
  return op;
}

}  // namespace kiln::ops
