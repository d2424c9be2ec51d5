// Discrete Fourier transforms that kissfft runs, along one dim: fft.fft, fft.ifft, fft.rfft, fft.irfft. Complex numbers
// are pairs: a last dim of 2, the real part first, which `dim` does not count.
#include <cmath>
#include <cstdint>
#include <kiln/op.hpp>
#include <kissfft/kissfft.hh>

KILN_PLUGIN_NOTE(0, KILN_FEATURE_OPS, "fft_ops");

namespace {

using kiln::op::Arrays;
using kiln::op::Call;
using kiln::op::Error;

constexpr kiln_dim two{2, 0};

std::string dim_name(size_t dim) { return "x dim " + std::to_string(dim); }

// ---- attributes and shapes

// The dim to go along, of `rank` that count.
size_t axis_of(const Call &call, size_t rank) {
  const int64_t dim = call.integer("dim"), count = static_cast<int64_t>(rank);
  if (dim < -count || dim >= count)
    call.fail("dim is " + std::to_string(dim) + ", expected " + std::to_string(-count) + " to " +
              std::to_string(count - 1));
  return static_cast<size_t>(dim < 0 ? dim + count : dim);
}

void require_norm(const Call &call) {
  const std::string norm = call.word("norm");
  if (norm != "backward" && norm != "ortho" && norm != "forward")
    call.fail("norm is '" + norm + "', expected 'backward', 'ortho' or 'forward'");
}

// A length that is not known yet is looked at when it runs.
void require_some(const Call &call, const kiln_dim &length, const std::string &name) {
  if (length.expr == 0 && length.value < 1) call.fail(name + " is " + call.text(length) + ", expected at least 1");
}

// The dim to go along of these, once all that the ops' attributes say of it holds.
size_t checked_axis(const Call &call, const std::vector<kiln_dim> &dims) {
  const size_t axis = axis_of(call, dims.size());
  require_norm(call);
  require_some(call, dims[axis], dim_name(axis));
  return axis;
}

kiln_dim half_of(const Call &call, const kiln_dim &n) { return call.parse("(" + call.text(n) + ") // 2 + 1"); }

// Without the pairs.
std::vector<kiln_dim> complex_dims(Call &call) {
  std::vector<kiln_dim> x = call.dims(0);
  if (x.size() < 2) call.fail("x is " + call.text(x) + ", expected [..., n, 2]");
  call.require_equal(x.back(), two, dim_name(x.size() - 1) + " and the parts of a complex number");
  x.pop_back();
  return x;
}

// ---- lines

// Where the lines lie along one dim: element j of line i is at first(i) + j * step, counted in numbers of their kind.
struct Lines {
  size_t outer, length, step;
  Lines(const std::vector<int64_t> &shape, size_t axis) : outer(1), length(static_cast<size_t>(shape[axis])), step(1) {
    for (size_t d = 0; d < axis; d++) outer *= static_cast<size_t>(shape[d]);
    for (size_t d = axis + 1; d < shape.size(); d++) step *= static_cast<size_t>(shape[d]);
  }
  size_t count() const { return outer * step; }
  size_t first(size_t line) const { return line / step * length * step + line % step; }
};

template <class T>
using Complex = std::complex<T>;

// What transforms of one length need; kept from run to run.
template <class T>
struct Plan {
  kissfft<T> transform{1, false};
  std::vector<Complex<T>> in, out;
};

// ---- a transform: what it takes and gives are pairs, or real numbers

template <bool takes_pairs, bool gives_pairs, bool is_inverse>
class Transform {
 public:
  static constexpr uint32_t flags = KILN_OP_ANY_THREAD;

  explicit Transform(Call &call)
      : axis_(axis_of(call, call.dims(0).size() - (takes_pairs ? 1 : 0))), norm_(call.word("norm")) {}

  void run(const Arrays &arrays) {
    if (arrays.is_f64(0))
      run_lines(arrays, doubles_);
    else
      run_lines(arrays, floats_);
  }

 private:
  template <class T, bool pairs>
  using Number = std::conditional_t<pairs, Complex<T>, T>;

  Lines lines(std::vector<int64_t> shape, bool pairs) const {
    if (pairs) shape.pop_back();
    return Lines(shape, axis_);
  }

  double scale(size_t n) const {
    if (norm_ == "ortho") return 1 / std::sqrt(static_cast<double>(n));
    return (norm_ == "forward") != is_inverse ? 1 / static_cast<double>(n) : 1;
  }

  template <class T>
  void run_lines(const Arrays &arrays, Plan<T> &plan) const {
    const Lines from = lines(arrays.shape(0), takes_pairs), to = lines(arrays.shape(1), gives_pairs);
    const size_t n = is_inverse ? to.length : from.length;  // of the side that leaves nothing out
    if (n < 1) throw Error(KILN_OUT_OF_RANGE, "the length is 0, expected at least 1");
    const bool is_halved = !takes_pairs && n % 2 == 0;  // real numbers are taken two by two
    plan.transform.assign(is_halved ? n / 2 : n, is_inverse);
    plan.in.resize(n);
    plan.out.resize(n + 1);
    const auto by = static_cast<T>(scale(n));
    for (size_t line = 0; line < from.count(); line++) {
      const auto *const x = arrays.data<const Number<T, takes_pairs>>(0) + from.first(line);
      auto *const y = arrays.data<Number<T, gives_pairs>>(1) + to.first(line);
      if (is_halved) {
        auto *const in = reinterpret_cast<T *>(plan.in.data());  // as std::complex allows
        for (size_t j = 0; j < n; j++) in[j] = std::real(x[j * from.step]);
        plan.transform.transform_real(in, plan.out.data());
        plan.out[n / 2] = plan.out[0].imag();
        plan.out[0] = plan.out[0].real();
      } else {
        for (size_t j = 0; j < from.length; j++) plan.in[j] = x[j * from.step];
        if constexpr (!gives_pairs) complete(plan.in);
        plan.transform.transform(plan.in.data(), plan.out.data());
      }
      for (size_t k = 0; k < to.length; k++) {
        if constexpr (gives_pairs)
          y[k * to.step] = plan.out[k] * by;
        else
          y[k * to.step] = plan.out[k].real() * by;
      }
    }
  }

  // Beyond the middle are the conjugates of what is before it; what is its own conjugate is real.
  template <class T>
  static void complete(std::vector<Complex<T>> &in) {
    const size_t n = in.size();
    in[0] = in[0].real();
    if (n % 2 == 0) in[n / 2] = in[n / 2].real();
    for (size_t k = 1; 2 * k < n; k++) in[n - k] = std::conj(in[k]);
  }

  const size_t axis_;
  const std::string norm_;
  Plan<float> floats_;
  Plan<double> doubles_;
};

// ---- the ops

#define KILN_FFT_ATTRS(backward, forward)                                                                              \
  R"({"name": "dim", "doc": "to go along; from the end below 0", "kind": "i64", "default": -1},)"                      \
  R"({"name": "norm", "doc": "what is divided by: 'backward', )" backward R"(; 'ortho', sqrt(n); 'forward', )" forward \
  R"(", "kind": "text", "default": "backward"})"

struct FftInfer {
  static void infer(Call &call) {
    std::vector<kiln_dim> x = complex_dims(call);
    (void)checked_axis(call, x);
    x.push_back(two);
    call.result(0, call.dtype(0), x);
  }
};

struct Fft : Transform<true, true, false>, FftInfer {
  using Transform::Transform;
  static constexpr std::string_view schema = R"({
      "name": "fft.fft",
      "doc": "The discrete Fourier transform of complex numbers, which are pairs, the real part first: y[k] is the sum of x[j] e^(-2 pi i j k / n).",
      "args": [{"name": "x", "doc": "[..., n, ..., 2]", "dtypes": ["f32", "f64"]}], "results": ["y"],
      "attrs": [)" KILN_FFT_ATTRS("1", "n") R"(],
      "samples": [
        {"name": "one", "inputs": [{"dtype": "f32", "shape": [3, 1, 2]}]},
        {"name": "powers_of_two", "inputs": [{"dtype": "f32", "shape": [2, 16, 2]}]},
        {"name": "factors", "inputs": [{"dtype": "f64", "shape": [2, 60, 2]}], "attrs": {"norm": "ortho"}},
        {"name": "prime", "inputs": [{"dtype": "f64", "shape": [37, 2]}], "attrs": {"norm": "forward"}},
        {"name": "middle_dim", "inputs": [{"dtype": "f32", "shape": [2, 6, 3, 2]}], "attrs": {"dim": 1}},
        {"name": "first_dim", "inputs": [{"dtype": "f64", "shape": [10, 3, 2]}], "attrs": {"dim": -2}},
        {"name": "no_rows", "inputs": [{"dtype": "f32", "shape": [0, 8, 2]}]},
        {"name": "symbolic", "inputs": [{"dtype": "f64", "shape": ["b", "n", 2]}], "sizes": {"b": 2, "n": 12}}]})";
  static constexpr std::array<uint8_t, 16> uuid = {0x44, 0x19, 0xa7, 0xaa, 0x11, 0x51, 0x41, 0x24,
                                                   0x91, 0x45, 0xbb, 0xe5, 0xd0, 0xad, 0xab, 0x9f};
};

struct InverseFft : Transform<true, true, true>, FftInfer {
  using Transform::Transform;
  static constexpr std::string_view schema = R"({
      "name": "fft.ifft",
      "doc": "What fft.fft is the transform of, with the same norm: the sum of x[k] e^(2 pi i j k / n), divided. Complex numbers are pairs, the real part first.",
      "args": [{"name": "x", "doc": "[..., n, ..., 2]", "dtypes": ["f32", "f64"]}], "results": ["y"],
      "attrs": [)" KILN_FFT_ATTRS("n", "1") R"(],
      "samples": [
        {"name": "one", "inputs": [{"dtype": "f64", "shape": [1, 2]}]},
        {"name": "odd", "inputs": [{"dtype": "f32", "shape": [2, 15, 2]}]},
        {"name": "prime", "inputs": [{"dtype": "f64", "shape": [17, 2]}], "attrs": {"norm": "forward"}},
        {"name": "middle_dim", "inputs": [{"dtype": "f64", "shape": [2, 8, 3, 2]}], "attrs": {"dim": 1, "norm": "ortho"}},
        {"name": "no_rows", "inputs": [{"dtype": "f64", "shape": [0, 5, 2]}]},
        {"name": "symbolic", "inputs": [{"dtype": "f32", "shape": ["b", "n", 2]}], "sizes": {"b": 3, "n": 9}}]})";
  static constexpr std::array<uint8_t, 16> uuid = {0xff, 0x9f, 0x17, 0x53, 0x3a, 0xb2, 0x46, 0x8c,
                                                   0xa2, 0x7c, 0x16, 0xe6, 0xdd, 0x78, 0x8d, 0x2d};
};

struct RealFft : Transform<false, true, false> {
  using Transform::Transform;
  static constexpr std::string_view schema = R"({
      "name": "fft.rfft",
      "doc": "The discrete Fourier transform of real numbers: the complex elements 0 to n / 2 as pairs, the real part first; the others are their conjugates.",
      "args": [{"name": "x", "doc": "[..., n, ...]", "dtypes": ["f32", "f64"]}], "results": ["y"],
      "attrs": [)" KILN_FFT_ATTRS("1", "n") R"(],
      "samples": [
        {"name": "one", "inputs": [{"dtype": "f32", "shape": [3, 1]}]},
        {"name": "two", "inputs": [{"dtype": "f64", "shape": [2]}]},
        {"name": "even", "inputs": [{"dtype": "f32", "shape": [2, 24]}], "attrs": {"norm": "ortho"}},
        {"name": "odd", "inputs": [{"dtype": "f64", "shape": [2, 9]}], "attrs": {"norm": "forward"}},
        {"name": "prime", "inputs": [{"dtype": "f32", "shape": [31]}]},
        {"name": "twice_a_prime", "inputs": [{"dtype": "f64", "shape": [26]}]},
        {"name": "first_dim", "inputs": [{"dtype": "f64", "shape": [8, 3]}], "attrs": {"dim": 0}},
        {"name": "no_rows", "inputs": [{"dtype": "f32", "shape": [0, 8]}]},
        {"name": "symbolic", "inputs": [{"dtype": "f64", "shape": ["b", "n"]}], "sizes": {"b": 2, "n": 10}}]})";
  static constexpr std::array<uint8_t, 16> uuid = {0x88, 0x8c, 0x29, 0x61, 0x02, 0x85, 0x40, 0x54,
                                                   0xa5, 0x66, 0x5b, 0xc3, 0x4f, 0x82, 0x1a, 0xcc};
  static void infer(Call &call) {
    std::vector<kiln_dim> x = call.dims(0);
    if (x.empty()) call.fail("x is [], expected [..., n]");
    const size_t axis = checked_axis(call, x);
    x[axis] = half_of(call, x[axis]);
    x.push_back(two);
    call.result(0, call.dtype(0), x);
  }
};

struct InverseRealFft : Transform<true, false, true> {
  using Transform::Transform;
  static constexpr std::string_view schema = R"({
      "name": "fft.irfft",
      "doc": "The real numbers whose fft.rfft, with the same norm, is x. The imaginary parts of element 0, and of n / 2, count as 0. Complex numbers are pairs, the real part first.",
      "args": [{"name": "x", "doc": "[..., n / 2 + 1, ..., 2]", "dtypes": ["f32", "f64"]}], "results": ["y"],
      "attrs": [{"name": "n", "doc": "how many; -1: the even number of the two that x can be of", "kind": "dim", "default": -1},
                )" KILN_FFT_ATTRS("n", "1") R"(],
      "samples": [
        {"name": "one", "inputs": [{"dtype": "f64", "shape": [3, 1, 2]}], "attrs": {"n": 1}},
        {"name": "two", "inputs": [{"dtype": "f32", "shape": [2, 2]}]},
        {"name": "even", "inputs": [{"dtype": "f32", "shape": [2, 13, 2]}], "attrs": {"norm": "ortho"}},
        {"name": "odd", "inputs": [{"dtype": "f64", "shape": [2, 5, 2]}], "attrs": {"n": 9, "norm": "forward"}},
        {"name": "first_dim", "inputs": [{"dtype": "f64", "shape": [5, 3, 2]}], "attrs": {"dim": 0}},
        {"name": "no_rows", "inputs": [{"dtype": "f32", "shape": [0, 5, 2]}]},
        {"name": "symbolic", "inputs": [{"dtype": "f64", "shape": ["b", "m", 2]}], "attrs": {"n": "2 * m - 1"},
         "sizes": {"b": 2, "m": 6}}]})";
  static constexpr std::array<uint8_t, 16> uuid = {0x68, 0x8b, 0x82, 0x96, 0x6f, 0xd8, 0x47, 0x76,
                                                   0x83, 0xb5, 0x2c, 0xca, 0xb0, 0xd2, 0xce, 0x78};
  static void infer(Call &call) {
    std::vector<kiln_dim> x = complex_dims(call);
    const size_t axis = checked_axis(call, x);
    kiln_dim n = call.dim("n");
    if (n.expr == 0 && n.value == -1) n = call.parse("2 * (" + call.text(x[axis]) + " - 1)");
    require_some(call, n, "n");
    call.require_equal(x[axis], half_of(call, n), dim_name(axis) + " and n / 2 + 1");
    x[axis] = n;
    call.result(0, call.dtype(0), x);
  }
};

}  // namespace

const kiln_plugin *kiln_plugin_entry_v1(void) {
  return kiln::op::plugin<Fft, InverseFft, RealFft, InverseRealFft>("fft_ops");
}
