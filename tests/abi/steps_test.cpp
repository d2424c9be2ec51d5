// Runs whose steps are timed and told (KILN_RUN_STEPS), and ended between them.
#include "host.h"

namespace {

class StepsTest : public testing::Test {
 protected:
  host::Call open(std::string_view json, bool fuse) {
    const kiln_event_sink sink = host::told_into(seen, KILN_EVENT_STEP);
    context = host::make_context("off", &sink);
    const host::Compiled compiled =
        host::compile(context.get(), host::parse(context.get(), json).get(), [&](kiln_options *options) {
          EXPECT_OK(kiln_options_set_bool(options, "fuse", 4, fuse));
          const kiln_text cancels{"remove_no_ops", 13};
          const kiln_attr off = host::attr("disable_passes", KILN_ATTR_TEXT | KILN_ATTR_LIST, 1, &cancels);
          EXPECT_OK(kiln_options_set(options, &off));
        });
    EXPECT_EQ(compiled.error, host::Error());
    kiln_call *call = nullptr;
    EXPECT_OK(kiln_call_create(compiled.executable.get(), &call));
    return host::Call(call);
  }
  static host::Report report_of(const host::Call &call) {
    kiln_report *report = nullptr;
    EXPECT_OK(kiln_call_report(call.get(), &report));
    return host::Report(report);
  }
  static uint64_t count_of(const host::Report &report) {
    uint64_t count = 0;
    return host::take(kiln_report_count(report.get(), "steps", 5, &count)).code == KILN_OK ? count : 0;
  }

  host::Told seen;
  host::Context context;
  const kiln_run_options timed{.struct_size = sizeof(kiln_run_options), .flags = KILN_RUN_STEPS, .stream = 0};
};

// The three nodes of host::small_graph, not fused; two of them would cancel.
class StepsOfThree : public StepsTest {
 protected:
  void SetUp() override {
    call = open(host::small_graph, false);
    ASSERT_OK(kiln_call_bind(call.get(), 1, &w.tensor));
  }
  kiln_error *run(const kiln_run_options *options) {
    y.values.assign(2, 0);
    return kiln_call_run(call.get(), args, 2, options);
  }

  host::Array w{{2}, {10, 20}}, x{{1, 2}, {1, 2}}, y{{1, 2}, {0, 0}};
  const DLTensor *const args[2] = {&x.tensor, &y.tensor};
  const std::vector<float> sum = {11, 22};
  host::Call call;
};

TEST_F(StepsOfThree, AreToldAsTheyEndAndTimedInTheReport) {
  ASSERT_OK(run(&timed));
  EXPECT_EQ(y.values, sum);
  ASSERT_EQ(seen.texts.size(), 3u);
  const host::Report report = report_of(call);
  ASSERT_EQ(count_of(report), 3u) << "a time for each";
  for (size_t i = 0; i < 3; ++i) {
    const std::string at = "steps." + std::to_string(i) + ".", number = std::to_string(i);
    EXPECT_EQ(host::text(report, at + "plan"), "");
    EXPECT_EQ(host::i64(report, at + "step"), static_cast<int64_t>(i));
    EXPECT_EQ(host::i64(report, at + "runs"), 1);
    EXPECT_EQ(seen.texts[i], "step " + number + ", " + std::to_string(host::i64(report, at + "ns")) +
                                 " ns: " + host::text(report, at + "what"));
    EXPECT_EQ(host::text(report, at + "what").rfind("kernel ", 0), 0u);
  }
}

TEST_F(StepsOfThree, AreNotToldWhereARunDoesNotAsk) {
  ASSERT_OK(run(&timed));
  ASSERT_OK(run(nullptr));
  EXPECT_EQ(y.values, sum);
  EXPECT_EQ(seen.texts.size(), 3u) << "of the first run";
  EXPECT_EQ(count_of(report_of(call)), 0u) << "the times are the last run's";
}

TEST_F(StepsOfThree, AreWhereTheHostEndsARun) {
  seen.ends_at = 2;
  EXPECT_FAILS(run(&timed), KILN_CANCELLED, "the host cancelled the run after step 1, ");
  EXPECT_EQ(seen.texts.size(), 2u);
  EXPECT_EQ(y.values, std::vector<float>(2)) << "what comes after it is not run";
  const DLTensor *out = nullptr;
  EXPECT_FAILS(kiln_call_output(call.get(), 2, &out), KILN_INVALID_ARGUMENT, "not computed");
  ASSERT_OK(run(&timed));
  EXPECT_EQ(y.values, sum) << "a later run works";
  EXPECT_EQ(count_of(report_of(call)), 3u);
}

TEST_F(StepsOfThree, AreNotOfARunInFlight) {
  kiln_run_options early = timed;
  early.flags |= KILN_RUN_ASYNC;
  EXPECT_FAILS(run(&early), KILN_INVALID_ARGUMENT, "KILN_RUN_STEPS waits for each step");
  early.flags = KILN_RUN_STEPS;
  early.stream = 1;
  EXPECT_FAILS(run(&early), KILN_INVALID_ARGUMENT, "KILN_RUN_STEPS waits for each step");
  EXPECT_EQ(seen.texts.size(), 0u);
}

TEST_F(StepsTest, OfNestedPlansAreCountedOverAllTurns) {
  const host::Call call = open(host::doubles, true);
  host::Array x({}, {0.25f}), y({}, {0});
  const DLTensor *args[] = {&x.tensor, &y.tensor};
  ASSERT_OK(kiln_call_run(call.get(), args, 2, &timed));
  EXPECT_EQ(y.values[0], 2.0f);
  const host::Report report = report_of(call);
  ASSERT_EQ(count_of(report), 3u);
  EXPECT_EQ(host::text(report, "steps.0.plan"), "0");
  EXPECT_EQ(host::i64(report, "steps.0.runs"), 4) << "whether to go on: 0.25, 0.5, 1, 2";
  EXPECT_EQ(host::text(report, "steps.1.plan"), "1");
  EXPECT_EQ(host::i64(report, "steps.1.runs"), 3);
  EXPECT_EQ(host::text(report, "steps.2.plan"), "");
  EXPECT_EQ(host::text(report, "steps.2.what").rfind("while plan 0: plan 1", 0), 0u);
  EXPECT_GE(host::i64(report, "steps.2.ns"), host::i64(report, "steps.0.ns")) << "it has what is in it";
  ASSERT_EQ(seen.texts.size(), 8u);
  EXPECT_EQ(seen.texts[0].rfind("plan 0 step 0, ", 0), 0u) << seen.texts[0];
}

}  // namespace
