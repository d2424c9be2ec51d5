// A loop that does not end, in a branch: the host is asked, and ends it, on every backend.
#include <gtest/gtest.h>

#include <chrono>

#include "runtime/graph/json.h"
#include "tests/backend/backends.h"
#include "tests/backend/cuda_backend.h"

namespace kiln::testing {
namespace {

// While i > 0, (i - step, x + 1): for ever where the step is 0.
constexpr std::string_view counts = R"({"kiln":1,
  "inputs":[{"name":"p","type":{"dtype":"bool","shape":[]}},{"name":"i","type":{"dtype":"i64","shape":[]}},
            {"name":"x","type":{"dtype":"f32","shape":["n"]}},{"name":"step","type":{"dtype":"i64","shape":[]}}],
  "nodes":[{"name":"c","op":"cond","inputs":["p","i","x","step"],
            "attrs":{"then_graph":"loops","else_graph":"passes"}}],
  "outputs":[{"name":"y","value":"c"}],
  "graphs":{
    "loops":{"inputs":[{"name":"i","type":{"dtype":"i64","shape":[]}},{"name":"x","type":{"dtype":"f32","shape":["n"]}},
                       {"name":"step","type":{"dtype":"i64","shape":[]}}],
             "nodes":[{"name":"w","op":"while","inputs":["i","x","step"],
                       "attrs":{"cond_graph":"more","body_graph":"turn","carried":2}}],
             "outputs":[{"name":"y","value":"w:1"}]},
    "passes":{"inputs":[{"name":"i","type":{"dtype":"i64","shape":[]}},{"name":"x","type":{"dtype":"f32","shape":["n"]}},
                        {"name":"step","type":{"dtype":"i64","shape":[]}}],
              "nodes":[],"outputs":[{"name":"y","value":"x"}]},
    "more":{"inputs":[{"name":"i","type":{"dtype":"i64","shape":[]}},{"name":"x","type":{"dtype":"f32","shape":["n"]}},
                      {"name":"step","type":{"dtype":"i64","shape":[]}}],
            "nodes":[{"name":"zero","op":"full","inputs":[],"attrs":{"value":0,"dtype":"i64","shape":[]}},
                     {"name":"more","op":"gt","inputs":["i","zero"]}],
            "outputs":[{"name":"more","value":"more"}]},
    "turn":{"inputs":[{"name":"i","type":{"dtype":"i64","shape":[]}},{"name":"x","type":{"dtype":"f32","shape":["n"]}},
                      {"name":"step","type":{"dtype":"i64","shape":[]}}],
            "nodes":[{"name":"next","op":"sub","inputs":["i","step"]},
                     {"name":"one","op":"full","inputs":[],"attrs":{"value":1,"dtype":"f32","shape":[]}},
                     {"name":"more","op":"add","inputs":["x","one"]}],
            "outputs":[{"name":"i","value":"next"},{"name":"x","value":"more"}]}}})";

class EndlessLoops : public OnABackend {
 protected:
  Result<std::unique_ptr<Call>> call_that_tells(TellHost tell) const {
    KILN_ASSIGN(const GraphPtr graph, read_json(counts, builtin_ops()));
    KILN_ASSIGN(const Compiled compiled, compile_alone(graph, options_));
    return Call::create(compiled.executable, std::move(tell));
  }
  Status run(Call &call, int64_t turns, int64_t step) {
    const int64_t n = 3;
    return call.run(std::vector<ArrayRef>{{&predicate_, DType::boolean},
                                          {&turns, DType::i64},
                                          {x_, DType::f32, 1, &n},
                                          {&step, DType::i64},
                                          {y_, DType::f32, 1, &n}});
  }

  uint8_t predicate_ = 1;
  float x_[3] = {1, 2, 3}, y_[3] = {};
};

INSTANTIATE_TEST_SUITE_P(Backends, EndlessLoops, ::testing::Values("cpu", "reference", "cuda"),
                         [](const auto &test) { return std::string(test.param); });

TEST_P(EndlessLoops, EndWhenTheHostSaysSoAndTheCallCanBeRunAgain) {
  std::vector<std::string> loops;
  int64_t turns = 0;
  constexpr std::string_view loop = "loop 'c.then_graph.w', turn ";
  const auto call = call_that_tells([&](Event, std::string_view text) {
    EXPECT_EQ(text.substr(0, loop.size()), loop);
    const int64_t made = std::stoll(std::string(text.substr(loop.size())));
    EXPECT_GT(made, turns);
    loops.emplace_back(text);
    turns = made;
    return loops.size() == 3;
  });
  ASSERT_TRUE(call.ok()) << call.status().message();
  for (int again = 0; again < 2; ++again) {
    loops.clear();
    turns = 0;
    const auto begin = std::chrono::steady_clock::now();
    const Status status = run(**call, 1, 0);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(150));  // three times 50 ms
    EXPECT_EQ(status.code(), Code::cancelled) << status.message();
    EXPECT_NE(status.message().find(str_cat("in turn ", turns, " of loop 'c.then_graph.w'")), std::string::npos)
        << status.message();
    EXPECT_EQ(loops.size(), 3u);
    loops.clear();
    const Status ran = run(**call, 4, 1);
    EXPECT_TRUE(ran.ok()) << ran.message();
    EXPECT_TRUE(loops.empty()) << "a short loop tells nobody";
    EXPECT_EQ(y_[0], 5);
    EXPECT_EQ(y_[2], 7);
  }
}

TEST_P(EndlessLoops, AreEndedOfAClone) {
  const auto call = call_that_tells([](Event, std::string_view) { return true; });
  ASSERT_TRUE(call.ok()) << call.status().message();
  const auto clone = (*call)->clone();
  ASSERT_TRUE(clone.ok()) << clone.status().message();
  EXPECT_EQ(run(**clone, 1, 0).code(), Code::cancelled);
}

}  // namespace
}  // namespace kiln::testing
