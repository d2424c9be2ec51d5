// What a context tells of itself.

#include "host.h"
#include "tests/temporary_folder.h"

namespace {

int64_t count(const host::Context &context, std::string_view what) {
  return host::i64(host::context_report(context.get()), what);
}

TEST(ContextReport, CountsCompilesByHowTheirLookupsEnded) {
  const kiln::test::TemporaryFolder folder;
  const host::Context context = host::make_context(folder.path());
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  const auto compile = [&](bool cache) {
    return host::compile(context.get(), graph.get(),
                         [&](kiln_options *options) { EXPECT_OK(kiln_options_set_bool(options, "cache", 5, cache)); })
        .error;
  };
  for (const bool cache : {true, true, true, false}) EXPECT_EQ(compile(cache), host::Error());

  EXPECT_EQ(count(context, "compiles.misses"), 1);
  EXPECT_EQ(count(context, "compiles.hits"), 2);
  EXPECT_EQ(count(context, "compiles.bypasses"), 1);
  EXPECT_EQ(count(context, "compiles.rejects"), 0);
  EXPECT_EQ(count(context, "compiles.kernels_compiled"), 2);
  ASSERT_OK(kiln_context_close(context.get()));
  EXPECT_EQ(count(context, "cache.saves"), 2) << "an artifact and a kernel";
}

TEST(ContextReport, ACompileThatFailsIsCountedAsThatAlone) {
  const host::Context context = host::make_context("off");
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  const auto strict = host::compile(context.get(), graph.get(), [](kiln_options *options) {
    EXPECT_OK(kiln_options_set_bool(options, "strict", 6, 1));
  });
  EXPECT_EQ(strict.error.code, KILN_INVALID_ARGUMENT) << strict.error;
  EXPECT_EQ(count(context, "compiles.failed"), 1);
  EXPECT_EQ(count(context, "compiles.bypasses"), 0);
}

}  // namespace
