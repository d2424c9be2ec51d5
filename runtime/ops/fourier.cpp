// Discrete Fourier transforms of real signals. Complex numbers are pairs: a last dim of 2, the real part first.
#include <numbers>

#include "runtime/ops/composer.h"
#include "runtime/ops/family.h"

namespace kiln::ops {
namespace {

// ---- what transforms are made of

// The product with a table of cosines; of a length with two factors, n = n1 n2, with two small ones, between which what
// is left of the angle is turned: J. W. Cooley and J. W. Tukey, "An algorithm for the machine calculation of complex
// Fourier series", 1965.
class Transform {
 public:
  Transform(DecomposeContext &c, Dim n, int sign, DType dtype, bool direct)
      : c_(c), g_(c), n_(std::move(n)), sign_(sign), dtype_(dtype), direct_(direct) {}
  Composer &g() { return g_; }

  // y[k] = the sum of x[j] e^(sign 2 pi i j k / n), for k below `count`. x is [..., given, 1 or 2 parts], given at most
  // n; the result is [..., count, parts].
  ValueId operator()(ValueId x, const Dim &given, const Dim &count, int64_t parts) {
    if (!g_.ok()) return x;
    const Shape dims = c_.type(x).dims;
    const int64_t factor = smaller_factor();
    if (factor == 1)
      return g_("einsum", {x, table(n_, given, dims.back(), count, parts)}, equation("...jp,jpkc->...kc"));
    const Dim n1 = factor, n2 = n_.integer() / factor;
    Shape split(dims.begin(), dims.end() - 2);
    if (const int64_t missing = n_.integer() - given.integer(); missing > 0) {
      std::vector<int64_t> low(dims.size(), 0), high = low;
      high[dims.size() - 2] = missing;
      x = g_("pad", {x}, {{"low", ints(low)}, {"high", ints(high)}});
    }
    Shape whole = split;
    for (const Dim &dim : {n1, n2, dims.back()}) split.push_back(dim);
    x = g_("reshape", {x}, {{"shape", AttrValue(split)}});
    x = g_("einsum", {x, table(n1, n1, dims.back(), n1, 2)}, equation("...jrp,jpkc->...krc"));
    const ValueId angle = g_("mul", {along(n1, 0, 3), along(n2, 1, 3)});
    const ValueId side = g_("sub", {integer(1), times(along(2, 2, 3), 2)});
    const ValueId swapped = g_("roll", {x}, {{"shifts", ints({1})}, {"dims", ints({-1})}});
    x = g_("add", {g_("mul", {x, cosine(angle, integer(0), n_)}), g_("mul", {swapped, cosine(angle, side, n_)})});
    x = g_("einsum", {x, table(n2, n2, 2, n2, parts)}, equation("...krp,rpsc->...skc"));
    for (const Dim &dim : {n_, Dim(parts)}) whole.push_back(dim);
    x = g_("reshape", {x}, {{"shape", AttrValue(whole)}});
    return g_("slice", {x}, {{"dim", -2}, {"end", count}});
  }

  // By 1, 1 / sqrt(n) or 1 / n, as "norm" tells of this way or of the one back.
  ValueId scaled(ValueId y) {
    const std::string &norm = c_.attr("norm").text_value();
    if (norm == (sign_ < 0 ? "backward" : "forward")) return y;
    const ValueId count = g_.convert(g_.count(integer(0), n_), dtype_);
    return g_("div", {y, norm == "ortho" ? g_("sqrt", {count}) : count});
  }

 private:
  static AttrMap equation(const char *text) { return {{"equation", text}}; }
  // The largest factor that is not more than the other; 1: the length is small or prime, or all are to be summed.
  int64_t smaller_factor() const {
    constexpr int64_t small = 32;
    if (direct_ || n_.integer() < small) return 1;
    auto factor = static_cast<int64_t>(std::sqrt(static_cast<double>(n_.integer())));
    while (n_.integer() % factor) --factor;
    return factor;
  }

  ValueId integer(int64_t value) {
    return g_("full", {},
              {{"dtype", DType::i64}, {"shape", AttrValue(Shape{})}, {"value", static_cast<double>(value)}});
  }
  ValueId times(ValueId x, int64_t value) { return g_("mul", {x, integer(value)}); }
  // 0, 1, ... along one dim of `rank`.
  ValueId along(const Dim &size, size_t dim, size_t rank) {
    Shape shape(rank, 1);
    shape[dim] = size;
    return g_("iota", {}, {{"shape", AttrValue(shape)}, {"dim", static_cast<int64_t>(dim)}});
  }

  // cos(2 pi (angle / n + sign quarters / 4)), from a list of all.
  ValueId cosine(ValueId angle, ValueId quarters, const Dim &n) {
    const ValueId count = g_.count(integer(0), n);
    const ValueId turn = g_("add", {times(angle, 4), g_("mul", {times(quarters, sign_), count})});
    return g_("index", {cosines(n), g_("remainder", {turn, times(count, 4)})}, {{"dim", 0}});
  }

  // cos(2 pi turn / (4 n)), for turn below 4 n. Quarters are told by integers, so that what is 0 or 1 is so.
  ValueId cosines(const Dim &n) {
    const ValueId turn = along(n * 4, 0, 1), count = g_.count(turn, n);
    const ValueId quarter = g_("div", {turn, count}), rest = g_("remainder", {turn, count});
    const ValueId part = g_("div", {g_.convert(rest, dtype_), g_.convert(count, dtype_)});
    const ValueId radians = g_("mul", {part, g_.number(part, std::numbers::pi / 2)});
    const ValueId is_odd = g_("eq", {g_("remainder", {quarter, integer(2)}), integer(1)});
    const ValueId size = g_("where", {is_odd, g_("sin", {radians}), g_("cos", {radians})});
    const ValueId falls = g_("eq", {g_("div", {g_("add", {quarter, integer(1)}), integer(2)}), integer(1)});
    return g_("where", {falls, g_("neg", {size}), size});
  }

  // [rows, parts of x, count, parts of the result]: what each part of x[j] has in each of y[k].
  ValueId table(const Dim &n, const Dim &rows, const Dim &from, const Dim &count, int64_t parts) {
    const ValueId angle = g_("mul", {along(rows, 0, 4), along(count, 2, 4)});
    return cosine(angle, g_("sub", {along(from, 1, 4), along(parts, 3, 4)}), n);
  }

  DecomposeContext &c_;
  Composer g_;
  const Dim n_;
  const int sign_;
  const DType dtype_;
  const bool direct_;
};

Status require_norm(const InferContext &c) { return require_word(c, "norm", {"backward", "ortho", "forward"}); }
Dim half(const Dim &n) { return floor_div(n, 2) + 1; }

// The order of sums must not depend on whether a length is known, and one that is not has no factors to go by.
Status require_known(const InferContext &c, const Dim &n) {
  if (n.is_integer() || c.attr("direct").boolean()) return {};
  return c.fail("the length is ", n.text(), ", expected a number, or `direct`: n^2 of time and memory");
}

// For reference kernels.
template <class Wide>
Wide norm_of(const AttrMap &attrs, int64_t n, bool forward) {
  const std::string &norm = attrs.find("norm")->second.text_value();
  if (norm == "ortho") return 1 / std::sqrt(static_cast<Wide>(n));
  return (norm == "forward") == forward ? 1 / static_cast<Wide>(n) : Wide(1);
}
template <class Wide>
struct Pair {
  Wide real, imaginary;
};
template <class Wide>
Pair<Wide> root_of_unity(int64_t k, int64_t n) {  // e^(2 pi i k / n)
  const Wide angle = 2 * std::numbers::pi_v<Wide> * static_cast<Wide>(k % n) / static_cast<Wide>(n);
  return {std::cos(angle), std::sin(angle)};
}
// Element k of the transform of what `at` gives for 0 to n - 1.
template <class Wide, class At>
Pair<Wide> transformed(int64_t n, int64_t k, At at) {
  Pair<Wide> sum{0, 0};
  for (int64_t j = 0; j < n; ++j) {
    const Pair<Wide> root = root_of_unity<Wide>(j * k, n);
    const Wide x = at(j);
    sum = {sum.real + x * root.real, sum.imaginary - x * root.imaginary};
  }
  return sum;
}
// The result's pairs: pair(k), of a transform of n elements, times norm.
template <class Wide, class PairAt>
Status give_pairs(const ReferenceContext &c, int64_t n, Wide norm, PairAt pair) {
  const WriteElements<double> out(c.results[0]);
  return c.for_ranges(c.results[0].size() / 2, 8 * n, [&](int64_t begin, int64_t end) -> Status {
    for (int64_t k = begin; k < end; ++k) {
      const Pair<Wide> sum = pair(k);
      out.set(static_cast<size_t>(2 * k), static_cast<double>(sum.real * norm));
      out.set(static_cast<size_t>(2 * k + 1), static_cast<double>(sum.imaginary * norm));
    }
    return {};
  });
}

// ---- rfft

Status infer_rfft(InferContext &c) {
  const TensorType &x = c.inputs[0];
  KILN_TRY(require_norm(c));
  if (x.rank() == 0) return c.fail("x is ", x.text(), ", expected [..., n]");
  KILN_TRY(require_known(c, x.dims.back()));
  KILN_TRY(require_at_most(c, 1, x.dims.back(), "1 <= the last dim of x"));
  Shape shape = x.dims;
  shape.back() = half(x.dims.back());
  shape.push_back(2);
  c.results = {make_type(x.dtype, std::move(shape))};
  return {};
}

Status decompose_rfft(DecomposeContext &c) {
  const TensorType x = c.type(c.node.inputs[0]);
  const Dim &n = x.dims.back();
  Transform transform(c, n, -1, x.dtype, c.attr("direct").boolean());
  const ValueId column = transform.g()("unsqueeze", {c.node.inputs[0]}, {{"dims", ints({-1})}});
  return transform.g().give({transform.scaled(transform(column, n, half(n), 2))});
}

Status reference_rfft(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0], &y = c.results[0];
  const int64_t n = x.shape.back(), count = y.shape[y.shape.size() - 2];
  const ReadElements<double> in(x);
  return with_wide(x, [&](auto zero) {
    using Wide = decltype(zero);
    return give_pairs(c, n, norm_of<Wide>(c.attrs, n, true), [&](int64_t k) {
      const int64_t row = k / count * n;
      return transformed<Wide>(n, k % count,
                               [&](int64_t j) { return static_cast<Wide>(in[static_cast<size_t>(row + j)]); });
    });
  });
}

// ---- irfft

Status infer_irfft(InferContext &c) {
  const TensorType &x = c.inputs[0];
  KILN_TRY(require_norm(c));
  if (x.rank() < 2) return c.fail("x is ", x.text(), ", expected [..., n / 2 + 1, 2]");
  KILN_TRY(c.require_equal(x.dims.back(), 2, str_cat("x dim ", x.rank() - 1, " and the parts of a complex number")));
  const Dim &rows = x.dims[x.rank() - 2];
  Dim n = c.attr("n").dim();
  if (n.is(-1)) n = (rows - 1) * 2;
  KILN_TRY(require_known(c, n));
  KILN_TRY(require_at_most(c, 1, n, "1 <= n"));
  KILN_TRY(c.require_equal(rows, half(n), str_cat("x dim ", x.rank() - 2, " and n / 2 + 1")));
  Shape shape(x.dims.begin(), x.dims.end() - 1);
  shape.back() = n;
  c.results = {make_type(x.dtype, std::move(shape))};
  return {};
}

// The elements that x leaves out are conjugates of those that it has: but for the first, and that of n / 2, each counts
// twice.
Status decompose_irfft(DecomposeContext &c) {
  const TensorType x = c.type(c.node.inputs[0]);
  const Dim n = c.node.results[0].dims.back();
  const Dim rows = n.is_integer() ? half(n) : x.dims[x.rank() - 2];
  Transform transform(c, n, 1, x.dtype, c.attr("direct").boolean());
  Composer &g = transform.g();
  const ValueId place = g("iota", {}, {{"shape", AttrValue(Shape{rows, 1})}, {"dim", 0}});
  const ValueId mirrored = g("remainder", {g("mul", {place, g.number(place, 2)}), g.count(place, n)});
  const ValueId counts = g(
      "where", {g("eq", {mirrored, g.number(place, 0)}), g.number(c.node.inputs[0], 1), g.number(c.node.inputs[0], 2)});
  const ValueId y = transform(g("mul", {c.node.inputs[0], counts}), rows, n, 1);
  return g.give({transform.scaled(g("squeeze", {y}, {{"dims", ints({-1})}}))});
}

Status reference_irfft(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0], &y = c.results[0];
  const int64_t n = y.shape.back(), rows = x.shape[x.shape.size() - 2];
  const ReadElements<double> in(x);
  return with_wide(x, [&](auto zero) {
    using Wide = decltype(zero);
    const Wide norm = norm_of<Wide>(c.attrs, n, false);
    const auto element = [&](int64_t at) {
      Wide sum = 0;
      for (int64_t k = 0; k < n; ++k) {
        const bool is_conjugate = k >= rows;
        const auto pair = static_cast<size_t>((at / n * rows + (is_conjugate ? n - k : k)) * 2);
        const Pair<Wide> root = root_of_unity<Wide>(at % n * k, n);
        const bool is_real = 2 * k % n == 0;
        sum += static_cast<Wide>(in[pair]) * root.real;
        if (!is_real) sum -= static_cast<Wide>(is_conjugate ? -in[pair + 1] : in[pair + 1]) * root.imaginary;
      }
      return sum * norm;
    };
    return make_each<double>(c, element, 8 * n);
  });
}

// ---- stft

Dim bins_of(const AttrMap &attrs) {
  const int64_t n = attrs.find("n_fft")->second.i64();
  return attrs.find("onesided")->second.boolean() ? n / 2 + 1 : n;
}

// One that passes the end of every array is cut, as unfold's step.
int64_t hop_of(const AttrMap &attrs) { return std::min(attrs.find("hop")->second.i64(), farthest); }

Status infer_stft(InferContext &c) {
  const TensorType &x = c.inputs[0];
  const int64_t n = c.attr("n_fft").i64(), hop = hop_of(c.attrs);
  KILN_TRY(require_norm(c));
  if (n < 1) return c.fail("n_fft is ", n, ", expected at least 1");
  if (hop < 1) return c.fail("hop is ", hop, ", expected at least 1");
  if (x.rank() == 0) return c.fail("x is ", x.text(), ", expected [..., length]");
  Dim length = x.dims.back();
  if (c.attr("center").boolean()) {
    KILN_TRY(require_at_most(c, n / 2 + 1, length, "n_fft / 2 + 1 <= the length of x, which is mirrored at its ends"));
    length += n / 2 * 2;
  }
  KILN_TRY(require_at_most(c, n, length, "n_fft <= the length of x"));
  if (c.inputs.size() == 2) {
    KILN_TRY(require_rank(c, 1, 1));
    KILN_TRY(c.require_equal(c.inputs[1].dims[0], n, "window dim 0 and n_fft"));
  }
  Shape shape(x.dims.begin(), x.dims.end() - 1);
  for (const Dim &dim : {bins_of(c.attrs), floor_div(length - n, hop) + 1, Dim(2)}) shape.push_back(dim);
  c.results = {make_type(x.dtype, std::move(shape))};
  return {};
}

Status decompose_stft(DecomposeContext &c) {
  const int64_t n = c.attr("n_fft").i64();
  ValueId x = c.node.inputs[0];
  const TensorType type = c.type(x);
  Transform transform(c, n, -1, type.dtype, /*direct=*/false);
  Composer &g = transform.g();
  if (c.attr("center").boolean()) {
    std::vector<int64_t> ends(type.rank(), 0);
    ends.back() = n / 2;
    x = g("pad", {x}, {{"low", ints(ends)}, {"high", ints(ends)}, {"mode", "reflect"}});
  }
  x = g("unfold", {x}, {{"dim", -1}, {"size", n}, {"step", hop_of(c.node.attrs)}});
  if (c.node.inputs.size() == 2) x = g("mul", {x, c.node.inputs[1]});
  const ValueId y = transform(g("unsqueeze", {x}, {{"dims", ints({-1})}}), n, bins_of(c.node.attrs), 2);
  std::vector<int64_t> order;
  for (int64_t d = 0; d < static_cast<int64_t>(type.rank()) + 2; ++d) order.push_back(d);
  std::swap(order[order.size() - 3], order[order.size() - 2]);
  return g.give({transform.scaled(g("permute", {y}, {{"dims", ints(order)}}))});
}

Status reference_stft(ReferenceContext &c) {
  const RefTensor &x = *c.inputs[0], &y = c.results[0];
  const int64_t n = c.attr("n_fft").i64(), hop = hop_of(c.attrs), length = x.shape.back();
  const int64_t frames = y.shape[y.shape.size() - 2], bins = y.shape[y.shape.size() - 3];
  const int64_t before = c.attr("center").boolean() ? n / 2 : 0;
  const ReadElements<double> in(x), windows(*c.inputs.back());
  return with_wide(x, [&](auto zero) {
    using Wide = decltype(zero);
    return give_pairs(c, n, norm_of<Wide>(c.attrs, n, true), [&](int64_t at) {
      const int64_t frame = at % frames, bin = at / frames % bins, row = at / frames / bins;
      return transformed<Wide>(n, bin, [&](int64_t j) {
        int64_t from = std::abs(frame * hop + j - before);
        if (from >= length) from = 2 * length - 2 - from;
        const Wide window = c.inputs.size() == 2 ? static_cast<Wide>(windows[static_cast<size_t>(j)]) : Wide(1);
        return static_cast<Wide>(in[static_cast<size_t>(row * length + from)]) * window;
      });
    });
  });
}

// ---- samples

void samples_rfft(SampleSink &out) {
  const auto sample = [&](const char *name, Shape x, const char *norm, std::map<std::string, int64_t> sizes = {}) {
    out.push_back(sample_of(name, std::move(x), {{"norm", norm}}, std::move(sizes)));
  };
  sample("one", {3, 1}, "backward");
  sample("two", {2}, "backward");
  sample("odd", {2, 9}, "forward");
  sample("prime", {37}, "ortho");
  sample("square", {2, 64}, "backward");
  sample("two_factors", {3, 60}, "ortho");
  sample("no_rows", {0, 8}, "backward");
  sample("symbolic", {sym("b"), sym("n")}, "backward", {{"b", 2}, {"n", 12}});
  out.back().attrs["direct"] = true;
  sample("symbolic_rows", {sym("b"), 35}, "forward", {{"b", 3}});
}

void samples_irfft(SampleSink &out) {
  const Dim m = sym("m");
  const auto sample = [&](const char *name, Shape x, const char *norm, Dim n = -1,
                          std::map<std::string, int64_t> sizes = {}) {
    out.push_back(sample_of(name, std::move(x), {{"norm", norm}, {"n", std::move(n)}}, std::move(sizes)));
  };
  sample("one", {3, 1, 2}, "backward", 1);
  sample("two", {2, 2}, "backward");
  sample("odd", {2, 5, 2}, "forward", 9);
  sample("even", {2, 5, 2}, "ortho", 8);
  sample("prime", {19, 2}, "ortho", 37);
  sample("square", {2, 33, 2}, "backward");
  sample("two_factors", {18, 2}, "forward", 35);
  sample("no_rows", {0, 5, 2}, "backward");
  sample("symbolic", {sym("b"), m, 2}, "backward", 2 * m - 1, {{"b", 2}, {"m", 6}});
  out.back().attrs["direct"] = true;
}

void samples_stft(SampleSink &out) {
  const auto sample = [&](const char *name, Shape x, AttrMap attrs, std::vector<Shape> window = {},
                          std::map<std::string, int64_t> sizes = {}) {
    out.push_back(sample_of(name, std::move(x), std::move(attrs), std::move(sizes)));
    for (Shape &shape : window) out.back().inputs.push_back(f32(std::move(shape)));
  };
  const AttrMap sides = {{"n_fft", 9}, {"hop", 4}, {"center", false}, {"onesided", false}, {"norm", "ortho"}};
  sample("rows", {2, 33}, {{"n_fft", 8}, {"hop", 3}}, {{8}});
  sample("vector_of_all_bins", {21}, sides);
  sample("two_factors", {1, 70}, {{"n_fft", 36}, {"hop", 20}, {"norm", "forward"}}, {{36}});
  sample("one_frame", {3, 5}, {{"n_fft", 5}, {"hop", 7}, {"center", false}});
  sample("one", {4}, {{"n_fft", 1}, {"hop", 1}});
  sample("symbolic", {sym("b"), sym("n")}, {{"n_fft", 6}, {"hop", 2}}, {{6}}, {{"b", 2}, {"n", 11}});
}

// ---- records

AttrDef norm_attr(std::string_view doc) {
  return {.name = "norm", .doc = doc, .kind = AttrKind::text, .fallback = "backward"};
}
AttrDef direct_attr() {
  return flag("direct",
              "each element is the sum of n products, whatever factors n has; a length that is not known when it is "
              "compiled needs it",
              false);
}
constexpr std::string_view forward_norm = "what is divided by: 'backward', 1; 'ortho', sqrt(n); 'forward', n";

const Op fourier_records[] = {
    {{.name = "rfft",
      .doc =
          "The discrete Fourier transform of the last dim, of real numbers: the complex elements 0 to n / 2 as pairs, "
          "the real part first; the others are their conjugates. The sum of x[j] e^(-2 pi i j k / n). A "
          "length n of factors a and b takes about n (a + b) of time and memory; one that is prime, and any with "
          "`direct`, n^2. Kiln has no complex type.",
      .args = {{"x", "[..., n]", float_types}},
      .result_names = {"y"},
      .attrs = {norm_attr(forward_norm), direct_attr()},
      .infer = infer_rfft},
     {.decompose = decompose_rfft,
      .reference = reference_rfft,
      .gradient = through_decomposition(),
      .samples = samples_rfft}},

    {{.name = "irfft",
      .doc = "The real numbers whose rfft x is: [..., n]. The imaginary parts of element 0, and of n / 2, count as 0. "
             "Time and memory are as rfft's. Complex numbers are pairs, the real part first; Kiln has no complex type.",
      .args = {{"x", "[..., n / 2 + 1, 2]", float_types}},
      .result_names = {"y"},
      .attrs = {{.name = "n",
                 .doc = "how many; -1: the even number of the two that x can be of",
                 .kind = AttrKind::dim,
                 .fallback = Dim(-1)},
                norm_attr("what is divided by: 'backward', n; 'ortho', sqrt(n); 'forward', 1"),
                direct_attr()},
      .infer = infer_irfft},
     {.decompose = decompose_irfft,
      .reference = reference_irfft,
      .gradient = through_decomposition(),
      .samples = samples_irfft}},

    {{.name = "stft",
      .doc = "Fourier transforms of windows of the last dim, hop apart: [..., bins, frames, 2], complex numbers as "
             "pairs, the real part first; Kiln has no complex type.",
      .args = {{"x", "[..., length]", float_types},
               {"window", "[n_fft], by which each is multiplied", float_types, Arity::optional}},
      .result_names = {"y"},
      .attrs =
          {{.name = "n_fft", .doc = "of a window", .kind = AttrKind::i64, .required = true},
           {.name = "hop", .doc = "from one window to the next, at least 1", .kind = AttrKind::i64, .required = true},
           flag("center",
                "x is mirrored at its ends, n_fft / 2 elements, so that a window's middle is at a multiple of hop",
                true),
           flag("onesided", "bins 0 to n_fft / 2, else all n_fft", true),
           norm_attr(forward_norm)},
      .infer = infer_stft},
     {.decompose = decompose_stft,
      .reference = reference_stft,
      .gradient = through_decomposition(),
      .samples = samples_stft}},
};

}  // namespace

std::span<const Op> fourier_ops() { return fourier_records; }

}  // namespace kiln::ops
