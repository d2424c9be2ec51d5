#include "runtime/ops/convolving.h"

namespace kiln::ops {

Status require_steps(InferContext &c, size_t n) {
  KILN_TRY(require_rank(c, 0, 2 + n));
  KILN_TRY(require_rank(c, 1, 2 + n));
  KILN_TRY(require_integers(c, "stride", n, 1));
  KILN_TRY(require_padding(c, n));
  KILN_TRY(require_integers(c, "dilation", n, 1));
  if (const int64_t groups = c.attr("groups").i64(); groups < 1)
    return c.fail("groups is ", groups, ", expected at least 1");
  return {};
}

Result<DType> infer_operands(InferContext &c, size_t n) {
  KILN_ASSIGN(const DType dtype, product_dtype(c, 0, 1));
  KILN_TRY(require_steps(c, n));
  for (size_t d = 0; d < n; ++d)
    KILN_TRY(require_at_most(c, 1, c.inputs[1].dims[2 + d], str_cat("at least one element along weight dim ", 2 + d)));
  return dtype;
}

Status infer_bias(InferContext &c, const Dim &channels, std::string_view what) {
  if (c.inputs.size() < 3) return {};
  KILN_TRY(require_rank(c, 2, 1));
  KILN_TRY(require_bias(c, 2, c.results[0].dtype));
  return c.require_equal(c.inputs[2].dims[0], channels, what);
}

ValueId add_bias(const DecomposeContext &c, Composer &g, ValueId y) {
  if (c.node.inputs.size() < 3) return y;
  std::vector<int64_t> space;
  for (size_t d = 1; d <= space_of(c.op); ++d) space.push_back(static_cast<int64_t>(d));
  return g("add", {y, g("unsqueeze", {c.node.inputs[2]}, {{"dims", ints(std::move(space))}})});
}

AttrDef groups_attr() {
  return {.name = "groups", .doc = "how many groups the channels fall into", .kind = AttrKind::i64, .fallback = 1};
}

Op convolution(std::string_view name, std::string_view doc, std::string_view weight_doc, std::vector<AttrDef> attrs,
               size_t n, bool has_bias, Status (*infer)(InferContext &), OpMeaning meaning) {
  Op op = {{.name = name,
            .doc = doc,
            .args = {{"x", layout_doc(n), numeric_types},
                     {"weight", weight_doc, numeric_types, Arity::one, /*same_dtype=*/false}},
            .result_names = {"y"},
            .attrs = std::move(attrs),
            .infer = infer},
           meaning};
  if (has_bias)
    op.args.push_back({"bias", "[O], of the result's dtype", numeric_types, Arity::optional, /*same_dtype=*/false});
  return op;
}

Status reference_of_taps(ReferenceContext &c,
                         std::vector<Tap> (*taps_at)(const ReferenceContext &, const std::vector<int64_t> &at),
                         bool weight_begins_with_inputs) {
  const RefTensor &x = *c.inputs[0], &weight = *c.inputs[1];
  RefTensor &y = c.results[0];
  const std::span space = std::span(y.shape).subspan(2);
  const int64_t groups = c.attr("groups").i64(), places = count_of(space);
  const int64_t window = count_of(std::span(weight.shape).subspan(2)), plane = count_of(std::span(x.shape).subspan(2));
  const int64_t inputs = x.shape[1] / groups, outputs = y.shape[1] / groups;
  const int64_t from_output = (weight_begins_with_inputs ? 1 : inputs) * window;
  const int64_t from_input = (weight_begins_with_inputs ? outputs : 1) * window;
  std::vector<std::vector<Tap>> taps;
  for (int64_t p = 0; p < places; ++p) taps.push_back(taps_at(c, unflatten(p, space)));
  return dispatch_wide(y, [&](auto zero, auto wide) -> Status {
    using T = decltype(zero);
    using Wide = decltype(wide);
    const ReadElements<T> image(x), factors(weight), bias(*c.inputs.back());
    const WriteElements<T> out(y);
    const auto result_at = [&](int64_t k) {
      const int64_t n = k / places / y.shape[1], o = k / places % y.shape[1], group = o / outputs;
      Wide sum = c.inputs.size() == 3 ? bias[static_cast<size_t>(o)] : T(0);
      for (int64_t s = 0; s < inputs; ++s) {
        const int64_t from = (n * x.shape[1] + group * inputs + s) * plane;
        const int64_t by = group * inputs * outputs * window + o % outputs * from_output + s * from_input;
        for (const Tap &tap : taps[static_cast<size_t>(k % places)])
          sum = add(sum, mul(Wide(tap.x < 0 ? T(0) : image[static_cast<size_t>(from + tap.x)]),
                             Wide(tap.weight < 0 ? T(0) : factors[static_cast<size_t>(by + tap.weight)])));
      }
      out.set(static_cast<size_t>(k), static_cast<T>(sum));
    };
    return c.for_ranges(y.size(), inputs * window, [&](int64_t begin, int64_t end) -> Status {
      for (int64_t k = begin; k < end; ++k) result_at(k);
      return {};
    });
  });
}

Sample convolution_sample(const char *name, const Shape &x, const Shape &weight, size_t n, AttrMap attrs,
                          std::map<std::string, int64_t> sizes) {
  Sample sample = {.name = name, .inputs = {f32(x), f32(weight)}, .attrs = std::move(attrs), .sizes = std::move(sizes)};
  for (size_t d = 1; d < n; ++d) {
    const Dim &size = x[2];
    sample.inputs[0].dims.push_back(size.is_integer() ? size + static_cast<int64_t>(d) : Dim(6));
    sample.inputs[1].dims.push_back(weight[2]);
  }
  return sample;
}

Sample convolution_of_bytes(const Shape &x, const Shape &weight, size_t n) {
  Sample sample = convolution_sample("unsigned_bytes", x, weight, n, {}, {});
  sample.inputs[0].dtype = DType::u8;
  sample.inputs[1].dtype = DType::i8;
  sample.int_low = 0;
  sample.int_high = 256;
  return sample;
}

void add_biases(SampleSink &out, size_t dim) {
  for (Sample &sample : out) {
    const DType bias = dtype_info(sample.inputs[0].dtype).is_float ? DType::f32 : DType::i32;
    const auto groups = sample.attrs.find("groups");
    const Dim factor = dim == 0 || groups == sample.attrs.end() ? Dim(1) : Dim(groups->second.i64());
    sample.inputs.push_back(make_type(bias, {sample.inputs[1].dims[dim] * factor}));
  }
  Sample bare = out.front();
  bare.name = "no_bias";
  bare.inputs.pop_back();
  out.push_back(std::move(bare));
}

}  // namespace kiln::ops
