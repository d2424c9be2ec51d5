// Windows as columns of a matrix, and back: convolution and pooling by hand.
#include "runtime/ops/windows.h"

namespace kiln::ops {
namespace {

using kernel::Core;

// Of each dim of space.
struct Grid {
  std::vector<int64_t> kernel, stride, dilation;
  std::vector<Ends> padding;
  explicit Grid(const AttrMap &attrs)
      : kernel(attrs.find("kernel")->second.i64_list()),
        stride(or_ones(attrs, "stride")),
        dilation(or_ones(attrs, "dilation")) {
    if (attrs.find("padding")->second.size() == 0)
      padding.resize(rank());
    else
      padding = padding_of(attrs, rank());
  }
  size_t rank() const { return kernel.size(); }
  int64_t places() const { return count_of(kernel); }

 private:
  std::vector<int64_t> or_ones(const AttrMap &attrs, std::string_view name) const {
    const AttrValue &value = attrs.find(name)->second;
    return value.size() ? value.i64_list() : std::vector<int64_t>(kernel.size(), 1);
  }
};

Status require_grid(const InferContext &c, size_t n) {
  if (n < 1 || n > 3) return c.fail("kernel has ", n, " values, expected 1 to 3");
  KILN_TRY(require_integers(c, "kernel", n, 1));
  for (const char *name : {"stride", "dilation"})
    if (c.attr(name).size()) KILN_TRY(require_integers(c, name, n, 1));
  return c.attr("padding").size() ? require_padding(c, n) : Status();
}

// How many windows there are along each dim of space of these sizes.
Result<Shape> counts_of(InferContext &c, const Grid &grid, std::span<const Dim> space) {
  Shape counts;
  for (size_t d = 0; d < grid.rank(); ++d) {
    const Dim extent = window_extent(grid.kernel[d], grid.dilation[d]);
    KILN_ASSIGN(counts.emplace_back(),
                window_count(c, space[d], extent, grid.stride[d], grid.padding[d], str_cat("dim of space ", d)));
  }
  return counts;
}
// The same, where inference has checked them.
Shape known_counts(const Grid &grid, std::span<const Dim> space) {
  Shape counts;
  for (size_t d = 0; d < grid.rank(); ++d)
    counts.push_back(floor_div(space[d] + grid.padding[d].before + grid.padding[d].after -
                                   window_extent(grid.kernel[d], grid.dilation[d]),
                               grid.stride[d]) +
                     1);
  return counts;
}

Status infer_im2col(InferContext &c) {
  const size_t n = c.attr("kernel").size();
  KILN_TRY(require_grid(c, n));
  const TensorType &x = c.inputs[0];
  KILN_TRY(require_rank(c, 0, 2 + n));
  const Grid grid(c.attrs);
  KILN_ASSIGN(const Shape counts, counts_of(c, grid, std::span(x.dims).subspan(2)));
  c.results = {make_type(x.dtype, {x.dims[0], x.dims[1] * grid.places(), product_of(counts)})};
  return {};
}

Status lower_im2col(LowerContext &c) {
  const Grid grid(c.attrs);
  const Shape &x = c.inputs[0].dims;
  const std::span space = std::span(x).subspan(2);
  Shape row = {x[1]};
  row.insert(row.end(), grid.kernel.begin(), grid.kernel.end());
  const std::vector<Expr> place = unflatten(c.axis(1), row), window = unflatten(c.axis(2), known_counts(grid, space));
  std::vector<Expr> index = {c.axis(0), place[0]};
  int valid = -1;
  for (size_t d = 0; d < grid.rank(); ++d) {
    index.push_back(window[d] * grid.stride[d] + place[1 + d] * grid.dilation[d] - grid.padding[d].before);
    valid = both(c.body, valid, inside(c.body, index.back(), space[d]));
  }
  c.body.yield(c.load(0, std::move(index), valid));
  return {};
}

Status infer_col2im(InferContext &c) {
  const size_t n = c.attr("kernel").size();
  KILN_TRY(require_grid(c, n));
  const TensorType &x = c.inputs[0];
  KILN_TRY(require_rank(c, 0, 3));
  const Shape &size = c.attr("size").dim_list();
  if (size.size() != n) return c.fail("size has ", size.size(), " values, expected ", n);
  KILN_TRY(require_shape(c, size, "size"));
  const Grid grid(c.attrs);
  KILN_ASSIGN(const Shape counts, counts_of(c, grid, size));
  KILN_TRY(c.require_equal(x.dims[2], product_of(counts), str_cat("x dim 2 and ", windows_by(c.op))));
  KILN_TRY(c.require_equal(mod(x.dims[1], grid.places()), 0, "x dim 1 modulo the kernel's elements and 0"));
  Shape shape = {x.dims[0], floor_div(x.dims[1], grid.places())};
  shape.insert(shape.end(), size.begin(), size.end());
  c.results = {make_type(x.dtype, std::move(shape))};
  return {};
}

// Along each dim the elements k of windows l that meet at a place: stride * l + dilation * k = place. Without dilation
// those are every stride-th k; with it, all are tried.
Status lower_col2im(LowerContext &c) {
  const Grid grid(c.attrs);
  const Shape counts = known_counts(grid, std::span(c.result.dims).subspan(2));
  c.compute.carriers = kernel::carriers_of(Core::add, c.result.dtype);
  Expr row = c.axis(1), column = 0;
  int valid = -1;
  for (size_t d = 0; d < grid.rank(); ++d) {
    const int64_t stride = grid.stride[d], kernel = grid.kernel[d];
    const Expr place = c.axis(2 + d) + grid.padding[d].before;
    Expr k, window;
    if (grid.dilation[d] == 1) {
      const Expr part = c.reduce_axis((kernel + stride - 1) / stride);
      k = part * stride + mod(place, stride);
      window = floor_div(place, stride) - part;
      if (kernel % stride != 0) valid = both(c.body, valid, inside(c.body, k, kernel));
    } else {
      k = c.reduce_axis(kernel);
      const Expr begin = place - k * grid.dilation[d];
      window = floor_div(begin, stride);
      if (stride > 1)
        valid = both(c.body, valid, c.body.op(Core::eq, c.body.index(mod(begin, stride)), c.body.index(0)));
    }
    valid = both(c.body, valid, inside(c.body, window, counts[d]));
    row = row * kernel + k;
    column = column * counts[d] + window;
  }
  c.body.yield(c.load(0, {c.axis(0), std::move(row), std::move(column)}, valid));
  return {};
}

// Calls body(element of the columns, element of the images) for each that stands in both, in order of the columns, and
// by ranges of planes, which have nothing in common.
template <class Body>
Status walk_columns(const ReferenceContext &c, const RefTensor &images, Body body) {
  const Grid grid(c.attrs);
  const std::vector<int64_t> size(images.shape.begin() + 2, images.shape.end());
  std::vector<int64_t> counts;
  for (size_t d = 0; d < grid.rank(); ++d)
    counts.push_back(
        (size[d] + grid.padding[d].before + grid.padding[d].after - (grid.kernel[d] - 1) * grid.dilation[d] - 1) /
            grid.stride[d] +
        1);
  const int64_t windows = count_of(counts), places = grid.places(), plane = count_of(size);
  const int64_t of_plane = windows * places, planes = images.shape[0] * images.shape[1];
  return c.for_ranges(planes, of_plane, [&](int64_t begin, int64_t end) -> Status {
    for (int64_t k = begin * of_plane; k < end * of_plane; ++k) {
      const std::vector<int64_t> window = unflatten(k % windows, counts);
      std::vector<int64_t> at = unflatten(k / windows % places, grid.kernel);
      for (size_t d = 0; d < at.size(); ++d)
        at[d] = at[d] * grid.dilation[d] + window[d] * grid.stride[d] - grid.padding[d].before;
      if (const int64_t place = place_in(at, size); place >= 0)
        body(static_cast<size_t>(k), static_cast<size_t>(k / of_plane * plane + place));
    }
    return {};
  });
}

Status reference_im2col(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  RefTensor &y = c.results[0];
  return dispatch(y, [&](auto zero) {
    const ReadElements<decltype(zero)> in(x);
    const WriteElements<decltype(zero)> out(y);  // zeros until then
    return walk_columns(c, x, [&](size_t k, size_t from) { out.set(k, in[from]); });
  });
}

Status reference_col2im(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0];
  RefTensor &y = c.results[0];
  return dispatch_wide(y, [&](auto zero, auto wide) -> Status {
    using Wide = decltype(wide);
    const ReadElements<decltype(zero)> in(x);
    std::vector<Wide> sums(static_cast<size_t>(y.size()));
    KILN_TRY(walk_columns(c, y, [&](size_t k, size_t to) { sums[to] = add(sums[to], Wide(in[k])); }));
    give_all(y, sums);
    return {};
  });
}

// ---- samples

void samples_im2col(SampleSink &out) {
  const auto sample = [&](const char *name, Shape x, AttrMap attrs, std::map<std::string, int64_t> sizes = {}) {
    out.push_back(sample_of(name, std::move(x), std::move(attrs), std::move(sizes)));
  };
  sample("image", {2, 3, 4, 5}, {{"kernel", ints({2, 3})}});
  sample("padded", {1, 2, 4, 5}, {{"kernel", ints({3, 3})}, {"padding", ints({1, 1})}, {"stride", ints({2, 1})}});
  sample("dilated", {1, 2, 5, 6}, {{"kernel", ints({2, 2})}, {"dilation", ints({2, 3})}, {"padding", ints({0, 2})}});
  sample("uneven_ends", {1, 2, 3, 4}, {{"kernel", ints({2, 2})}, {"padding", ints({0, 1, 2, 0})}});
  sample("sequence", {2, 3, 9}, {{"kernel", ints({3})}, {"stride", ints({2})}});
  sample("volume", {1, 2, 3, 4, 3}, {{"kernel", ints({2, 2, 2})}, {"stride", ints({1, 2, 1})}});
  sample("no_images", {0, 2, 4, 4}, {{"kernel", ints({2, 2})}});
  sample("symbolic", {sym("n"), 2, sym("h"), sym("w")}, {{"kernel", ints({2, 3})}, {"padding", ints({1, 0})}},
         {{"n", 2}, {"h", 3}, {"w", 5}});
}

void samples_col2im(SampleSink &out) {
  const auto sample = [&](const char *name, Shape x, Shape size, AttrMap attrs,
                          std::map<std::string, int64_t> sizes = {}) {
    attrs.insert_or_assign("size", AttrValue(std::move(size)));
    out.push_back(sample_of(name, std::move(x), std::move(attrs), std::move(sizes)));
  };
  sample("image", {2, 18, 9}, {4, 5}, {{"kernel", ints({2, 3})}});
  sample("padded", {1, 18, 10}, {4, 5},
         {{"kernel", ints({3, 3})}, {"padding", ints({1, 1})}, {"stride", ints({2, 1})}});
  sample("dilated", {1, 8, 15}, {5, 6},
         {{"kernel", ints({2, 2})}, {"dilation", ints({2, 3})}, {"padding", ints({0, 1})}});
  sample("dilated_and_strided", {1, 8, 6}, {5, 6},
         {{"kernel", ints({2, 2})}, {"dilation", ints({2, 3})}, {"padding", ints({1, 1})}, {"stride", ints({3, 2})}});
  sample("apart", {1, 4, 4}, {8, 7}, {{"kernel", ints({2, 1})}, {"stride", ints({5, 4})}});
  sample("uneven_ends", {1, 8, 15}, {3, 4}, {{"kernel", ints({2, 2})}, {"padding", ints({0, 1, 2, 0})}});
  sample("sequence", {2, 9, 4}, {9}, {{"kernel", ints({3})}, {"stride", ints({2})}});
  sample("volume", {1, 16, 8}, {3, 4, 3}, {{"kernel", ints({2, 2, 2})}, {"stride", ints({1, 2, 1})}});
  sample("no_images", {0, 4, 9}, {4, 4}, {{"kernel", ints({2, 2})}});
  const Dim h = sym("h"), w = sym("w");
  sample("symbolic", {sym("n"), 8, h * w}, {h + 1, w + 1}, {{"kernel", ints({2, 2})}}, {{"n", 2}, {"h", 3}, {"w", 4}});
}

std::vector<AttrDef> grid_attrs(std::initializer_list<AttrDef> more) {
  std::vector<AttrDef> attrs = more;
  attrs.push_back(list("kernel", "the window's sizes, of 1 to 3 dims of space"));
  attrs.push_back(list("stride", "steps from window to window; none: 1", std::vector<int64_t>()));
  attrs.push_back(list("padding",
                       "zeros at both ends of each dim of space; or 2 numbers for each, before and after; none: 0",
                       std::vector<int64_t>()));
  attrs.push_back(list("dilation", "steps between a window's elements; none: 1", std::vector<int64_t>()));
  return attrs;
}

const Op window_columns_records[] = {
    {{.name = "im2col",
      .doc = "The windows that slide over x as columns [N, C * kernel elements, windows]: PyTorch's unfold.",
      .flags = op_flags::moves,
      .args = {{"x", "[N, C, W], [N, C, H, W] or [N, C, D, H, W]", any_type}},
      .result_names = {"y"},
      .attrs = grid_attrs({}),
      .infer = infer_im2col},
     {.lower = lower_im2col, .reference = reference_im2col, .gradient = by_rule("x"), .samples = samples_im2col}},

    {{.name = "col2im",
      .doc = "[N, C, size]: each element is the sum of those that im2col makes of it. PyTorch's fold.",
      .args = {{"x", "[N, C * kernel elements, windows]", numeric_types}},
      .result_names = {"y"},
      .attrs = grid_attrs({list("size", "of the result's dims of space", AttrKind::dim)}),
      .infer = infer_col2im},
     {.lower = lower_col2im, .reference = reference_col2im, .gradient = by_rule("x"), .samples = samples_col2im}},
};

}  // namespace

std::span<const Op> window_columns_ops() { return window_columns_records; }

}  // namespace kiln::ops
