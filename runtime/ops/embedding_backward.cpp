// The gradient of a table whose rows are picked.
#include "runtime/ops/backward.h"
#include "runtime/ops/composer.h"
#include "runtime/ops/family.h"

namespace kiln::ops {
namespace {

Status infer_embedding_backward(InferContext &c) {
  const TensorType &index = c.inputs[0], &dy = c.inputs[1];
  const Dim &rows = c.attr("rows").dim();
  KILN_TRY(require_shape(c, {&rows, 1}, "rows"));
  KILN_TRY(require_rank(c, 1, index.rank() + 1));
  for (size_t d = 0; d < index.rank(); ++d)
    KILN_TRY(c.require_equal(index.dims[d], dy.dims[d], str_cat("dim ", d, " of index and dy")));
  const int64_t padding = c.attr("padding_idx").i64();
  if (padding < -1 || (rows.is_integer() && padding >= rows.integer()))
    return c.fail("padding_idx is ", padding, ", expected one of ", rows.text(), " rows, or -1: none");
  c.results = {make_type(dy.dtype, {rows, dy.dims.back()})};
  return {};
}

Status decompose_embedding_backward(DecomposeContext &c) {
  Composer g(c);
  const ValueId index = c.node.inputs[0];
  const TensorType type = c.type(c.node.inputs[1]);
  ValueId dy = c.node.inputs[1];
  if (const int64_t padding = c.attr("padding_idx").i64(); padding >= 0) {
    const ValueId rows = g("unsqueeze", {index}, {{"dims", ints({-1})}});
    dy = g("where", {g("eq", {rows, g.number(index, static_cast<double>(padding))}), g.number(dy, 0), dy});
  }
  const ValueId zeros = g.full(type.dtype, {c.attr("rows").dim(), type.dims.back()}, 0);
  return g.give({g("index_put_add", {zeros, dy, index})});
}

Status reference_embedding_backward(ReferenceContext &c) {
  const RefTensor &index = *c.inputs[0], &dy = *c.inputs[1];
  RefTensor &result = c.results[0];
  const auto width = static_cast<size_t>(result.shape[1]);
  if (dy.size() > 0) KILN_TRY(require_in_range(c, index, result.shape[0]));
  const ReadElements<int64_t> indices(index);
  const ReadElements<double> in(dy);
  std::vector<Wide> sums(static_cast<size_t>(result.size()));
  for (size_t k = 0; k < static_cast<size_t>(index.size()); ++k) {
    const int64_t i = indices[k];
    for (size_t d = 0; i != c.attr("padding_idx").i64() && d < width; ++d)
      sums[static_cast<size_t>(i) * width + d] += in[k * width + d];
  }
  give_all(result, sums);
  return {};
}

void samples_embedding_backward(SampleSink &out) {
  const auto sample = [&](const char *name, Shape index, const Dim &width, const Dim &rows, AttrMap attrs = {},
                          std::map<std::string, int64_t> sizes = {}) {
    Shape dy = index;
    dy.push_back(width);
    attrs.emplace("rows", AttrValue(rows));
    out.push_back({.name = name,
                   .inputs = {i64(std::move(index)), f32(std::move(dy))},
                   .attrs = std::move(attrs),
                   .sizes = std::move(sizes),
                   .int_low = 0,
                   .int_high = 5});
  };
  sample("tokens", {9}, 7, 5);
  sample("batch", {3, 5}, 3, 9);
  sample("padding", {2, 9}, 3, 5, {{"padding_idx", 2}});
  sample("scalar_index", {}, 3, 5);
  sample("no_tokens", {0}, 3, 5);
  sample("symbolic", {sym("b"), sym("t")}, sym("d"), sym("t") + 2, {{"padding_idx", 0}},
         {{"b", 2}, {"t", 5}, {"d", 3}});
  sample("narrow_index", {4}, 3, 5, {{"padding_idx", 1}});
  out.back().inputs[0].dtype = DType::i32;
}

const Op embedding_backward_records[] = {
    {{.name = "embedding_backward",
      .doc = "The gradient of embedding's table: the sums of dy's rows that each of its own was picked for.",
      .args = {{"index", "any shape; 0 <= index < rows", index_types, Arity::one, /*same_dtype=*/false},
               {"dy", "[..., D]: index's shape, and D", float_types}},
      .result_names = {"dweight"},
      .attrs = {{.name = "rows", .doc = "of the table", .kind = AttrKind::dim, .required = true},
                {.name = "padding_idx",
                 .doc = "a row that gets no gradient; -1: none",
                 .kind = AttrKind::i64,
                 .fallback = -1}},
      .infer = infer_embedding_backward},
     {.decompose = decompose_embedding_backward,
      .reference = reference_embedding_backward,
      .gradient = through_decomposition(),
      .samples = samples_embedding_backward}},
};

}  // namespace

std::span<const Op> embedding_backward_ops() { return embedding_backward_records; }

}  // namespace kiln::ops
