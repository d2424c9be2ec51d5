// Losses of classes: whole in the graph, and composed of simpler ops for a backend.
#include <cmath>

#include "runtime/ops/composer.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/losses.h"

namespace kiln::ops {
namespace {

// x: [N, C, ...] or [C]; target: x's shape without the classes; weight: [C].
Status infer_classes(InferContext &c) {
  KILN_TRY(require_reduction(c));
  const TensorType &x = c.inputs[0], &target = c.inputs[1];
  if (x.rank() < 1) return c.fail("x is ", x.text(), ", expected [N, C, ...] or [C]");
  const size_t classes = x.rank() == 1 ? 0 : 1;
  Shape shape = x.dims;
  shape.erase(shape.begin() + static_cast<ptrdiff_t>(classes));
  if (target.rank() != shape.size()) return c.fail("target is ", target.text(), ", expected shape ", text_of(shape));
  for (size_t d = 0; d < shape.size(); ++d)
    KILN_TRY(c.require_equal(target.dims[d], shape[d], str_cat("target dim ", d, " and its dim of x")));
  if (c.inputs.size() > 2) {
    KILN_TRY(require_rank(c, 2, 1));
    KILN_TRY(c.require_equal(c.inputs[2].dims[0], x.dims[classes], "weight dim 0 and the classes of x"));
  }
  c.results = {make_type(x.dtype, is_reduced(c.attr("reduction")) ? Shape{} : std::move(shape))};
  return {};
}

// What the losses of classes have in common: which targets count, and with which weight.
struct Targets {
  ValueId index, counts, weight;  // 0 where a target is ignored; whether it is not; 0 where it is
};
Targets compose_targets(DecomposeContext &c, Composer &g) {
  const ValueId x = c.node.inputs[0], target = c.node.inputs[1];
  const ValueId ignored = g("full", {},
                            {{"exact", str_cat(c.attr("ignore_index").i64())},
                             {"dtype", c.type(target).dtype},
                             {"shape", AttrValue(Shape{})}});
  Targets t;
  t.counts = g("ne", {target, ignored});
  t.index = g("where", {t.counts, target, g.number(target, 0)});
  ValueId weight = g.number(x, 1);
  if (c.node.inputs.size() > 2)
    weight = g("squeeze", {g("embedding", {g("unsqueeze", {c.node.inputs[2]}, {{"dims", ints({1})}}), t.index})},
               {{"dims", ints({-1})}});
  t.weight = g("where", {t.counts, weight, g.number(x, 0)});
  return t;
}

// -logarithm[target], weighted; the weights of the classes add up in the mean's divisor.
ValueId compose_picked(Composer &g, ValueId logarithms, const Targets &t, int64_t classes) {
  const AttrMap dims = {{"dims", ints({classes})}};
  const ValueId picked =
      g("squeeze", {g("gather", {logarithms, g("unsqueeze", {t.index}, dims)}, {{"dim", classes}})}, dims);
  // Not a product: an ignored target may pick an infinite logarithm.
  return g("where", {t.counts, g("neg", {g("mul", {picked, t.weight})}), g.number(picked, 0)});
}

int64_t classes_of(const DecomposeContext &c) { return c.type(c.node.inputs[0]).rank() == 1 ? 0 : 1; }

ValueId compose_reduced(DecomposeContext &c, Composer &g, ValueId losses, const Targets &t) {
  const std::string &reduction = c.attr("reduction").text_value();
  if (reduction == "none") return losses;
  const ValueId sum = g("sum", {losses});
  return reduction == "sum" ? sum : g("div", {sum, g("sum", {t.weight})});
}

Status decompose_nll_loss(DecomposeContext &c) {
  Composer g(c);
  const Targets t = compose_targets(c, g);
  return g.give({compose_reduced(c, g, compose_picked(g, c.node.inputs[0], t, classes_of(c)), t)});
}

// nll_loss of log_softmax; smoothing s takes 1 - s of it, and s of the mean over all classes.
Status decompose_cross_entropy(DecomposeContext &c) {
  Composer g(c);
  const ValueId x = c.node.inputs[0];
  const int64_t classes = classes_of(c);
  const Targets t = compose_targets(c, g);
  const ValueId logarithms = g("log_softmax", {x}, {{"dim", classes}});
  ValueId losses = compose_picked(g, logarithms, t, classes);
  const double smoothing = c.attr("label_smoothing").f64();
  if (smoothing > 0) {
    ValueId all = logarithms;
    if (c.node.inputs.size() > 2) {
      std::vector<int64_t> after;
      for (int64_t d = classes + 1; d < static_cast<int64_t>(c.type(x).rank()); ++d) after.push_back(d - classes);
      all = g("mul", {all, g("unsqueeze", {c.node.inputs[2]}, {{"dims", ints(std::move(after))}})});
    }
    const ValueId mean = g("div", {g("sum", {all}, {{"dims", ints({classes})}}),
                                   g.count(x, c.type(x).dims[static_cast<size_t>(classes)])});
    const ValueId spread = g("where", {t.counts, g("mul", {mean, g.number(x, -smoothing)}), g.number(x, 0)});
    losses = g("add", {g("mul", {losses, g.number(x, 1 - smoothing)}), spread});
  }
  return g.give({compose_reduced(c, g, losses, t)});
}

Status infer_cross_entropy(InferContext &c) {
  const double smoothing = c.attr("label_smoothing").f64();
  if (!(smoothing >= 0 && smoothing <= 1)) return c.fail("label_smoothing is ", smoothing, ", expected 0 to 1");
  return infer_classes(c);
}

// Each target's classes, as `logarithms` (of the classes' elements, in place) makes them.
template <auto logarithms>
Status reference_classes(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  const size_t dim = x.shape.size() == 1 ? 0 : 1;
  const int64_t classes = x.shape[dim];
  std::vector<int64_t> outer = x.shape;
  outer[dim] = 1;
  const std::vector<int64_t> strides = dense_strides(x.shape);
  const auto step = static_cast<size_t>(strides[dim]);
  const ReadElements<double> in(x), all_weights(*c.inputs.back());
  const ReadElements<int64_t> target(*c.inputs[1]);
  return with_wide(x, [&](auto wide) -> Status {
    using Wide = decltype(wide);
    const auto smoothing_at = c.attrs.find("label_smoothing");
    const Wide smoothing = smoothing_at == c.attrs.end() ? 0 : smoothing_at->second.f64();
    const auto weight = [&](int64_t i) { return c.inputs.size() > 2 ? Wide(all_weights[static_cast<size_t>(i)]) : 1; };
    std::vector<Wide> losses(static_cast<size_t>(count_of(outer))), weights(losses.size());
    const auto lose = [&](size_t number, size_t first) -> Status {
      const int64_t index = target[number];
      if (index == c.attr("ignore_index").i64()) return {};
      if (index < 0 || index >= classes) return out_of_range(index, classes);
      const std::vector<double> line = line_at(in, first, step, classes);
      std::vector<Wide> row(line.begin(), line.end());
      logarithms(row);
      Wide &loss = losses[number];
      for (int64_t i = 0; i < classes && smoothing > 0; ++i)
        loss -= row[static_cast<size_t>(i)] * weight(i) * smoothing / static_cast<Wide>(classes);
      loss -= row[static_cast<size_t>(index)] * weight(index) * (1 - smoothing);
      weights[number] = weight(index);
      return {};
    };
    KILN_TRY(c.for_ranges(count_of(outer), 8 * classes, [&](int64_t begin, int64_t end) {
      Status status;
      walk_range<1>(outer, {strides}, begin, end, [&](size_t number, auto at) {
        if (status.ok()) status = lose(number, static_cast<size_t>(at[0]));
      });
      return status;
    }));
    const std::string &reduction = c.attr("reduction").text_value();
    if (reduction == "none") {
      give_all(c.results[0], losses);
      return {};
    }
    Wide sum = 0, divisor = 0;
    for (const Wide loss : losses) sum += loss;
    for (const Wide each : weights) divisor += each;
    WriteAny(c.results[0]).set(0, reduction == "sum" ? sum : sum / divisor);
    return {};
  });
}
constexpr auto as_they_are = [](auto &) {};
constexpr auto log_softmax_of = [](auto &row) {
  using Wide = std::decay_t<decltype(row)>::value_type;
  Wide most = static_cast<Wide>(-infinity), sum = 0;
  for (const Wide x : row) most = larger(most, x);
  for (const Wide x : row) sum += std::exp(x - most);
  for (Wide &x : row) x = x - most - std::log(sum);
};

// ---- samples

void samples_classes(SampleSink &out) {
  const Dim n = sym("n");
  const auto loss = [&](const char *name, std::vector<TensorType> inputs, AttrMap attrs = {},
                        std::map<std::string, int64_t> sizes = {}) {
    out.push_back({.name = name,
                   .inputs = std::move(inputs),
                   .attrs = std::move(attrs),
                   .sizes = std::move(sizes),
                   .low = -4,
                   .high = -0.1,
                   .int_low = 0,
                   .int_high = 5});
  };
  loss("mean", {f32({9, 5}), i64({9})});
  loss("sum", {f32({9, 5}), i64({9})}, {{"reduction", "sum"}});
  loss("none", {f32({9, 5}), i64({9})}, {{"reduction", "none"}});
  loss("one", {f32({5}), i64({})});
  loss("image", {f32({2, 5, 3, 7}), i64({2, 3, 7})}, {{"reduction", "none"}});
  loss("weighted", {f32({9, 5}), i64({9}), f32({5})});
  loss("weighted_sequence", {f32({2, 5, 7}), make_type(DType::i32, {2, 7}), f32({5})});
  loss("ignored", {f32({17, 5}), i64({17})}, {{"ignore_index", 2}});
  loss("ignored_and_weighted", {f32({17, 5}), i64({17}), f32({5})}, {{"ignore_index", 0}});
  loss("symbolic", {f32({n, 5}), i64({n})}, {}, {{"n", 7}});
  out.push_back(
      {.name = "ignored_outside", .inputs = {f32({3, 5}), i64({3})}, .given = {{1, i64_data({3}, {-100, 4, -100})}}});
}
void samples_cross_entropy(SampleSink &out) {
  samples_classes(out);
  const size_t sharp = out.size();
  for (size_t k = 0; k < sharp; ++k) {
    Sample smooth = out[k];
    smooth.name += "_smoothed";
    smooth.attrs.insert_or_assign("label_smoothing", 0.25);
    out.push_back(std::move(smooth));
  }
}

Op loss_of_classes(std::string_view name, std::string_view doc, std::vector<AttrDef> attrs,
                   Status (*infer)(InferContext &), OpMeaning meaning) {
  attrs.insert(attrs.begin(), {.name = "ignore_index",
                               .doc = "targets of this number count for nothing",
                               .kind = AttrKind::i64,
                               .fallback = -100});
  attrs.push_back(reduction_attr("'mean': over the weights of the targets that count; 'sum'; 'none'"));
  return {
      {.name = name,
       .doc = doc,
       .args = {{"x", "[N, C, ...] or [C]", float_types},
                {"target", "indices of classes: x's shape without C", index_types, Arity::one, /*same_dtype=*/false},
                {"weight", "[C], of each class", float_types, Arity::optional}},
       .result_names = {"y"},
       .attrs = std::move(attrs),
       .infer = infer},
      meaning};
}

const Op class_losses_records[] = {
    loss_of_classes("nll_loss", "-x at the target's class, times its weight; x holds logarithms of probabilities.", {},
                    infer_classes,
                    {.decompose = decompose_nll_loss,
                     .reference = reference_classes<as_they_are>,
                     .gradient = through_decomposition(),
                     .samples = samples_classes}),
    loss_of_classes("cross_entropy", "nll_loss of the log_softmax of x; an index out of range is an error of the call.",
                    {number("label_smoothing", "0 to 1: how much all classes share", 0.0)}, infer_cross_entropy,
                    {.decompose = decompose_cross_entropy,
                     .reference = reference_classes<log_softmax_of>,
                     .gradient = through_decomposition(),
                     .samples = samples_cross_entropy}),
};

}  // namespace

std::span<const Op> class_losses_ops() { return class_losses_records; }

}  // namespace kiln::ops
