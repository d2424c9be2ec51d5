// Functions of the host run nodes: those that name them, and those that fall back.
#include <algorithm>
#include <atomic>
#include <thread>

#include "rows.h"
#include "test_function.h"

namespace {

using host::by;
using host::chain;
using host::compile;
using host::expect_chain;
using host::TestFunction;

// y = |-3 x| of a chain, where "triple" runs its middle node.
class AFunction : public testing::Test {
 protected:
  AFunction() { triple.register_in(context.get()); }
  TestFunction triple{"triple", host::triple_signature, host::triple};
  const host::Context context = host::make_context();
};

TEST_F(AFunction, RunsTheNodeThatNamesItInEveryModeButNotOnTheOracle) {
  for (const char *mode : {"all", "marked", "except_fallback", "none"}) {
    const int before = triple.called;
    expect_chain(compile(context.get(), chain(by("triple")), mode), 3);
    EXPECT_EQ(triple.called - before, 2) << mode;
  }
  expect_chain(compile(context.get(), chain(by("triple")), "all", "reference"), 1);
  EXPECT_EQ(triple.called, 8);
}

TEST(Function, IsCalledByARunInFlightIfItIsForAnyThread) {
  for (const bool any_thread : {false, true}) {
    std::thread::id ran_on;
    TestFunction triple("triple", host::triple_signature, host::triple);
    if (any_thread) triple.function.flags = KILN_FUNCTION_ANY_THREAD;
    triple.on_call = [&]() -> kiln_error * {
      ran_on = std::this_thread::get_id();
      return kiln_error_create(KILN_IO, "no luck", 7, nullptr);
    };
    const host::Context context = host::make_context();
    triple.register_in(context.get());
    const host::Compiled compiled = compile(context.get(), chain(by("triple")));
    ASSERT_EQ(compiled.error, host::Error());
    const host::Call call = host::make_call(compiled.executable);
    const host::Array x({2}, {1, 2}), y({2}, {0, 0});
    const DLTensor *args[] = {&x.tensor, &y.tensor};
    kiln_run_options async{};
    async.struct_size = sizeof async;
    async.flags = KILN_RUN_ASYNC;
    if (!any_thread) {
      EXPECT_FAILS(kiln_call_run(call.get(), args, 2, &async), KILN_INVALID_ARGUMENT,
                   "function 'triple' is not registered for any thread");
      EXPECT_EQ(triple.called, 0);
      continue;
    }
    ASSERT_OK(kiln_call_run(call.get(), args, 2, &async));
    while (triple.called == 0) std::this_thread::yield();
    EXPECT_FAILS(kiln_call_wait(call.get()), KILN_IO, "no luck");
    EXPECT_NE(ran_on, std::this_thread::get_id());
  }
}

TEST(Function, IsToldInReportsAndSplitsWhatIsCompiled) {
  TestFunction triple("triple", host::triple_signature, host::triple, true);
  const host::Context context = host::make_context();
  triple.register_in(context.get());
  const host::Compiled compiled = compile(context.get(), chain(by("triple")));
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_EQ(host::i64(compiled.report, "kernels_compiled"), 2);
  EXPECT_EQ(host::text(compiled.report, "made.partition.fallbacks.0.node"), "b");
  EXPECT_EQ(host::text(compiled.report, "made.partition.fallbacks.0.by"), "triple");
  EXPECT_EQ(host::text(compiled.report, "made.partition.fallbacks.0.why"), "marked");
  EXPECT_EQ(host::text(compiled.report, "made.partition.fallbacks.0.reason"), "function 'triple' runs it");
  const host::Report report = host::context_report(context.get());
  EXPECT_EQ(host::text(report, "functions.0.name"), "triple");
  EXPECT_EQ(host::text(report, "functions.0.signature"), host::triple_signature);
  EXPECT_EQ(host::text(report, "functions.0.library"), "");
  EXPECT_EQ(host::text(report, "functions.0.identity"), "version '1', signature '" +
                                                            std::string(host::triple_signature) +
                                                            "', uuid 01020304-0506-0708-090a-0b0c0d0e0f10");
}

TEST_F(AFunction, IsNoFallbackThatFallbackErrorRefuses) {
  const host::Graph graph = host::parse(context.get(), chain(by("triple")));
  expect_chain(host::compile(
                   context.get(), graph.get(),
                   [](kiln_options *options) { EXPECT_OK(kiln_options_set_text(options, "fallback", 8, "error", 5)); }),
               3);
}

TEST_F(AFunction, OfAnOpRunsNodesOfItThatFallBackAndNoOthers) {
  kiln_op neg = 0;
  ASSERT_OK(kiln_op_find(context.get(), "neg", 3, &neg));
  uint64_t id = 0;
  ASSERT_OK(kiln_fallback_register(context.get(), neg, "triple", 6, &id));
  expect_chain(compile(context.get(), chain("")), 1);
  EXPECT_EQ(triple.called, 0);
  const host::Compiled marked = compile(context.get(), chain(""), "marked");
  expect_chain(marked, 3);  // b alone is in no region
  EXPECT_EQ(host::text(marked.report, "made.partition.fallbacks.0.by"), "triple");
  EXPECT_EQ(host::text(marked.report, "made.partition.fallbacks.0.why"), "unmarked");
  expect_chain(compile(context.get(), chain(""), "none"), 9);
  ASSERT_OK(kiln_fallback_unregister(context.get(), id));
  expect_chain(compile(context.get(), chain(""), "none"), 1);
  expect_chain(marked, 3);
}

TEST_F(AFunction, RunsInEachPieceAndInWhatNodesCarry) {
  const host::Compiled pieces = compile(context.get(), chain(by("triple") + R"(, "kiln.cut": {"bool": true})"));
  expect_chain(pieces, 3);
  EXPECT_EQ(host::i64(pieces.report, "pieces_compiled"), 2);

  const std::string graph = R"({"kiln": 1, "inputs": [
      {"name": "p", "type": {"dtype": "bool", "shape": []}}, {"name": "x", "type": {"dtype": "f32", "shape": ["k"]}}],
      "graphs": {"yes": {"inputs": [{"name": "v", "type": {"dtype": "f32", "shape": ["k"]}}],
      "nodes": [{"name": "s", "op": "neg", "inputs": ["v"], "annotations": {)" +
                            by("triple") +
                            R"(}}], "outputs": [{"name": "o", "value": "s"}]},
      "no": {"inputs": [{"name": "v", "type": {"dtype": "f32", "shape": ["k"]}}],
      "nodes": [{"name": "s", "op": "neg", "inputs": ["v"]}], "outputs": [{"name": "o", "value": "s"}]}},
      "nodes": [{"name": "c", "op": "cond", "inputs": ["p", "x"], "attrs": {"then_graph": "yes", "else_graph": "no"}}],
      "outputs": [{"name": "y", "value": "c"}]})";
  const host::Compiled compiled = compile(context.get(), graph);
  ASSERT_EQ(compiled.error, host::Error());
  const host::Call call = host::make_call(compiled.executable);
  for (const uint8_t p : {1, 0}) {
    host::Bool predicate{p};
    const host::Array x({2}, {1, 2}), y({2}, {0, 0});
    const DLTensor *args[] = {&predicate.tensor, &x.tensor, &y.tensor};
    ASSERT_OK(kiln_call_run(call.get(), args, 3, nullptr));
    EXPECT_EQ(y.values, p ? (std::vector<float>{3, 6}) : (std::vector<float>{-1, -2}));
  }
}

// ---- what it is called with

struct SeenByFunction {
  std::vector<double> numbers;
  std::vector<int64_t> integers;
  std::string text;
};
SeenByFunction seen;

void see_scalars(float a, double b, int8_t c, uint8_t d, int16_t e, uint16_t f, int32_t g, uint32_t h, int64_t i,
                 uint64_t j, uint8_t k, const float *, float *y) {
  seen = {{a, b}, {c, d, e, f, g, h, i, static_cast<int64_t>(j), k}, ""};
  *y = 1;
}

TEST(Function, TakesScalarsOfEachType) {
  TestFunction function(
      "f",
      "void (f32 -1.5, f64 1e300, i8 -7, u8 'N', i16 -300, u16 65535, i32 -(3 + 4) * 2, u32 4294967295, "
      "i64 9223372036854775807, u64 7 / 2 + 9 % 5, bool 1, f32 data 0, f32 data 1)",
      see_scalars);
  const host::Context context = host::make_context();
  function.register_in(context.get());
  const host::Compiled compiled = compile(context.get(), chain(by("f"), "neg", "1"));
  ASSERT_EQ(compiled.error, host::Error());
  const host::Array x({1}, {5}), y({1}, {0});
  ASSERT_OK(host::run(host::make_call(compiled.executable).get(), {&x, &y}));
  EXPECT_EQ(seen.numbers, (std::vector<double>{-1.5, 1e300}));
  EXPECT_EQ(seen.integers, (std::vector<int64_t>{-7, 'N', -300, 65535, -14, 4294967295, INT64_MAX, 7, 1}));
}

void see_sizes(int64_t rows, int64_t size, int64_t stride, int64_t row_stride, const int32_t *pointer,
               const DLTensor *x, float *y, uint8_t *scratch) {
  seen = {{}, {rows, size, stride, row_stride, *pointer, x->ndim, x->shape[0], x->shape[1], x->dtype.bits}, ""};
  *const_cast<int32_t *>(pointer) = 99;  // which the next call does not see
  for (int64_t i = 0; i < 4 * size; ++i) scratch[i] = 1;
  for (int64_t i = 0; i < size; ++i) y[i] = static_cast<float *>(x->data)[i] + 1;
}

TEST(Function, TakesSizesStridesPointersTensorsAndScratch) {
  TestFunction function(
      "f",
      "void (i64 n, i64 size 0 0 * size 0 1, i64 stride x 1, i64 stride 1 0, i32 *size y 1, tensor x, "
      "f32 data y[_, 3], scratch 4 * size 0 0 * size 0 1)",
      see_sizes);
  const host::Context context = host::make_context();
  function.register_in(context.get());
  const host::Compiled compiled = compile(context.get(), chain(by("f"), "neg", R"("n", 3)"));
  ASSERT_EQ(compiled.error, host::Error());
  const host::Call call = host::make_call(compiled.executable);
  for (const int64_t n : {2, 2, 50}) {
    const auto count = static_cast<size_t>(3 * n);
    const host::Array x({n, 3}, std::vector<float>(count, -4)), y({n, 3}, std::vector<float>(count));
    ASSERT_OK(host::run(call.get(), {&x, &y}));
    EXPECT_EQ(y.values, std::vector<float>(count, 5));
    EXPECT_EQ(seen.integers, (std::vector<int64_t>{n, 3 * n, 1, 3, 3, 2, n, 3, 32}));
  }
}

void see_attributes(const int64_t *dims, int32_t keepdim, float *y) {
  seen = {{}, {dims[0], dims[1], keepdim}, ""};
  *y = 2;
}

TEST(Function, TakesAttributesByName) {
  TestFunction function("f", "void (i64 *dims, i32 keepdim, f32 data y[])", see_attributes);
  const host::Context context = host::make_context();
  function.register_in(context.get());
  const std::string graph = R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [2, 3]}}],
      "nodes": [{"name": "s", "op": "sum", "inputs": ["x"], "attrs": {"dims": [0, 1]}, "annotations": {)" +
                            by("f") + R"(}}], "outputs": [{"name": "y", "value": "s"}]})";
  const host::Compiled compiled = compile(context.get(), graph);
  ASSERT_EQ(compiled.error, host::Error());
  const host::Array x({2, 3}, std::vector<float>(6, 1)), y({}, {0});
  ASSERT_OK(host::run(host::make_call(compiled.executable).get(), {&x, &y}));
  EXPECT_EQ(y.values, std::vector<float>{2});
  EXPECT_EQ(seen.integers, (std::vector<int64_t>{0, 1, 0}));
}

void add_one(float *y, int64_t size) {
  for (int64_t i = 0; i < size; ++i) y[i] += 1;
}

TEST(Function, WorksInPlaceOnWhatOthersStillRead) {
  TestFunction function("f", "void (f32 inout y=x, i64 size x 0)", add_one);
  const host::Context context = host::make_context();
  function.register_in(context.get());
  // z = f(a) + a, where f works on what a is.
  const std::string graph = R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
      "nodes": [{"name": "a", "op": "neg", "inputs": ["x"]},
                {"name": "b", "op": "abs", "inputs": ["a"], "annotations": {)" +
                            by("f") + R"(}}, {"name": "c", "op": "add", "inputs": ["a", "b"]}],
      "outputs": [{"name": "y", "value": "c"}]})";
  const host::Compiled compiled = compile(context.get(), graph);
  ASSERT_EQ(compiled.error, host::Error());
  const host::Call call = host::make_call(compiled.executable);
  for (int i = 0; i < 2; ++i) {
    const host::Array x({3}, {1, 2, 3}), y({3}, {0, 0, 0});
    ASSERT_OK(host::run(call.get(), {&x, &y}));
    EXPECT_EQ(y.values, (std::vector<float>{-1, -3, -5}));
    EXPECT_EQ(x.values, (std::vector<float>{1, 2, 3}));
  }
}

TEST(Function, WorksInPlaceWithoutACopyWhereNothingReadsTheOperandLater) {
  static int in_place, copied;
  in_place = copied = 0;
  TestFunction function(
      "f", "void (f32 inout y=x, data x, i64 size x 0)", +[](float *y, const float *x, int64_t size) {
        (y == x ? in_place : copied)++;
        add_one(y, size);
      });
  const host::Context context = host::make_context();
  function.register_in(context.get());
  // y = -f(f(-x)), and -f(f(x)), where x is the host's.
  for (const bool of_input : {false, true}) {
    const host::Compiled compiled =
        compile(context.get(), R"({"kiln": 1,
        "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}], "nodes": [)" +
                                   std::string(of_input ? "" : R"({"name": "a", "op": "neg",
        "inputs": ["x"]}, )") + R"({"name": "b", "op": "relu", "inputs": [")" +
                                   (of_input ? "x" : "a") + R"("], "annotations": {)" + by("f") + R"(}},
        {"name": "c", "op": "relu", "inputs": ["b"], "annotations": {)" +
                                   by("f") + R"(}},
        {"name": "d", "op": "neg", "inputs": ["c"]}], "outputs": [{"name": "y", "value": "d"}]})");
    ASSERT_EQ(compiled.error, host::Error());
    const host::Array x({2}, {1, 2}), y({2}, {0, 0});
    ASSERT_OK(host::run(host::make_call(compiled.executable).get(), {&x, &y}));
    EXPECT_EQ(y.values, of_input ? (std::vector<float>{-3, -4}) : (std::vector<float>{-1, 0}));
    EXPECT_EQ(x.values, (std::vector<float>{1, 2}));
    EXPECT_EQ(in_place, of_input ? 3 : 2);
    EXPECT_EQ(copied, of_input ? 1 : 0);
  }
}

TEST(Function, SizesThatOnlyACallTellsAreHeldToItsSignature) {
  TestFunction function("f", "void (i8 n, f32 data 0[n, n], f32 data 1)", +[](int8_t, float *, float *) {});
  const host::Context context = host::make_context();
  function.register_in(context.get());
  const host::Compiled compiled = compile(context.get(), chain(by("f"), "neg", R"("n", "m")"));
  ASSERT_EQ(compiled.error, host::Error());
  const host::Call call = host::make_call(compiled.executable);
  const host::Array wide({2, 3}, std::vector<float>(6)), wide_y({2, 3}, std::vector<float>(6));
  EXPECT_FAILS(host::run(call.get(), {&wide, &wide_y}), KILN_TYPE_MISMATCH,
               "node 'b': [neg] function 'f': its signature wants, at 26: dim 1 of 'x' is to be 'n', as dim 0 of 'x': "
               "it is 3, not 2");
  const host::Array large({200, 200}, std::vector<float>(40000)), large_y({200, 200}, std::vector<float>(40000));
  EXPECT_FAILS(host::run(call.get(), {&large, &large_y}), KILN_TYPE_MISMATCH, "'i8 n' is 200, which is no i8");
  const host::Array x({2, 2}, std::vector<float>(4)), y({2, 2}, std::vector<float>(4));
  ASSERT_OK(host::run(call.get(), {&x, &y}));
}

// ---- failures, threads, ends

int32_t fail_if_negative(const float *x, float *y) {
  *y = *x;
  return *x < 0 ? 7 : 0;
}

TEST(Function, ACodeStopsTheRunAndNamesTheNodeAndALaterCallWorks) {
  TestFunction function("check", "i32 (f32 data x, f32 data y)", fail_if_negative);
  const host::Context context = host::make_context();
  function.register_in(context.get());
  const host::Compiled compiled = compile(context.get(), chain(by("check"), "neg", "1"));
  ASSERT_EQ(compiled.error, host::Error());
  const host::Call call = host::make_call(compiled.executable);
  const host::Array good({1}, {-2}), bad({1}, {2}), y({1}, {0});
  ASSERT_OK(host::run(call.get(), {&good, &y}));
  EXPECT_FAILS(host::run(call.get(), {&bad, &y}), KILN_PLUGIN_FAILED,
               "node 'b': [neg] function 'check': it returned 7");
  ASSERT_OK(host::run(call.get(), {&good, &y}));
  EXPECT_EQ(y.values, std::vector<float>{2});
}

TEST_F(AFunction, AnErrorOrAnExceptionStopsTheRunWithItsText) {
  const host::Compiled compiled = compile(context.get(), chain(by("triple")));
  ASSERT_EQ(compiled.error, host::Error());
  const host::Call call = host::make_call(compiled.executable);
  const host::Array x({2}, {1, 2}), y({2}, {0, 0});
  triple.on_call = [] { return kiln_error_create(KILN_OUT_OF_RANGE, "it is singular", 14, nullptr); };
  EXPECT_FAILS(host::run(call.get(), {&x, &y}), KILN_OUT_OF_RANGE, "node 'b': [neg] function 'triple': it is singular");
  triple.on_call = []() -> kiln_error * { throw std::runtime_error("no more"); };
  EXPECT_FAILS(host::run(call.get(), {&x, &y}), KILN_PLUGIN_FAILED, "it threw an exception: no more");
  triple.on_call = {};
  ASSERT_OK(host::run(call.get(), {&x, &y}));
  EXPECT_EQ(y.values, (std::vector<float>{3, 6}));
}

TEST(Function, RunsOnTheThreadThatIsInsideTheRunSeveralAtOnce) {
  static thread_local bool is_in_run;
  static std::atomic<int> elsewhere;
  elsewhere = 0;
  TestFunction function(
      "f", "void (f32 data x, f32 data y, i64 size x 0)", +[](const float *x, float *y, int64_t size) {
        if (!is_in_run) elsewhere++;
        std::copy_n(x, size, y);
      });
  const host::Context context = host::make_context("off", nullptr, 4);
  function.register_in(context.get());
  const host::Compiled compiled = compile(context.get(), chain(by("f")));
  ASSERT_EQ(compiled.error, host::Error());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      is_in_run = true;
      const host::Call call = host::make_call(compiled.executable);
      const auto value = static_cast<float>(t + 1);
      for (int i = 0; i < 50; ++i) {
        const host::Array x({1000}, std::vector<float>(1000, value)), y({1000}, std::vector<float>(1000));
        EXPECT_OK(host::run(call.get(), {&x, &y}));
        EXPECT_EQ(y.values, std::vector<float>(1000, value));
      }
    });
  for (std::thread &thread : threads) thread.join();
  EXPECT_EQ(elsewhere, 0);
}

TEST(Function, EndsWithTheLastThatUsesIt) {
  TestFunction triple("triple", host::triple_signature, host::triple);
  host::Context context = host::make_context();
  const uint64_t id = triple.register_in(context.get());
  host::Compiled one = compile(context.get(), chain(by("triple"))), two = compile(context.get(), chain(by("triple")));
  const host::Compiled other = compile(context.get(), chain(""));
  ASSERT_OK(kiln_function_unregister(context.get(), id));
  EXPECT_FAILS(kiln_function_unregister(context.get(), id), KILN_OUT_OF_RANGE, "no function has id 1");
  EXPECT_EQ(compile(context.get(), chain(by("triple"))).error.code, KILN_UNKNOWN_NAME);
  context.reset();
  expect_chain(one, 3);
  one.executable.reset();
  EXPECT_EQ(triple.destroyed, 0);
  expect_chain(two, 3);
  two.executable.reset();
  EXPECT_EQ(triple.destroyed, 1);
  expect_chain(other, 1);
}

TEST(Function, ThatNothingUsesEndsWhenItIsUnregisteredOrTheContextIsClosed) {
  TestFunction one("one", host::triple_signature, host::triple), two("two", host::triple_signature, host::triple);
  const host::Context context = host::make_context();
  const uint64_t id = one.register_in(context.get());
  two.register_in(context.get());
  ASSERT_OK(kiln_function_unregister(context.get(), id));
  EXPECT_EQ(one.destroyed, 1);
  EXPECT_EQ(two.destroyed, 0);
  ASSERT_OK(kiln_context_close(context.get()));
  EXPECT_EQ(two.destroyed, 1);
  EXPECT_FAILS(kiln_function_register(context.get(), &one.function, nullptr), KILN_INVALID_ARGUMENT,
               "the context is closed");
}

TEST(Function, ItsNameMeansAnotherInAnotherContext) {
  TestFunction triple("f", host::triple_signature, host::triple);
  TestFunction copy(
      "f", "void (f32 data x, f32 data y, i64 size x 0)",
      +[](const float *x, float *y, int64_t size) { std::copy_n(x, size, y); });
  const host::Context one = host::make_context(), two = host::make_context();
  triple.register_in(one.get());
  copy.register_in(two.get());
  const host::Compiled in_one = compile(one.get(), chain(by("f"))), in_two = compile(two.get(), chain(by("f")));
  expect_chain(in_one, 3);
  expect_chain(in_two, 1);
  expect_chain(in_one, 3);
}

TEST(Function, ADestroyThatThrowsIsToldByTheNextCompile) {
  std::vector<std::string> warnings;
  const kiln_event_sink sink = host::warnings_into(warnings);
  TestFunction triple("triple", host::triple_signature, host::triple);
  triple.function.destroy = [](void *) { throw std::runtime_error("late"); };
  const host::Context context = host::make_context("off", &sink);
  ASSERT_OK(kiln_function_unregister(context.get(), triple.register_in(context.get())));
  expect_chain(compile(context.get(), chain("")), 1);
  ASSERT_FALSE(warnings.empty());
  EXPECT_EQ(warnings[0], "destroy of function 'triple' threw an exception: late");
}

}  // namespace
