// Programs for some sizes beside the one for all, through the ABI: options, reports, files, and those made later.

#include <atomic>
#include <thread>

#include "host.h"
#include "tests/temporary_folder.h"

namespace {

constexpr std::string_view sums = R"({"kiln": 1, "symbols": {"n": {"min": 1, "max": 4096, "divisor": 2}},
  "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", "m"]}}],
  "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [1]}}],
  "nodes": [{"name": "p", "op": "mul", "inputs": ["x", "w"]}, {"name": "y", "op": "sum", "inputs": ["p"], "attrs": {"dims": [1]}}],
  "outputs": [{"name": "y", "value": "y"}]})";

host::Compiled compile_entries(kiln_context *context, std::vector<std::string_view> entries,
                               std::string_view when = "ahead", std::string_view json = sums) {
  const host::Graph graph = host::parse(context, json);
  return host::compile(context, graph.get(), [&](kiln_options *options) {
    std::vector<kiln_text> texts;
    for (std::string_view entry : entries) texts.push_back({entry.data(), entry.size()});
    const kiln_attr attr = host::attr("specialize", KILN_ATTR_TEXT | KILN_ATTR_LIST, texts.size(), texts.data());
    ASSERT_OK(kiln_options_set(options, &attr));
    ASSERT_OK(kiln_options_set_text(options, "specialize_when", 15, when.data(), when.size()));
  });
}

// A call with its parameter bound.
class Sums {
 public:
  explicit Sums(kiln_executable *executable) {
    kiln_call *made = nullptr;
    EXPECT_OK(kiln_call_create(executable, &made));
    call_.reset(made);
    EXPECT_OK(kiln_call_bind(made, 1, &w_.tensor));
  }
  // Which program ran, after it gave what it should.
  std::string run(int64_t n, int64_t m) {
    const host::Array x({n, m}, std::vector<float>(static_cast<size_t>(n * m), 1)),
        y({n}, std::vector<float>(static_cast<size_t>(n)));
    const DLTensor *args[] = {&x.tensor, &y.tensor};
    EXPECT_OK(kiln_call_run(call_.get(), args, 2, nullptr));
    EXPECT_EQ(y.values, std::vector<float>(static_cast<size_t>(n), static_cast<float>(3 * m)));
    return entry();
  }
  std::string entry() const {
    kiln_report *report = nullptr;
    EXPECT_OK(kiln_call_report(call_.get(), &report));
    return host::text(host::Report(report), "entry");
  }
  kiln_call *get() const { return call_.get(); }

 private:
  const host::Array w_{{1}, {3}};
  host::Call call_;
};

TEST(Entries, AnEventTellsWhenARunTakesAnotherProgramAndMayEndIt) {
  struct Told {
    std::vector<std::string> entries;
    bool ends = false;
  } told;
  kiln_event_sink sink{};
  sink.struct_size = sizeof sink;
  sink.kinds = 1u << KILN_EVENT_ENTRY;
  sink.user = &told;
  sink.event = [](void *user, uint32_t, const char *text, uint64_t size) -> int32_t {
    auto &self = *static_cast<Told *>(user);
    self.entries.emplace_back(text, size);
    return self.ends;
  };
  const host::Context context = host::make_context("off", &sink);
  const host::Compiled compiled = compile_entries(context.get(), {"n=4", "n=8"});
  ASSERT_EQ(compiled.error, host::Error());
  Sums call(compiled.executable.get());
  for (const auto &[n, m] : {std::pair(4, 1), {4, 1}, {4, 2}, {2, 2}, {6, 2}, {8, 2}, {4, 2}}) call.run(n, m);
  EXPECT_EQ(told.entries, (std::vector<std::string>{"entry 'n=4'", "entry 'general'", "entry 'n=8'", "entry 'n=4'"}));

  told.ends = true;
  const host::Array x({8, 1}, std::vector<float>(8, 1)), y({8}, std::vector<float>(8));
  const DLTensor *args[] = {&x.tensor, &y.tensor};
  for (int i = 0; i < 2; i++)
    EXPECT_FAILS(kiln_call_run(call.get(), args, 2, nullptr), KILN_CANCELLED, "cancelled the run of entry 'n=8'");
  EXPECT_EQ(y.values, std::vector<float>(8));
  told.ends = false;
  EXPECT_EQ(call.run(8, 1), "n=8");
  EXPECT_EQ(told.entries.size(), 7u);

  // Of what has no entries nothing is told.
  told.entries.clear();
  const host::Compiled plain = compile_entries(context.get(), {});
  EXPECT_EQ(Sums(plain.executable.get()).run(4, 1), "general");
  EXPECT_TRUE(told.entries.empty());
}

TEST(Entries, TheReportTellsWhatWasMadeAndTheCallWhatRan) {
  const kiln::test::TemporaryFolder folder;
  const host::Context context = host::make_context(folder.path());
  for (const std::string lookup : {"MISS", "HIT"}) {
    const host::Compiled compiled = compile_entries(context.get(), {"n=4", "m=3,n=8"});
    ASSERT_EQ(compiled.error, host::Error());
    EXPECT_EQ(host::text(compiled.report, "entries.0.name"), "n=4");
    EXPECT_EQ(host::text(compiled.report, "entries.1.name"), "m=3,n=8");
    EXPECT_EQ(host::text(compiled.report, "entries.1.guards.1.symbol"), "n");
    EXPECT_EQ(host::i64(compiled.report, "entries.1.guards.1.value"), 8);
    EXPECT_EQ(host::text(compiled.report, "entries.1.state"), "made");
    EXPECT_EQ(host::text(compiled.report, "entries.1.lookup"), lookup);
    EXPECT_EQ(host::i64(compiled.report, "entries.1.kernels_compiled"), lookup == "MISS" ? 1 : 0);
    const host::Report description = host::describe(compiled.executable.get());
    EXPECT_EQ(host::text(description, "entries.0.name"), "general");
    EXPECT_EQ(host::text(description, "entries.0.inputs.0.shape.0"), "n");
    EXPECT_EQ(host::text(description, "entries.2.name"), "m=3,n=8");
    EXPECT_EQ(host::i64(description, "entries.2.inputs.0.shape.0"), 8);
    EXPECT_NE(host::text(description, "entries.2.key"), host::text(description, "entries.0.key"));
    Sums call(compiled.executable.get());
    EXPECT_EQ(call.entry(), "");
    EXPECT_EQ(call.run(4, 5), "n=4");
    EXPECT_EQ(call.run(8, 3), "m=3,n=8");
    EXPECT_EQ(call.run(8, 4), "general");
    EXPECT_EQ(call.run(4, 1), "n=4");
  }
}

TEST(Entries, RunDataGoesOnWithTheProgramOfTheLastShapes) {
  const host::Context context = host::make_context();
  const host::Compiled compiled = compile_entries(context.get(), {"n=4"});
  Sums call(compiled.executable.get());
  EXPECT_EQ(call.run(4, 2), "n=4");
  float x[] = {1, 2, 3, 4, 5, 6, 7, 8}, y[4] = {};
  void *data[] = {x, y};
  ASSERT_OK(kiln_call_run_data(call.get(), data, 2, nullptr));
  EXPECT_EQ(call.entry(), "n=4");
  EXPECT_EQ(y[3], 45);
}

TEST(Entries, BackgroundOnesAreMadeByTheTimeTheContextIsClosed) {
  const kiln::test::TemporaryFolder folder;
  const host::Context context = host::make_context(folder.path());
  const host::Compiled compiled = compile_entries(context.get(), {"n=4"}, "background");
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_EQ(host::text(compiled.report, "entries.0.state"), "later");
  Sums call(compiled.executable.get());
  (void)call.run(4, 5);  // whichever there is
  ASSERT_OK(kiln_context_close(context.get()));
  EXPECT_EQ(host::text(host::describe(compiled.executable.get()), "entries.1.state"), "made");
  EXPECT_EQ(call.run(4, 5), "n=4");  // of the shapes of the last run, too
  // It is a record: another context finds it.
  const host::Context other = host::make_context(folder.path());
  EXPECT_EQ(host::text(compile_entries(other.get(), {"n=4"}).report, "entries.0.lookup"), "HIT");
}

TEST(Entries, LazyOnesAreMadeForTheSizesThatRunsMeet) {
  const host::Context context = host::make_context();
  const host::Compiled compiled = compile_entries(context.get(), {"n=4", "n=6"}, "lazy");
  Sums call(compiled.executable.get());
  EXPECT_EQ(call.run(8, 5), "general");
  EXPECT_EQ(call.run(4, 5), "general");  // no run waits for a compile
  ASSERT_OK(kiln_context_close(context.get()));
  EXPECT_EQ(call.run(4, 5), "n=4");
  EXPECT_EQ(call.run(6, 5), "general");  // the context is closed: nothing is made any more
  const host::Report description = host::describe(compiled.executable.get());
  EXPECT_EQ(host::text(description, "entries.1.state"), "made");
  EXPECT_EQ(host::text(description, "entries.2.state"), "later");
}

TEST(Entries, CallsOfSeveralThreadsSeeWhatIsMadeMeanwhile) {
  const host::Context context = host::make_context("off", nullptr, 2);
  const host::Compiled compiled = compile_entries(context.get(), {"n=4", "n=6", "m=3,n=8"}, "lazy");
  std::atomic<int> met = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      Sums call(compiled.executable.get());
      for (int i = 0; i < 100000 && met < 3; ++i) {
        const bool ran = call.run(4, 5) == "n=4", other = call.run(6, 5) == "n=6", both = call.run(8, 3) == "m=3,n=8";
        if (ran && other && both) {
          ++met;
          break;
        }
      }
    });
  for (std::thread &thread : threads) thread.join();
  EXPECT_EQ(met, 3);
}

// What could not be made is told by the next compile; the program for all sizes goes on.
TEST(Entries, OneThatCannotBeMadeLaterIsAWarning) {
  std::vector<std::string> warnings;
  const kiln_event_sink sink = host::warnings_into(warnings);
  const host::Context context = host::make_context("off", &sink);
  constexpr std::string_view json = R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}},
    {"name": "y", "type": {"dtype": "f32", "shape": ["m"]}}], "nodes": [{"name": "s", "op": "add", "inputs": ["x", "y"]}],
    "outputs": [{"name": "s", "value": "s"}]})";
  const host::Compiled compiled = compile_entries(context.get(), {"m=2,n=3"}, "background", json);
  ASSERT_EQ(compiled.error, host::Error());
  while (host::text(host::describe(compiled.executable.get()), "entries.1.state") == "later") std::this_thread::yield();
  EXPECT_EQ(host::text(host::describe(compiled.executable.get()), "entries.1.state"), "failed");
  while (warnings.empty()) (void)compile_entries(context.get(), {});
  EXPECT_NE(warnings[0].find("entry 'm=2,n=3' was not made: node 's': [add] "), std::string::npos) << warnings[0];
}

TEST(Entries, ArePackedIntoOneFileWithTheirProgram) {
  const kiln::test::TemporaryFolder folder;
  const std::string path = folder.file("sums.kiln");
  {
    const host::Context context = host::make_context();
    const host::Compiled compiled = compile_entries(context.get(), {"n=4"});
    ASSERT_OK(kiln_executable_save(compiled.executable.get(), path.data(), path.size(), nullptr));
  }
  const host::Context context = host::make_context();
  kiln_executable *loaded = nullptr;
  ASSERT_OK(kiln_executable_open(context.get(), path.data(), path.size(), nullptr, &loaded));
  const host::Executable owned(loaded);
  EXPECT_EQ(host::text(host::describe(loaded), "entries.1.name"), "n=4");
  Sums call(loaded);
  EXPECT_EQ(call.run(4, 5), "n=4");
  EXPECT_EQ(call.run(6, 5), "general");
}

TEST(Entries, TheGraphAfterPassesIsKept) {
  const kiln::test::TemporaryFolder folder;
  const host::Context context = host::make_context(folder.path());
  constexpr std::string_view json = R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
    "nodes": [{"name": "a", "op": "exp", "inputs": ["x"]}, {"name": "b", "op": "exp", "inputs": ["x"]},
              {"name": "c", "op": "add", "inputs": ["a", "b"]}], "outputs": [{"name": "c", "value": "c"}]})";
  std::string first;
  for (const char *lookup : {"MISS", "HIT"}) {
    const host::Compiled compiled = compile_entries(context.get(), {}, "ahead", json);
    EXPECT_EQ(host::text(compiled.report, "lookup"), lookup);
    kiln_blob *blob = nullptr;
    ASSERT_OK(kiln_executable_text(compiled.executable.get(), "graph", 5, &blob));
    const std::string text = host::bytes_of(blob);
    const host::Graph graph = host::parse(context.get(), text);
    kiln_report *report = nullptr;
    ASSERT_OK(kiln_graph_describe(graph.get(), &report));
    EXPECT_EQ(host::i64(host::Report(report), "nodes"), 2);  // one exp: passes have run
    EXPECT_NE(text.find(R"("name":"c","op":"add","inputs":["a","a"])"), std::string::npos) << text;
    if (first.empty()) first = text;
    EXPECT_EQ(text, first);
  }
}

}  // namespace
