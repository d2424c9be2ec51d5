// Compiles as fresh processes would do them: nothing is kept but the cache's folder.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compile.h"
#include "tests/temporary_folder.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln::test {

class Compiling : public testing::Test {
 protected:
  Result<Compiled> compile(const std::string &json, const CompileOptions &options = {}) {
    Cache cache(folder_.path(), 0);
    CompileEnvironment env{.ops = *ops_,
                           .passes = passes_,
                           .cache = cache_on_ ? &cache : nullptr,
                           .pool = std::make_shared<ThreadPool>(2),
                           .later = later_};
    report_ = {};
    return kiln::compile(env, graph_of(json), options, report_);
  }

  void expect(Outcome outcome, std::string_view reason_part, const std::string &json,
              const CompileOptions &options = {}) {
    Result<Compiled> compiled = compile(json, options);
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    EXPECT_EQ(report_.lookup, outcome) << report_.reason;
    EXPECT_NE(report_.reason.find(reason_part), std::string::npos) << report_.reason;
  }
  bool ran(std::string_view pass) const {
    return std::ranges::any_of(report_.passes, [&](const PassRun &run) { return run.name == pass; });
  }

  const TemporaryFolder folder_;
  const OpTable *ops_ = &builtin_ops();
  PassList passes_ = PassList::built_in();
  bool cache_on_ = true;
  std::function<void(LaterEntry)> later_;  // what is given the entries that are not made at once
  CompileReport report_;
};

// A run of a graph whose inputs and one output are f32 of one dim, all as long as the first.
inline std::vector<float> run(const Compiled &compiled, std::vector<std::vector<float>> inputs) {
  Result<std::unique_ptr<Call>> call = Call::create(compiled.executable);
  EXPECT_TRUE(call.ok()) << call.status().message();
  if (!call.ok()) return {};
  const int64_t size = static_cast<int64_t>(inputs[0].size());
  std::vector<float> out(inputs[0].size());
  std::vector<ArrayRef> args;
  for (auto &input : inputs) args.push_back({input.data(), DType::f32, 1, &size, nullptr});
  args.push_back({out.data(), DType::f32, 1, &size, nullptr});
  const Status status = (*call)->run(args);
  EXPECT_TRUE(status.ok()) << status.message();
  return out;
}

}  // namespace kiln::test
