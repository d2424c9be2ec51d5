// Gradients of norms, from the statistics that these give as further results.
#include <cmath>

#include "runtime/ops/backward.h"
#include "runtime/ops/norms.h"
#include "runtime/ops/sample_shapes.h"

namespace kiln::ops {
namespace {

// x, its statistics (of rms_norm one, of the others two), dy and perhaps the scale.
struct Operands {
  size_t statistics;
  bool has_scale;
  explicit Operands(const OpSchema &op, size_t count)
      : statistics(op.args.size() - 3), has_scale(count == op.args.size()) {}
  size_t dy() const { return 1 + statistics; }
  size_t scale() const { return 2 + statistics; }
};

// Statistics are of the shape `sets`, the scale of the shape `parameters`, as are the gradients of it and of the bias.
Status infer_norm_backward(InferContext &c, const Shape &sets, const Shape &parameters) {
  const TensorType &x = c.inputs[0];
  const Operands operands(c.op, c.inputs.size());
  const auto require = [&](size_t k, const Shape &dims) -> Status {
    KILN_TRY(require_rank(c, k, dims.size()));
    for (size_t d = 0; d < dims.size(); ++d)
      KILN_TRY(c.require_equal(c.inputs[k].dims[d], dims[d], str_cat(c.arg_name(k), " dim ", d, " and what x tells")));
    return {};
  };
  for (size_t k = 1; k <= operands.statistics; ++k) KILN_TRY(require(k, sets));
  KILN_TRY(require(operands.dy(), x.dims));
  if (operands.has_scale) KILN_TRY(require(operands.scale(), parameters));
  c.results = {make_type(x.dtype, x.dims)};
  c.results.insert(c.results.end(), operands.statistics, make_type(x.dtype, parameters));
  return {};
}

// The steps of a decomposition.
class Steps {
 public:
  explicit Steps(DecomposeContext &c)
      : g(c), operands(c.op, c.node.inputs.size()), x(c.node.inputs[0]), dy(c.node.inputs[operands.dy()]), c_(c) {}

  ValueId reshape(ValueId v, const Shape &shape) { return g("reshape", {v}, {{"shape", AttrValue(shape)}}); }
  // Statistic `k`, in x's dtype.
  ValueId statistic(size_t k) {
    const ValueId value = c_.node.inputs[1 + k];
    const DType dtype = c_.type(x).dtype;
    return c_.type(value).dtype == dtype ? value : g.convert(value, dtype);
  }
  // `shape` is the scale's as it broadcasts to x.
  ValueId scaled_dy(const Shape &shape) {
    return operands.has_scale ? g("mul", {dy, reshape(c_.node.inputs[operands.scale()], shape)}) : dy;
  }
  // (x - mean) * rstd
  ValueId normal(ValueId of) {
    if (operands.statistics > 1) of = g("sub", {of, mean});
    return g("mul", {of, rstd});
  }
  // dx of `normal`, by the gradient of that: what changes the statistics over `dims` counts for nothing.
  ValueId dx(ValueId gradient, ValueId normal, const std::vector<int64_t> &dims) {
    const AttrMap over = {{"dims", ints(dims)}, {"keepdim", true}};
    const ValueId along = g("mean", {g("mul", {gradient, normal})}, over);
    ValueId rest = g("sub", {gradient, g("mul", {normal, along})});
    if (operands.statistics > 1) rest = g("sub", {rest, g("mean", {gradient}, over)});
    return g("mul", {rest, rstd});
  }
  // dx, and dy * normal and dy summed over `dims`.
  Status give(ValueId dx, ValueId normal, const std::vector<int64_t> &dims) {
    const auto summed = [&](ValueId v) { return dims.empty() ? v : g("sum", {v}, {{"dims", ints(dims)}}); };
    std::vector<ValueId> results = {dx, summed(g("mul", {dy, normal}))};
    if (operands.statistics > 1) results.push_back(summed(dims.empty() ? g("clone", {dy}) : dy));
    return g.give(std::move(results));
  }

  Composer g;
  const Operands operands;
  const ValueId x, dy;
  ValueId mean, rstd;

 private:
  DecomposeContext &c_;
};

// ---- reference kernels

// Of an element of x the number of its statistics, and of its scale.
struct Place {
  size_t set, parameter;
};
Status reference_of_places(ReferenceContext &c, const std::function<Place(size_t)> &place_of) {
  const Operands operands(c.op, c.inputs.size());
  const bool of_variance = c.op.find_attr("eps"), centred = operands.statistics > 1;
  const auto operand = [&](size_t k) { return ReadElements<double>(*c.inputs[k]); };
  const auto x = operand(0), means = operand(1), last = operand(operands.statistics), dy = operand(operands.dy()),
             scale = operand(operands.has_scale ? operands.scale() : 0);
  std::vector<Wide> rstd(static_cast<size_t>(c.inputs[operands.statistics]->size()));
  for (size_t k = 0; k < rstd.size(); ++k)
    rstd[k] = of_variance ? 1 / std::sqrt(last[k] + Wide(c.attr("eps").f64())) : Wide(last[k]);
  // (x - mean) * rstd, and the gradient of that.
  const auto normal_at = [&](size_t k, const Place &at) {
    return (x[k] - (centred ? Wide(means[at.set]) : 0)) * rstd[at.set];
  };
  const auto gradient_at = [&](size_t k, const Place &at) {
    return operands.has_scale ? Wide(dy[k]) * scale[at.parameter] : dy[k];
  };
  std::vector<Wide> count(rstd.size()), sum(rstd.size()), along(rstd.size());
  std::vector<Wide> dscale(static_cast<size_t>(c.results[1].size())), dbias(dscale.size());
  for (size_t k = 0; k < static_cast<size_t>(c.inputs[0]->size()); ++k) {
    const Place at = place_of(k);
    const Wide normal = normal_at(k, at), gradient = gradient_at(k, at);
    count[at.set] += 1;
    sum[at.set] += gradient;
    along[at.set] += gradient * normal;
    dscale[at.parameter] += dy[k] * normal;
    dbias[at.parameter] += dy[k];
  }
  give_all(c.results[1], dscale);
  if (centred) give_all(c.results[2], dbias);
  return make_each<double>(c, [&](int64_t number) {
    const auto k = static_cast<size_t>(number);
    const Place at = place_of(k);
    const Wide mean = centred ? sum[at.set] / count[at.set] : 0;
    return (gradient_at(k, at) - mean - normal_at(k, at) * along[at.set] / count[at.set]) * rstd[at.set];
  });
}

// ---- layer_norm, rms_norm: over the last dims

int64_t axes_of(const AttrMap &attrs) {
  const auto axes = attrs.find("axes");
  return axes == attrs.end() ? 1 : axes->second.i64();
}

// Of the statistics: x's, but 1 of the last `axes`.
Shape sets_of(Shape dims, int64_t axes) {
  std::fill(dims.end() - static_cast<ptrdiff_t>(axes), dims.end(), Dim(1));
  return dims;
}

Status infer_last_dims(InferContext &c) {
  const int64_t axes = axes_of(c.attrs), rank = static_cast<int64_t>(c.inputs[0].rank());
  if (axes < 1 || axes > rank) return c.fail("axes is ", axes, ", expected 1 to ", rank, ", the dims of x");
  const Shape &dims = c.inputs[0].dims;
  return infer_norm_backward(c, sets_of(dims, axes), Shape(dims.end() - static_cast<ptrdiff_t>(axes), dims.end()));
}

Status decompose_last_dims(DecomposeContext &c) {
  Steps s(c);
  const Shape dims = c.type(s.x).dims;
  const int64_t axes = axes_of(c.node.attrs);
  std::vector<int64_t> last, first;
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d)
    (d < static_cast<int64_t>(dims.size()) - axes ? first : last).push_back(d);
  const Shape sets = sets_of(dims, axes);  // where an operand may have a symbol, which must be 1 at a call
  s.mean = s.reshape(s.statistic(0), sets);
  s.rstd = s.reshape(s.statistic(s.operands.statistics - 1), sets);
  const ValueId normal = s.normal(s.x);
  const ValueId gradient = s.scaled_dy(Shape(dims.end() - static_cast<ptrdiff_t>(axes), dims.end()));
  return s.give(s.dx(gradient, normal, last), normal, first);
}

Status reference_last_dims(ReferenceContext &c) {
  const auto width = static_cast<size_t>(c.results[1].size());
  return reference_of_places(c, [width](size_t k) { return Place{k / width, k % width}; });
}

// ---- norms of [N, C, ...]

std::vector<int64_t> space_of_rank(size_t rank, std::vector<int64_t> dims = {}) {
  for (size_t d = 2; d < rank; ++d) dims.push_back(static_cast<int64_t>(d));
  return dims;
}
Shape channels_of(const Shape &x) {
  Shape shape(x.size(), 1);
  shape[1] = x[1];
  return shape;
}

// How many groups of x's channels there are: of instance_norm each is one.
Dim groups_of(const AttrMap &attrs, const Dim &channels) {
  const auto groups = attrs.find("groups");
  return groups == attrs.end() ? channels : Dim(groups->second.i64());
}

Status infer_groups(InferContext &c) {
  const TensorType &x = c.inputs[0];
  if (x.rank() < 2) return c.fail("x is ", x.text(), ", expected [N, C, ...]");
  const Dim groups = groups_of(c.attrs, x.dims[1]);
  if (groups.is_integer() && groups.integer() < 1 && c.op.find_attr("groups"))
    return c.fail("groups is ", groups.integer(), ", expected at least 1");
  if (!(groups == x.dims[1])) KILN_TRY(c.require_equal(mod(x.dims[1], groups), 0, "x dim 1 modulo groups and 0"));
  return infer_norm_backward(c, {x.dims[0], groups}, {x.dims[1]});
}

Status decompose_groups(DecomposeContext &c) {
  Steps s(c);
  const Shape dims = c.type(s.x).dims;
  const Dim groups = groups_of(c.node.attrs, dims[1]);
  Shape rows = {dims[0], groups, groups == dims[1] ? Dim(1) : floor_div(dims[1], groups)};
  for (size_t d = 2; d < dims.size(); ++d) rows[2] *= dims[d];
  const Shape sets = {dims[0], groups, 1};
  s.mean = s.reshape(s.statistic(0), sets);
  s.rstd = s.reshape(s.statistic(1), sets);
  const ValueId normal = s.normal(s.reshape(s.x, rows));
  const ValueId gradient = s.reshape(s.scaled_dy(channels_of(dims)), rows);
  return s.give(s.reshape(s.dx(gradient, normal, {2}), dims), s.reshape(normal, dims), space_of_rank(dims.size(), {0}));
}

Status reference_groups(ReferenceContext &c) {
  const std::vector<int64_t> &shape = c.inputs[0]->shape;
  const auto plane = static_cast<size_t>(count_of(std::span(shape).subspan(2)));
  const auto channels = static_cast<size_t>(shape[1]), groups = static_cast<size_t>(c.inputs[1]->shape[1]);
  return reference_of_places(c, [=](size_t k) {
    const size_t n = k / plane / channels, channel = k / plane % channels;
    return Place{n * groups + channel * groups / channels, channel};
  });
}

Status infer_batch(InferContext &c) {
  KILN_TRY(require_finite(c, "eps", 0));
  const TensorType &x = c.inputs[0];
  if (x.rank() < 2) return c.fail("x is ", x.text(), ", expected [N, C, ...]");
  return infer_norm_backward(c, {x.dims[1]}, {x.dims[1]});
}

Status decompose_batch(DecomposeContext &c) {
  Steps s(c);
  const Shape dims = c.type(s.x).dims, channels = channels_of(dims);
  s.mean = s.reshape(s.statistic(0), channels);
  const ValueId variance = s.reshape(s.statistic(1), channels);
  s.rstd = s.g("rsqrt", {s.g("add", {variance, s.g.number(s.x, c.attr("eps").f64())})});
  const ValueId normal = s.normal(s.x);
  const std::vector<int64_t> others = space_of_rank(dims.size(), {0});
  return s.give(s.dx(s.scaled_dy(channels), normal, others), normal, others);
}

Status reference_batch(ReferenceContext &c) {
  const std::vector<int64_t> &shape = c.inputs[0]->shape;
  const auto plane = static_cast<size_t>(count_of(std::span(shape).subspan(2)));
  const auto channels = static_cast<size_t>(shape[1]);
  return reference_of_places(c, [=](size_t k) { return Place{k / plane % channels, k / plane % channels}; });
}

// ---- samples

struct Shapes {
  const char *name, *x, *sets, *parameters;
  bool has_scale = true;
  AttrMap attrs = {};
  std::map<std::string, int64_t> sizes = {};
};
void add_shapes(SampleSink &out, size_t statistics, std::vector<Shapes> all) {
  for (Shapes &each : all) {
    Sample sample{.name = each.name, .inputs = {f32(shape_from(each.x))}, .attrs = each.attrs, .sizes = each.sizes};
    sample.inputs.insert(sample.inputs.end(), statistics, f32(shape_from(each.sets)));
    sample.inputs.push_back(f32(shape_from(each.x)));
    if (each.has_scale) sample.inputs.push_back(f32(shape_from(each.parameters)));
    out.push_back(std::move(sample));
  }
  // Statistics of small floats are wider.
  Sample &small = out.emplace_back(out.front());
  small.name = "small_floats";
  for (size_t k = 0; k < small.inputs.size(); ++k)
    if (k == 0 || k > statistics) small.inputs[k].dtype = DType::f16;
}

void samples_layer_norm_backward(SampleSink &out) {
  add_shapes(out, 2,
             {{"plain", "3, 5", "3, 1", "5"},
              {"no_scale", "2, 3, 7", "2, 3, 1", "7", false},
              {"two_axes", "4, 3, 5", "4, 1, 1", "3, 5", true, {{"axes", 2}}},
              {"all_axes", "9", "1", "9"},
              {"one_element", "5, 1", "5, 1", "1"},
              {"no_rows", "0, 3", "0, 1", "3"},
              {"symbolic", "n, m", "n, 1", "m", true, {}, {{"n", 3}, {"m", 17}}}});
}
void samples_rms_norm_backward(SampleSink &out) {
  add_shapes(out, 1,
             {{"plain", "3, 5", "3, 1", "5"},
              {"no_scale", "2, 3, 7", "2, 3, 1", "7", false},
              {"vector", "9", "1", "9"},
              {"no_rows", "0, 3", "0, 1", "3"},
              {"symbolic", "n, m", "n, 1", "m", true, {}, {{"n", 3}, {"m", 17}}}});
}
void samples_group_norm_backward(SampleSink &out) {
  const AttrMap two = {{"groups", 2}};
  add_shapes(out, 2,
             {{"plain", "2, 4, 3, 3", "2, 2", "4", true, two},
              {"no_scale", "3, 6, 5", "3, 2", "6", false, two},
              {"vectors", "3, 9", "3, 3", "9", true, {{"groups", 3}}},
              {"each_its_own", "1, 3, 7", "1, 3", "3", true, {{"groups", 3}}},
              {"symbolic", "n, 4, w", "n, 2", "4", true, two, {{"n", 2}, {"w", 5}}}});
}
void samples_instance_norm_backward(SampleSink &out) {
  add_shapes(out, 2,
             {{"plain", "2, 3, 3, 3", "2, 3", "3"},
              {"no_scale", "1, 2, 7", "1, 2", "2", false},
              {"symbolic", "n, c, 5", "n, c", "c", true, {}, {{"n", 2}, {"c", 3}}}});
}
void samples_batch_norm_backward(SampleSink &out) {
  add_shapes(out, 2,
             {{"plain", "2, 3, 3, 3", "3", "3"},
              {"no_scale", "3, 2, 5", "2", "2", false},
              {"vectors", "9, 5", "5", "5"},
              {"large_eps", "2, 3, 3", "3", "3", true, {{"eps", 0.5}}},
              {"symbolic", "n, 3, n", "3", "3", true, {}, {{"n", 4}}}});
  for (Sample &sample : out) sample.low = 0.25;  // variances are positive
}

// ---- records

Op norm_backward(std::string_view name, std::string_view doc, std::string_view x_doc, std::string_view scale_doc,
                 std::vector<ArgDef> statistics, std::vector<AttrDef> attrs, Status (*infer)(InferContext &),
                 OpMeaning meaning) {
  Op op = {{.name = name,
            .doc = doc,
            .args = {{"x", x_doc, float_types}},
            .result_names = {"dx", "dscale"},
            .attrs = std::move(attrs),
            .infer = infer},
           meaning};
  if (statistics.size() > 1) op.result_names.push_back("dbias");
  op.args.insert(op.args.end(), statistics.begin(), statistics.end());
  op.args.push_back({"dy", "the result's gradient, of x's shape", float_types});
  op.args.push_back({"scale", scale_doc, float_types, Arity::optional});
  return op;
}
ArgDef statistic(std::string_view name, std::string_view doc) {
  return {name, doc, float_types, Arity::one, /*same_dtype=*/false};
}

const Op norms_backward_records[] = {
    norm_backward("layer_norm_backward", "The gradients of layer_norm's x, scale and bias.", "at least `axes` dims",
                  "the last `axes` dims of x", {statistic("mean", "layer_norm's"), statistic("rstd", "layer_norm's")},
                  {{.name = "axes", .doc = "how many trailing dims", .kind = AttrKind::i64, .fallback = 1}},
                  infer_last_dims,
                  {.decompose = decompose_last_dims,
                   .reference = reference_last_dims,
                   .gradient = through_decomposition(),
                   .samples = samples_layer_norm_backward}),
    norm_backward("rms_norm_backward", "The gradients of rms_norm's x and scale.", "[..., D]", "[D]",
                  {statistic("rstd", "rms_norm's, [..., 1]")}, {}, infer_last_dims,
                  {.decompose = decompose_last_dims,
                   .reference = reference_last_dims,
                   .gradient = through_decomposition(),
                   .samples = samples_rms_norm_backward}),
    norm_backward("group_norm_backward", "The gradients of group_norm's x, scale and bias.", "[N, C, ...]", "[C]",
                  {statistic("mean", "[N, groups]"), statistic("rstd", "[N, groups]")},
                  {{.name = "groups", .doc = "how many; C is a multiple", .kind = AttrKind::i64, .required = true}},
                  infer_groups,
                  {.decompose = decompose_groups,
                   .reference = reference_groups,
                   .gradient = through_decomposition(),
                   .samples = samples_group_norm_backward}),
    norm_backward("instance_norm_backward", "The gradients of instance_norm's x, scale and bias.", "[N, C, ...]", "[C]",
                  {statistic("mean", "[N, C]"), statistic("rstd", "[N, C]")}, {}, infer_groups,
                  {.decompose = decompose_groups,
                   .reference = reference_groups,
                   .gradient = through_decomposition(),
                   .samples = samples_instance_norm_backward}),
    norm_backward("batch_norm_backward", "The gradients of batch_norm_training's x, scale and bias.", "[N, C, ...]",
                  "[C]", {statistic("mean", "[C]"), statistic("variance", "[C]")},
                  {number("eps", "added to the variance", 1e-5)}, infer_batch,
                  {.decompose = decompose_batch,
                   .reference = reference_batch,
                   .gradient = through_decomposition(),
                   .samples = samples_batch_norm_backward}),
};

}  // namespace

std::span<const Op> norms_backward_ops() { return norms_backward_records; }

}  // namespace kiln::ops
