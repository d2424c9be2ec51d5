// Pooling: one number for each window of an image.
#include <cmath>

#include "runtime/ops/family.h"

namespace kiln::ops {
namespace {

using kernel::Core;

const std::vector<AttrDef> pool_attrs = {{.name = "kernel",
                                          .doc = "the window's height and width",
                                          .kind = AttrKind::i64,
                                          .is_list = true,
                                          .required = true},
                                         {.name = "stride",
                                          .doc = "steps along H and W; none: the kernel",
                                          .kind = AttrKind::i64,
                                          .is_list = true,
                                          .fallback = ints({})},
                                         {.name = "padding",
                                          .doc = "at both ends of H and W, at most half the kernel",
                                          .kind = AttrKind::i64,
                                          .is_list = true,
                                          .fallback = ints({0, 0})}};

struct Window {
  const std::vector<int64_t> &kernel, &stride, &padding;
  explicit Window(const AttrMap &attrs)
      : kernel(attrs.find("kernel")->second.i64_list()),
        stride(attrs.find("stride")->second.size() ? attrs.find("stride")->second.i64_list() : kernel),
        padding(attrs.find("padding")->second.i64_list()) {}
  double size() const { return static_cast<double>(kernel[0]) * static_cast<double>(kernel[1]); }
};

Status infer_pool(InferContext &c) {
  const TensorType &x = c.inputs[0];
  KILN_TRY(require_rank(c, 0, 4));
  KILN_TRY(require_integers(c, "kernel", 2, 1));
  if (c.attr("stride").size()) KILN_TRY(require_integers(c, "stride", 2, 1));
  KILN_TRY(require_integers(c, "padding", 2, 0));
  const Window window(c.attrs);
  Shape shape = x.dims;
  for (size_t d = 0; d < 2; ++d) {
    if (window.padding[d] > window.kernel[d] / 2)
      return c.fail("padding ", window.padding[d], " is more than half the kernel's ", window.kernel[d]);
    KILN_ASSIGN(shape[2 + d], window_count(c, x.dims[2 + d], window.kernel[d], window.stride[d], window.padding[d],
                                           str_cat("x dim ", 2 + d)));
  }
  c.results = {make_type(x.dtype, std::move(shape))};
  return {};
}

// The element of the window at two new reduce axes; `fill` in the padding.
int load_window(LowerContext &c, double fill) {
  const Window window(c.attrs);
  std::vector<Expr> index = c.axes();
  int valid = -1;
  for (size_t d = 0; d < 2; ++d) {
    index[2 + d] = index[2 + d] * window.stride[d] + c.reduce_axis(window.kernel[d]) - window.padding[d];
    if (window.padding[d] > 0) valid = both(c.body, valid, inside(c.body, index[2 + d], c.inputs[0].dims[2 + d]));
  }
  return c.load(0, std::move(index), valid, kernel::immediate_of(c.result.dtype, fill));
}

Status lower_max_pool2d(LowerContext &c) {
  c.compute.carriers = kernel::carriers_of(Core::max, c.result.dtype);
  c.body.yield(load_window(c, -infinity));
  return {};
}

Status lower_avg_pool2d(LowerContext &c) {
  c.compute.carriers = kernel::carriers_of(Core::add, c.result.dtype);
  const int x = load_window(c, 0);
  c.body.yield(c.body.op(Core::mul, x, c.body.constant(c.result.dtype, 1 / Window(c.attrs).size())));
  return {};
}

template <auto combine>
Status reference_pool(ReferenceContext &c, bool is_mean) {
  const RefTensor &x = *c.inputs[0];
  RefTensor &y = c.results[0];
  const Window window(c.attrs);
  const int64_t height = x.shape[2], width = x.shape[3];
  return dispatch_wide(x, [&](auto zero, auto wide) -> Status {
    using T = decltype(zero);
    using Wide = decltype(wide);
    const Wide least = std::is_integral_v<T> ? std::numeric_limits<Wide>::lowest() : static_cast<Wide>(-infinity);
    T *out = elements<T>(y).data();
    for (int64_t plane = 0; plane < y.shape[0] * y.shape[1]; ++plane)
      for (int64_t i = 0; i < y.shape[2]; ++i)
        for (int64_t j = 0; j < y.shape[3]; ++j) {
          Wide total = is_mean ? Wide(0) : least;
          for (int64_t p = 0; p < window.kernel[0]; ++p)
            for (int64_t q = 0; q < window.kernel[1]; ++q) {
              const int64_t row = i * window.stride[0] + p - window.padding[0],
                            column = j * window.stride[1] + q - window.padding[1];
              if (row < 0 || row >= height || column < 0 || column >= width) continue;
              total =
                  combine(total, Wide(elements<T>(x)[static_cast<size_t>((plane * height + row) * width + column)]));
            }
          *out++ = static_cast<T>(is_mean ? total / static_cast<Wide>(window.size()) : total);
        }
    return {};
  });
}

void samples_pool(SampleSink &out) {
  const Dim n = sym("n"), h = sym("h"), w = sym("w");
  auto sample = [&](const char *name, Shape x, std::vector<int64_t> kernel, std::vector<int64_t> stride,
                    std::vector<int64_t> padding, std::map<std::string, int64_t> sizes = {}) {
    out.push_back({.name = name,
                   .inputs = {f32(std::move(x))},
                   .attrs = {{"kernel", ints(std::move(kernel))},
                             {"stride", ints(std::move(stride))},
                             {"padding", ints(std::move(padding))}},
                   .sizes = std::move(sizes)});
  };
  sample("halved", {2, 3, 8, 8}, {2, 2}, {}, {0, 0});
  sample("leftover", {1, 3, 7, 9}, {2, 2}, {}, {0, 0});
  sample("overlapping", {2, 5, 9, 17}, {3, 3}, {1, 2}, {1, 1});
  sample("wide", {1, 2, 6, 33}, {1, 5}, {1, 1}, {0, 2});
  sample("whole_image", {3, 17, 4, 4}, {4, 4}, {}, {0, 0});
  sample("one", {1, 1, 1, 1}, {1, 1}, {}, {0, 0});
  sample("no_images", {0, 3, 4, 4}, {2, 2}, {}, {0, 0});
  sample("symbolic", {n, 3, h, w}, {2, 2}, {2, 2}, {1, 1}, {{"n", 2}, {"h", 7}, {"w", 8}});
}

Op pool(std::string_view name, std::string_view doc, DTypes types, OpMeaning meaning) {
  return {{.name = name,
           .doc = doc,
           .args = {{"x", "[N, C, H, W]", types}},
           .result_names = {"y"},
           .attrs = pool_attrs,
           .infer = infer_pool},
          meaning};
}

const Op records[] = {
    pool("max_pool2d", "The largest element of each window, NaN if one is; padding is never the largest.",
         numeric_types,
         {.lower = lower_max_pool2d,
          .reference =
              [](ReferenceContext &c) { return reference_pool<[](auto a, auto b) { return larger(a, b); }>(c, false); },
          .samples =
              [](SampleSink &out) {
                samples_pool(out);
                out.push_back({.name = "edges",
                               .inputs = {f32({1, 1, 2, 4})},
                               .attrs = {{"kernel", ints({2, 2})}},
                               .given = {{0, f32_data({1, 1, 2, 4}, {-INFINITY, -INFINITY, 1.f, NAN, -INFINITY,
                                                                     -INFINITY, 2.f, 3.f})}}});
              }}),
    pool(
        "avg_pool2d", "The mean of each window; padding counts, as zeros.", float_types,
        {.lower = lower_avg_pool2d,
         .reference = [](ReferenceContext &c) { return reference_pool<[](auto a, auto b) { return a + b; }>(c, true); },
         .samples = samples_pool}),
};

}  // namespace

std::span<const Op> pool_ops() { return records; }

}  // namespace kiln::ops
