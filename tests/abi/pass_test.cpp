// Passes of the host's own: identity, transaction, failure, ends of life.

#include <deque>
#include <functional>
#include <stdexcept>

#include "host.h"
#include "test_pass.h"
#include "tests/temporary_folder.h"

namespace {

using host::nothing;
using host::some_uuid;
using host::TestPass;

// Replaces neg(neg(x)) by x; `twice` is the outer one's name.
kiln_error *drop_negations(kiln_pass_call *call) {
  kiln_edit *edit = kiln_pass_edit(call);
  const kiln_graph *graph = kiln_edit_view(edit);
  kiln_node twice = 0;
  if (kiln_error *error = kiln_graph_find(graph, "twice", 5, &twice)) return error;
  const kiln_node once = kiln_node_input(graph, twice, 0) >> 32;
  if (kiln_error *error = kiln_edit_replace(edit, twice << 32, kiln_node_input(graph, once, 0))) return error;
  return kiln_pass_done(call, 1);
}

class PassTest : public testing::Test {
 protected:
  host::Error add(TestPass &pass) { return host::take(kiln_pass_register(context.get(), &pass.pass, nullptr, &id)); }
  host::Compiled compile() { return host::compile(context.get(), graph.get()); }
  TestPass &make(std::function<kiln_error *(kiln_pass_call *)> does) {
    return made_passes.emplace_back(std::move(does));
  }
  std::deque<TestPass> made_passes;  // outlive the context, which destroys what it owns at its end
  const kiln::test::TemporaryFolder folder;
  host::Context context = host::make_context();
  host::Graph graph = host::parse(context.get(), host::small_graph);
  uint64_t id = 0;
};

TEST_F(PassTest, RewritesAreReported) {
  TestPass &pass = make(drop_negations);
  ASSERT_EQ(add(pass), host::Error());
  const host::Compiled compiled = compile();
  ASSERT_EQ(compiled.error.code, KILN_OK) << compiled.error.message;
  EXPECT_EQ(host::i64(compiled.report, "passes_run.test"), 1);
}

TEST_F(PassTest, WhatItAskedForInVainIsInTheArtifact) {
  TestPass &pass = make([](kiln_pass_call *call) {
    kiln_op op = 0;
    kiln_error *error = kiln_op_find(kiln_pass_context(call), "acme_fma", 8, &op);
    EXPECT_EQ(kiln_error_code(error), KILN_UNKNOWN_NAME);
    kiln_error_destroy(error);
    return kiln_pass_done(call, 0);
  });
  ASSERT_EQ(add(pass), host::Error());
  const host::Compiled compiled = compile();
  ASSERT_EQ(compiled.error.code, KILN_OK) << compiled.error.message;
  const host::Report description = host::describe(compiled.executable.get());
  EXPECT_EQ(host::text(description, "uses.0.kind"), "backend");
  size_t place = 1;  // of ops, by name
  const auto told = [&](const char *what) {
    return host::text(description, "uses." + std::to_string(place) + "." + what);
  };
  while (told("name") < "acme_fma") ++place;
  EXPECT_EQ(told("name"), "acme_fma");
  EXPECT_EQ(told("identity"), "");
}

TEST_F(PassTest, OfStageLowerRunsOnARegion) {
  // y = neg(x) is in no region; the other two cancel, and the region's input is y.
  graph = host::parse(context.get(), R"({"kiln": 1,
      "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
      "nodes": [{"name": "y", "op": "neg", "inputs": ["x"]},
                {"name": "once", "op": "neg", "inputs": ["y"], "annotations": {"kiln.region": {"text": "r"}}},
                {"name": "twice", "op": "neg", "inputs": ["once"], "annotations": {"kiln.region": {"text": "r"}}},
                {"name": "z", "op": "abs", "inputs": ["twice"], "annotations": {"kiln.region": {"text": "r"}}}],
      "outputs": [{"name": "z", "value": "z"}]})");
  std::vector<std::string> seen;
  TestPass &pass = make([&](kiln_pass_call *call) {
    const kiln_graph *view = kiln_edit_view(kiln_pass_edit(call));
    kiln_node nodes[8] = {};
    uint64_t count = 0;
    EXPECT_OK(kiln_graph_nodes(view, nodes, 8, &count));
    for (uint64_t i = 0; i < count; i++) {
      kiln_text name{};
      EXPECT_OK(kiln_node_name(view, nodes[i], &name));
      seen.emplace_back(name.data, name.size);
      kiln_attr attr{};
      uint64_t annotations = 0;
      EXPECT_OK(kiln_node_annotations(view, nodes[i], &attr, 1, &annotations));
      EXPECT_EQ(annotations, 0u) << "marks have been obeyed";
    }
    return drop_negations(call);
  });
  pass.pass.stage = KILN_STAGE_LOWER;
  pass.identify();
  ASSERT_EQ(add(pass), host::Error());
  const host::Compiled compiled = host::compile(context.get(), graph.get(), [](kiln_options *options) {
    EXPECT_OK(kiln_options_set_text(options, "mode", 4, "marked", 6));
  });
  ASSERT_EQ(compiled.error.code, KILN_OK) << compiled.error.message;
  EXPECT_EQ(seen, (std::vector<std::string>{"in0", "once", "twice", "z"}));
  EXPECT_EQ(host::i64(compiled.report, "passes_run.test"), 1);
  uint64_t count = 0;
  EXPECT_OK(kiln_report_count(compiled.report.get(), "passes", 6, &count));
  uint64_t at = 0;
  const auto member = [&](const char *name) { return "passes." + std::to_string(at) + "." + name; };
  while (at < count && host::text(compiled.report, member("name")) != "test") ++at;
  EXPECT_EQ(host::text(compiled.report, member("stage")), "lower");
  EXPECT_EQ(host::text(compiled.report, member("digest")), host::text(compiled.report, "made." + member("digest")));
  EXPECT_EQ(host::text(compiled.report, "stages.3.stage"), "lower");
}

TEST_F(PassTest, OneOfStageLowerRunsOnPiecesThatDoNotSpeakOfAllSizes) {
  graph = host::parse(context.get(), R"({"kiln": 1, "inputs": [
      {"name": "x", "type": {"dtype": "f32", "shape": ["n", 8]}}, {"name": "y", "type": {"dtype": "f32", "shape": [8]}}],
      "nodes": [{"name": "a", "op": "cos", "inputs": ["y"]}, {"name": "b", "op": "sin", "inputs": ["a"]}],
      "outputs": [{"name": "o", "value": "b"}]})");
  TestPass &pass = make(nothing);
  pass.pass.stage = KILN_STAGE_LOWER;
  pass.identify();
  ASSERT_EQ(add(pass), host::Error());
  const host::Compiled compiled = host::compile(context.get(), graph.get(), [](kiln_options *options) {
    const kiln_text op{"cos", 3};
    const kiln_attr split = host::attr("split_at", KILN_ATTR_TEXT | KILN_ATTR_LIST, 1, &op);
    EXPECT_OK(kiln_options_set(options, &split));
  });
  EXPECT_EQ(compiled.error, host::Error());
  EXPECT_EQ(host::i64(compiled.report, "pieces_compiled"), 2);
}

TEST_F(PassTest, WithoutIdentityTheCacheIsBypassedByName) {
  context = host::make_context(folder.path());
  graph = host::parse(context.get(), host::small_graph);
  TestPass &pass = make(nothing);
  ASSERT_EQ(add(pass), host::Error());
  const host::Compiled compiled = compile();
  ASSERT_EQ(compiled.error.code, KILN_OK) << compiled.error.message;
  EXPECT_EQ(host::text(compiled.report, "lookup"), "BYPASS");
  EXPECT_NE(host::text(compiled.report, "reason").find("pass 'test'"), std::string::npos);

  const host::Compiled strict = host::compile(context.get(), graph.get(), [](kiln_options *options) {
    EXPECT_OK(kiln_options_set_bool(options, "strict", 6, 1));
  });
  EXPECT_NE(strict.error.code, KILN_OK);
  EXPECT_NE(strict.error.message.find("pass 'test'"), std::string::npos) << strict.error.message;
  EXPECT_EQ(strict.error.lookup, "BYPASS");
  EXPECT_NE(strict.error.reason.find("pass 'test'"), std::string::npos) << strict.error.reason;
}

TEST_F(PassTest, WithoutIdentityAndTimingOneWarningIsGiven) {
  std::vector<std::string> warnings;
  const kiln_event_sink sink = host::warnings_into(warnings);
  context = host::make_context("off", &sink);
  graph = host::parse(context.get(), host::small_graph);
  TestPass late(nothing, "late"), early(nothing, "eager"), timed(nothing, "timed"), identified(nothing, "identified");
  early.pass.stage = timed.pass.stage = KILN_STAGE_PRE_GRAD;
  timed.pass.timing = KILN_TIMING_EARLY;
  identified.identify();
  for (TestPass *pass : {&late, &early, &timed, &identified}) ASSERT_EQ(add(*pass), host::Error());
  for (int i = 0; i < 2; i++) EXPECT_EQ(compile().error, host::Error());
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings[0].find("pass 'late' of "), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("neither an identity nor a timing: compiles that run it do not use the cache"),
            std::string::npos)
      << warnings[0];
  EXPECT_NE(warnings[1].find("pass 'eager' of "), std::string::npos) << warnings[1];
  context = nullptr;  // before the passes, which it owns
}

TEST_F(PassTest, WithIdentityTheCacheIsUsed) {
  context = host::make_context(folder.path());
  graph = host::parse(context.get(), host::small_graph);
  TestPass &pass = make(nothing);
  pass.identify();
  ASSERT_EQ(add(pass), host::Error());
  EXPECT_EQ(host::text(compile().report, "lookup"), "MISS");
  EXPECT_OK(kiln_context_close(context.get()));  // the save is done

  context = host::make_context(folder.path());
  graph = host::parse(context.get(), host::small_graph);
  TestPass &again = make(nothing);
  again.identify();
  ASSERT_EQ(add(again), host::Error());
  const host::Compiled hit = compile();
  EXPECT_EQ(host::text(hit.report, "lookup"), "HIT");
  uint64_t passes = 9;
  EXPECT_OK(kiln_report_count(hit.report.get(), "passes_run", 10, &passes));
  EXPECT_EQ(passes, 0u);
  EXPECT_OK(kiln_context_close(context.get()));

  context = host::make_context(folder.path());
  graph = host::parse(context.get(), host::small_graph);
  TestPass &changed = make(nothing);
  changed.identify();
  changed.pass.version = "2";
  changed.pass.version_size = 1;
  ASSERT_EQ(add(changed), host::Error());
  EXPECT_EQ(host::text(compile().report, "lookup"), "MISS");
  EXPECT_OK(kiln_context_close(context.get()));
}

TEST_F(PassTest, ItsErrorFailsTheCompileAndNamesIt) {
  TestPass &pass = make([](kiln_pass_call *) { return kiln_error_create(KILN_IO, "no such file", 12, nullptr); });
  ASSERT_EQ(add(pass), host::Error());
  const host::Error error = compile().error;
  EXPECT_EQ(error.code, KILN_PLUGIN_FAILED);
  EXPECT_EQ(error.message, "pass 'test' of the host: failed: no such file");
  EXPECT_EQ(error.plugin, "the host");
  EXPECT_EQ(error.cause, "no such file");
  pass.body = nothing;  // the graph is as it was, and the context lives on
  EXPECT_EQ(compile().error.code, KILN_OK);
}

TEST_F(PassTest, ReturningWithoutDoneIsAFailure) {
  TestPass &pass = make([](kiln_pass_call *) -> kiln_error * { return nullptr; });
  ASSERT_EQ(add(pass), host::Error());
  const host::Error error = compile().error;
  EXPECT_EQ(error.code, KILN_PLUGIN_FAILED);
  EXPECT_NE(error.message.find("returned without saying that it is done"), std::string::npos);
}

TEST_F(PassTest, WhatItThrowsIsAnError) {
  TestPass &pass = make([](kiln_pass_call *) -> kiln_error * { throw std::runtime_error("out of luck"); });
  ASSERT_EQ(add(pass), host::Error());
  EXPECT_NE(compile().error.message.find("it threw an exception: out of luck"), std::string::npos);
}

TEST_F(PassTest, ChangingTheSignatureIsRefused) {
  TestPass &pass = make([](kiln_pass_call *call) {
    kiln_value input = 0;
    uint64_t count = 0;
    kiln_edit *edit = kiln_pass_edit(call);
    EXPECT_OK(kiln_graph_signature(kiln_edit_view(edit), KILN_SIDE_INPUTS, &input, 1, &count));
    const kiln_text name{"other", 5};
    EXPECT_OK(kiln_edit_outputs(edit, &input, &name, 1));
    return kiln_pass_done(call, 1);
  });
  ASSERT_EQ(add(pass), host::Error());
  const host::Error error = compile().error;
  EXPECT_EQ(error.code, KILN_INVARIANT);
  EXPECT_NE(error.message.find(
                "pass 'test' of the host: invariant 'signature' broken by the graph: output 0 was 'y' and is 'other'"),
            std::string::npos)
      << error.message;
}

TEST_F(PassTest, ItsOwnEditIsNotItsToFinish) {
  TestPass &pass = make([](kiln_pass_call *call) {
    kiln_graph *finished = nullptr;
    EXPECT_FAILS(kiln_edit_finish(kiln_pass_edit(call), &finished), KILN_INVALID_ARGUMENT, "a pass's own");
    kiln_edit_destroy(kiln_pass_edit(call));  // does nothing: it is the host's
    return kiln_pass_done(call, 0);
  });
  ASSERT_EQ(add(pass), host::Error());
  EXPECT_EQ(compile().error.code, KILN_OK);
}

TEST_F(PassTest, AReplacementGraphTakesTheEditsPlace) {
  TestPass &pass = make([](kiln_pass_call *call) {
    kiln_graph *own = host::parse(kiln_pass_context(call), host::small_graph).release();
    if (kiln_error *error = kiln_pass_replace_graph(call, own)) return error;
    return kiln_pass_done(call, 1);
  });
  ASSERT_EQ(add(pass), host::Error());
  EXPECT_EQ(compile().error.code, KILN_OK);
  EXPECT_EQ(host::i64(host::context_report(context.get()), "handles.graphs"), 1) << "taken over, and gone";
}

TEST_F(PassTest, OptionsHaveDefaultsAndAreChecked) {
  const int64_t depth = 3;
  const kiln_attr schema = host::attr("depth", KILN_ATTR_I64, 1, &depth);
  int64_t seen = 0;
  TestPass &pass = make([&seen](kiln_pass_call *call) {
    kiln_attr value{};
    if (kiln_error *error = kiln_pass_option(call, "depth", 5, &value)) return error;
    seen = *static_cast<const int64_t *>(value.data);
    EXPECT_FAILS(kiln_pass_option(call, "width", 5, &value), KILN_UNKNOWN_NAME, "declared no option 'width'");
    return kiln_pass_done(call, 0);
  });
  pass.pass.options = &schema;
  pass.pass.option_count = 1;
  kiln_options *made = nullptr;
  ASSERT_OK(kiln_options_create(&made));
  const host::Options options(made);
  EXPECT_OK(kiln_options_set_i64(made, "width", 5, 1));
  EXPECT_FAILS(kiln_pass_register(context.get(), &pass.pass, made, &id), KILN_UNKNOWN_NAME,
               "pass 'test' has no option");
  ASSERT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, &id));
  EXPECT_EQ(compile().error.code, KILN_OK);
  EXPECT_EQ(seen, 3);
}

TEST_F(PassTest, LateWithoutIdentityIsRefused) {
  TestPass &pass = make(nothing);
  pass.pass.timing = KILN_TIMING_LATE;
  EXPECT_NE(add(pass).message.find("late, which needs an identity"), std::string::npos);
  EXPECT_EQ(pass.destroyed, 0) << "registering failed: the caller still owns it";
}

TEST_F(PassTest, AllZeroUuidIsRefused) {
  constexpr uint8_t zero[16] = {};
  TestPass &pass = make(nothing);
  pass.identify();
  pass.pass.uuid = zero;
  EXPECT_NE(add(pass).message.find("its UUID is all zero"), std::string::npos);
}

TEST_F(PassTest, AUuidWithoutAFileMustSuffice) {
  TestPass &pass = make(nothing);
  pass.pass.uuid = some_uuid;
  EXPECT_NE(add(pass).message.find("no file to hash: set KILN_PASS_UUID_SUFFICES"), std::string::npos);
}

TEST_F(PassTest, ANameIsTakenOnce) {
  TestPass &first = make(nothing), &second = make(nothing);
  ASSERT_EQ(add(first), host::Error());
  EXPECT_NE(add(second).message.find("the name is taken"), std::string::npos);
  EXPECT_OK(kiln_pass_unregister(context.get(), id));
  EXPECT_EQ(first.destroyed, 1);
  EXPECT_EQ(add(second), host::Error());
  EXPECT_FAILS(kiln_pass_unregister(context.get(), 12345), KILN_UNKNOWN_NAME, "12345");
}

TEST_F(PassTest, CloseDestroysOnce) {
  TestPass &pass = make(nothing);
  ASSERT_EQ(add(pass), host::Error());
  EXPECT_OK(kiln_context_close(context.get()));
  EXPECT_EQ(pass.destroyed, 1);
  graph.reset();
  context.reset();
  EXPECT_EQ(pass.destroyed, 1);
}

TEST_F(PassTest, UnknownStagesAndFlagsAreRefused) {
  TestPass &pass = make(nothing);
  pass.pass.stage = 9;
  EXPECT_NE(add(pass).message.find("no stage has number 9"), std::string::npos);
  pass.pass.stage = KILN_STAGE_POST_GRAD;
  pass.pass.flags = 64;
  EXPECT_NE(add(pass).message.find("unknown bits"), std::string::npos);
  pass.pass.flags = 0;
  pass.pass.timing = KILN_TIMING_EARLY;
  EXPECT_NE(add(pass).message.find("only passes of stage pre_grad can be early"), std::string::npos);
}

TEST_F(PassTest, AnEarlyPassIsKeyedByWhatItMade) {
  for (const char *expected : {"MISS", "HIT"}) {
    context = host::make_context(folder.path());
    graph = host::parse(context.get(), host::small_graph);
    TestPass &pass = make(drop_negations);
    pass.pass.stage = KILN_STAGE_PRE_GRAD;
    ASSERT_EQ(add(pass), host::Error());
    const host::Compiled compiled = compile();
    EXPECT_EQ(host::text(compiled.report, "lookup"), expected);
    EXPECT_EQ(host::i64(compiled.report, "passes_run.test"), 1) << "an early pass runs at every compile";
    EXPECT_OK(kiln_context_close(context.get()));
  }
}

TEST_F(PassTest, FingerprintsAreInTheKey) {
  struct Step {
    std::string_view fingerprint, lookup;
  };
  static std::string_view fingerprint;  // what the callback, a plain function, adds
  for (const Step &step : {Step{"a", "MISS"}, Step{"b", "MISS"}, Step{"a", "HIT"}}) {
    fingerprint = step.fingerprint;
    context = host::make_context(folder.path());
    graph = host::parse(context.get(), host::small_graph);
    TestPass &pass = make(nothing);
    pass.identify();
    pass.pass.fingerprint = [](void *, kiln_pass_call *call) {
      EXPECT_EQ(kiln_pass_edit(call), nullptr) << "a fingerprint changes nothing";
      return kiln_pass_fingerprint_add(call, fingerprint.data(), fingerprint.size());
    };
    ASSERT_EQ(add(pass), host::Error());
    EXPECT_EQ(host::text(compile().report, "lookup"), step.lookup);
    EXPECT_OK(kiln_context_close(context.get()));
  }
}

}  // namespace
