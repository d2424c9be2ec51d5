// Rotary position embedding.
#include <cmath>

#include "runtime/ops/family.h"

namespace kiln::ops {
namespace {

Status infer_rope(InferContext &c) {
  const TensorType &x = c.inputs[0];
  if (x.rank() < 2) return c.fail("x is ", x.text(), ", expected [..., T, D]");
  KILN_TRY(require_rank(c, 1, 1));
  KILN_TRY(c.require_equal(x.dims[x.rank() - 2], c.inputs[1].dims[0],
                           str_cat("x dim ", x.rank() - 2, " and positions dim 0")));
  const Dim &depth = x.dims.back();
  if (!depth.is_integer() || depth.integer() % 2)
    return c.fail("x dim ", x.rank() - 1, " is ", depth.text(), ", expected an even integer");
  if (!(c.attr("theta").f64() > 0)) return c.fail("theta is ", c.attr("theta").f64(), ", expected more than 0");
  return infer_same(c);
}

// theta^(-2i/D) = exp(-2i/D * ln theta)
template <class Real>
Real log_step(const AttrMap &attrs, int64_t depth) {
  return -2 * std::log(Real(attrs.find("theta")->second.f64())) / static_cast<Real>(depth);
}

// With x as pairs (x1, x2) along a dim of its own: pairs * cos + swapped * (-1, 1) * sin.
Status decompose_rope(DecomposeContext &c) {
  const ValueId x = c.node.inputs[0], positions = c.node.inputs[1];
  const TensorType type = c.type(x);
  const int64_t depth = type.dims.back().integer(), half = depth / 2;
  const bool interleaved = c.attr("interleaved").boolean();
  auto shaped = [](Shape shape) { return AttrValue(std::move(shape)); };

  // The angles, [T, D/2], and their dims beside the pairs': [T, 1, D/2] or [T, D/2, 1].
  const int64_t pair_dim = interleaved ? -1 : -2;
  KILN_ASSIGN(ValueId counted, c.add("iota", {}, {{"shape", shaped({half})}, {"dtype", type.dtype}}));
  KILN_ASSIGN(ValueId step, c.scalar(type.dtype, log_step<double>(c.node.attrs, depth)));
  KILN_ASSIGN(ValueId logs, c.add("mul", {counted, step}));
  KILN_ASSIGN(ValueId frequencies, c.add("exp", {logs}));
  KILN_ASSIGN(ValueId times, c.add("convert", {positions}, {{"dtype", type.dtype}}));
  KILN_ASSIGN(ValueId rows, c.add("unsqueeze", {times}, {{"dims", ints({1})}}));
  KILN_ASSIGN(ValueId angles, c.add("mul", {rows, frequencies}));
  KILN_ASSIGN(ValueId cos, c.add("cos", {angles}));
  KILN_ASSIGN(ValueId sin, c.add("sin", {angles}));
  KILN_ASSIGN(cos, c.add("unsqueeze", {cos}, {{"dims", ints({pair_dim})}}));
  KILN_ASSIGN(sin, c.add("unsqueeze", {sin}, {{"dims", ints({pair_dim})}}));

  // (-1, 1) along the pairs' dim.
  const Shape sign_shape = interleaved ? Shape{2} : Shape{2, 1};
  KILN_ASSIGN(ValueId which, c.add("iota", {}, {{"shape", shaped(sign_shape)}, {"dtype", type.dtype}}));
  KILN_ASSIGN(ValueId two, c.scalar(type.dtype, 2));
  KILN_ASSIGN(ValueId one, c.scalar(type.dtype, 1));
  KILN_ASSIGN(ValueId doubled, c.add("mul", {which, two}));
  KILN_ASSIGN(ValueId signs, c.add("sub", {doubled, one}));

  Shape pair_shape(type.dims.begin(), type.dims.end() - 1);
  pair_shape.insert(pair_shape.end(), {interleaved ? half : 2, interleaved ? 2 : half});
  KILN_ASSIGN(ValueId pairs, c.add("reshape", {x}, {{"shape", shaped(pair_shape)}}));
  KILN_ASSIGN(ValueId first, c.add("slice", {pairs}, {{"dim", pair_dim}, {"end", Dim(1)}}));
  KILN_ASSIGN(ValueId second, c.add("slice", {pairs}, {{"dim", pair_dim}, {"start", Dim(1)}, {"end", Dim(2)}}));
  KILN_ASSIGN(ValueId swapped, c.add("concat", {second, first}, {{"dim", pair_dim}}));
  KILN_ASSIGN(ValueId signed_swapped, c.add("mul", {swapped, signs}));
  KILN_ASSIGN(ValueId straight, c.add("mul", {pairs, cos}));
  KILN_ASSIGN(ValueId crossed, c.add("mul", {signed_swapped, sin}));
  KILN_ASSIGN(ValueId rotated, c.add("add", {straight, crossed}));
  KILN_ASSIGN(ValueId y, c.add("reshape", {rotated}, {{"shape", shaped(type.dims)}}));
  c.results = {y};
  return {};
}

Status reference_rope(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const int64_t depth = x.shape.back(), rows = x.shape[x.shape.size() - 2], half = depth / 2;
  if (x.size() == 0) return {};
  const bool interleaved = c.attr("interleaved").boolean();
  const ReadElements<double> in(x);
  const ReadElements<int64_t> positions(*c.inputs[1]);
  const WriteElements<double> out(c.results[0]);
  return with_wide(x, [&](auto wide) {
    using Wide = decltype(wide);
    const Wide step = log_step<Wide>(c.attrs, depth);
    const auto turn = [&](int64_t row, int64_t i) {
      const Wide angle =
          static_cast<Wide>(positions[static_cast<size_t>(row % rows)]) * std::exp(static_cast<Wide>(i) * step);
      const auto first = static_cast<size_t>(row * depth + (interleaved ? 2 * i : i));
      const size_t second = first + static_cast<size_t>(interleaved ? 1 : half);
      const Wide x1 = in[first], x2 = in[second], cos = std::cos(angle), sin = std::sin(angle);
      out.set(first, static_cast<double>(x1 * cos - x2 * sin));
      out.set(second, static_cast<double>(x2 * cos + x1 * sin));
    };
    return c.for_ranges(x.size() / depth, 8 * depth, [&](int64_t begin, int64_t end) -> Status {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t i = 0; i < half; ++i) turn(row, i);
      return {};
    });
  });
}

// Angles are rounded to f32 before their sine is taken: up to half a unit in the last place of the largest position.
void samples_rope(SampleSink &out) {
  const Dim b = sym("b"), t = sym("t");
  auto sample = [&](const char *name, Shape x, AttrMap attrs = {}, std::map<std::string, int64_t> sizes = {}) {
    const Dim rows = x[x.size() - 2];
    out.push_back({.name = name,
                   .inputs = {f32(std::move(x)), i64({rows})},
                   .attrs = std::move(attrs),
                   .sizes = std::move(sizes),
                   .int_low = 0,
                   .int_high = 130,
                   .tolerance = 3e-5});
  };
  sample("matrix", {7, 8});
  sample("heads", {2, 3, 17, 32});
  sample("interleaved", {2, 3, 17, 32}, {{"interleaved", true}});
  sample("theta", {5, 16}, {{"theta", 500.0}});
  sample("one_pair", {9, 2});
  sample("narrow_positions", {5, 16});
  out.back().inputs[1].dtype = DType::i32;
  sample("no_rows", {3, 0, 8});
  sample("symbolic", {b, 4, t, 16}, {}, {{"b", 2}, {"t", 7}});
  sample("symbolic_one", {b, 2, t, 8}, {{"interleaved", true}}, {{"b", 1}, {"t", 1}});
}

const Op rope_records[] = {
    {{.name = "rope",
      .doc = "Rotates pairs of elements by the position: (x1 cos - x2 sin, x2 cos + x1 sin), angle = position * "
             "theta^(-2i/D). "
             "Pair i is (i, i + D/2), or (2i, 2i + 1) if interleaved.",
      .args = {{"x", "[..., T, D]; D is even", float_types},
               {"positions", "[T]", index_types, Arity::one, /*same_dtype=*/false}},
      .result_names = {"y"},
      .attrs = {{.name = "theta", .doc = "the base of the frequencies", .kind = AttrKind::f64, .fallback = 10000.0},
                flag("interleaved", "pairs are neighbours", false)},
      .infer = infer_rope},
     {.decompose = decompose_rope,
      .reference = reference_rope,
      .gradient = through_decomposition(),
      .samples = samples_rope}},
};

}  // namespace

std::span<const Op> rope_ops() { return rope_records; }

}  // namespace kiln::ops
