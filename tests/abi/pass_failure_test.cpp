// What becomes of a compile one of whose passes fails, by the policy of its context; and how its failures are told
// apart.
#include <array>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

#include "asking_pass.h"
#include "tests/temporary_folder.h"

namespace {

using host::TestPass;

struct Failure {
  const char *name, *failed_by, *counted, *words;
  kiln_error *(*run)(kiln_pass_call *call);
};
void PrintTo(const Failure &failure, std::ostream *out) { *out << failure.name; }

kiln_error *throws(kiln_pass_call *call) {
  if (kiln_error *error = kiln_pass_note(call, "it tries", 8)) return error;
  throw std::runtime_error("it did");
}
kiln_error *fails(kiln_pass_call *call) {
  (void)host::take(host::scale_output(call, 2));
  return kiln_error_create(KILN_OUT_OF_RANGE, "it does", 7, nullptr);
}
kiln_error *passes_on_what_was_thrown(kiln_pass_call *) {
  return kiln_error_create(KILN_EXCEPTION, "it did", 6, nullptr);
}
kiln_error *dies_quietly(kiln_pass_call *) { return nullptr; }
kiln_error *never_ends(kiln_pass_call *call) {
  for (;;) {
    uint64_t count = 0;
    const kiln_graph *view = kiln_edit_view(kiln_pass_edit(call));
    if (kiln_error *error = kiln_graph_nodes(view, nullptr, 0, &count)) return error;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}
kiln_error *changes_the_signature(kiln_pass_call *call) {
  kiln_context *context = kiln_pass_context(call);
  const std::string_view json = host::small_graph;
  kiln_graph *other = nullptr;
  kiln_error *error = kiln_graph_parse(context, json.data(), json.size(), &other);
  if (!error) error = kiln_pass_replace_graph(call, other);
  return error ? error : kiln_pass_done(call, 1);
}

constexpr Failure failures[] = {
    {"Throw", "throw", "threw", "failed: it threw an exception: it did", throws},
    {"Caught", "throw", "threw", "failed: it did", passes_on_what_was_thrown},
    {"Error", "error", "errors", "failed: it does", fails},
    {"NotDone", "not done", "not_done", "returned without saying that it is done", dies_quietly},
    {"Budget", "budget", "over_budget", "took longer than its budget of 30 ms", never_ends},
    {"Invariant", "invariant", "invariants", "", changes_the_signature},
};

class PassFailure : public testing::TestWithParam<Failure> {
 protected:
  void open(std::string_view policy) {
    kiln_options *made = nullptr;
    ASSERT_OK(kiln_options_create(&made));
    const host::Options options(made);
    ASSERT_OK(kiln_options_set_text(made, "cache", 5, folder.path().data(), folder.path().size()));
    ASSERT_OK(kiln_options_set_text(made, "pass_failures", 13, policy.data(), policy.size()));
    ASSERT_OK(kiln_options_set_i64(made, "pass_budget_ms", 14, 30));
    kiln_context *handle = nullptr;
    ASSERT_OK(kiln_context_create(made, &sink, &handle));
    context.reset(handle);
    graph = host::parse(handle, host::scaled(3));
  }
  void add(std::function<kiln_error *(kiln_pass_call *)> body, const char *name, uint8_t uuid) {
    TestPass &pass = *passes.emplace_back(std::make_unique<TestPass>(std::move(body), name));
    uuids.push_back(std::make_unique<std::array<uint8_t, 16>>(std::array<uint8_t, 16>{uuid}));
    pass.pass.uuid = uuids.back()->data();
    pass.pass.flags = KILN_PASS_UUID_SUFFICES;
    ASSERT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, nullptr));
  }
  int64_t counted(const std::string &what) {
    return host::i64(host::context_report(context.get()), "passes_run." + what);
  }
  ~PassFailure() override {
    graph = nullptr;
    context = nullptr;  // before the passes, which it owns
  }

  const kiln::test::TemporaryFolder folder;
  std::vector<std::string> warnings;
  kiln_event_sink sink = host::warnings_into(warnings);
  std::vector<std::unique_ptr<TestPass>> passes;
  std::vector<std::unique_ptr<std::array<uint8_t, 16>>> uuids;
  host::Context context;
  host::Graph graph;
};

TEST_P(PassFailure, FailsTheCompileAndIsTold) {
  open("fail");
  add(GetParam().run, "bad", 1);
  kiln_executable *executable = nullptr;
  kiln_error *error = kiln_compile(context.get(), graph.get(), nullptr, &executable, nullptr);
  ASSERT_NE(error, nullptr);
  kiln_text by{};
  EXPECT_OK(kiln_report_get_text(kiln_error_report(error), "passes.1.failed_by", 18, &by));
  EXPECT_EQ(host::text_of(by), GetParam().failed_by);
  const host::Error told = host::take(error);
  EXPECT_EQ(told.message.find("pass 'bad' of the host: "), 0u) << told.message;
  EXPECT_NE(told.message.find(GetParam().words), std::string::npos) << told.message;
  EXPECT_EQ(counted(GetParam().counted), 1);
  EXPECT_EQ(counted("skipped"), 0);
}

TEST_P(PassFailure, IsSkippedWithAWarningAndWhatIsMadeIsNotSaved) {
  open("skip");
  add([](kiln_pass_call *call) { return host::scale_output(call, 2); }, "good", 1);
  add(GetParam().run, "bad", 2);
  add([](kiln_pass_call *call) { return host::scale_output(call, 5); }, "later", 3);
  add(host::nothing, "idle", 4);
  for (int i = 1; i <= 2; i++) {
    warnings.clear();
    const host::Compiled compiled = host::compile(context.get(), graph.get());
    ASSERT_EQ(compiled.error, host::Error());
    EXPECT_EQ(host::text(compiled.report, "lookup"), "MISS") << "what was made without a pass is nobody else's";
    EXPECT_EQ(host::run_scaled(compiled), 30);
    EXPECT_EQ(host::text(compiled.report, "passes.2.failed_by"), GetParam().failed_by);
    const std::string why = host::text(compiled.report, "passes.2.skipped");
    EXPECT_EQ(why.find("pass 'bad' of the host: "), 0u) << why;
    EXPECT_EQ(host::i64(compiled.report, "passes_run.bad"), 0);
    ASSERT_EQ(warnings.size(), 2u);
    EXPECT_EQ(warnings[0], "skipped: " + why);
    EXPECT_EQ(warnings[1], "not saved: pass 'bad' of the host was skipped");
    EXPECT_EQ(counted(GetParam().counted), i);
    EXPECT_EQ(counted("skipped"), i);
    EXPECT_EQ(counted("rewrote"), 2 * i);
    EXPECT_EQ(counted("unchanged"), i) << "idle alone";
  }
}
INSTANTIATE_TEST_SUITE_P(By, PassFailure, testing::ValuesIn(failures), [](const auto &at) { return at.param.name; });

class PassPolicy : public PassFailure {};
INSTANTIATE_TEST_SUITE_P(By, PassPolicy, testing::Values(failures[0]), [](const auto &at) { return at.param.name; });

TEST_P(PassPolicy, AnEarlyPassThatIsSkippedLeavesAGraphThatIsKeyedAsItIs) {
  for (const char *lookup : {"MISS", "HIT"}) {
    open("skip");
    TestPass &pass = *passes.emplace_back(std::make_unique<TestPass>(throws, "eager"));
    pass.pass.stage = KILN_STAGE_PRE_GRAD;
    pass.pass.timing = KILN_TIMING_EARLY;
    ASSERT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, nullptr));
    const host::Compiled compiled = host::compile(context.get(), graph.get());
    EXPECT_EQ(host::text(compiled.report, "lookup"), lookup);
    EXPECT_EQ(host::run_scaled(compiled), 3);
    EXPECT_EQ(counted("threw"), 1);
    graph = nullptr;
    context = nullptr;
  }
}

TEST_P(PassPolicy, OfPassesOnPiecesIsToldAndCountedAsOfOthers) {
  static constexpr std::array<uint8_t, 16> uuid = {1};
  const auto compile_in_pieces = [&](std::string_view policy) {
    open(policy);
    TestPass &pass = *passes.emplace_back(std::make_unique<TestPass>(throws, "low"));
    pass.pass.stage = KILN_STAGE_LOWER;
    pass.pass.uuid = uuid.data();
    pass.pass.flags = KILN_PASS_UUID_SUFFICES;
    EXPECT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, nullptr));
    graph = host::parse(context.get(), R"({"kiln": 1,
      "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
      "nodes": [{"name": "a", "op": "neg", "inputs": ["x"]}, {"name": "b", "op": "abs", "inputs": ["a"]},
                {"name": "y", "op": "exp", "inputs": ["b"]}], "outputs": [{"name": "y", "value": "y"}]})");
    return host::compile(context.get(), graph.get(), [](kiln_options *options) {
      const kiln_text op{"abs", 3};
      const kiln_attr attr = host::attr("split_at", KILN_ATTR_TEXT | KILN_ATTR_LIST, 1, &op);
      EXPECT_OK(kiln_options_set(options, &attr));
    });
  };
  const host::Compiled failed = compile_in_pieces("fail");
  EXPECT_NE(failed.error.message.find("pass 'low' of the host: "), std::string::npos) << failed.error.message;
  EXPECT_EQ(counted("threw"), 1);
  graph = nullptr;
  context = nullptr;

  warnings.clear();
  const host::Compiled skipped = compile_in_pieces("skip");
  ASSERT_EQ(skipped.error, host::Error());
  EXPECT_EQ(counted("threw"), 2) << "once a piece";
  EXPECT_EQ(counted("skipped"), 2);
  const std::string why = "pass 'low' of the host: failed: it threw an exception: it did";
  EXPECT_EQ(warnings, (std::vector<std::string>{"skipped: " + why, "skipped: " + why,
                                                "not saved: pass 'low' of the host was skipped"}));
  for (const std::string piece : {"0", "1"}) {
    const std::string pass = "pieces." + piece + ".passes.0.";
    EXPECT_EQ(host::text(skipped.report, pass + "skipped"), why);
    EXPECT_EQ(host::text(skipped.report, pass + "failed_by"), "throw");
    EXPECT_EQ(host::text(skipped.report, pass + "notes.0"), "it tries");
    EXPECT_EQ(host::text(skipped.report, "made.pieces." + piece + ".made.passes.0.skipped"), why);
  }
}

TEST_P(PassPolicy, AnUnknownOneIsRefusedWithThoseThereAre) {
  kiln_options *made = nullptr;
  ASSERT_OK(kiln_options_create(&made));
  const host::Options options(made);
  ASSERT_OK(kiln_options_set_text(made, "pass_failures", 13, "warn", 4));
  kiln_context *handle = nullptr;
  EXPECT_FAILS(kiln_context_create(made, nullptr, &handle), KILN_INVALID_ARGUMENT,
               "option 'pass_failures' is 'warn', expected one of fail, skip");
}

}  // namespace
