// What an author of passes relies on: the rule of storage, giving another graph, notes, progress and cancellation,
// blame, and handles that have ended.
#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <stdexcept>
#include <thread>

#include "host.h"
#include "test_pass.h"
#include "tests/paths.h"

namespace {

using host::nothing;
using host::TestPass;

// y = -(-x) and r, a view of it, are outputs.
constexpr std::string_view views_json = R"({"kiln": 1,
  "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [2, 2]}}],
  "nodes": [{"name": "once", "op": "neg", "inputs": ["x"]},
            {"name": "twice", "op": "neg", "inputs": ["once"]},
            {"name": "flat", "op": "reshape", "inputs": ["twice"], "attrs": {"shape": [4]}}],
  "outputs": [{"name": "y", "value": "flat"}]})";
constexpr std::string_view output_json = R"({"kiln": 1,
  "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [2, 2]}}],
  "nodes": [{"name": "once", "op": "neg", "inputs": ["x"]},
            {"name": "twice", "op": "neg", "inputs": ["once"]}],
  "outputs": [{"name": "y", "value": "twice"}]})";

kiln_error *drop_double_negation(kiln_pass_call *call) {
  kiln_edit *edit = kiln_pass_edit(call);
  const kiln_graph *graph = kiln_edit_view(edit);
  kiln_node twice = 0, x = 0;
  if (kiln_error *error = kiln_graph_find(graph, "twice", 5, &twice)) return error;
  if (kiln_error *error = kiln_graph_find(graph, "x", 1, &x)) return error;
  if (kiln_error *error = kiln_edit_replace(edit, twice << 32, x << 32)) return error;
  return kiln_pass_done(call, 1);
}

// Everything that the host is told; cancels or throws where `answer` says so.
struct Listener {
  std::vector<std::string> progress, warnings;
  std::function<int32_t(std::string_view)> answer = [](std::string_view) { return 0; };
  kiln_event_sink sink() {
    kiln_event_sink made{};
    made.struct_size = sizeof made;
    made.user = this;
    made.event = [](void *user, uint32_t kind, const char *text, uint64_t size) -> int32_t {
      auto &self = *static_cast<Listener *>(user);
      (kind == KILN_EVENT_WARNING ? self.warnings : self.progress).emplace_back(text, size);
      return self.answer({text, size});
    };
    return made;
  }
  bool heard(std::string_view text) const {
    return std::find(progress.begin(), progress.end(), text) != progress.end();
  }
};

class PassAuthor : public testing::Test {
 protected:
  PassAuthor() {
    const kiln_event_sink sink = listener.sink();
    context = host::make_context("off", &sink);
    graph = host::parse(context.get(), host::small_graph);
  }
  ~PassAuthor() override {
    graph.reset();
    context.reset();  // before the passes and the listener, which it calls
  }
  TestPass &add(std::function<kiln_error *(kiln_pass_call *)> does) {
    TestPass &pass = passes.emplace_back(std::move(does));
    EXPECT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, &id));
    return pass;
  }
  host::Compiled compile(std::string_view backend = "cpu") {
    return host::compile(context.get(), graph.get(), [&](kiln_options *options) {
      EXPECT_OK(kiln_options_set_text(options, "backend", 7, backend.data(), backend.size()));
    });
  }
  Listener listener;
  std::deque<TestPass> passes;
  host::Context context;
  host::Graph graph;
  uint64_t id = 0;
};

TEST_F(PassAuthor, AnOutputThatBecomesAnInputOrAViewOfOneIsCloned) {
  add(drop_double_negation);
  for (const std::string_view json : {output_json, views_json}) {
    graph = host::parse(context.get(), json);
    const host::Compiled compiled = compile();
    ASSERT_EQ(compiled.error, host::Error());
    EXPECT_EQ(host::i64(compiled.report, "passes.1.clones"), 1);
    kiln_call *made = nullptr;
    ASSERT_OK(kiln_call_create(compiled.executable.get(), &made));
    const host::Call call(made);
    const host::Array x({2, 2}, {1, 2, 3, 4}),
        y(json == views_json ? std::vector<int64_t>{4} : std::vector<int64_t>{2, 2}, {0, 0, 0, 0});
    const DLTensor *args[] = {&x.tensor, &y.tensor};
    ASSERT_OK(kiln_call_run(made, args, 2, nullptr));
    EXPECT_EQ(y.values, (std::vector<float>{1, 2, 3, 4}));
  }
}

TEST_F(PassAuthor, NothingIsClonedThatSharesNothing) {
  add(drop_double_negation);
  const host::Compiled compiled = compile();
  ASSERT_EQ(compiled.error, host::Error());
  int64_t clones = 0;
  EXPECT_FAILS(kiln_report_get_i64(compiled.report.get(), "passes.1.clones", 15, &clones), KILN_UNKNOWN_NAME, "clones");
}

TEST_F(PassAuthor, AnEditBegunFromItsViewMakesTheGraphThatItGives) {
  add([](kiln_pass_call *call) -> kiln_error * {
    kiln_edit *made = nullptr;
    const kiln_graph *view = kiln_edit_view(kiln_pass_edit(call));
    if (kiln_error *error = kiln_edit_begin(kiln_pass_context(call), view, &made)) return error;
    const host::Edit edit(made);
    kiln_node twice = 0, x = 0;
    if (kiln_error *error = kiln_graph_find(kiln_edit_view(made), "twice", 5, &twice)) return error;
    if (kiln_error *error = kiln_graph_find(kiln_edit_view(made), "x", 1, &x)) return error;
    if (kiln_error *error = kiln_edit_replace(made, twice << 32, x << 32)) return error;
    kiln_graph *finished = nullptr;
    if (kiln_error *error = kiln_edit_finish(made, &finished)) return error;
    if (kiln_error *error = kiln_pass_replace_graph(call, finished)) return error;
    return kiln_pass_done(call, 1);
  });
  const host::Compiled compiled = compile();
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_EQ(host::i64(compiled.report, "passes.1.nodes_before"), 5);
  EXPECT_EQ(host::i64(compiled.report, "passes.1.nodes_after"), 3);
  EXPECT_EQ(host::i64(host::context_report(context.get()), "handles.live"), 2) << "graph and executable";
}

TEST_F(PassAuthor, NotesAndWarningsAreInTheReportAndToldToTheHost) {
  add([](kiln_pass_call *call) -> kiln_error * {
    EXPECT_OK(kiln_pass_note(call, "found nothing", 13));
    EXPECT_OK(kiln_pass_warn(call, "gave up", 7));
    return kiln_pass_done(call, 0);
  });
  const host::Compiled compiled = compile();
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_EQ(host::text(compiled.report, "passes.1.notes.0"), "found nothing");
  EXPECT_EQ(host::text(compiled.report, "passes.1.warnings.0"), "gave up");
  EXPECT_TRUE(listener.heard("pass 'test' of the host: found nothing"));
  EXPECT_EQ(listener.warnings.back(), "pass 'test' of the host: gave up");
}

TEST_F(PassAuthor, ProgressNamesEachPassAndCancelsBeforeIt) {
  add(nothing);
  ASSERT_EQ(compile().error, host::Error());
  EXPECT_TRUE(listener.heard("post_grad: pass 'cse'"));
  EXPECT_TRUE(listener.heard("post_grad: pass 'test' of the host"));
  listener.answer = [](std::string_view text) { return text == "post_grad: pass 'test' of the host"; };
  const host::Error error = compile().error;
  EXPECT_EQ(error.code, KILN_CANCELLED);
  EXPECT_EQ(error.message, "the compile was cancelled before pass 'test' of the host");
}

TEST_F(PassAuthor, AnEndlessPassThatCallsTheHostIsCancelled) {
  add([](kiln_pass_call *call) -> kiln_error * {
    const kiln_graph *view = kiln_edit_view(kiln_pass_edit(call));
    for (;;) {
      uint64_t count = 0;
      if (kiln_error *error = kiln_graph_nodes(view, nullptr, 0, &count)) {
        EXPECT_EQ(kiln_error_code(error), KILN_CANCELLED);
        kiln_error_destroy(error);
        EXPECT_EQ(kiln_node_kind(view, 1), 0u) << "it gets no more answers";
        return nullptr;
      }
    }
  });
  listener.answer = [](std::string_view text) { return text.substr(0, 6) == "inside"; };
  const host::Error error = compile().error;
  EXPECT_EQ(error.code, KILN_CANCELLED);
  EXPECT_EQ(error.message, "pass 'test' of the host: cancelled by the host while it ran");
}

TEST_F(PassAuthor, AnEventCallbackThatThrowsIsNamedAsWhatItIs) {
  add(nothing);
  listener.answer = [](std::string_view) -> int32_t { throw std::runtime_error("no terminal"); };
  host::Error error = compile().error;
  EXPECT_EQ(error.code, KILN_PLUGIN_FAILED);
  EXPECT_EQ(error.message, "sink->event of the host threw an exception: no terminal");
  listener.answer = [](std::string_view) -> int32_t { throw 7; };
  error = compile().error;
  EXPECT_EQ(error.code, KILN_PLUGIN_FAILED);
  EXPECT_EQ(error.message, "sink->event of the host threw an exception");
  listener.answer = [](std::string_view) { return 0; };
  EXPECT_EQ(compile().error, host::Error());
}

TEST_F(PassAuthor, ADestroyThatThrowsIsToldByClose) {
  TestPass &pass = passes.emplace_back(nothing);
  pass.pass.destroy = [](void *) { throw std::runtime_error("still in use"); };
  EXPECT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, &id));
  EXPECT_FAILS(kiln_context_close(context.get()), KILN_PLUGIN_FAILED,
               "destroy of pass 'test' of the host threw an exception: still in use");
}

TEST_F(PassAuthor, ADestroyThatThrowsAtUnregisteringIsAWarningOfTheNextCompile) {
  TestPass &pass = passes.emplace_back(nothing);
  pass.pass.destroy = [](void *) { throw 7; };
  EXPECT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, &id));
  EXPECT_OK(kiln_pass_unregister(context.get(), id));
  ASSERT_EQ(compile().error, host::Error());
  ASSERT_FALSE(listener.warnings.empty());
  EXPECT_EQ(listener.warnings.back(), "destroy of pass 'test' of the host threw an exception");
}

TEST_F(PassAuthor, HandlesThatAreKeptAfterRunAreRefused) {
  kiln_pass_call *call = nullptr;
  kiln_edit *edit = nullptr;
  const kiln_graph *view = nullptr;
  kiln_context *inner = nullptr;
  add([&](kiln_pass_call *given) {
    call = given, edit = kiln_pass_edit(given), view = kiln_edit_view(edit), inner = kiln_pass_context(given);
    return kiln_pass_done(given, 0);
  });
  ASSERT_EQ(compile().error, host::Error());
  uint64_t count = 0;
  kiln_op op = 0;
  EXPECT_FAILS(kiln_pass_done(call, 1), KILN_INVALID_ARGUMENT, "was destroyed");
  EXPECT_FAILS(kiln_edit_replace(edit, 1, 2), KILN_INVALID_ARGUMENT, "was destroyed");
  EXPECT_FAILS(kiln_graph_nodes(view, nullptr, 0, &count), KILN_INVALID_ARGUMENT, "was destroyed");
  EXPECT_FAILS(kiln_op_find(inner, "neg", 3, &op), KILN_INVALID_ARGUMENT, "was destroyed");
  EXPECT_EQ(kiln_pass_edit(call), nullptr);
  EXPECT_EQ(kiln_edit_view(edit), nullptr);
  EXPECT_EQ(kiln_node_kind(view, 1), 0u);
}

TEST_F(PassAuthor, TextsOfErrorsAreOneLineOfUtf8) {
  add([](kiln_pass_call *) { return kiln_error_create(KILN_IO, "a\nb\xff\x1b[2J", 8, nullptr); });
  EXPECT_EQ(compile().error.message, "pass 'test' of the host: failed: a\\x0ab\\xff\\x1b[2J");
  passes.front().body = [](kiln_pass_call *) -> kiln_error * { throw std::runtime_error("c\nd"); };
  EXPECT_EQ(compile().error.message, "pass 'test' of the host: failed: it threw an exception: c\\x0ad");
}

TEST_F(PassAuthor, TheReferenceWarnsThatPassesAreLeftOut) {
  add(nothing);
  const host::Compiled compiled = compile("reference");
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_EQ(listener.warnings.back(), "backend reference runs the graph as given, without pass 'test' of the host");
  EXPECT_EQ(host::text(compiled.report, "warnings.0"), listener.warnings.back());
}

TEST_F(PassAuthor, TwoPassesOfOneUuidAreRefused) {
  TestPass first(nothing, "first"), second(nothing, "second");
  first.identify();
  second.identify();
  uint64_t registered = 0;
  EXPECT_OK(kiln_pass_register(context.get(), &first.pass, nullptr, &registered));
  EXPECT_FAILS(kiln_pass_register(context.get(), &second.pass, nullptr, &id), KILN_INVALID_ARGUMENT,
               "pass 'second' of the host: its UUID is that of pass 'first' of the host");
  EXPECT_OK(kiln_pass_unregister(context.get(), registered));
}

TEST_F(PassAuthor, AChangeWhileAnotherThreadChangesAnEditIsBusy) {
  kiln_edit *made = nullptr;
  ASSERT_OK(kiln_edit_begin(context.get(), graph.get(), &made));
  const host::Edit edit(made);
  kiln_op neg = 0;
  kiln_node once = 0;
  ASSERT_OK(kiln_op_find(context.get(), "neg", 3, &neg));
  ASSERT_OK(kiln_graph_find(graph.get(), "once", 4, &once));
  std::atomic<uint64_t> added = 0;
  const auto work = [&] {
    for (int i = 0; i < 2000; i++) {
      const kiln_value x = once << 32;
      kiln_node out = 0;
      const host::Error error = host::take(kiln_edit_add(made, neg, nullptr, 0, &x, 1, nullptr, 0, &out));
      EXPECT_TRUE(error.code == KILN_OK || error.code == KILN_BUSY) << error;
      added += error.code == KILN_OK;
    }
  };
  std::thread other(work);
  work();
  other.join();
  uint64_t count = 0;
  EXPECT_OK(kiln_graph_nodes(kiln_edit_view(made), nullptr, 0, &count));
  EXPECT_EQ(count, 5 + added) << "none is lost, none is half there";
}

}  // namespace
