// Loads the hand-written artifacts, and arrays to call them with.
#pragma once
#include <gtest/gtest.h>

#include <numeric>

#include "runtime/exec/executable.h"
#include "runtime/plan/verify_plan.h"
#include "tests/unit/runtime/example_artifact.h"

namespace kiln::example {

class NoOps final : public OpTable {
 public:
  const OpSchema *find(std::string_view) const override { return nullptr; }
  std::string suggest(std::string_view) const override { return ""; }
};

inline Result<std::shared_ptr<const Executable>> try_load(Artifact artifact, std::string_view build_id = build) {
  KILN_TRY(verify_plan(artifact.plan, artifact.contracts, artifact.constants));
  return Executable::load(std::make_shared<const Artifact>(std::move(artifact)), NoOps(),
                          std::make_shared<ThreadPool>(2), build_id);
}
inline std::shared_ptr<const Executable> load(Artifact artifact) {
  auto loaded = try_load(std::move(artifact));
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  return std::move(loaded).value();
}
inline std::unique_ptr<Call> call_of(Artifact artifact) {
  return std::move(Call::create(load(std::move(artifact)))).value();
}

// A dense f32 array with the numbers first, first + 1, ...
struct Floats {
  explicit Floats(std::vector<int64_t> dims, float first = 0) : shape(std::move(dims)) {
    values.resize(static_cast<size_t>(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>())));
    std::iota(values.begin(), values.end(), first);
  }
  ArrayRef ref() { return {values.data(), DType::f32, static_cast<uint32_t>(shape.size()), shape.data(), nullptr}; }
  operator ArrayRef() { return ref(); }

  std::vector<int64_t> shape;
  std::vector<float> values;
};

// The elements of a dense output of f32, or of i64.
template <class T>
std::vector<T> elements_of(const Call::Taken &taken) {
  int64_t count = 1;
  for (int64_t dim : taken.shape) count *= dim;
  const auto *data = static_cast<const T *>(taken.data);
  return {data, data + count};
}
inline std::vector<float> floats_of(const Call::Taken &taken) { return elements_of<float>(taken); }
inline std::vector<int64_t> integers_of(const Call::Taken &taken) { return elements_of<int64_t>(taken); }

template <class... Arrays>
Status run(Call &call, Arrays &&...arrays) {
  const std::vector<ArrayRef> refs{ArrayRef(arrays)...};
  return call.run(refs);
}

}  // namespace kiln::example
