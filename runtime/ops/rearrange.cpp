// Ops whose elements are elements of the operand at other places, in an order that no strides can tell.
#include <cmath>

#include "runtime/ops/elementwise.h"

namespace kiln::ops {
namespace {

// The integers of the reference kernels do what expressions do.
int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }
int64_t mod(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }

// An op is told by `place`: it makes the operand's index, of expressions or of integers, from the result's. It gets the
// context, the operand's dims and the index, which is of the result's rank on entry.
template <auto place>
Status lower_places(LowerContext &c) {
  std::vector<Expr> index = c.axes();
  place(c, std::span<const Expr>(c.inputs[0].dims), index);
  c.body.yield(c.load(0, std::move(index)));
  return {};
}

template <auto place>
Status reference_places(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0], &y = c.results[0];
  const std::vector<int64_t> strides = dense_strides(x.shape), result = dense_strides(y.shape);
  return pick_each(c, x, [&](int64_t k) {
    std::vector<int64_t> index;
    for (size_t d = 0; d < y.shape.size(); ++d) index.push_back(k / result[d] % y.shape[d]);
    place(c, std::span<const int64_t>(x.shape), index);
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * strides[d];
    return at;
  });
}

// ---- flip, roll

Status infer_flip(InferContext &c) {
  KILN_TRY(distinct_dims(c, c.inputs[0].rank()).take_status());
  return infer_same(c);
}
constexpr auto place_flipped = [](const auto &c, auto from, auto &index) {
  for (const int64_t dim : c.attr("dims").i64_list()) {
    const size_t d = normal_axis(dim, from.size());
    index[d] = from[d] - 1 - index[d];
  }
};

Status infer_roll(InferContext &c) {
  const size_t shifts = c.attr("shifts").size(), dims = c.attr("dims").size();
  if (shifts != dims) return c.fail("shifts names ", shifts, " and dims ", dims, ", expected as many");
  KILN_TRY(require_integers(c, "shifts", dims, -farthest));
  KILN_TRY(distinct_dims(c, c.inputs[0].rank()).take_status());
  return infer_same(c);
}
constexpr auto place_rolled = [](const auto &c, auto from, auto &index) {
  for (size_t k = 0; k < c.attr("dims").size(); ++k) {
    const size_t d = normal_axis(c.attr("dims").i64_list()[k], from.size());
    index[d] = mod(index[d] - c.attr("shifts").i64_list()[k], from[d]);
  }
};

// ---- tile, repeat_interleave

Status infer_tile(InferContext &c) {
  const TensorType &x = c.inputs[0];
  const Shape &repeats = c.attr("repeats").dim_list();
  if (repeats.size() < x.rank())
    return c.fail("repeats has ", repeats.size(), " numbers for ", x.text(), ", expected one for each dim, or more");
  KILN_TRY(require_shape(c, repeats, "repeats"));
  Shape shape = repeats;
  for (size_t d = 0; d < x.rank(); ++d) shape[repeats.size() - x.rank() + d] *= x.dims[d];
  c.results = {make_type(x.dtype, std::move(shape))};
  return {};
}
constexpr auto place_tiled = [](const auto &, auto from, auto &index) {
  index.erase(index.begin(), index.end() - static_cast<ptrdiff_t>(from.size()));
  for (size_t d = 0; d < from.size(); ++d) index[d] = mod(index[d], from[d]);
};

Status infer_repeat_interleave(InferContext &c) {
  const TensorType &x = c.inputs[0];
  KILN_ASSIGN(const int64_t dim, c.axis(c.attr("dim").i64(), x.rank(), "dim"));
  const int64_t repeats = c.attr("repeats").i64();
  if (repeats < 0) return c.fail("repeats is ", repeats, ", expected at least 0");
  c.results = {make_type(x.dtype, x.dims)};
  c.results[0].dims[static_cast<size_t>(dim)] *= repeats;
  return {};
}
constexpr auto place_repeated = [](const auto &c, auto, auto &index) {
  auto &at = index[dim_of(c, index.size())];
  at = floor_div(at, std::max<int64_t>(c.attr("repeats").i64(), 1));
};

// ---- samples

void samples_flip(SampleSink &out) {
  const Dim n = sym("n");
  add_sample(out, "vector", {257}, {{"dims", ints({0})}});
  add_sample(out, "columns", {7, 33}, {{"dims", ints({-1})}});
  add_sample(out, "rows", {7, 33}, {{"dims", ints({0})}});
  add_sample(out, "both", {5, 3, 17}, {{"dims", ints({2, 0})}});
  add_sample(out, "none", {5, 3}, {{"dims", ints({})}});
  add_sample(out, "empty", {0, 3}, {{"dims", ints({0, 1})}});
  add_sample(out, "symbolic", {n, 3}, {{"dims", ints({0})}}, {{"n", 9}});
}
void samples_roll(SampleSink &out) {
  const Dim n = sym("n");
  add_sample(out, "vector", {257}, {{"dims", ints({0})}, {"shifts", ints({3})}});
  add_sample(out, "back", {7, 33}, {{"dims", ints({-1})}, {"shifts", ints({-5})}});
  add_sample(out, "both", {5, 17}, {{"dims", ints({0, 1})}, {"shifts", ints({2, 16})}});
  add_sample(out, "around", {5, 3}, {{"dims", ints({0})}, {"shifts", ints({-12})}});
  add_sample(out, "none", {5, 3}, {{"dims", ints({})}, {"shifts", ints({})}});
  add_sample(out, "empty", {0, 3}, {{"dims", ints({0})}, {"shifts", ints({1})}});
  add_sample(out, "symbolic", {n, 3}, {{"dims", ints({0})}, {"shifts", ints({4})}}, {{"n", 9}});
}
void samples_tile(SampleSink &out) {
  const Dim n = sym("n");
  add_sample(out, "vector", {33}, {{"repeats", AttrValue(Shape{3})}});
  add_sample(out, "matrix", {5, 7}, {{"repeats", AttrValue(Shape{2, 3})}});
  add_sample(out, "new_dims", {5}, {{"repeats", AttrValue(Shape{2, 1, 3})}});
  add_sample(out, "scalar", {}, {{"repeats", AttrValue(Shape{4})}});
  add_sample(out, "to_nothing", {5, 3}, {{"repeats", AttrValue(Shape{0, 2})}});
  add_sample(out, "of_nothing", {0, 3}, {{"repeats", AttrValue(Shape{2, 2})}});
  add_sample(out, "symbolic", {n, 3}, {{"repeats", AttrValue(Shape{2, n})}}, {{"n", 3}});
}
void samples_repeat_interleave(SampleSink &out) {
  const Dim n = sym("n");
  add_sample(out, "vector", {33}, {{"repeats", 3}, {"dim", 0}});
  add_sample(out, "rows", {5, 17}, {{"repeats", 2}, {"dim", -2}});
  add_sample(out, "columns", {5, 17}, {{"repeats", 4}, {"dim", 1}});
  add_sample(out, "once", {5}, {{"repeats", 1}, {"dim", 0}});
  add_sample(out, "never", {5, 3}, {{"repeats", 0}, {"dim", 0}});
  add_sample(out, "symbolic", {3, n}, {{"repeats", 2}, {"dim", 1}}, {{"n", 5}});
}
// ---- records

const Op rearrange_records[] = {
    moving(
        "flip", "The elements in reverse order along dims.", "any shape", {list("dims", "of x, each once")}, infer_flip,
        {.lower = lower_places<place_flipped>, .reference = reference_places<place_flipped>, .samples = samples_flip}),
    moving("roll", "The elements moved along dims by shifts; what leaves at one end enters at the other.", "any shape",
           {list("shifts", "one for each of dims; negative: towards 0"), list("dims", "of x, each once")}, infer_roll,
           {.lower = lower_places<place_rolled>, .reference = reference_places<place_rolled>, .samples = samples_roll}),
    moving("tile", "x beside itself, repeats[d] times along dim d; more repeats than dims add leading dims.",
           "any shape", {list("repeats", "at least one for each dim of x, and at least 0", AttrKind::dim)}, infer_tile,
           {.lower = lower_places<place_tiled>, .reference = reference_places<place_tiled>, .samples = samples_tile}),
    moving("repeat_interleave", "Each element along dim, `repeats` times.", "any shape",
           {{.name = "repeats", .doc = "at least 0", .kind = AttrKind::i64, .required = true}, dim_attr("of x", 0)},
           infer_repeat_interleave,
           {.lower = lower_places<place_repeated>,
            .reference = reference_places<place_repeated>,
            .samples = samples_repeat_interleave}),
};

}  // namespace

std::span<const Op> rearrange_ops() { return rearrange_records; }

}  // namespace kiln::ops
