// Normal numbers: the backends and the reference are within 4 units in the last place, also where cosine and sine are
// near 0.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/ops/samples.h"
#include "tests/backend/backends.h"

namespace kiln::testing {
namespace {

double unit_of(double x, DType type) {
  if (type == DType::f32) {
    const float f = std::abs(static_cast<float>(x));
    return static_cast<double>(std::nextafter(f, INFINITY)) - static_cast<double>(f);
  }
  return std::nextafter(std::abs(x), INFINITY) - std::abs(x);
}

class Normal : public ::testing::TestWithParam<DType> {};

TEST_P(Normal, IsWithinFourUnitsOnEveryBackend) {
  const DType type = GetParam();
  const TensorData seed = ops::tensor_of<uint64_t>(DType::u64, {}, {12345}),
                   counter = ops::tensor_of<uint64_t>(DType::u64, {}, {0});
  const Result<Case> made = make_case(*find_op("normal"),
                                      {.inputs = {make_type(DType::u64, {}), make_type(DType::u64, {})},
                                       .attrs = {{"dtype", type}, {"shape", AttrValue(Shape{500'000})}},
                                       .given = {{0, seed}, {1, counter}}},
                                      1);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const Result<std::vector<TensorData>> expected = run_on_reference(*made->graph, made->arguments);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  const std::vector<double> reference = to_reference((*expected)[0]).f;
  for (const Backend &backend : compiled_backends()) {
    const Result<std::vector<TensorData>> results = backend.run(*made);
    ASSERT_TRUE(results.ok()) << backend.name << ": " << results.status().message();
    const std::vector<double> got = to_reference((*results)[0]).f;
    double worst = 0;
    for (size_t k = 0; k < got.size(); ++k)
      worst = std::max(worst, std::abs(got[k] - reference[k]) / unit_of(reference[k], type));
    EXPECT_LE(worst, 4) << backend.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Normal, ::testing::Values(DType::f32, DType::f64),
                         [](const auto &test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace kiln::testing
