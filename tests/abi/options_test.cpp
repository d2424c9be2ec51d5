#include "host.h"
#include "tests/temporary_folder.h"

namespace {

class OptionsTest : public testing::Test {
 protected:
  OptionsTest() {
    kiln_options *made = nullptr;
    EXPECT_OK(kiln_options_create(&made));
    options.reset(made);
  }
  host::Options options;
  kiln_context *context = nullptr;
};

TEST_F(OptionsTest, UnknownNameTellsTheKnownOnes) {
  EXPECT_OK(kiln_options_set_i64(options.get(), "thread", 6, 1));
  EXPECT_FAILS(kiln_context_create(options.get(), nullptr, &context), KILN_UNKNOWN_NAME,
               "context has no option 'thread'; it has: cache, cache_max_bytes, load_symbols, pass_budget_ms, "
               "pass_failures, prepared, prepared_max_bytes, threads");
  EXPECT_EQ(context, nullptr);
}

TEST_F(OptionsTest, KindIsChecked) {
  EXPECT_OK(kiln_options_set_text(options.get(), "threads", 7, "2", 1));
  EXPECT_FAILS(kiln_context_create(options.get(), nullptr, &context), KILN_TYPE_MISMATCH,
               "option 'threads' of context is of kind i64, not text");
}

TEST_F(OptionsTest, RangeIsChecked) {
  EXPECT_OK(kiln_options_set_i64(options.get(), "threads", 7, -1));
  EXPECT_FAILS(kiln_context_create(options.get(), nullptr, &context), KILN_INVALID_ARGUMENT, "'threads' is -1");
}

TEST_F(OptionsTest, SettingAgainReplaces) {
  EXPECT_OK(kiln_options_set_i64(options.get(), "threads", 7, 7));
  EXPECT_OK(kiln_options_set_i64(options.get(), "threads", 7, 1));
  EXPECT_OK(kiln_options_set_text(options.get(), "cache", 5, "off", 3));
  ASSERT_OK(kiln_context_create(options.get(), nullptr, &context));
  const host::Context owned(context);
  EXPECT_EQ(host::i64(host::context_report(context), "threads"), 1);
  EXPECT_EQ(host::text(host::context_report(context), "cache"), "off");
}

TEST_F(OptionsTest, LibrariesAreListedByAbsolutePaths) {
  const kiln_text file{"libm.so.6", 9};
  const kiln_attr attr = host::attr("load_symbols", KILN_ATTR_TEXT | KILN_ATTR_LIST, 1, &file);
  EXPECT_OK(kiln_options_set(options.get(), &attr));
  EXPECT_FAILS(kiln_context_create(options.get(), nullptr, &context), KILN_INVALID_ARGUMENT,
               "option 'load_symbols' has 'libm.so.6', which is no absolute path");
}

TEST_F(OptionsTest, GraphsAreNoOptions) {
  const kiln_attr graph = host::attr("g", KILN_ATTR_GRAPH, 0, nullptr);
  EXPECT_FAILS(kiln_options_set(options.get(), &graph), KILN_INVALID_ARGUMENT, "an option's kind is");
}

TEST_F(OptionsTest, ModeMarkedWithoutAMarkIsAWarning) {
  std::vector<std::string> told;
  const kiln_event_sink sink = host::warnings_into(told);
  const kiln::test::TemporaryFolder folder;
  const host::Context owned = host::make_context(folder.path(), &sink);
  const auto compile_marked = [&](const host::Graph &graph) {
    return host::compile(owned.get(), graph.get(),
                         [](kiln_options *with) { EXPECT_OK(kiln_options_set_text(with, "mode", 4, "marked", 6)); });
  };
  const host::Graph bare = host::parse(owned.get(), host::small_graph);
  const host::Compiled compiled = compile_marked(bare);
  ASSERT_EQ(compiled.error, host::Error());
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0], "no node is marked for a region (kiln.region), so that nothing is compiled together");
  EXPECT_EQ(host::text(compiled.report, "warnings.0"), told[0]);
  const host::Compiled again = compile_marked(bare);
  EXPECT_EQ(host::text(again.report, "lookup"), "HIT");
  ASSERT_EQ(told.size(), 2u) << "a hit says it, too";
  EXPECT_EQ(host::text(again.report, "warnings.0"), told[1]);
  std::string json(host::small_graph);
  json.insert(json.find("\"inputs\": [\"once\"]"), "\"annotations\": {\"kiln.region\": {\"text\": \"r\"}}, ");
  const host::Graph marked = host::parse(owned.get(), json);
  EXPECT_EQ(compile_marked(marked).error, host::Error());
  EXPECT_EQ(told.size(), 2u) << "one is marked";
}

TEST_F(OptionsTest, TheOrderOfSplitAtMakesNoOtherKey) {
  const kiln::test::TemporaryFolder folder;
  const host::Context owned = host::make_context(folder.path());
  const host::Graph graph = host::parse(owned.get(), host::small_graph);
  const auto key = [&](std::vector<kiln_text> ops) {
    const host::Compiled compiled = host::compile(owned.get(), graph.get(), [&](kiln_options *with) {
      const kiln_attr split = host::attr("split_at", KILN_ATTR_TEXT | KILN_ATTR_LIST, ops.size(), ops.data());
      EXPECT_OK(kiln_options_set(with, &split));
    });
    EXPECT_EQ(compiled.error, host::Error());
    return host::text(compiled.report, "key");
  };
  const kiln_text sin{"sin", 3}, cos{"cos", 3};
  EXPECT_EQ(key({sin, cos}), key({cos, sin, cos}));
  EXPECT_NE(key({sin, cos}), key({sin}));
}

TEST_F(OptionsTest, UnknownPassToRunIsAnError) {
  const host::Context owned = host::make_context();
  const host::Graph graph = host::parse(owned.get(), host::small_graph);
  const host::Compiled compiled = host::compile(owned.get(), graph.get(), [](kiln_options *with) {
    const kiln_text name{"nothing", 7};
    const kiln_attr passes = host::attr("disable_passes", KILN_ATTR_TEXT | KILN_ATTR_LIST, 1, &name);
    EXPECT_OK(kiln_options_set(with, &passes));
  });
  EXPECT_EQ(compiled.error.code, KILN_UNKNOWN_NAME);
  EXPECT_NE(compiled.error.message.find("no pass is named 'nothing'"), std::string::npos);
}

}  // namespace
