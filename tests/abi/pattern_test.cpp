// Patterns of passes through the C interface: of the host's own, and of a plugin by kiln/pass.hpp.
#include <cmath>
#include <tuple>

#include "host.h"
#include "test_pass.h"
#include "tests/paths.h"
#include "tests/temporary_folder.h"

namespace {

// Of neg(neg(x)), which small_graph has.
constexpr std::string_view drop_neg = R"({"kiln": 1, "pattern": "drop_neg", "expected_matches": 1,
  "captures": [{"name": "x"}],
  "nodes": [{"name": "a", "op": "neg", "inputs": ["x"]}, {"name": "b", "op": "neg", "inputs": ["a"]}],
  "outputs": ["b"], "replacement": {"outputs": ["x"]}})";

kiln_pattern pattern_of(std::string_view json, kiln_error *(*rewrite)(void *, kiln_pass_call *) = nullptr) {
  kiln_pattern pattern{};
  pattern.struct_size = sizeof pattern;
  pattern.json = json.data();
  pattern.json_size = json.size();
  pattern.rewrite = rewrite;
  return pattern;
}

class PatternTest : public testing::Test {
 protected:
  // A pass of this one pattern, without a run.
  host::Error add(const kiln_pattern &pattern) {
    const kiln_pattern *row[] = {&pattern};
    kiln_pass pass{};
    pass.struct_size = sizeof pass;
    pass.stage = KILN_STAGE_POST_GRAD;
    pass.name = "patterns";
    pass.name_size = 8;
    pass.uuid = host::some_uuid;
    pass.flags = KILN_PASS_UUID_SUFFICES;
    pass.patterns = row;
    pass.pattern_count = 1;
    return host::take(kiln_pass_register(context.get(), &pass, nullptr, nullptr));
  }
  host::Compiled compile(std::string_view json, bool strict = false) {
    const host::Graph graph = host::parse(context.get(), json);
    return host::compile(context.get(), graph.get(), [&](kiln_options *options) {
      EXPECT_OK(kiln_options_set_bool(options, "strict", 6, strict));
    });
  }
  std::vector<std::string> warnings;
  kiln_event_sink sink = host::warnings_into(warnings);
  const kiln::test::TemporaryFolder folder;
  host::Context context = host::make_context(folder.path(), &sink);
};

TEST_F(PatternTest, APassWithoutARunIsItsPatterns) {
  ASSERT_EQ(add(pattern_of(drop_neg)), host::Error());
  const host::Compiled compiled = compile(host::small_graph);
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_EQ(host::i64(compiled.report, "passes_run.patterns"), 1);
  EXPECT_EQ(host::text(compiled.report, "passes.1.patterns.0.name"), "drop_neg");
  EXPECT_EQ(host::i64(compiled.report, "passes.1.patterns.0.matches"), 1);
  EXPECT_TRUE(warnings.empty());
}

TEST_F(PatternTest, APatternIsPartOfTheIdentity) {
  ASSERT_EQ(add(pattern_of(drop_neg)), host::Error());
  EXPECT_EQ(host::text(compile(host::small_graph).report, "lookup"), "MISS");
  EXPECT_EQ(host::text(compile(host::small_graph).report, "lookup"), "HIT");
  context = host::make_context(folder.path(), &sink);
  ASSERT_EQ(add(pattern_of(drop_neg)), host::Error());
  EXPECT_EQ(host::text(compile(host::small_graph).report, "lookup"), "HIT");
  context = host::make_context(folder.path(), &sink);
  std::string other(drop_neg);
  other.replace(other.find("drop_neg"), 8, "lose_neg");
  ASSERT_EQ(add(pattern_of(other)), host::Error());
  EXPECT_EQ(host::text(compile(host::small_graph).report, "lookup"), "MISS");
}

TEST_F(PatternTest, FewerMatchesThanExpectedAreAnEventAndUnderStrictAnError) {
  ASSERT_EQ(add(pattern_of(drop_neg)), host::Error());
  const std::string graph = host::scaled(3);
  const std::string told =
      "pass 'patterns': pattern 'drop_neg' has 0 matches, and expects 1 at least; kiln passes explain shows how near "
      "the "
      "graph came";
  for (const char *lookup : {"MISS", "HIT"}) {  // a hit says so, too
    warnings.clear();
    const host::Compiled compiled = compile(graph);
    ASSERT_EQ(compiled.error, host::Error());
    EXPECT_EQ(host::text(compiled.report, "lookup"), lookup);
    EXPECT_EQ(warnings, std::vector<std::string>{told});
    EXPECT_EQ(host::text(compiled.report, "warnings.0"), told);
  }
  const host::Error error = compile(graph, /*strict=*/true).error;
  EXPECT_EQ(error.code, KILN_INVALID_ARGUMENT);
  EXPECT_EQ(error.message, told);
}

TEST_F(PatternTest, AGraphThatANodeCarriesIsRewrittenWithItsOwnSymbols) {
  ASSERT_EQ(add(pattern_of(drop_neg)), host::Error());
  const host::Compiled compiled = compile(R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
    "nodes": [{"name": "c", "op": "call", "inputs": ["x"], "attrs": {"graph": "g"}}],
    "outputs": [{"name": "y", "value": "c"}],
    "graphs": {"g": {"inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["m"]}}],
      "nodes": [{"name": "a", "op": "neg", "inputs": ["x"]}, {"name": "b", "op": "neg", "inputs": ["a"]},
                {"name": "d", "op": "abs", "inputs": ["b"]}], "outputs": [{"name": "d", "value": "d"}]}}})");
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_EQ(host::i64(compiled.report, "passes_run.patterns"), 1);
  EXPECT_EQ(host::i64(compiled.report, "passes.1.runs"), 2);
}

TEST_F(PatternTest, AnOutputThatWouldShareStorageIsCloned) {
  ASSERT_EQ(add(pattern_of(drop_neg)), host::Error());
  const host::Compiled compiled = compile(R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [2]}}],
    "nodes": [{"name": "a", "op": "neg", "inputs": ["x"]}, {"name": "b", "op": "neg", "inputs": ["a"]}],
    "outputs": [{"name": "y", "value": "b"}]})");
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_EQ(host::i64(compiled.report, "passes.1.clones"), 1);
}

// Replaces the match by what it captured, once it has asked all that there is to ask.
kiln_error *by_function(void *, kiln_pass_call *call) {
  kiln_value x = 0;
  if (kiln_error *error = kiln_pass_match_value(call, "x", 1, &x)) return error;
  double number = 0;
  EXPECT_FAILS(kiln_pass_match_number(call, "x", 1, &number), KILN_TYPE_MISMATCH, "'x' is no scalar");
  EXPECT_FAILS(kiln_pass_match_value(call, "z", 1, &x), KILN_UNKNOWN_NAME, "has no 'z'");
  const kiln_value two[] = {x, x};
  EXPECT_FAILS(kiln_pass_match_replace(call, two, 2), KILN_INVALID_ARGUMENT, "2 values, and pattern 'drop_neg' has 1");
  return kiln_pass_match_replace(call, &x, 1);
}

std::string without_replacement() {
  std::string json(drop_neg);
  json.replace(json.find(R"(, "replacement")"), json.size(), "}");
  return json;
}

TEST_F(PatternTest, AFunctionTakesTheReplacementsPlace) {
  const std::string json = without_replacement();
  ASSERT_EQ(add(pattern_of(json, by_function)), host::Error());
  const host::Compiled compiled = compile(host::small_graph);
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_EQ(host::i64(compiled.report, "passes_run.patterns"), 1);
}

TEST_F(PatternTest, APlaceOfWhichAFunctionSaysNothingStays) {
  const std::string json = without_replacement();
  ASSERT_EQ(add(pattern_of(json, [](void *, kiln_pass_call *) -> kiln_error * { return nullptr; })), host::Error());
  EXPECT_EQ(host::i64(compile(host::small_graph).report, "passes_run.patterns"), 0);
  EXPECT_EQ(warnings.size(), 1u) << "what was left is no match";
}

TEST_F(PatternTest, WhatAFunctionThrowsIsNoErrorOfItsOwn) {
  const std::string json = without_replacement();
  for (const auto rewrite :
       {+[](void *, kiln_pass_call *) -> kiln_error * { throw std::runtime_error("it did"); },
        +[](void *, kiln_pass_call *) { return kiln_error_create(KILN_EXCEPTION, "it did", 6, nullptr); }}) {
    context = host::make_context(folder.path(), &sink);
    ASSERT_EQ(add(pattern_of(json, rewrite)), host::Error());
    const host::Error error = compile(host::small_graph).error;
    EXPECT_EQ(error.code, KILN_PLUGIN_FAILED);
    EXPECT_NE(error.message.find("it did"), std::string::npos) << error.message;
    const host::Report counted = host::context_report(context.get());
    EXPECT_EQ(host::i64(counted, "passes_run.threw"), 1);
    EXPECT_EQ(host::i64(counted, "passes_run.errors"), 0);
  }
}

TEST_F(PatternTest, WhatIsWrongIsSaidWhenThePassIsRegistered) {
  const std::string without = without_replacement();
  EXPECT_EQ(
      add(pattern_of(without)).message,
      "pass->patterns[0]: kiln_pass_register: pattern 'drop_neg' has no replacement, and pattern->rewrite is NULL");
  EXPECT_EQ(add(pattern_of(drop_neg, by_function)).code, KILN_INVALID_ARGUMENT);
  std::string unknown(drop_neg);
  unknown.replace(unknown.find("\"neg\""), 5, "\"nag\"");
  const host::Error error = add(pattern_of(unknown));
  EXPECT_EQ(error.code, KILN_UNKNOWN_NAME);
  EXPECT_TRUE(error.message.starts_with("pass->patterns[0]: nodes[0].op: unknown op 'nag'")) << error.message;
  kiln_pattern wrong = pattern_of(drop_neg);
  wrong.reserved0 = 1;
  EXPECT_EQ(add(wrong).code, KILN_INVALID_ARGUMENT);
}

TEST_F(PatternTest, CallsOutOfPlaceAreRefused) {
  host::TestPass pass([](kiln_pass_call *call) {
    kiln_value value = 0;
    EXPECT_FAILS(kiln_pass_match_value(call, "x", 1, &value), KILN_INVALID_ARGUMENT, "no match is being rewritten");
    EXPECT_FAILS(kiln_pass_apply_patterns(call, nullptr), KILN_INVALID_ARGUMENT, "the pass has no patterns");
    return kiln_pass_done(call, 0);
  });
  ASSERT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, nullptr));
  EXPECT_EQ(compile(host::small_graph).error, host::Error());
  context.reset();
}

TEST_F(PatternTest, ExplainTellsTheClosestPlaceAndWhatFailedThere) {
  ASSERT_EQ(add(pattern_of(drop_neg)), host::Error());
  const auto explain = [&](std::string_view json, std::string_view name = "patterns") {
    const host::Graph graph = host::parse(context.get(), json);
    kiln_report *report = nullptr;
    kiln_error *error = kiln_pass_explain(context.get(), graph.get(), nullptr, name.data(), name.size(), &report);
    return std::pair(host::take(error), host::Report(report));
  };
  auto [error, report] = explain(host::small_graph);
  ASSERT_EQ(error, host::Error());
  EXPECT_EQ(host::i64(report, "patterns.0.found"), 1);
  EXPECT_EQ(host::i64(report, "rewrites"), 1);
  EXPECT_EQ(host::text(report, "patterns.0.closest.node"), "once");
  EXPECT_EQ(host::text(report, "patterns.0.closest.failed"), "'a' is to be neg, and 'x' is no op's");
  std::tie(error, report) = explain(host::scaled(2));
  EXPECT_EQ(host::text(report, "patterns.0.closest.failed"), "no node is neg, at which the pattern begins");
  EXPECT_EQ(explain(host::small_graph, "pattern").first.code, KILN_UNKNOWN_NAME);
  EXPECT_EQ(explain(host::small_graph, "cse").first.code, KILN_INVALID_ARGUMENT);
}

TEST_F(PatternTest, APluginHasThemByPassHpp) {
  const std::string path = kiln::test::binary_dir + "/test_plugins/pattern_author.so";
  ASSERT_OK(kiln_plugin_load(context.get(), path.data(), path.size(), nullptr));
  const host::Compiled compiled = compile(R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [2]}}],
    "constants": [{"name": "three", "type": {"dtype": "f32", "shape": []}, "data": [3]},
                  {"name": "half", "type": {"dtype": "f32", "shape": []}, "data": [0.5]}],
    "nodes": [{"name": "s", "op": "sigmoid", "inputs": ["x"]}, {"name": "a", "op": "mul", "inputs": ["s", "x"]},
              {"name": "b", "op": "mul", "inputs": ["three", "a"]}, {"name": "c", "op": "mul", "inputs": ["b", "half"]}],
    "outputs": [{"name": "y", "value": "c"}]})");
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_EQ(host::i64(compiled.report, "passes_run.pattern_author"), 2);
  EXPECT_EQ(host::text(compiled.report, "passes.1.notes.0"), "rewrote 2");
  kiln_call *made = nullptr;
  ASSERT_OK(kiln_call_create(compiled.executable.get(), &made));
  const host::Call call(made);
  const host::Array x({2}, {0, 2}), y({2}, {-1, -1});
  const DLTensor *args[] = {&x.tensor, &y.tensor};
  ASSERT_OK(kiln_call_run(made, args, 2, nullptr));
  EXPECT_FLOAT_EQ(y.values[0], 0);
  EXPECT_NEAR(y.values[1], 2 * 1.5 / (1 + std::exp(-2.0)), 1e-5);
}

}  // namespace
