// What a context tells of itself, and of what it would do.

#include <algorithm>

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

TEST(CompilePasses, TellsWhatWouldRunInOrderAndRunsNoneOfIt) {
  const host::Context context = host::make_context("off");
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  kiln_report *made = nullptr;
  ASSERT_OK(kiln_compile_passes(context.get(), graph.get(), nullptr, &made));
  const host::Report order(made);
  EXPECT_EQ(host::text(order, "backend"), "cpu");
  EXPECT_EQ(host::text(order, "bypass"), "cache off");
  std::vector<std::string> passes;
  uint64_t stages = 0;
  ASSERT_OK(kiln_report_count(made, "stages", 6, &stages));
  for (uint64_t i = 0; i < stages; ++i) {
    const std::string steps = "stages." + std::to_string(i) + ".steps";
    uint64_t count = 0;
    ASSERT_OK(kiln_report_count(made, steps.data(), steps.size(), &count));
    for (uint64_t k = 0; k < count; ++k) passes.push_back(host::text(order, steps + "." + std::to_string(k) + ".name"));
  }
  const auto cse = std::ranges::find(passes, "cse");
  EXPECT_NE(cse, passes.end());
  EXPECT_NE(std::find(cse, passes.end(), "remove_no_ops"), passes.end());
  EXPECT_EQ(count(context, "compiles.kernels_compiled") + count(context, "compiles.bypasses"), 0);
  EXPECT_FAILS(kiln_compile_passes(context.get(), nullptr, nullptr, &made), KILN_INVALID_ARGUMENT, "graph");
}

// A cache that is written where it lies, and an input whose old value is read too late; n is a symbol.
constexpr std::string_view writing = R"({"kiln": 1, "inputs": [
    {"name": "cache", "type": {"dtype": "f32", "shape": [4, 8]}}, {"name": "part", "type": {"dtype": "f32", "shape": [4, 1]}},
    {"name": "x", "type": {"dtype": "f32", "shape": ["n", 8]}}],
  "nodes": [{"name": "new", "op": "slice_scatter", "inputs": ["cache", "part"], "attrs": {"dim": 1, "start": 2, "end": 3}},
    {"name": "keep", "op": "copy_", "inputs": ["cache", "new"]},
    {"name": "b", "op": "softmax", "inputs": ["x"], "attrs": {"dim": 1}},
    {"name": "t", "op": "permute", "inputs": ["x"], "attrs": {"dims": [1, 0]}},
    {"name": "y", "op": "matmul", "inputs": ["b", "t"]}, {"name": "back", "op": "copy_", "inputs": ["x", "b"]}],
  "outputs": [{"name": "y", "value": "y"}]})";

TEST(CompileReport, TellsWhatIsMadeInPlaceAndOfEachCopyWhoseItIsAndWhy) {
  const kiln::test::TemporaryFolder folder;
  const host::Context context = host::make_context(folder.path());
  const host::Graph graph = host::parse(context.get(), writing);
  for (const char *lookup : {"MISS", "HIT"}) {
    const host::Compiled compiled = host::compile(context.get(), graph.get());
    ASSERT_EQ(compiled.error, host::Error());
    EXPECT_EQ(host::text(compiled.report, "lookup"), lookup);
    EXPECT_EQ(host::i64(compiled.report, "in_place.made"), 2) << "the cache's part, and the cache";
    EXPECT_EQ(host::i64(compiled.report, "in_place.missed"), 1);
    EXPECT_EQ(host::text(compiled.report, "in_place.missed_bytes"), "32*n");
    const auto copy = [&](std::string_view member) {
      return host::text(compiled.report, "in_place.copies.0." + std::string(member));
    };
    EXPECT_EQ(copy("bytes"), "32*n");
    EXPECT_EQ(copy("nodes.0.node") + " " + copy("nodes.0.op"), "back copy_");
    EXPECT_EQ(copy("why"), "read");
    EXPECT_EQ(copy("reason"), "the step of 't' reads later what it would overwrite");
    EXPECT_EQ(copy("plan"), "");
  }
}

TEST(Report, ANumberIsReadWhateverItIs) {
  const host::Context context = host::make_context("off");
  kiln_op op = 0;
  ASSERT_OK(kiln_op_find(context.get(), "clamp", 5, &op));
  kiln_report *made = nullptr;
  ASSERT_OK(kiln_op_describe(context.get(), op, &made));
  const host::Report report(made);
  double number = 0;
  EXPECT_OK(kiln_report_get_f64(made, "version", 7, &number));
  EXPECT_EQ(number, 1);
  EXPECT_FAILS(kiln_report_get_f64(made, "name", 4, &number), KILN_TYPE_MISMATCH, "name");
  EXPECT_FAILS(kiln_report_get_f64(made, "nowhere", 7, &number), KILN_UNKNOWN_NAME, "nowhere");
}

}  // namespace
