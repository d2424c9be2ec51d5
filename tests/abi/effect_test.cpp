// Effects: an op of the host's that notes its runs, and in which order tokens have them come.
#include <algorithm>
#include <stdexcept>

#include "rows.h"
#include "test_backend.h"
#include "test_effect.h"
#include "tests/temporary_folder.h"

namespace {

using host::TestEffect;
using Noted = std::vector<int64_t>;

// Inputs x f32[n] and p bool[]; outputs as given: "y": VALUE. Whatever comes behind, as members.
std::string effect_graph(const std::string &nodes, const std::string &outputs = "", const std::string &more = "") {
  return R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}},
      {"name": "p", "type": {"dtype": "bool", "shape": []}}], "nodes": [)" +
         nodes + R"(], "outputs": [)" + (outputs.empty() ? "" : R"({"name": "y", "value": ")" + outputs + R"("})") +
         "]" + more + "}";
}
const std::string begin = R"({"name": "t", "op": "token"})";
std::string node(const std::string &name, const std::string &op, const std::string &inputs,
                 const std::string &more = "") {
  return R"(, {"name": ")" + name + R"(", "op": ")" + op + R"(", "inputs": [)" + inputs + "]" + more + "}";
}
std::string note(int id, const std::string &inputs, const std::string &more = "") {
  return node("e" + std::to_string(id), "host.note", inputs, R"(, "attrs": {"id": )" + std::to_string(id) + "}" + more);
}
const std::string marked = R"(, "annotations": {"kiln.region": {"text": "r"}})";
const std::string cut = R"(, "annotations": {"kiln.cut": {"bool": true}})";

// y = |-x| + x: what e2 and e4 note was there at once, and each is last but for its token.
std::string effect_chain(const std::string &of_second = "") {
  return effect_graph(begin + node("a", "neg", R"("x")", marked) + note(1, R"("a", "t")") +
                          node("b", "abs", R"("e1")", marked) + note(2, R"("x", "e1:1")", of_second) +
                          note(3, R"("b", "e2:1")") + note(4, R"("x", "e3:1")") +
                          node("y", "add", R"("e3", "e2")", marked),
                      "y");
}
// Values that are only a node's first result have no number.
std::string numbered(std::string json) {
  for (const char *name : {"e1", "e2", "e3", "e4"}) {
    const std::string plain = std::string("\"") + name + "\"", is_name = "\"name\": " + plain;
    for (size_t at = 0; (at = json.find(plain, at)) != std::string::npos; at += plain.size())
      if (at < 8 || json.compare(at - 8, is_name.size(), is_name) != 0) json.insert(at + plain.size() - 1, ":0");
  }
  return json;
}

using Settings = std::vector<std::pair<std::string, std::string>>;  // texts; of split_at and specialize, a list of one
host::Compiled compile_effect(kiln_context *context, const std::string &json, const Settings &settings = {}) {
  const host::Graph graph = host::parse(context, numbered(json));
  return host::compile(context, graph.get(), [&](kiln_options *options) {
    for (const auto &[name, value] : settings) {
      const bool is_list = name == "split_at" || name == "specialize";
      const kiln_text text{value.data(), value.size()};
      const kiln_attr attr = host::attr(name, is_list ? KILN_ATTR_TEXT | KILN_ATTR_LIST : KILN_ATTR_TEXT, 1, &text);
      EXPECT_OK(kiln_options_set(options, &attr));
    }
  });
}

// x = 1, 2, ..., 5; gives y.
kiln_error *run_effect(kiln_call *call, std::vector<float> *out, uint8_t p = 1,
                       const kiln_run_options *options = nullptr) {
  const host::Array x({5}, {1, 2, 3, 4, 5}), y({5}, std::vector<float>(5));
  host::Bool predicate{p};
  const DLTensor *args[] = {&x.tensor, &predicate.tensor, &y.tensor};
  kiln_error *error = kiln_call_run(call, args, out ? 3 : 2, options);
  if (!error && options) error = kiln_call_wait(call);
  if (out) *out = y.values;
  return error;
}
const std::vector<float> doubled = {2, 4, 6, 8, 10};

// Runs it twice, and each time it notes the same.
void expect_noted(TestEffect &effect, const host::Compiled &compiled, const Noted &noted, bool has_output = true,
                  uint8_t p = 1) {
  ASSERT_EQ(compiled.error, host::Error());
  const host::Call call = host::make_call(compiled.executable);
  for (int i = 0; i < 2; ++i) {
    std::vector<float> y;
    ASSERT_OK(run_effect(call.get(), has_output ? &y : nullptr, p));
    EXPECT_EQ(effect.take(), noted);
    EXPECT_EQ(y, has_output ? doubled : std::vector<float>());
  }
}

struct EffectWay : host::Row {
  Settings settings;
  int64_t threads = 1;
};
const EffectWay effect_ways[] = {
    {"ModeAll", {}},
    {"ManyThreads", {}, 4},
    {"ModeMarked", {{"mode", "marked"}}},
    {"ModeExceptFallback", {{"mode", "except_fallback"}}},
    {"ModeNone", {{"mode", "none"}}},
    {"FallbackReference", {{"mode", "none"}, {"fallback", "reference"}}, 4},
    {"FallbackError", {{"mode", "except_fallback"}, {"fallback", "error"}}},
    {"OnTheReference", {{"backend", "reference"}}},
    {"PiecesAfterEffects", {{"split_at", "host.note"}}},
    {"PiecesAfterTokens", {{"split_at", "token"}}},
    {"PiecesBetween", {{"split_at", "abs"}, {"mode", "marked"}}},
    {"AProgramOfItsOwnForTheSize", {{"specialize", "n=5"}}},
};
class Effect : public testing::TestWithParam<EffectWay> {};
TEST_P(Effect, TokensOrderTheRuns) {
  TestEffect effect;
  const host::Context context = host::make_context("off", nullptr, GetParam().threads);
  effect.register_in(context.get());
  expect_noted(effect, compile_effect(context.get(), effect_chain(), GetParam().settings), {1, 2, 3, 4});
  expect_noted(effect, compile_effect(context.get(), effect_chain(cut), GetParam().settings), {1, 2, 3, 4});
}
TEST_P(Effect, OneThatNothingReadsIsKeptAndTwinsAreTwo) {
  TestEffect effect;
  const host::Context context = host::make_context("off", nullptr, GetParam().threads);
  effect.register_in(context.get());
  const std::string twin = node("twin", "host.note", R"("x", "t")", R"(, "attrs": {"id": 1})");
  const std::string json = effect_graph(begin + note(1, R"("x", "t")") + twin);
  expect_noted(effect, compile_effect(context.get(), json, GetParam().settings), {1, 1}, false);
}
TEST_P(Effect, AJoinedTokenWaitsForAll) {
  TestEffect effect;
  const host::Context context = host::make_context("off", nullptr, GetParam().threads);
  effect.register_in(context.get());
  const std::string json =
      effect_graph(begin + note(1, R"("x", "t")") + note(2, R"("x", "t")") + node("j", "token", R"("e2:1", "e1:1")") +
                       note(3, R"("x", "j")") + node("y", "add", R"("e3", "e3")"),
                   "y");
  const host::Compiled compiled = compile_effect(context.get(), json, GetParam().settings);
  ASSERT_EQ(compiled.error, host::Error());
  std::vector<float> y;
  ASSERT_OK(run_effect(host::make_call(compiled.executable).get(), &y));
  EXPECT_EQ(y, doubled);
  Noted noted = effect.take();
  ASSERT_EQ(noted.size(), 3u);
  EXPECT_EQ(noted.back(), 3);
  std::ranges::sort(noted);
  EXPECT_EQ(noted, (Noted{1, 2, 3}));
}

// A graph of a value v, or an element of a sequence, and a token: it notes v, and gives both.
std::string noting(const std::string &name, const std::string &shape, int id = -1) {
  return "\"" + name + R"(": {"inputs": [{"name": "at", "type": {"dtype": "token", "shape": []}},
      {"name": "v", "type": {"dtype": "f32", "shape": [)" +
         shape + R"(]}}], "nodes": [{"name": "e", "op": "host.note", "inputs": ["v", "at"], "attrs": {"id": )" +
         std::to_string(id) + R"(}}], "outputs": [{"name": "done", "value": "e:1"}, {"name": "w", "value": "e:0"}]})";
}
std::string passing(const std::string &name) {
  return "\"" + name + R"(": {"inputs": [{"name": "at", "type": {"dtype": "token", "shape": []}},
      {"name": "v", "type": {"dtype": "f32", "shape": ["n"]}}],
      "outputs": [{"name": "done", "value": "at"}, {"name": "w", "value": "v"}]})";
}

TEST_P(Effect, InALoopItRunsOnceATurnInOrder) {
  TestEffect effect;
  const host::Context context = host::make_context("off", nullptr, GetParam().threads);
  effect.register_in(context.get());
  const std::string scan =
      effect_graph(begin + note(10, R"("x", "t")") +
                       node("s", "scan", R"("e10:1", "x")", R"(, "attrs": {"body_graph": "turn", "carried": 1})") +
                       note(11, R"("x", "s:0")") + node("y", "add", R"("s:1", "x")"),
                   "y", R"(, "graphs": {)" + noting("turn", "") + "}");
  expect_noted(effect, compile_effect(context.get(), scan, GetParam().settings), {10, 1, 2, 3, 4, 5, 11});
  // While i < 3: notes i, and adds 1.
  const std::string loop = R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}},
      {"name": "p", "type": {"dtype": "bool", "shape": []}}],
      "constants": [{"name": "zero", "type": {"dtype": "f32", "shape": []}, "data": [0]}],
      "nodes": [{"name": "t", "op": "token"}, {"name": "w", "op": "while", "inputs": ["zero", "t"],
                 "attrs": {"cond_graph": "more", "body_graph": "turn"}},
                {"name": "e9", "op": "host.note", "inputs": ["x", "w:1"], "attrs": {"id": 9}},
                {"name": "y", "op": "add", "inputs": ["x", "e9:0"]}],
      "outputs": [{"name": "y", "value": "y"}], "graphs": {
      "more": {"inputs": [{"name": "i", "type": {"dtype": "f32", "shape": []}},
                          {"name": "at", "type": {"dtype": "token", "shape": []}}],
               "constants": [{"name": "three", "type": {"dtype": "f32", "shape": []}, "data": [3]}],
               "nodes": [{"name": "m", "op": "lt", "inputs": ["i", "three"]}], "outputs": [{"name": "m", "value": "m"}]},
      "turn": {"inputs": [{"name": "i", "type": {"dtype": "f32", "shape": []}},
                          {"name": "at", "type": {"dtype": "token", "shape": []}}],
               "constants": [{"name": "one", "type": {"dtype": "f32", "shape": []}, "data": [1]}],
               "nodes": [{"name": "e", "op": "host.note", "inputs": ["i", "at"]},
                         {"name": "next", "op": "add", "inputs": ["e:0", "one"]}],
               "outputs": [{"name": "i", "value": "next"}, {"name": "done", "value": "e:1"}]}}})";
  expect_noted(effect, compile_effect(context.get(), loop, GetParam().settings), {0, 1, 2, 9});
}

TEST_P(Effect, OnlyTheBranchThatIsTakenRuns) {
  TestEffect effect;
  const host::Context context = host::make_context("off", nullptr, GetParam().threads);
  effect.register_in(context.get());
  const std::string json = effect_graph(
      begin + note(1, R"("x", "t")") +
          node("c", "cond", R"("p", "e1:1", "x")", R"(, "attrs": {"then_graph": "yes", "else_graph": "no"})") +
          note(4, R"("x", "c:0")") + node("y", "add", R"("c:1", "x")"),
      "y", R"(, "graphs": {)" + noting("yes", R"("n")", 2) + ", " + passing("no") + "}");
  const host::Compiled compiled = compile_effect(context.get(), json, GetParam().settings);
  expect_noted(effect, compiled, {1, 2, 4});
  expect_noted(effect, compiled, {1, 4}, true, 0);
}

TEST_P(Effect, AGraphThatIsCalledTwiceRunsItTwice) {
  TestEffect effect;
  const host::Context context = host::make_context("off", nullptr, GetParam().threads);
  effect.register_in(context.get());
  const std::string call = R"(, "attrs": {"graph": "f"})";
  const std::string json =
      effect_graph(begin + node("c", "call", R"("t", "x")", call) + note(1, R"("x", "c:0")") +
                       node("d", "call", R"("e1:1", "x")", call) + node("y", "add", R"("c:1", "d:1")"),
                   "y", R"(, "graphs": {)" + noting("f", R"("n")", 7) + "}");
  expect_noted(effect, compile_effect(context.get(), json, GetParam().settings), {7, 1, 7});
  // Neither takes a token, and nothing reads what they yield.
  const std::string own = R"(, "graphs": {"f": {"inputs": [{"name": "v", "type": {"dtype": "f32", "shape": ["n"]}}],
      "nodes": [{"name": "t", "op": "token"}, {"name": "e", "op": "host.note", "inputs": ["v", "t"], "attrs": {"id": 8}}],
      "outputs": [{"name": "w", "value": "e:0"}]}})";
  expect_noted(effect,
               compile_effect(
                   context.get(),
                   effect_graph(begin + node("c", "call", R"("x")", call) + node("d", "call", R"("x")", call), "", own),
                   GetParam().settings),
               {8, 8}, false);
}

TEST_P(Effect, AFailureEndsTheRunBeforeLaterOnes) {
  TestEffect effect;
  const host::Context context = host::make_context("off", nullptr, GetParam().threads);
  effect.register_in(context.get());
  const host::Compiled compiled = compile_effect(context.get(), effect_chain(), GetParam().settings);
  ASSERT_EQ(compiled.error, host::Error());
  const host::Call call = host::make_call(compiled.executable);
  effect.on_run = [](int64_t id) {
    return id == 3 ? kiln_error_create(KILN_OUT_OF_RANGE, "no room", 7, nullptr) : nullptr;
  };
  std::vector<float> y;
  EXPECT_FAILS(run_effect(call.get(), &y), KILN_OUT_OF_RANGE, "[host.note] no room");
  EXPECT_EQ(effect.take(), (Noted{1, 2}));
  effect.on_run = {};
  ASSERT_OK(run_effect(call.get(), &y));
  EXPECT_EQ(effect.take(), (Noted{1, 2, 3, 4}));
  EXPECT_EQ(y, doubled);
}
INSTANTIATE_TEST_SUITE_P(Abi, Effect, testing::ValuesIn(effect_ways), host::name_of_row);

// ---- where it was made

TEST(Effects, ASecondContextHitsAndOrdersThem) {
  const kiln::test::TemporaryFolder folder;
  for (const char *lookup : {"MISS", "HIT"}) {
    TestEffect effect(true);
    const host::Context context = host::make_context(folder.path());
    effect.register_in(context.get());
    for (const Settings &settings : {Settings{}, {{"split_at", "host.note"}}}) {
      const host::Compiled compiled = compile_effect(context.get(), effect_chain(), settings);
      expect_noted(effect, compiled, {1, 2, 3, 4});
      EXPECT_EQ(host::text(compiled.report, "lookup"), lookup);
    }
  }
}

TEST(Effects, AnArtifactOrdersThemPackedAndUnpacked) {
  const kiln::test::TemporaryFolder folder;
  const std::string path = folder.file("unpacked");
  std::string bytes;
  {
    TestEffect effect(true);
    const host::Context context = host::make_context();
    effect.register_in(context.get());
    const host::Compiled compiled = compile_effect(context.get(), effect_chain());
    ASSERT_EQ(compiled.error, host::Error());
    bytes = host::bytes_of(compiled.executable);
    kiln_options *made = nullptr;
    ASSERT_OK(kiln_options_create(&made));
    const host::Options options(made);
    ASSERT_OK(kiln_options_set_bool(made, "packed", 6, false));
    ASSERT_OK(kiln_executable_save(compiled.executable.get(), path.data(), path.size(), made));
  }
  TestEffect effect(true);
  const host::Context context = host::make_context();
  effect.register_in(context.get());
  host::Compiled opened;
  ASSERT_EQ(host::open_bytes(context.get(), bytes, opened.executable), host::Error());
  expect_noted(effect, opened, {1, 2, 3, 4});
  kiln_executable *unpacked = nullptr;
  ASSERT_OK(kiln_executable_open(context.get(), path.data(), path.size(), nullptr, &unpacked));
  opened.executable.reset(unpacked);
  expect_noted(effect, opened, {1, 2, 3, 4});
}

TEST(Effects, ARunInFlightOrdersThemWhereAnyThreadMayRunThem) {
  TestEffect any(false, KILN_OP_ANY_THREAD), own;
  for (TestEffect *effect : {&any, &own}) {
    const host::Context context = host::make_context();
    effect->register_in(context.get());
    const host::Compiled compiled = compile_effect(context.get(), effect_chain());
    ASSERT_EQ(compiled.error, host::Error());
    kiln_run_options async{};
    async.struct_size = sizeof async;
    async.flags = KILN_RUN_ASYNC;
    std::vector<float> y;
    const host::Error error = host::take(run_effect(host::make_call(compiled.executable).get(), &y, 1, &async));
    EXPECT_EQ(error.code == KILN_OK, effect == &any) << error;
    EXPECT_EQ(effect->take(), effect == &any ? (Noted{1, 2, 3, 4}) : Noted{});
  }
}

TEST(Effects, TheReportTellsThatOneSplitsItsRegion) {
  TestEffect effect;
  const host::Context context = host::make_context();
  effect.register_in(context.get());
  const host::Compiled compiled = compile_effect(context.get(), effect_chain(), {{"mode", "marked"}});
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_EQ(host::text(compiled.report, "made.partition.splits.0.why"), "effect");
  EXPECT_EQ(host::text(compiled.report, "made.partition.splits.0.with"), "e1");
  EXPECT_EQ(host::text(compiled.report, "made.partition.splits.0.reason"), "it has an effect");
}

TEST(Effects, ABackendIsNotAskedWhetherItTakesOne) {
  TestEffect effect;
  host::TestBackend other;
  other.takes_op = "host.note";
  other.backend.flags |= KILN_BACKEND_SYMBOLIC;
  const host::Context context = host::make_context();
  effect.register_in(context.get());
  other.register_in(context.get());
  expect_noted(effect, compile_effect(context.get(), effect_chain(), {{"backend", "ten"}}), {1, 2, 3, 4});
  EXPECT_EQ(other.asked, 3) << "a, b and y";
  EXPECT_EQ(other.compiled, 0);
}

TEST(Effects, AFunctionRunsOneWithoutItsTokens) {
  TestEffect effect;
  host::TestFunction triple("triple", "error (f32 data x, f32 data y, i64 size x 0, user)", &host::triple);
  const host::Context context = host::make_context();
  effect.register_in(context.get());
  triple.register_in(context.get());
  const std::string by = R"(, "annotations": {"kiln.fallback.function": {"text": "triple"}})";
  const std::string json = effect_graph(
      begin + note(1, R"("x", "t")") + note(2, R"("x", "e1:1")", by) + node("y", "sub", R"("e2", "e1")"), "y");
  expect_noted(effect, compile_effect(context.get(), json), {1});
  EXPECT_EQ(triple.called, 2);
  host::TestFunction given("given", "error (f32 data x, f32 data y, tensor done, user)", &host::triple);
  given.register_in(context.get());
  const std::string other = R"(, "annotations": {"kiln.fallback.function": {"text": "given"}})";
  const host::Compiled refused = compile_effect(context.get(), effect_graph(begin + note(1, R"("x", "t")", other)));
  EXPECT_NE(refused.error.message.find("'done' is a token, which has no data"), std::string::npos) << refused.error;
}

TEST(Effects, APartThatIsCutOutBeginsAnOrderOfItsOwn) {
  TestEffect effect;
  const host::Context context = host::make_context();
  effect.register_in(context.get());
  const std::string stage = R"(, "annotations": {"kiln.stage": {"text": "last"}})";
  const host::Graph whole = host::parse(
      context.get(), numbered(effect_graph(begin + note(1, R"("x", "t")") + note(2, R"("e1", "e1:1")", stage) +
                                               note(3, R"("e2", "e2:1")", stage) + note(4, R"("x", "e3:1")"),
                                           "e1")));
  kiln_graph *made = nullptr;
  kiln_report *map = nullptr;
  ASSERT_OK(kiln_graph_extract(context.get(), whole.get(), "kiln.stage", 10, "last", 4, &made, &map));
  const host::Graph part(made);
  const host::Report told(map);
  uint64_t inputs = 0, outputs = 0;
  ASSERT_OK(kiln_report_count(map, "inputs", 6, &inputs));
  ASSERT_OK(kiln_report_count(map, "outputs", 7, &outputs));
  EXPECT_EQ(inputs, 1u) << "x alone: no token";
  EXPECT_EQ(outputs, 0u);
  const host::Compiled compiled = host::compile(context.get(), made);
  ASSERT_EQ(compiled.error, host::Error());
  const host::Array x({2}, {1, 2});
  const DLTensor *args[] = {&x.tensor};
  ASSERT_OK(kiln_call_run(host::make_call(compiled.executable).get(), args, 1, nullptr));
  EXPECT_EQ(effect.take(), (Noted{2, 3}));
}

TEST(Effects, TheirTypeAndFlagAreTold) {
  TestEffect effect;
  const host::Context context = host::make_context();
  effect.register_in(context.get());
  kiln_op op = 0;
  ASSERT_OK(kiln_op_find(context.get(), "host.note", 9, &op));
  kiln_report *made = nullptr;
  ASSERT_OK(kiln_op_describe(context.get(), op, &made));
  const host::Report report(made);
  EXPECT_EQ(host::text(report, "flags.0"), "effect");
  EXPECT_EQ(host::text(report, "args.1.dtypes.0"), "token");
  kiln_text name{};
  uint32_t bytes = 1, dlpack = 0;
  ASSERT_OK(kiln_dtype_info(KILN_TOKEN, &name, &bytes, &dlpack));
  EXPECT_EQ(host::text_of(name), "token");
  EXPECT_EQ(bytes, 0u);
  EXPECT_EQ(dlpack, kDLOpaqueHandle | 0u << 8 | 1u << 16);
  const host::Graph graph = host::parse(context.get(), numbered(effect_chain()));
  EXPECT_EQ(host::write(graph.get(), "json"),
            host::write(host::parse(context.get(), host::write(graph.get(), "json")).get(), "json"));
}

}  // namespace
