// Between channels and blocks of pixels.
#include "runtime/ops/composer.h"
#include "runtime/ops/elementwise.h"

namespace kiln::ops {
namespace {

// Channels are factor^2 times fewer where height and width are factor times larger, and the other way round.
template <bool is_shuffle>
Status infer_shuffle(InferContext &c) {
  const TensorType &x = c.inputs[0];
  const int64_t factor = c.attr("factor").i64();
  if (factor < 1) return c.fail("factor is ", factor, ", expected at least 1");
  if (x.rank() < 3) return c.fail("x is ", x.text(), ", expected [..., C, H, W]");
  Shape shape = x.dims;
  const auto change = [&](size_t from_the_end, const char *name, int64_t by, bool divides) -> Status {
    Dim &dim = shape[shape.size() - from_the_end];
    if (divides) KILN_TRY(c.require_equal(mod(dim, by), 0, str_cat(name, by == factor ? "" : "^2", " and 0")));
    dim = divides ? floor_div(dim, by) : dim * by;
    return {};
  };
  KILN_TRY(change(3, "channels modulo factor", factor * factor, is_shuffle));
  KILN_TRY(change(2, "height modulo factor", factor, !is_shuffle));
  KILN_TRY(change(1, "width modulo factor", factor, !is_shuffle));
  c.results = {make_type(x.dtype, std::move(shape))};
  return {};
}

// Reshapes to [L, C, ...], where the blocks' dims stand apart, puts these elsewhere, and reshapes to the result.
template <bool is_shuffle>
Status decompose_shuffle(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0];
  const Shape dims = c.type(x).dims;
  const int64_t factor = c.attr("factor").i64();
  const Dim *last = dims.data() + dims.size() - 3;
  Dim leading = 1;
  for (size_t d = 0; d + 3 < dims.size(); ++d) leading *= dims[d];
  const Shape result = c.node.results[0].dims;
  const Dim *small = is_shuffle ? last : result.data() + result.size() - 3;  // C f^2, H, W
  const Dim channels = is_shuffle ? result[result.size() - 3] : last[0];
  Shape apart = is_shuffle ? Shape{leading, channels, factor, factor, small[1], small[2]}
                           : Shape{leading, channels, small[1], factor, small[2], factor};
  const ValueId parts = g("reshape", {x}, {{"shape", AttrValue(std::move(apart))}});
  const auto order = is_shuffle ? ints({0, 1, 4, 2, 5, 3}) : ints({0, 1, 3, 5, 2, 4});
  return g.give({g("reshape", {g("permute", {parts}, {{"dims", order}})}, {{"shape", AttrValue(result)}})});
}
template <bool is_shuffle>
Status reference_shuffle(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0], &large = is_shuffle ? c.results[0] : x;
  const int64_t factor = c.attr("factor").i64(), height = large.shape[large.shape.size() - 2],
                width = large.shape.back();
  return dispatch(x, [&](auto zero) {
    const ReadElements<decltype(zero)> in(x);
    const WriteElements<decltype(zero)> out(c.results[0]);
    return c.for_ranges(large.size(), 1, [&](int64_t begin, int64_t end) -> Status {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t column = k % width, row = k / width % height, plane = k / width / height;  // of all leading dims
        const int64_t block = row % factor * factor + column % factor;
        const int64_t at =
            ((plane * factor * factor + block) * (height / factor) + row / factor) * (width / factor) + column / factor;
        out.set(static_cast<size_t>(is_shuffle ? k : at), in[static_cast<size_t>(is_shuffle ? at : k)]);
      }
      return {};
    });
  });
}

void samples_pixel_shuffle(SampleSink &out) {
  const Dim n = sym("n");
  out.push_back(sample_of("image", {2, 12, 3, 5}, {{"factor", 2}}, {}));
  out.push_back(sample_of("by_three", {9, 4, 2}, {{"factor", 3}}, {}));
  out.push_back(sample_of("by_one", {2, 3, 4, 5}, {{"factor", 1}}, {}));
  out.push_back(sample_of("more_dims", {2, 3, 4, 3, 3}, {{"factor", 2}}, {}));
  out.push_back(sample_of("empty", {0, 4, 3, 3}, {{"factor", 2}}, {}));
  out.push_back(sample_of("symbolic", {n, 8, n, 3}, {{"factor", 2}}, {{"n", 3}}));
}
void samples_pixel_unshuffle(SampleSink &out) {
  const Dim n = sym("n");
  out.push_back(sample_of("image", {2, 3, 6, 10}, {{"factor", 2}}, {}));
  out.push_back(sample_of("by_three", {2, 12, 6}, {{"factor", 3}}, {}));
  out.push_back(sample_of("by_one", {2, 3, 4, 5}, {{"factor", 1}}, {}));
  out.push_back(sample_of("more_dims", {2, 3, 1, 4, 4}, {{"factor", 2}}, {}));
  out.push_back(sample_of("symbolic", {n, 2, 2 * n, 4}, {{"factor", 2}}, {{"n", 3}}));
}

Op shuffle(std::string_view name, std::string_view doc, std::string_view x, Status (*infer)(InferContext &),
           OpMeaning meaning) {
  return moving(name, doc, x,
                {{.name = "factor", .doc = "the blocks' height and width", .kind = AttrKind::i64, .required = true}},
                infer, meaning);
}

const Op shuffle_records[] = {
    shuffle(
        "pixel_shuffle", "Channels as blocks of pixels: [..., C, H f, W f].", "[..., C f^2, H, W]", infer_shuffle<true>,
        {.decompose = decompose_shuffle<true>, .reference = reference_shuffle<true>, .samples = samples_pixel_shuffle}),
    shuffle("pixel_unshuffle", "Blocks of pixels as channels: [..., C f^2, H, W].", "[..., C, H f, W f]",
            infer_shuffle<false>,
            {.decompose = decompose_shuffle<false>,
             .reference = reference_shuffle<false>,
             .samples = samples_pixel_unshuffle}),
};

}  // namespace

std::span<const Op> shuffle_ops() { return shuffle_records; }

}  // namespace kiln::ops
