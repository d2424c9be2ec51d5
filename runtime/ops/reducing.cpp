#include "runtime/ops/reducing.h"

namespace kiln::ops {

const std::vector<AttrDef> &reduce_attrs() {
  static const std::vector<AttrDef> attrs = {{.name = "dims",
                                              .doc = "the dims to reduce; none named: all",
                                              .kind = AttrKind::i64,
                                              .is_list = true,
                                              .fallback = ints({})},
                                             flag("keepdim", "keep reduced dims, with size 1", false)};
  return attrs;
}

std::vector<AttrDef> reduce_attrs_and(std::vector<AttrDef> more) {
  more.insert(more.begin(), reduce_attrs().begin(), reduce_attrs().end());
  return more;
}

std::vector<bool> reduced_dims(const AttrMap &attrs, size_t rank) {
  const std::vector<int64_t> &dims = attrs.find("dims")->second.i64_list();
  return dims.empty() ? std::vector<bool>(rank, true) : named_dims(dims, rank);
}

Shape reduced_shape(const Shape &dims, const std::vector<bool> &reduced, bool keepdim) {
  Shape shape;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!reduced[d])
      shape.push_back(dims[d]);
    else if (keepdim)
      shape.push_back(1);
  }
  return shape;
}

Status infer_reduce(InferContext &c) {
  const TensorType &x = c.inputs[0];
  KILN_TRY(distinct_dims(c, x.rank()).take_status());
  const std::vector<bool> reduced = reduced_dims(c.attrs, x.rank());
  c.results = {make_type(x.dtype, reduced_shape(x.dims, reduced, c.attr("keepdim").boolean()))};
  return {};
}

std::vector<int64_t> result_strides(std::span<const int64_t> shape, const std::vector<bool> &reduced) {
  std::vector<int64_t> kept(shape.begin(), shape.end());
  for (size_t d = 0; d < kept.size(); ++d)
    if (reduced[d]) kept[d] = 1;
  std::vector<int64_t> strides = dense_strides(kept);
  for (size_t d = 0; d < kept.size(); ++d)
    if (reduced[d]) strides[d] = 0;
  return strides;
}

void reduction_samples(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  auto sample = [&](const char *name, Shape shape, std::vector<int64_t> dims, bool keepdim = false,
                    std::map<std::string, int64_t> sizes = {}) {
    out.push_back({.name = name,
                   .inputs = {f32(std::move(shape))},
                   .attrs = {{"dims", ints(std::move(dims))}, {"keepdim", keepdim}},
                   .sizes = std::move(sizes),
                   .low = -1.5,
                   .high = 1.5});
  };
  sample("all", {7, 33}, {});
  sample("vector", {257}, {0});
  sample("rows", {9, 65}, {1});
  sample("rows_keepdim", {9, 65}, {-1}, true);
  sample("columns", {17, 33}, {0});
  sample("middle", {3, 17, 5}, {1});
  sample("outer_and_inner", {3, 5, 7}, {0, 2}, true);
  sample("scalar", {}, {});
  sample("one", {5, 1}, {1});
  sample("nothing_left", {0, 3}, {1});
  sample("symbolic", {n, m}, {1}, false, {{"n", 5}, {"m", 33}});
  sample("symbolic_one", {n, m}, {0}, true, {{"n", 1}, {"m", 7}});
}
Op reduction(std::string_view name, std::string_view doc, DTypes types, std::vector<AttrDef> attrs,
             Status (*infer)(InferContext &), OpMeaning meaning) {
  return {{.name = name,
           .doc = doc,
           .args = {{"x", "any shape", types}},
           .result_names = {"y"},
           .attrs = std::move(attrs),
           .infer = infer},
          meaning};
}

}  // namespace kiln::ops
