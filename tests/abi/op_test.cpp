// Ops of the host's own: they are used as built-in ops are, run by their function or by their decomposition.
#include <algorithm>

#include "rows.h"
#include "test_op.h"
#include "tests/temporary_folder.h"

namespace {

using host::TestOp;

// y = tanh(scale(exp(x))), with exp and tanh marked for one region, and annotations of the node between.
std::string op_chain(const std::string &annotations = "", const std::string &op = "host.scale") {
  const std::string marked = R"("annotations": {"kiln.region": {"text": "r"}})";
  return R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}], "nodes": [
      {"name": "a", "op": "neg", "inputs": ["x"], )" +
         marked + R"(}, {"name": "b", "op": ")" + op + R"(", "inputs": ["a"], "attrs": {"factor": 3})" +
         (annotations.empty() ? "" : R"(, "annotations": {)" + annotations + "}") +
         R"(}, {"name": "c", "op": "abs", "inputs": ["b"], )" + marked +
         R"(}], "outputs": [{"name": "y", "value": "c"}]})";
}
const char *const kept = R"("kiln.decompose": {"text": "keep"})";

host::Compiled compile_op(kiln_context *context, const std::string &json, const std::string &backend = "cpu",
                          const std::string &mode = "all", bool strict = false) {
  const host::Graph graph = host::parse(context, json);
  return host::compile(context, graph.get(), [&](kiln_options *options) {
    EXPECT_OK(kiln_options_set_text(options, "backend", 7, backend.data(), backend.size()));
    EXPECT_OK(kiln_options_set_text(options, "mode", 4, mode.data(), mode.size()));
    EXPECT_OK(kiln_options_set_bool(options, "strict", 6, strict));
  });
}

host::Call op_call(const host::Executable &executable) {
  kiln_call *call = nullptr;
  EXPECT_OK(kiln_call_create(executable.get(), &call));
  return host::Call(call);
}
kiln_error *run_op(kiln_call *call, std::vector<float> in, std::vector<float> &out) {
  const auto n = static_cast<int64_t>(in.size());
  const host::Array x({n}, std::move(in)), y({n}, std::vector<float>(static_cast<size_t>(n)));
  const DLTensor *args[] = {&x.tensor, &y.tensor};
  kiln_error *error = kiln_call_run(call, args, 2, nullptr);
  out = y.values;
  return error;
}
void expect_chain(const host::Compiled &compiled) {
  ASSERT_EQ(compiled.error, host::Error());
  const host::Call call = op_call(compiled.executable);
  std::vector<float> y;
  for (const size_t n : {3u, 5u}) {
    ASSERT_OK(run_op(call.get(), std::vector<float>(n, -1.5f), y));
    EXPECT_EQ(y, std::vector<float>(n, 4.5f));
  }
}

TEST(Op, ItsFunctionRunsInEveryModeAndOnTheReference) {
  TestOp scale(TestOp::runs | TestOp::keeps_state);
  const host::Context context = host::make_context();
  scale.register_in(context.get());
  for (const char *mode : {"all", "marked", "except_fallback", "none"}) {
    const int before = scale.ran;
    const host::Compiled compiled = compile_op(context.get(), op_chain(), "cpu", mode);
    expect_chain(compiled);
    EXPECT_EQ(scale.ran - before, 2) << mode;
  }
  expect_chain(compile_op(context.get(), op_chain(), "reference"));
  EXPECT_EQ(scale.opened, scale.closed);
}

TEST(Op, ItIsToldAsRunByItsFunctionAndSplitsWhatIsCompiled) {
  TestOp scale(TestOp::runs | TestOp::keeps_state);
  const host::Context context = host::make_context();
  scale.register_in(context.get());
  const host::Compiled compiled = compile_op(context.get(), op_chain());
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_EQ(host::i64(compiled.report, "kernels_compiled"), 2);
  EXPECT_EQ(host::text(compiled.report, "made.partition.fallbacks.0.node"), "b");
  EXPECT_EQ(host::text(compiled.report, "made.partition.fallbacks.0.by"), "function");
  EXPECT_EQ(host::text(compiled.report, "made.partition.fallbacks.0.reason"), "a function of its own runs it");
}

TEST(Op, FallbackErrorIsNotForOpsThatRunThemselves) {
  TestOp scale(TestOp::runs | TestOp::keeps_state);
  const host::Context context = host::make_context();
  scale.register_in(context.get());
  const host::Graph graph = host::parse(context.get(), op_chain());
  expect_chain(host::compile(context.get(), graph.get(), [](kiln_options *options) {
    EXPECT_OK(kiln_options_set_text(options, "fallback", 8, "error", 5));
  }));
}

TEST(Op, ADecompositionFusesWithWhatIsAroundIt) {
  TestOp scale(TestOp::decomposes);
  const host::Context context = host::make_context();
  scale.register_in(context.get());
  const host::Compiled compiled = compile_op(context.get(), op_chain());
  expect_chain(compiled);
  EXPECT_EQ(host::i64(compiled.report, "kernels_compiled"), 1);
  EXPECT_GE(scale.decomposed, 1);
  expect_chain(compile_op(context.get(), op_chain(), "reference"));
}

TEST(Op, WhatIsKeptWholeIsRunByItsFunction) {
  TestOp scale(TestOp::runs | TestOp::decomposes | TestOp::keeps_state);
  const host::Context context = host::make_context();
  scale.register_in(context.get());
  expect_chain(compile_op(context.get(), op_chain()));
  EXPECT_EQ(scale.ran, 0);
  expect_chain(compile_op(context.get(), op_chain(kept)));
  EXPECT_EQ(scale.ran, 2);
}

TEST(Op, OneThatOnlyDecomposesAndIsKeptWholeRunsOnTheReference) {
  TestOp scale(TestOp::decomposes);
  const host::Context context = host::make_context();
  scale.register_in(context.get());
  expect_chain(compile_op(context.get(), op_chain(kept)));
}

TEST(Op, ItsNumberComesBehindTheBuiltInOnesAndItIsDescribed) {
  TestOp scale(TestOp::runs | TestOp::decomposes);
  const host::Context context = host::make_context();
  const uint64_t built_in = kiln_op_count(context.get());
  kiln_op abs = 0, found = 0;
  ASSERT_OK(kiln_op_find(context.get(), "abs", 3, &abs));
  const kiln_op op = scale.register_in(context.get());
  EXPECT_EQ(op, built_in + 1);
  EXPECT_EQ(kiln_op_count(context.get()), built_in + 1);
  ASSERT_OK(kiln_op_find(context.get(), "host.scale", 10, &found));
  EXPECT_EQ(found, op);
  ASSERT_OK(kiln_op_find(context.get(), "abs", 3, &found));
  EXPECT_EQ(found, abs) << "numbers are permanent";
  kiln_text name{};
  ASSERT_OK(kiln_op_name(context.get(), op, &name));
  EXPECT_EQ(host::text_of(name), "host.scale");
  kiln_report *made = nullptr;
  ASSERT_OK(kiln_op_describe(context.get(), op, &made));
  const host::Report report(made);
  EXPECT_EQ(host::text(report, "doc"), "x times factor.");
  EXPECT_EQ(host::text(report, "kind"), "composite");
  EXPECT_EQ(host::text(report, "args.0.name"), "x");
  EXPECT_EQ(host::text(report, "attrs.0.kind"), "f64");
  EXPECT_EQ(host::text(report, "samples.0.name"), "rows");
  ASSERT_OK(kiln_op_schema(context.get(), op, &made));
  const host::Report schema(made);
  EXPECT_EQ(host::text(schema, "doc"), "x times factor.");
  EXPECT_EQ(host::text(schema, "attrs.0.kind"), "f64");
  uint64_t count = 0;
  EXPECT_FAILS(kiln_report_count(schema.get(), "samples", 7, &count), KILN_UNKNOWN_NAME, "samples");
  EXPECT_EQ(kiln_op_count(host::make_context().get()), built_in) << "of another context";
}

TEST(Op, OperandsOfTypesThatItsSchemaDoesNotListAreRefused) {
  TestOp scale(TestOp::runs);
  const host::Context context = host::make_context();
  const kiln_op op = scale.register_in(context.get());
  kiln_report *made = nullptr;
  ASSERT_OK(kiln_op_describe(context.get(), op, &made));
  const host::Report report(made);
  uint64_t types = 0;
  ASSERT_OK(kiln_report_count(report.get(), "args.0.dtypes", 13, &types));
  EXPECT_EQ(types, 1u);
  for (const char *dtype : {"f64", "f16", "i64", "i32", "i8", "u8", "u64", "bool", "f8_e4m3fn"}) {
    const std::string json = std::string(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": ")") + dtype +
                             R"(", "shape": [2]}}], "nodes": [{"name": "y", "op": "host.scale", "inputs": ["x"]}],
        "outputs": [{"name": "y", "value": "y"}]})";
    kiln_graph *graph = nullptr;
    EXPECT_FAILS(kiln_graph_parse(context.get(), json.data(), json.size(), &graph), KILN_TYPE_MISMATCH, "expected f32");
  }
}

TEST(Op, WithAUuidWhatIsMadeIsCachedUnderItsIdentity) {
  const kiln::test::TemporaryFolder folder;
  const auto lookup = [&](uint32_t has, int version, std::string &reason) {
    TestOp scale(has, "host.scale", version);
    const host::Context context = host::make_context(folder.path());
    scale.register_in(context.get());
    const host::Compiled compiled = compile_op(context.get(), op_chain());
    expect_chain(compiled);
    reason = host::text(compiled.report, "reason");
    return host::text(compiled.report, "lookup");
  };
  constexpr uint32_t has = TestOp::runs | TestOp::keeps_state | TestOp::is_identified;
  std::string reason;
  EXPECT_EQ(lookup(has, 1, reason), "MISS");
  EXPECT_EQ(lookup(has, 1, reason), "HIT");
  EXPECT_EQ(lookup(has, 2, reason), "MISS");
  EXPECT_NE(reason.find("'op host.scale'"), std::string::npos) << reason;
  EXPECT_EQ(lookup(TestOp::runs | TestOp::keeps_state, 1, reason), "BYPASS");
  EXPECT_EQ(reason, "op 'host.scale' has no identity");
}

TEST(Op, StrictModeRefusesOneWithoutIdentity) {
  TestOp scale(TestOp::runs);
  const kiln::test::TemporaryFolder folder;
  const host::Context context = host::make_context(folder.path());
  scale.register_in(context.get());
  const host::Compiled compiled = compile_op(context.get(), op_chain(), "cpu", "all", true);
  EXPECT_EQ(compiled.error.code, KILN_INVALID_ARGUMENT);
  EXPECT_NE(compiled.error.message.find("op 'host.scale' has no identity"), std::string::npos) << compiled.error;
}

TEST(Op, AFailureStopsTheRunAndNamesTheNodeAndALaterCallWorks) {
  TestOp scale(TestOp::runs | TestOp::keeps_state);
  const host::Context context = host::make_context();
  scale.register_in(context.get());
  const host::Compiled compiled = compile_op(context.get(), op_chain());
  ASSERT_EQ(compiled.error, host::Error());
  const host::Call call = op_call(compiled.executable);
  std::vector<float> y;
  scale.on_run = [] { return kiln_error_create(KILN_INVALID_ARGUMENT, "it is singular", 14, nullptr); };
  EXPECT_FAILS(run_op(call.get(), {1, 2}, y), KILN_INVALID_ARGUMENT, "node 'b': [host.scale] it is singular");
  scale.on_run = []() -> kiln_error * { throw std::runtime_error("thrown"); };
  EXPECT_FAILS(run_op(call.get(), {1, 2}, y), KILN_PLUGIN_FAILED, "it threw an exception: thrown");
  scale.on_run = [] { return kiln_error_create(KILN_OUT_OF_RANGE, "it ends the run", 15, nullptr); };
  EXPECT_FAILS(run_op(call.get(), {1, 2}, y), KILN_OUT_OF_RANGE, "node 'b': [host.scale] it ends the run");
  EXPECT_EQ(host::take(run_op(call.get(), {1, 2}, y)).node, "b");
  scale.on_run = {};
  ASSERT_OK(run_op(call.get(), {1, -2}, y));
  EXPECT_EQ(y, (std::vector<float>{3, 6}));
}

TEST(Op, ACloseThatThrowsIsToldByTheNextCompile) {
  TestOp scale(TestOp::runs | TestOp::keeps_state);
  std::vector<std::string> warnings;
  const kiln_event_sink sink = host::warnings_into(warnings);
  const host::Context context = host::make_context("off", &sink);
  scale.register_in(context.get());
  scale.on_close = [] { throw std::runtime_error("late"); };
  expect_chain(compile_op(context.get(), op_chain()));
  expect_chain(compile_op(context.get(), op_chain()));
  ASSERT_FALSE(warnings.empty());
  EXPECT_EQ(warnings[0], "close of op 'host.scale' threw an exception: late");
}

TEST(Op, AMisspeltNameIsAnswered) {
  TestOp scale(TestOp::runs);
  const host::Context context = host::make_context();
  scale.register_in(context.get());
  kiln_op op = 0;
  EXPECT_FAILS(kiln_op_find(context.get(), "host.scal", 9, &op), KILN_UNKNOWN_NAME, "did you mean 'host.scale'?");
}

TEST(Op, TheContextsReportTellsIt) {
  TestOp scale(TestOp::runs | TestOp::is_identified);
  const host::Context context = host::make_context();
  scale.register_in(context.get());
  const host::Report report = host::context_report(context.get());
  EXPECT_EQ(host::text(report, "ops.0.name"), "host.scale");
  EXPECT_EQ(host::text(report, "ops.0.plugin"), "");
  EXPECT_EQ(host::text(report, "ops.0.identity"), "version 1, uuid 01020304-0506-0708-090a-0b0c0d0e0f10");
}

TEST(Op, EqualNodesAreOneUnlessItIsRandom) {
  for (const bool random : {false, true}) {
    TestOp scale(TestOp::runs);
    if (random) scale.def.flags |= KILN_OP_RANDOM;
    scale.on_run = [] { return nullptr; };
    const host::Context context = host::make_context();
    scale.register_in(context.get());
    const host::Compiled compiled =
        compile_op(context.get(), R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
      "nodes": [{"name": "a", "op": "host.scale", "inputs": ["x"]}, {"name": "b", "op": "host.scale", "inputs": ["x"]},
                {"name": "c", "op": "add", "inputs": ["a", "b"]}], "outputs": [{"name": "y", "value": "c"}]})");
    ASSERT_EQ(compiled.error, host::Error());
    std::vector<float> y;
    ASSERT_OK(run_op(op_call(compiled.executable).get(), {1, 2}, y));
    EXPECT_EQ(scale.ran, random ? 2 : 1);
  }
}

TEST(Op, ItsFunctionsAreToldHowManyOperandsTheNodeHas) {
  for (const uint32_t operands : {1u, 3u}) {
    TestOp first(TestOp::runs);
    first.schema.replace(first.schema.find(R"("dtypes")"), 0, R"("arity": "variadic", )");
    first.def.schema = first.schema.data(), first.def.schema_size = first.schema.size();
    uint32_t told = 0;
    first.on_infer = [&](kiln_op_call *call) {
      told = kiln_op_call_operand_count(call);
      return host::as_its_operand(call);
    };
    const host::Context context = host::make_context();
    first.register_in(context.get());
    const std::string inputs = operands == 1 ? R"("x")" : R"("x", "x", "x")";
    (void)host::parse(context.get(),
                      R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
      "nodes": [{"name": "y", "op": "host.scale", "inputs": [)" +
                          inputs + R"(]}], "outputs": [{"name": "y", "value": "y"}]})");
    EXPECT_EQ(told, operands);
  }
  EXPECT_EQ(kiln_op_call_operand_count(nullptr), 0);
}

TEST(Op, EachCallObjectHasAStateOfItsOwn) {
  TestOp scale(TestOp::runs | TestOp::keeps_state);
  const host::Context context = host::make_context();
  scale.register_in(context.get());
  const host::Compiled compiled = compile_op(context.get(), op_chain());
  ASSERT_EQ(compiled.error, host::Error());
  std::vector<float> y;
  {
    const host::Call one = op_call(compiled.executable), two = op_call(compiled.executable);
    EXPECT_EQ(scale.opened, 0) << "before it runs";
    for (int i = 0; i < 3; ++i)
      for (const host::Call *call : {&one, &two}) ASSERT_OK(run_op(call->get(), {1, 2}, y));
    EXPECT_EQ(scale.opened, 2);
    EXPECT_EQ(scale.closed, 0);
  }
  EXPECT_EQ(scale.closed, 2);
}

TEST(Op, ItLivesAsLongAsWhatWasMadeInItsContext) {
  TestOp scale(TestOp::runs | TestOp::keeps_state);
  host::Context context = host::make_context();
  scale.register_in(context.get());
  host::Compiled compiled = compile_op(context.get(), op_chain());
  context.reset();
  EXPECT_EQ(scale.destroyed, 0);
  expect_chain(compiled);
  compiled.executable.reset();
  EXPECT_EQ(scale.destroyed, 1);
}

TEST(Op, AnArtifactNeedsTheOpThatItWasMadeWith) {
  constexpr uint32_t has = TestOp::runs | TestOp::keeps_state | TestOp::is_identified;
  std::string bytes;
  {
    TestOp scale(has);
    const host::Context context = host::make_context();
    scale.register_in(context.get());
    const host::Compiled compiled = compile_op(context.get(), op_chain());
    ASSERT_EQ(compiled.error, host::Error());
    bytes = host::bytes_of(compiled.executable);
  }
  host::Compiled opened;
  TestOp same(has), other(has, "host.scale", 2);
  const host::Context without = host::make_context(), with_other = host::make_context(), with = host::make_context();
  host::Error error = host::open_bytes(without.get(), bytes, opened.executable);
  EXPECT_EQ(error.code, KILN_INCOMPATIBLE) << error;
  EXPECT_NE(error.message.find("it was made with op 'host.scale', version 1, uuid "), std::string::npos) << error;
  other.register_in(with_other.get());
  error = host::open_bytes(with_other.get(), bytes, opened.executable);
  EXPECT_EQ(error.code, KILN_INCOMPATIBLE) << error;
  EXPECT_NE(error.message.find("op 'host.scale' is version 2, uuid "), std::string::npos) << error;
  same.register_in(with.get());
  ASSERT_EQ(host::open_bytes(with.get(), bytes, opened.executable), host::Error());
  expect_chain(opened);
  EXPECT_EQ(same.ran, 2);
}

TEST(Op, AnArtifactInWhichItWasDecomposedDoesNotNeedIt) {
  std::string bytes;
  {
    TestOp scale(TestOp::decomposes);
    const host::Context context = host::make_context();
    scale.register_in(context.get());
    kiln_blob *blob = nullptr;
    ASSERT_OK(kiln_executable_bytes(compile_op(context.get(), op_chain()).executable.get(), nullptr, &blob));
    bytes = host::bytes_of(blob);
  }
  const host::Context without = host::make_context();
  kiln_executable *made = nullptr;
  ASSERT_OK(kiln_executable_open_bytes(without.get(), bytes.data(), bytes.size(), nullptr, &made));
  host::Compiled opened;
  opened.executable.reset(made);
  expect_chain(opened);
}

TEST(Op, ItRunsInWhatNodesCarry) {
  TestOp scale(TestOp::runs | TestOp::keeps_state);
  const host::Context context = host::make_context();
  scale.register_in(context.get());
  const std::string branch = R"({"inputs": [{"name": "v", "type": {"dtype": "f32", "shape": ["n"]}}], "nodes": [
      {"name": "s", "op": "host.scale", "inputs": ["v"], "attrs": {"factor": )";
  const std::string end = R"(}}], "outputs": [{"name": "o", "value": "s"}]})";
  const host::Graph graph = host::parse(context.get(), R"({"kiln": 1, "inputs": [
      {"name": "p", "type": {"dtype": "bool", "shape": []}}, {"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
      "graphs": {"yes": )" + branch + "5" + end + R"(, "no": )" +
                                                           branch + "7" + end + R"(},
      "nodes": [{"name": "c", "op": "cond", "inputs": ["p", "x"], "attrs": {"then_graph": "yes", "else_graph": "no"}}],
      "outputs": [{"name": "y", "value": "c"}]})");
  const host::Compiled compiled = host::compile(context.get(), graph.get());
  ASSERT_EQ(compiled.error, host::Error());
  const host::Call call = op_call(compiled.executable);
  for (const uint8_t p : {1, 0}) {
    host::Bool predicate{p};
    const host::Array x({2}, {1, 2}), y({2}, {0, 0});
    const DLTensor *args[] = {&predicate.tensor, &x.tensor, &y.tensor};
    ASSERT_OK(kiln_call_run(call.get(), args, 3, nullptr));
    EXPECT_EQ(y.values, p ? (std::vector<float>{5, 10}) : (std::vector<float>{7, 14}));
  }
}

TEST(Op, WhatAnOpenThatFailsSetIsItsOwnToEnd) {
  TestOp scale(TestOp::runs | TestOp::keeps_state);
  scale.def.open = [](void *, kiln_op_call *, void **out_state) {
    static double state;
    *out_state = &state;
    return kiln_error_create(KILN_IO, "no room", 7, nullptr);
  };
  const host::Context context = host::make_context();
  scale.register_in(context.get());
  const host::Compiled compiled = host::compile(context.get(), host::parse(context.get(), op_chain()).get());
  ASSERT_EQ(compiled.error, host::Error());
  {
    const host::Call call = op_call(compiled.executable);
    std::vector<float> y;
    for (int i = 0; i < 2; ++i) EXPECT_FAILS(run_op(call.get(), {1, 2}, y), KILN_IO, "[host.scale] no room");
  }
  EXPECT_EQ(scale.ran + scale.closed, 0);
}

// ---- what is refused of what its functions do

struct Misuse : host::Row {
  uint32_t code;
  const char *words;
  std::function<kiln_error *(kiln_op_call *)> does;
};

const kiln_dim two{2, 0}, three{3, 0};
const Misuse misuses[] = {
    {"TellsNoType", KILN_PLUGIN_FAILED, "[host.scale] infer told no type of result 0, 'y'",
     [](kiln_op_call *) { return static_cast<kiln_error *>(nullptr); }},
    {"OperandThatIsNot", KILN_OUT_OF_RANGE, "operand 1 of 1",
     [](kiln_op_call *call) {
       kiln_dtype dtype = 0;
       return kiln_op_call_dtype(call, 1, &dtype);
     }},
    {"ResultThatIsNot", KILN_OUT_OF_RANGE, "result 1 of 1",
     [](kiln_op_call *call) { return kiln_op_call_result(call, 1, nullptr); }},
    {"ResultTwice", KILN_INVALID_ARGUMENT, "the type of result 0 was told already",
     [](kiln_op_call *call) {
       kiln_type type{};
       type.struct_size = sizeof type, type.dtype = KILN_F32, type.rank = 1, type.dims = &two;
       kiln_error *error = kiln_op_call_result(call, 0, &type);
       return error ? error : kiln_op_call_result(call, 0, &type);
     }},
    {"ResultWithoutType", KILN_INVALID_ARGUMENT, "type is NULL",
     [](kiln_op_call *call) { return kiln_op_call_result(call, 0, nullptr); }},
    {"AttributeThatIsNot", KILN_UNKNOWN_NAME, "op 'host.scale' has no attribute 'tall'",
     [](kiln_op_call *call) {
       kiln_attr attr{};
       return kiln_op_call_attr(call, "tall", 4, &attr);
     }},
    {"YieldsInsideInfer", KILN_INVALID_ARGUMENT, "results are yielded inside decompose",
     [](kiln_op_call *call) { return kiln_op_call_yield(call, 0, 1); }},
    {"SizesThatDiffer", KILN_TYPE_MISMATCH, "node 'b': [host.scale] a and b must be equal; they are 2 and 3",
     [](kiln_op_call *call) { return kiln_op_call_require_equal(call, &two, &three, "a and b", 7); }},
    {"AsksOnAnotherThread", KILN_INVALID_ARGUMENT, "of a function that runs on another thread",
     [](kiln_op_call *call) {
       kiln_error *error = nullptr;
       std::thread([&] { error = kiln_op_call_yield(call, 0, 1); }).join();
       return error;
     }},
    {"AsksItsContextOnAnotherThread", KILN_INVALID_ARGUMENT, "context is of a function that runs on another thread",
     [](kiln_op_call *call) {
       kiln_context *context = kiln_op_call_context(call);
       kiln_error *error = nullptr;
       std::thread([&] {
         kiln_op op = 0;
         error = kiln_op_find(context, "neg", 3, &op);
       }).join();
       return error;
     }},
    {"HasNoEdit", KILN_INVALID_ARGUMENT, "edit is NULL",
     [](kiln_op_call *call) {
       EXPECT_EQ(kiln_op_call_operand(call, 0), 0u);
       return kiln_edit_scope(kiln_op_call_edit(call), nullptr, 0);
     }},
    {"Throws", KILN_PLUGIN_FAILED, "it threw an exception: no",
     [](kiln_op_call *) -> kiln_error * { throw std::runtime_error("no"); }},
};

class OpMisuse : public testing::TestWithParam<Misuse> {};

TEST_P(OpMisuse, IsToldWhereTheNodeIsAdded) {
  TestOp scale(TestOp::runs);
  const host::Context context = host::make_context();
  scale.register_in(context.get());
  scale.on_infer = GetParam().does;
  const std::string json = op_chain();
  kiln_graph *graph = nullptr;
  EXPECT_FAILS(kiln_graph_parse(context.get(), json.data(), json.size(), &graph), GetParam().code, GetParam().words);
  scale.on_infer = {};
  ASSERT_OK(kiln_graph_parse(context.get(), json.data(), json.size(), &graph));
  kiln_graph_destroy(graph);
}
INSTANTIATE_TEST_SUITE_P(Abi, OpMisuse, testing::ValuesIn(misuses), host::name_of_row);

const Misuse bad_decompositions[] = {
    {"YieldsNothing", KILN_PLUGIN_FAILED, "its decomposition yields no result 0",
     [](kiln_op_call *) { return static_cast<kiln_error *>(nullptr); }},
    {"YieldsWhatIsNot", KILN_INVALID_ARGUMENT, "the value is not of the edit's graph",
     [](kiln_op_call *call) { return kiln_op_call_yield(call, 0, kiln_value{999} << 32); }},
    {"YieldsAnotherType", KILN_INVALID_ARGUMENT, ", infer told f32[",
     [](kiln_op_call *call) {
       kiln_op isnan = 0;
       EXPECT_OK(kiln_op_find(kiln_op_call_context(call), "isnan", 5, &isnan));
       const kiln_value x = kiln_op_call_operand(call, 0);
       kiln_node node = 0;
       EXPECT_OK(kiln_edit_add(kiln_op_call_edit(call), isnan, nullptr, 0, &x, 1, nullptr, 0, &node));
       return kiln_op_call_yield(call, 0, kiln_value{node} << 32);
     }},
    {"YieldsTwice", KILN_INVALID_ARGUMENT, "was yielded already",
     [](kiln_op_call *call) {
       const kiln_value x = kiln_op_call_operand(call, 0);
       EXPECT_OK(kiln_op_call_yield(call, 0, x));
       return kiln_op_call_yield(call, 0, x);
     }},
    {"TellsATypeThere", KILN_INVALID_ARGUMENT, "types of results are told inside infer",
     [](kiln_op_call *call) { return kiln_op_call_result(call, 0, nullptr); }},
    {"OpensAScope", KILN_INVALID_ARGUMENT, "which adds nodes and constants and changes nothing else",
     [](kiln_op_call *call) {
       const int64_t one = 1;
       const kiln_attr attr = host::attr("a.b", KILN_ATTR_I64, 1, &one);
       return kiln_edit_scope(kiln_op_call_edit(call), &attr, 1);
     }},
    {"ReplacesAnothersValue", KILN_INVALID_ARGUMENT, "changes nothing else",
     [](kiln_op_call *call) {
       const kiln_value x = kiln_op_call_operand(call, 0);
       return kiln_edit_replace(kiln_op_call_edit(call), x, x);
     }},
    {"AddsOnAnotherThread", KILN_INVALID_ARGUMENT, "edit is of a function that runs on another thread",
     [](kiln_op_call *call) {
       kiln_edit *edit = kiln_op_call_edit(call);
       const kiln_value x = kiln_op_call_operand(call, 0);
       kiln_op neg = 0;
       EXPECT_OK(kiln_op_find(kiln_op_call_context(call), "neg", 3, &neg));
       kiln_error *error = nullptr;
       std::thread([&] {
         kiln_node node = 0;
         error = kiln_edit_add(edit, neg, nullptr, 0, &x, 1, nullptr, 0, &node);
       }).join();
       return error;
     }},
    {"SetsOutputs", KILN_INVALID_ARGUMENT, "changes nothing else",
     [](kiln_op_call *call) {
       const kiln_value x = kiln_op_call_operand(call, 0);
       return kiln_edit_outputs(kiln_op_call_edit(call), &x, nullptr, 1);
     }},
    {"FinishesTheGraph", KILN_INVALID_ARGUMENT, "changes nothing else",
     [](kiln_op_call *call) {
       kiln_graph *graph = nullptr;
       return kiln_edit_finish(kiln_op_call_edit(call), &graph);
     }},
};

class OpDecomposition : public testing::TestWithParam<Misuse> {};

TEST_P(OpDecomposition, FailsTheCompileAndTheNextOneWorks) {
  TestOp scale(TestOp::decomposes);
  const host::Context context = host::make_context();
  scale.register_in(context.get());
  scale.on_decompose = GetParam().does;
  const host::Compiled compiled = compile_op(context.get(), op_chain());
  EXPECT_EQ(compiled.error.code, GetParam().code) << compiled.error;
  EXPECT_NE(compiled.error.message.find("decomposing 'b' [host.scale]: "), std::string::npos) << compiled.error;
  EXPECT_EQ(compiled.error.node, "b");
  EXPECT_NE(compiled.error.message.find(GetParam().words), std::string::npos) << compiled.error;
  scale.on_decompose = {};
  expect_chain(compile_op(context.get(), op_chain()));
}
INSTANTIATE_TEST_SUITE_P(Abi, OpDecomposition, testing::ValuesIn(bad_decompositions), host::name_of_row);

TEST(Op, AHandleThatIsKeptIsRefused) {
  TestOp scale(TestOp::runs);
  const host::Context context = host::make_context();
  scale.register_in(context.get());
  kiln_op_call *stale = nullptr;
  scale.on_infer = [&](kiln_op_call *call) {
    stale = call;
    return kiln_error_create(KILN_TYPE_MISMATCH, "no", 2, nullptr);
  };
  const std::string json = op_chain();
  kiln_graph *graph = nullptr;
  EXPECT_FAILS(kiln_graph_parse(context.get(), json.data(), json.size(), &graph), KILN_TYPE_MISMATCH, "node 'b'");
  EXPECT_FAILS(kiln_op_call_yield(stale, 0, 1), KILN_INVALID_ARGUMENT, "was destroyed");
  EXPECT_EQ(kiln_op_call_context(stale), nullptr);
}

}  // namespace
