// Kernels as fusion makes and schedules them, against the interpreter of kernel IR.
#include <map>
#include <random>

#include "tests/unit/jit/kernel/interpreter.h"
#include "tests/unit/jit/kernel/program_builder.h"
#include "tests/unit/jit/llvm/compiled_kernel.h"

namespace kiln::codegen::testing {
namespace {

using kernel::testing::Array;
using kernel::testing::ProgramBuilder;
using kernel::testing::Sizes;

// A program's launches, compiled.
class Compilation {
 public:
  Compilation(const Program &program, const Target &target) : program_(program) {
    Result<Fused> fused = fuse(program, target, {});
    EXPECT_TRUE(fused.ok()) << fused.status().message();
    if (!fused.ok()) return;
    fused_ = std::move(*fused);
    for (const Launch &launch : fused_.launches)
      kernels_.push_back(std::make_unique<LoadedKernel>(*launch.kernel, target));
  }

  void expect_interpreted(const Sizes &sizes, double tolerance) {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<Array> expected;
    for (const Tensor &tensor : program_.tensors) {
      Array &array = expected.emplace_back(count(tensor.dims, sizes));
      for (auto &element : array) element.f = uniform(random);
    }
    std::vector<std::vector<float>> memory;
    for (const Tensor &tensor : fused_.tensors) memory.emplace_back(count(tensor.dims, sizes));
    for (size_t t = 0; t < expected.size(); ++t)
      for (size_t k = 0; k < expected[t].size(); ++k) memory[t][k] = static_cast<float>(expected[t][k].f);

    kernel::testing::run(fused_, expected, sizes);
    for (size_t l = 0; l < fused_.launches.size(); ++l) {
      const Launch &launch = fused_.launches[l];
      std::vector<void *> buffers;
      for (uint32_t t : launch.buffers) buffers.push_back(memory[t].data());
      std::vector<int64_t> values;
      for (const std::string &symbol : launch.symbols) values.push_back(sizes.at(symbol));
      EXPECT_EQ(kernels_[l]->run(buffers, values), 0u);
    }
    for (size_t t = 0; t < program_.tensors.size(); ++t) {
      if (!program_.tensors[t].is_output) continue;
      for (size_t k = 0; k < memory[t].size(); ++k) {
        const double want = expected[t][k].f;
        ASSERT_NEAR(memory[t][k], want, tolerance * std::max(1.0, std::abs(want)))
            << "tensor " << t << " element " << k << "\n"
            << describe();
      }
    }
  }

 private:
  static size_t count(const Shape &dims, const Sizes &sizes) {
    return static_cast<size_t>(product_of(dims).evaluate([&](const std::string &s) { return sizes.at(s); }));
  }
  std::string describe() const {
    std::string text;
    for (const Launch &launch : fused_.launches) text += print(*launch.kernel);
    return text;
  }

  const Program &program_;
  Fused fused_;
  std::vector<std::unique_ptr<LoadedKernel>> kernels_;
};

const Expr n = Expr::symbol("n"), t = Expr::symbol("t");

void expect_everywhere(const ProgramBuilder &b, const std::vector<Sizes> &sizes, double tolerance = 1e-5) {
  at_every_level([&](const Target &target) {
    Compilation compilation(b.program, target);
    for (const Sizes &some : sizes) {
      SCOPED_TRACE(str_cat("n = ", some.at("n"), ", t = ", some.at("t")));
      compilation.expect_interpreted(some, tolerance);
    }
  });
}

TEST(FusedKernels, ComputeSoftmaxAtAnyRowLength) {
  ProgramBuilder b;
  const uint32_t x = b.input({n, 4, t});
  const uint32_t e = b.map(Core::exp, b.map(Core::sub, x, static_cast<int32_t>(b.reduce_last(Core::max, x))));
  b.output(b.map(Core::div, e, static_cast<int32_t>(b.reduce_last(Core::add, e))));
  expect_everywhere(b, {{{"n", 3}, {"t", 5}}, {{"n", 1}, {"t", 1}}, {{"n", 2}, {"t", 333}}, {{"n", 0}, {"t", 4}}});
}

TEST(FusedKernels, ComputeALinearLayerWithItsEpilogue) {
  ProgramBuilder b;
  const uint32_t x = b.input({n, t, 24}), w = b.input({40, 24}, true), bias = b.input({40}, true),
                 r = b.input({n, t, 40});
  const uint32_t h = b.map(Core::add, b.linear(x, w), static_cast<int32_t>(bias));
  b.output(b.map(Core::add, b.map(Core::tanh, h), static_cast<int32_t>(r)));
  expect_everywhere(b, {{{"n", 1}, {"t", 1}}, {{"n", 2}, {"t", 7}}, {{"n", 3}, {"t", 50}}, {{"n", 0}, {"t", 4}}});
}

TEST(FusedKernels, ComputeRandomPrograms) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const ProgramBuilder b = kernel::testing::random_program(seed);
    SCOPED_TRACE(str_cat("seed ", seed));
    expect_everywhere(b, {{{"n", 3}, {"t", 2}}, {{"n", 2}, {"t", 37}}}, 1e-4);
    if (HasFatalFailure()) return;
  }
}

// In the words of jit/llvm/optimize.cpp: an ordering of |x| and 0 selects, and what is selected is compared with 0.
TEST(Optimizer, ComparesMagnitudesWithZero) {
  const std::vector<float> x = {-1, -0.5f, 1, 2, 0, -0.0f, std::nanf(""), INFINITY, -INFINITY, 1e-40f, -1e-40f};
  at_every_level([&](const Target &target) {
    for (const Core order : {Core::lt, Core::le, Core::gt, Core::ge, Core::eq, Core::ne}) {
      for (const bool zero_first : {false, true}) {
        const auto holds = [&](float a, float b) {
          if (zero_first) std::swap(a, b);
          return order == Core::lt   ? a < b
                 : order == Core::le ? a <= b
                 : order == Core::gt ? a > b
                 : order == Core::ge ? a >= b
                 : order == Core::eq ? a == b
                                     : a != b;
        };
        for (const bool selects_x : {false, true}) {
          const LoadedKernel kernel(
              map_kernel(target,
                         [&](BodyBuilder &b, int value) {
                           const int zero = b.constant(DType::f32, 0), size = b.op(Core::abs, value);
                           const int is = zero_first ? b.op(order, zero, size) : b.op(order, size, zero);
                           const int picked =
                               selects_x ? b.op(Core::select, is, value, zero) : b.op(Core::select, is, zero, value);
                           const int below = b.op(Core::lt, picked, zero);
                           return b.op(Core::select, below, b.constant(DType::f32, 7), picked);
                         }),
              target);
          std::vector<float> in = x, y(x.size());
          kernel.run({in.data(), y.data()}, {static_cast<int64_t>(x.size())});
          for (size_t k = 0; k < x.size(); ++k) {
            const float picked = holds(std::abs(x[k]), 0) == selects_x ? x[k] : 0, expected = picked < 0 ? 7 : picked;
            EXPECT_TRUE(y[k] == expected || (y[k] != y[k] && expected != expected))
                << core_info(order).name << zero_first << selects_x << " of " << x[k] << " gives " << y[k];
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace kiln::codegen::testing
