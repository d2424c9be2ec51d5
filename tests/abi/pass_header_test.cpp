// kiln/pass.hpp, by plugins/author.cpp: y = sum(x) * 3, scaled by the pass's options.
#include "host.h"
#include "tests/paths.h"

namespace {

constexpr std::string_view sum_json = R"({"kiln": 1,
  "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [2, 2]}}],
  "constants": [{"name": "c", "type": {"dtype": "f32", "shape": []}, "data": [3]}],
  "nodes": [{"name": "s", "op": "sum", "inputs": ["x"], "attrs": {"dims": [1], "keepdim": true}},
            {"name": "p", "op": "mul", "inputs": ["c", "s"]}],
  "outputs": [{"name": "y", "value": "p"}]})";

class PassHeader : public testing::Test {
 protected:
  host::Error load(int64_t times) {
    kiln_options *made = nullptr;
    EXPECT_OK(kiln_options_create(&made));
    const host::Options options(made);
    EXPECT_OK(kiln_options_set_i64(made, "scale_outputs.times", 19, times));
    const std::string path = kiln::test::binary_dir + "/test_plugins/author.so";
    return host::take(kiln_plugin_load(context.get(), path.data(), path.size(), made));
  }
  host::Compiled compile() {
    const host::Graph graph = host::parse(context.get(), sum_json);
    return host::compile(context.get(), graph.get());
  }
  const host::Context context = host::make_context();
};

TEST_F(PassHeader, TwoPassesOfAPluginRewriteByTheirOptions) {
  ASSERT_EQ(load(2), host::Error());
  const host::Compiled compiled = compile();
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_EQ(host::i64(compiled.report, "passes_run.copy_sums"), 1);
  EXPECT_EQ(host::i64(compiled.report, "passes_run.scale_outputs"), 1);
  EXPECT_EQ(host::text(compiled.report, "passes.2.notes.0"), "scaled 1 outputs");
  kiln_call *made = nullptr;
  ASSERT_OK(kiln_call_create(compiled.executable.get(), &made));
  const host::Call call(made);
  const host::Array x({2, 2}, {1, 2, 3, 4}), y({2, 1}, {0, 0});
  const DLTensor *args[] = {&x.tensor, &y.tensor};
  ASSERT_OK(kiln_call_run(made, args, 2, nullptr));
  EXPECT_EQ(y.values, (std::vector<float>{36, 84}));
}

TEST_F(PassHeader, WarningsReachTheReport) {
  ASSERT_EQ(load(4), host::Error());
  const host::Compiled compiled = compile();
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_EQ(host::text(compiled.report, "passes.2.warnings.0"), "scaled more than three times");
}

TEST_F(PassHeader, AFailureOfTheRewriteIsThePassesError) {
  ASSERT_EQ(load(-1), host::Error());
  EXPECT_EQ(compile().error.message, "pass 'scale_outputs' of scale_outputs: failed: times is below 0");
  EXPECT_EQ(host::i64(host::context_report(context.get()), "passes_run.errors"), 1);
}

TEST_F(PassHeader, WhatTheRewriteThrowsIsToldApartFromItsErrors) {
  ASSERT_EQ(load(101), host::Error());
  EXPECT_EQ(compile().error.message, "pass 'scale_outputs' of scale_outputs: failed: times is above 100");
  const host::Report counted = host::context_report(context.get());
  EXPECT_EQ(host::i64(counted, "passes_run.threw"), 1);
  EXPECT_EQ(host::i64(counted, "passes_run.errors"), 0);
}

}  // namespace
