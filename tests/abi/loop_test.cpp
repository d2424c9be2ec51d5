// A run that sits in a loop: events tell of it, and end it.
#include "host.h"

namespace {

class LoopTest : public ::testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Backends, LoopTest, ::testing::Values("cpu", "reference"),
                         [](const auto &instance) { return std::string(instance.param); });

TEST_P(LoopTest, EventsTellOfItAndEndIt) {
  host::Told seen{.texts = {}, .ends_at = 2};
  const kiln_event_sink sink = host::told_into(seen, KILN_EVENT_LOOP);
  const host::Context context = host::make_context("off", &sink);
  const host::Graph graph = host::parse(context.get(), host::doubles);
  const host::Compiled compiled = host::compile(context.get(), graph.get(), [](kiln_options *options) {
    const std::string_view backend = GetParam();
    EXPECT_OK(kiln_options_set_text(options, "backend", 7, backend.data(), backend.size()));
  });
  ASSERT_EQ(compiled.error.code, KILN_OK) << compiled.error.message;
  kiln_call *made = nullptr;
  ASSERT_OK(kiln_call_create(compiled.executable.get(), &made));
  const host::Call call(made);

  host::Array x({}, {0}), y({}, {0});
  const DLTensor *args[] = {&x.tensor, &y.tensor};
  EXPECT_FAILS(kiln_call_run(call.get(), args, 2, nullptr), KILN_CANCELLED, "of loop 'w'");
  ASSERT_EQ(seen.texts.size(), 2u);
  for (const std::string &text : seen.texts) EXPECT_EQ(text.rfind("loop 'w', turn ", 0), 0u) << text;

  x.values[0] = 0.375f;
  ASSERT_OK(kiln_call_run(call.get(), args, 2, nullptr));
  EXPECT_EQ(y.values[0], 1.5f);
  EXPECT_EQ(seen.texts.size(), 2u) << "a loop of two turns tells nobody";

  // Clones and further runs ask likewise.
  ASSERT_OK(kiln_call_clone(call.get(), &made));
  const host::Call clone(made);
  x.values[0] = 0;
  seen.ends_at = 3;
  EXPECT_FAILS(kiln_call_run(clone.get(), args, 2, nullptr), KILN_CANCELLED, "of loop 'w'");
  void *const data[] = {x.values.data(), y.values.data()};
  seen.ends_at = 4;
  EXPECT_FAILS(kiln_call_run_data(call.get(), data, 2, nullptr), KILN_CANCELLED, "of loop 'w'");
}

}  // namespace
