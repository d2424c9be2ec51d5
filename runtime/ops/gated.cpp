// Activations that multiply one half of their operand by a gate that the other half makes.
#include <cmath>

#include "runtime/ops/elementwise.h"
#include "runtime/ops/formula.h"

namespace kiln::ops {
namespace {

Status infer_halves(InferContext &c) {
  const TensorType &x = c.inputs[0];
  KILN_ASSIGN(const int64_t dim, c.axis(c.attr("dim").i64(), x.rank(), "dim"));
  Shape shape = x.dims;
  Dim &halved = shape[static_cast<size_t>(dim)];
  KILN_TRY(c.require_equal(mod(halved, 2), 0, str_cat("x dim ", dim, " modulo 2 and 0")));
  halved = floor_div(halved, 2);
  c.results = {make_type(x.dtype, std::move(shape))};
  return {};
}

// The formula of an element of the first half and the one of the second half that stands where it does.
template <auto formula>
Status lower_halves(LowerContext &c) {
  const size_t dim = dim_of(c, c.result.rank());
  std::vector<Expr> index = c.axes();
  const Term first(c.body, c.load(0, index));
  index[dim] = index[dim] + c.result.dims[dim];
  const Term second(c.body, c.load(0, std::move(index)));
  c.body.yield(formula(first, second).value());
  return {};
}

template <auto function>
Status reference_halves(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0], &y = c.results[0];
  const size_t dim = dim_of(c, y.shape.size());
  const int64_t inner = count_of(std::span(y.shape).subspan(dim));
  return with_wide(x, [&](auto wide) {
    using Wide = decltype(wide);
    const ReadElements<double> in(x);
    return make_each<double>(
        c,
        [&](int64_t k) {
          const auto first = static_cast<size_t>(k / inner * 2 * inner + k % inner);
          return function(Wide(in[first]), Wide(in[first + static_cast<size_t>(inner)]));
        },
        8);
  });
}

void samples_halves(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  out.push_back(sample_of("vector", {258}, {}, {}));
  out.push_back(sample_of("rows", {7, 66}, {}, {}));
  out.push_back(sample_of("first_dim", {6, 17}, {{"dim", 0}}, {}));
  out.push_back(sample_of("middle", {2, 10, 3, 5}, {{"dim", -3}}, {}));
  out.push_back(sample_of("empty", {3, 0}, {}, {}));
  out.push_back(sample_of("symbolic", {n, 2 * m}, {}, {{"n", 3}, {"m", 9}}));
  out.push_back(sample_of("even_at_the_call", {n}, {}, {{"n", 34}}));
  out.push_back({.name = "edges",
                 .inputs = {f32({2, 5})},
                 .attrs = {{"dim", 0}},
                 .given = {{0, f32_data({2, 5}, {1.f, -2.f, 0.f, NAN, 1.f, INFINITY, -100.f, 100.f, 0.f, NAN})}}});
}

Op gated(std::string_view name, std::string_view doc, OpMeaning meaning) {
  Op op = unary(
      name, doc, float_types, meaning,
      {{.name = "dim", .doc = "of x, which is halved; negative: from the end", .kind = AttrKind::i64, .fallback = -1}});
  op.infer = infer_halves;
  return op;
}

const Op gated_records[] = {
    gated("glu", "The first half of x along dim times the sigmoid of the second.",
          {.lower = lower_halves<[](const Term &a, const Term &b) { return a * sigmoid(b); }>,
           .reference = reference_halves<[](auto a, auto b) { return a / (1 + std::exp(-b)); }>,
           .gradient = by_rule("x"),
           .samples = samples_halves}),
    gated("swiglu", "silu of the first half of x along dim, times the second: the gate comes first.",
          {.lower = lower_halves<[](const Term &a, const Term &b) { return a * sigmoid(a) * b; }>,
           .reference = reference_halves<[](auto a, auto b) { return a / (1 + std::exp(-a)) * b; }>,
           .gradient = by_rule("x"),
           .samples = samples_halves}),
};

}  // namespace

std::span<const Op> gated_ops() { return gated_records; }

}  // namespace kiln::ops
