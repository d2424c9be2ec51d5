// A handful of ops that the tests of the graph layer need no registry for.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "runtime/graph/edit.h"
#include "runtime/graph/graph.h"

namespace kiln::fake {

inline constexpr DTypes any = ~DTypes{0};

inline Status infer_first(InferContext &c) {
  c.results = {c.inputs[0]};
  return {};
}
inline Status infer_broadcast(InferContext &c) {
  KILN_ASSIGN(Shape dims, c.broadcast(c.inputs[0].dims, c.inputs[1].dims));
  c.results = {make_type(c.inputs[0].dtype, dims)};
  return {};
}
inline Status infer_split(InferContext &c) {
  KILN_ASSIGN(int64_t axis, c.axis(c.attr("dim").i64(), c.inputs[0].rank(), "dim"));
  TensorType half = c.inputs[0];
  half.dims[static_cast<size_t>(axis)] = floor_div(half.dims[static_cast<size_t>(axis)], 2);
  c.results = {half, half};
  return {};
}
inline Status infer_reshape(InferContext &c) {
  const Shape &shape = c.attr("shape").dim_list();
  KILN_TRY(c.require_equal(product_of(c.inputs[0].dims), product_of(shape), "elements of x and of shape"));
  c.results = {make_type(c.inputs[0].dtype, shape)};
  return {};
}
inline Status infer_call(InferContext &c) {
  const Graph &g = *c.attr("graph").graph();
  for (const GraphOutput &output : g.outputs()) c.results.push_back(g.type(output.value));
  return {};
}
inline Status infer_every(InferContext &c) {
  c.results = {make_type(c.attr("dtype").dtype(), c.attr("shape").dim_list())};
  return {};
}

class Ops : public OpTable {
 public:
  const OpSchema *find(std::string_view name) const override {
    for (const OpSchema &op : all_)
      if (op.name == name) return &op;
    return nullptr;
  }
  std::string suggest(std::string_view name) const override { return name == "ad" ? "; did you mean 'add'?" : ""; }
  const OpSchema *operator[](std::string_view name) const { return find(name); }

 private:
  const std::vector<OpSchema> all_ = {
      {.name = "add",
       .doc = "a + b",
       .args = {{"a", "", any}, {"b", "", any}},
       .result_names = {"y"},
       .infer = infer_broadcast},
      {.name = "relu",
       .doc = "max(x, 0)",
       .args = {{"x", "", dtypes(DType::f32, DType::f64)}},
       .result_names = {"y"},
       .infer = infer_first},
      {.name = "split",
       .doc = "two halves",
       .args = {{"x", "", any}},
       .result_names = {"low", "high"},
       .attrs = {{.name = "dim", .doc = "", .kind = AttrKind::i64, .fallback = 0}},
       .infer = infer_split},
      {.name = "reshape",
       .doc = "the same elements",
       .flags = op_flags::view,
       .args = {{"x", "", any}},
       .result_names = {"y"},
       .attrs = {{.name = "shape", .doc = "", .kind = AttrKind::dim, .is_list = true, .required = true}},
       .infer = infer_reshape},
      {.name = "copy_",
       .doc = "overwrites dest",
       .flags = op_flags::mutates,
       .args = {{"dest", "", any}, {"src", "", any}},
       .result_names = {"y"},
       .infer = infer_first},
      {.name = "call",
       .doc = "a nested graph",
       .flags = op_flags::carries_effects,
       .args = {{"args", "", any, Arity::variadic, false}},
       .attrs = {{.name = "graph", .doc = "", .kind = AttrKind::graph, .required = true}},
       .infer = infer_call},
      {.name = "every",
       .doc = "an attribute of every kind",
       .args = {{"x", "", any, Arity::optional}},
       .result_names = {"y"},
       .attrs = {{.name = "i", .doc = "", .kind = AttrKind::i64, .fallback = 7},
                 {.name = "is", .doc = "", .kind = AttrKind::i64, .is_list = true},
                 {.name = "f", .doc = "", .kind = AttrKind::f64, .fallback = 0.5},
                 {.name = "fs", .doc = "", .kind = AttrKind::f64, .is_list = true},
                 {.name = "text", .doc = "", .kind = AttrKind::text, .fallback = "none"},
                 {.name = "dtype", .doc = "", .kind = AttrKind::dtype, .fallback = DType::f32},
                 {.name = "shape", .doc = "", .kind = AttrKind::dim, .is_list = true},
                 {.name = "start", .doc = "", .kind = AttrKind::dim, .fallback = 0},
                 {.name = "flag", .doc = "", .kind = AttrKind::boolean, .fallback = false},
                 {.name = "tensors", .doc = "", .kind = AttrKind::tensor, .is_list = true}},
       .infer = infer_every},
      {.name = "print",
       .doc = "tells x",
       .flags = op_flags::effect,
       .args = {{"x", "", any}},
       .result_names = {"y"},
       .infer = infer_first},
  };
};

inline const Ops &ops() {
  static const Ops table;
  return table;
}

// An edit whose steps must succeed: a failure is told with its message.
struct Build {
  Edit edit;
  explicit Build(GraphPtr from = nullptr) : edit(std::move(from)) {}
  ValueId input(const char *name, Shape dims, DType dtype = DType::f32) {
    return take(edit.input(name, make_type(dtype, std::move(dims))));
  }
  ValueId parameter(const char *name, Shape dims) {
    return take(edit.parameter(name, make_type(DType::f32, std::move(dims))));
  }
  ValueId add(std::string_view op, std::vector<ValueId> inputs, AttrMap attrs = {}, std::string_view name = {},
              AttrMap annotations = {}) {
    return {take(edit.add(ops()[op], inputs, std::move(attrs), name, std::move(annotations))), 0};
  }
  GraphPtr finish(std::vector<ValueId> outputs) {
    check(edit.set_output_values(outputs));
    return take(edit.finish());
  }
  template <class T>
  static T take(Result<T> result) {
    check(result.status());
    return result.ok() ? std::move(result).value() : T();
  }
  static void check(const Status &status) { EXPECT_TRUE(status.ok()) << status.message(); }
};

inline Expr n() { return Expr::symbol("n"); }

}  // namespace kiln::fake
