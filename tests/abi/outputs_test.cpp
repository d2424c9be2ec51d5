// How a call is given outputs: by strides of their own, as views of inputs; and inputs that it may use as its own.

#include <cmath>
#include <functional>

#include "host.h"

namespace {

constexpr float untouched = -77;

// A tensor over the host's floats: `first` is where element 0, 0, ... is.
struct Strided {
  std::vector<float> memory;
  std::vector<int64_t> shape, strides;
  DLTensor tensor{};

  Strided(size_t size, size_t first, std::vector<int64_t> of, std::vector<int64_t> by)
      : memory(size, untouched), shape(std::move(of)), strides(std::move(by)) {
    tensor.data = memory.data() + first;
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.dtype = {kDLFloat, 32, 1};
    tensor.shape = shape.data();
    tensor.strides = strides.data();
  }
  Strided(const Strided &) = delete;
};

// Row-major, whatever the strides.
std::vector<float> values_of(const DLTensor &t) {
  int64_t count = 1;
  for (int32_t d = 0; d < t.ndim; ++d) count *= t.shape[d];
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, offset = 0;
    for (int32_t d = t.ndim; d-- > 0; rest /= t.shape[d]) offset += rest % t.shape[d] * t.strides[d];
    values.push_back(static_cast<const float *>(t.data)[offset]);
  }
  return values;
}

std::vector<float> counted(size_t count, float from = 0) {
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) values.push_back(from + static_cast<float>(i));
  return values;
}

class OutputTest : public testing::TestWithParam<const char *> {
 protected:
  host::Compiled try_compile(std::string_view json, const std::function<void(kiln_options *)> &set = {}) {
    const host::Graph graph = host::parse(context.get(), json);
    return host::compile(context.get(), graph.get(), [&](kiln_options *options) {
      EXPECT_OK(kiln_options_set_text(options, "backend", 7, GetParam(), std::strlen(GetParam())));
      if (set) set(options);
    });
  }
  host::Call open(std::string_view json, const std::function<void(kiln_options *)> &set = {}) {
    host::Compiled compiled = try_compile(json, set);
    EXPECT_EQ(compiled.error.code, KILN_OK) << compiled.error.message;
    executable = std::move(compiled.executable);
    kiln_call *made = nullptr;
    EXPECT_OK(kiln_call_create(executable.get(), &made));
    return host::Call(made);
  }
  std::string plan() const {
    kiln_blob *blob = nullptr;
    EXPECT_OK(kiln_executable_text(executable.get(), "plan", 4, &blob));
    return host::bytes_of(blob);
  }
  static bool compiles() { return GetParam() == std::string_view("cpu"); }
  static const DLTensor &output(const host::Call &call, uint32_t slot) {
    const DLTensor *tensor = nullptr;
    EXPECT_OK(kiln_call_output(call.get(), slot, &tensor));
    return *tensor;
  }
  static int64_t memory_bytes(const host::Call &call) {
    kiln_report *report = nullptr;
    EXPECT_OK(kiln_call_report(call.get(), &report));
    return host::i64(host::Report(report), "memory_bytes");
  }

  host::Context context = host::make_context();
  host::Executable executable;
};
INSTANTIATE_TEST_SUITE_P(Backend, OutputTest, testing::Values("cpu", "reference"),
                         [](const auto &test) { return test.param; });

// y = -x, [n, 3].
std::string negated(std::string_view output_type) {
  return R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 3]}}],
    "nodes": [{"name": "y", "op": "neg", "inputs": ["x"]}],
    "outputs": [{"name": "y", "value": "y", "type": {"dtype": "f32", "shape": ["n", 3], "strides": )" +
         std::string(output_type) + "}}]}";
}
std::vector<float> negated_values(size_t count) {
  std::vector<float> values = counted(count);
  for (float &value : values) value = -value;
  return values;
}

TEST_P(OutputTest, IsWrittenByTheStridesThatTheGraphDeclaresAndNothingBetween) {
  const host::Call call = open(negated("[1, \"n + 2\"]"));
  for (const int64_t n : {4, 1, 300}) {
    const auto rows = static_cast<size_t>(n);
    const host::Array x({n, 3}, counted(3 * rows));
    const Strided y(3 * (rows + 2), 0, {n, 3}, {1, n + 2});
    const DLTensor *args[] = {&x.tensor, &y.tensor};
    ASSERT_OK(kiln_call_run(call.get(), args, 2, nullptr));
    EXPECT_EQ(values_of(y.tensor), negated_values(3 * rows));
    for (size_t column = 0; column < 3; ++column)
      for (size_t gap = rows; gap < rows + 2; ++gap) EXPECT_EQ(y.memory[column * (rows + 2) + gap], untouched);
  }
}

TEST_P(OutputTest, GoesDownWhereAStrideIsBelowZero) {
  const host::Call call = open(negated("[-3, 1]"));
  const host::Array x({4, 3}, counted(12));
  const Strided y(12, 9, {4, 3}, {-3, 1});
  const DLTensor *args[] = {&x.tensor, &y.tensor};
  ASSERT_OK(kiln_call_run(call.get(), args, 2, nullptr));
  EXPECT_EQ(values_of(y.tensor), negated_values(12));
  EXPECT_EQ(y.memory[0], -9);

  // Kiln's own memory begins below the first element.
  ASSERT_OK(kiln_call_run(call.get(), args, 1, nullptr));
  DLManagedTensorVersioned *taken = nullptr;
  ASSERT_OK(kiln_call_take(call.get(), 1, &taken));
  EXPECT_EQ(taken->dl_tensor.strides[0], -3);
  EXPECT_EQ(values_of(taken->dl_tensor), negated_values(12));
  taken->deleter(taken);
}

TEST_P(OutputTest, OfAnyStridesIsWrittenByThoseOfEachArray) {
  const host::Call call = open(negated("\"any\""));
  const host::Array x({4, 3}, counted(12));
  const Strided columns(12, 0, {4, 3}, {1, 4}), wide(40, 0, {4, 3}, {10, 3}), down(12, 11, {4, 3}, {-3, -1});
  for (const Strided *y : {&columns, &wide, &down, &columns}) {
    const DLTensor *args[] = {&x.tensor, &y->tensor};
    ASSERT_OK(kiln_call_run(call.get(), args, 2, nullptr));
    EXPECT_EQ(values_of(y->tensor), negated_values(12));
    EXPECT_EQ(output(call, 1).data, y->tensor.data);
  }
  EXPECT_EQ(wide.memory[1], untouched);
  const host::Array dense({4, 3}, std::vector<float>(12));
  const DLTensor *args[] = {&x.tensor, &dense.tensor};
  ASSERT_OK(kiln_call_run(call.get(), args, 2, nullptr));
  EXPECT_EQ(dense.values, negated_values(12));

  void *const data[] = {x.tensor.data, dense.tensor.data};
  EXPECT_OK(kiln_call_run_data(call.get(), data, 2, nullptr));
}

TEST_P(OutputTest, ArraysThatHoldAnElementTwiceAreRefused) {
  const host::Call call = open(negated("\"any\""));
  const host::Array x({4, 3}, counted(12));
  const Strided zero(12, 0, {4, 3}, {0, 1}), close(12, 0, {4, 3}, {2, 1});
  const DLTensor *args[] = {&x.tensor, &zero.tensor};
  EXPECT_FAILS(kiln_call_run(call.get(), args, 2, nullptr), KILN_TYPE_MISMATCH,
               "output 'y': stride 0 of dim 0 of 4 elements leads to an element twice");
  args[1] = &close.tensor;
  EXPECT_FAILS(kiln_call_run(call.get(), args, 2, nullptr), KILN_TYPE_MISMATCH, "leads to an element twice");
  const host::Call declared = open(negated("[1, \"n\"]"));
  args[1] = &close.tensor;
  EXPECT_FAILS(kiln_call_run(declared.get(), args, 2, nullptr), KILN_TYPE_MISMATCH,
               "output 'y': stride of dim 0 is 2, expected 1");
}

TEST_P(OutputTest, LargeOnesAreTurnedRoundOnAllThreads) {
  context = host::make_context("off", nullptr, 3);
  const host::Call call = open(
      R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", "m"]}}],
          "nodes": [{"name": "y", "op": "neg", "inputs": ["x"]}],
          "outputs": [{"name": "y", "value": "y", "type": {"dtype": "f32", "shape": ["n", "m"],
                       "strides": [1, "n"]}}]})");
  const host::Array x({700, 333}, counted(700 * 333));
  const Strided y(700 * 333, 0, {700, 333}, {1, 700});
  const DLTensor *args[] = {&x.tensor, &y.tensor};
  ASSERT_OK(kiln_call_run(call.get(), args, 2, nullptr));
  EXPECT_EQ(values_of(y.tensor), negated_values(700 * 333));
}

// The second half of x's columns, the other way round; and a cache that a copy_ writes.
constexpr std::string_view views = R"({"kiln": 1,
  "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 4]}},
             {"name": "cache", "type": {"dtype": "f32", "shape": ["n", 4]}}],
  "nodes": [{"name": "half", "op": "slice", "inputs": ["x"], "attrs": {"dim": 1, "start": 2, "end": 4}},
            {"name": "turned", "op": "permute", "inputs": ["half"], "attrs": {"dims": [1, 0]}},
            {"name": "sum", "op": "add", "inputs": ["cache", "x"]},
            {"name": "written", "op": "copy_", "inputs": ["cache", "sum"]},
            {"name": "y", "op": "neg", "inputs": ["x"]}],
  "outputs": [{"name": "turned", "value": "turned", "view": true}, {"name": "y", "value": "y"},
              {"name": "cache", "value": "written", "view": true}]})";

TEST_P(OutputTest, AsAViewLiesInTheInput) {
  const host::Call call = open(views);
  for (const int64_t n : {3, 2}) {
    const auto count = static_cast<size_t>(4 * n);
    const host::Array x({n, 4}, counted(count)), cache({n, 4}, counted(count, 100)),
        y({n, 4}, std::vector<float>(count));
    const DLTensor *args[] = {&x.tensor, &cache.tensor, &y.tensor};  // views are not among them
    ASSERT_OK(kiln_call_run(call.get(), args, 3, nullptr));
    EXPECT_EQ(y.values, negated_values(count));
    const DLTensor &turned = output(call, 2), &written = output(call, 4);
    EXPECT_EQ(turned.data, x.values.data() + 2);
    EXPECT_EQ(turned.shape[0], 2);
    EXPECT_EQ(turned.shape[1], n);
    EXPECT_EQ(turned.strides[0], 1);
    EXPECT_EQ(turned.strides[1], 4);
    EXPECT_EQ(written.data, cache.values.data());
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(cache.values[i], 100 + 2 * static_cast<float>(i));
    EXPECT_EQ(output(call, 3).data, y.values.data());
  }
}

TEST_P(OutputTest, AsAViewIsNeitherBoundNorCopied) {
  const host::Call call = open(views);
  const host::Array x({2, 4}, counted(8)), cache({2, 4}, counted(8)), y({2, 2}, counted(4));
  EXPECT_FAILS(kiln_call_bind(call.get(), 2, &y.tensor), KILN_INVALID_ARGUMENT,
               "output 'turned' is a view of input 'x', where it is found after a run; it cannot be bound");
  if (compiles()) {
    EXPECT_EQ(plan().find("copy"), std::string::npos) << plan();
  }
  const DLTensor *none = nullptr;
  EXPECT_FAILS(kiln_call_output(call.get(), 2, &none), KILN_INVALID_ARGUMENT, "output 'turned' holds nothing");
}

TEST_P(OutputTest, AsAViewIsTakenWithTheInputThatItLiesIn) {
  struct Owned {
    host::Array array;
    bool gone = false;
    DLManagedTensorVersioned managed{};
  } x{.array = {{2, 4}, counted(8)}};
  x.managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  x.managed.dl_tensor = x.array.tensor;
  x.managed.manager_ctx = &x;
  x.managed.deleter = [](DLManagedTensorVersioned *dead) { static_cast<Owned *>(dead->manager_ctx)->gone = true; };
  const host::Array cache({2, 4}, counted(8));
  host::Call call = open(views);
  ASSERT_OK(kiln_call_bind_owned(call.get(), 0, &x.managed));
  const DLTensor *args[] = {&cache.tensor};
  ASSERT_OK(kiln_call_run(call.get(), args, 1, nullptr));
  DLManagedTensorVersioned *taken = nullptr;
  EXPECT_FAILS(kiln_call_take(call.get(), 4, &taken), KILN_INVALID_ARGUMENT,
               "output 'cache' is a view of input 'cache', which is not bound as an owned tensor");
  ASSERT_OK(kiln_call_take(call.get(), 2, &taken));
  call.reset();
  EXPECT_FALSE(x.gone);
  EXPECT_EQ(values_of(taken->dl_tensor), (std::vector<float>{2, 6, 3, 7}));
  taken->deleter(taken);
  EXPECT_TRUE(x.gone);
}

TEST_P(OutputTest, AViewIsGoneOnceItsInputIsBoundAnew) {
  const host::Array x({2, 4}, counted(8)), other({2, 4}, counted(8)), cache({2, 4}, counted(8));
  const host::Call call = open(views);
  const DLTensor *args[] = {&cache.tensor}, *found = nullptr;
  DLManagedTensorVersioned *taken = nullptr;
  ASSERT_OK(kiln_call_bind(call.get(), 0, &x.tensor));
  ASSERT_OK(kiln_call_run(call.get(), args, 1, nullptr));
  ASSERT_OK(kiln_call_output(call.get(), 2, &found));
  for (const DLTensor *now : {&other.tensor, static_cast<const DLTensor *>(nullptr)}) {
    ASSERT_OK(kiln_call_bind(call.get(), 0, now));
    EXPECT_FAILS(kiln_call_output(call.get(), 2, &found), KILN_INVALID_ARGUMENT, "was bound anew");
    EXPECT_FAILS(kiln_call_take(call.get(), 2, &taken), KILN_INVALID_ARGUMENT, "was bound anew");
  }
  ASSERT_OK(kiln_call_bind(call.get(), 0, &other.tensor));
  ASSERT_OK(kiln_call_run(call.get(), args, 1, nullptr));
  ASSERT_OK(kiln_call_output(call.get(), 2, &found));
}

TEST_P(OutputTest, AViewThatNoStridesLeadToIsRefused) {
  const host::Compiled compiled = try_compile(
      R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [4, 3]}}],
          "nodes": [{"name": "t", "op": "permute", "inputs": ["x"], "attrs": {"dims": [1, 0]}},
                    {"name": "flat", "op": "reshape", "inputs": ["t"], "attrs": {"shape": [12]}}],
          "outputs": [{"name": "y", "value": "flat", "view": true}]})");
  EXPECT_EQ(compiled.error.code, KILN_INVALID_ARGUMENT);
  EXPECT_EQ(compiled.error.message,
            "output 'y' is to be a view of input 'x', and no strides lead to its elements; let it"
            " be a copy");
}

// ---- copy_ into inputs that are not row-major

TEST_P(OutputTest, ACopyWritesAnInputByItsStridesAndNothingBetween) {
  // Once made of itself in step, once of itself turned round, once of another input.
  for (const std::string source : {"step", "turned", "x"}) {
    const host::Call call = open(
        R"({"kiln": 1, "inputs": [{"name": "state", "type": {"dtype": "f32", "shape": [3, 3], "strides": [1, 4]}},
                                  {"name": "x", "type": {"dtype": "f32", "shape": [3, 3]}}],
            "nodes": [{"name": "step", "op": "add", "inputs": ["state", "x"]},
                      {"name": "t", "op": "permute", "inputs": ["state"], "attrs": {"dims": [1, 0]}},
                      {"name": "turned", "op": "add", "inputs": ["t", "x"]},
                      {"name": "y", "op": "neg", "inputs": ["state"]},
                      {"name": "w", "op": "copy_", "inputs": ["state", ")" +
        source + R"("]}], "outputs": [{"name": "y", "value": "y"}]})");
    Strided state(12, 0, {3, 3}, {1, 4});
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 3; ++j) state.memory[static_cast<size_t>(i + 4 * j)] = static_cast<float>(10 * i + j);
    const host::Array x({3, 3}, counted(9)), y({3, 3}, std::vector<float>(9));
    const DLTensor *args[] = {&state.tensor, &x.tensor, &y.tensor};
    ASSERT_OK(kiln_call_run(call.get(), args, 3, nullptr));
    const std::vector<float> now = values_of(state.tensor);
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 3; ++j) {
        const auto at = static_cast<size_t>(3 * i + j);
        const int64_t before = source == "step" ? 10 * i + j : source == "turned" ? 10 * j + i : 0;
        EXPECT_EQ(now[at], static_cast<float>(before) + x.values[at]) << source;
        EXPECT_EQ(y.values[at], -static_cast<float>(10 * i + j)) << source;
      }
    for (const size_t gap : {3, 7}) EXPECT_EQ(state.memory[gap], untouched) << source;
  }
}

TEST_P(OutputTest, ACopyOfSomeElementsChangesThoseOfAStridedInput) {
  const host::Call call = open(
      R"({"kiln": 1, "inputs": [{"name": "cache", "type": {"dtype": "f32", "shape": [2, 8], "strides": [1, 3]}},
                                {"name": "x", "type": {"dtype": "f32", "shape": [2, 1]}}],
          "nodes": [{"name": "new", "op": "slice_scatter", "inputs": ["cache", "x"],
                     "attrs": {"dim": 1, "start": 5, "end": 6}},
                    {"name": "s", "op": "sum", "inputs": ["new"], "attrs": {"dims": [0, 1]}},
                    {"name": "w", "op": "copy_", "inputs": ["cache", "new"]}],
          "outputs": [{"name": "s", "value": "s"}, {"name": "cache", "value": "w", "view": true}]})");
  Strided cache(24, 0, {2, 8}, {1, 3});
  for (size_t j = 0; j < 8; ++j) cache.memory[3 * j] = cache.memory[3 * j + 1] = 1;
  const host::Array x({2, 1}, {20, 30}), s({}, {0});
  const DLTensor *args[] = {&cache.tensor, &x.tensor, &s.tensor};
  ASSERT_OK(kiln_call_run(call.get(), args, 3, nullptr));
  EXPECT_EQ(s.values[0], 64);
  EXPECT_EQ(cache.memory[15], 20);
  EXPECT_EQ(cache.memory[16], 30);
  EXPECT_EQ(cache.memory[17], untouched);
  EXPECT_EQ(output(call, 3).data, cache.memory.data());
  if (compiles()) {
    EXPECT_EQ(plan().find("copy "), std::string::npos) << plan();
  }
}

// ---- copy_ of what another region makes

constexpr std::string_view across = R"({"kiln": 1,
  "inputs": [{"name": "cache", "type": {"dtype": "f32", "shape": [8, 4]}},
             {"name": "x", "type": {"dtype": "f32", "shape": [1, 4]}}],
  "nodes": [{"name": "new", "op": "slice_scatter", "inputs": ["cache", "x"], "attrs": {"dim": 0, "start": 3, "end": 4},
             "annotations": {"kiln.region": {"text": "a"}, "kiln.cut": {"bool": true}}},
            {"name": "y", "op": "neg", "inputs": ["new"], "annotations": {"kiln.region": {"text": "b"}}},
            {"name": "w", "op": "copy_", "inputs": ["cache", "new"], "annotations": {"kiln.region": {"text": "b"}}}],
  "outputs": [{"name": "y", "value": "y"}]})";

TEST_P(OutputTest, WhatAnotherRegionOrPieceMakesIsWrittenIntoAnInputAndReadThere) {
  for (const std::string mode : {"all", "marked", "except_fallback"}) {
    const host::Call call = open(
        across, [&](kiln_options *o) { EXPECT_OK(kiln_options_set_text(o, "mode", 4, mode.data(), mode.size())); });
    const host::Array cache({8, 4}, counted(32)), x({1, 4}, {-1, -2, -3, -4}), y({8, 4}, std::vector<float>(32));
    const DLTensor *args[] = {&cache.tensor, &x.tensor, &y.tensor};
    ASSERT_OK(kiln_call_run(call.get(), args, 3, nullptr));
    for (size_t i = 0; i < 32; ++i) {
      EXPECT_EQ(cache.values[i], i / 4 == 3 ? x.values[i % 4] : static_cast<float>(i)) << mode;
      EXPECT_EQ(y.values[i], -cache.values[i]) << mode;
    }
  }
}

TEST_P(OutputTest, AnInputIsGivenWhatAnotherWasBeforeThatIsWritten) {
  const host::Call call = open(R"({"kiln": 1,
    "inputs": [{"name": "a", "type": {"dtype": "f32", "shape": [4]}}, {"name": "b", "type": {"dtype": "f32", "shape": [4]}}],
    "nodes": [{"name": "more", "op": "mul", "inputs": ["b", "b"]},
              {"name": "first", "op": "copy_", "inputs": ["a", "b"]},
              {"name": "second", "op": "copy_", "inputs": ["b", "more"]}], "outputs": []})");
  const host::Array a({4}, {9, 9, 9, 9}), b({4}, {1, 2, 3, 4});
  const DLTensor *args[] = {&a.tensor, &b.tensor};
  ASSERT_OK(kiln_call_run(call.get(), args, 2, nullptr));
  EXPECT_EQ(a.values, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(b.values, (std::vector<float>{1, 4, 9, 16}));
}

// ---- donation

// z = softmax(x @ w) @ w, in which nothing can be made where it is read: temporaries need memory of their own.
std::string two_layers(std::string_view x_annotations, std::string_view w_annotations, std::string_view outputs) {
  const auto input = [](std::string_view name, std::string_view annotations) {
    return R"({"name": ")" + std::string(name) + R"(", "type": {"dtype": "f32", "shape": [64, 64]}, "annotations": {)" +
           std::string(annotations) + "}}";
  };
  return R"({"kiln": 1, "inputs": [)" + input("x", x_annotations) + ", " + input("w", w_annotations) +
         R"(], "nodes": [{"name": "a", "op": "matmul", "inputs": ["x", "w"]},
            {"name": "b", "op": "matmul", "inputs": ["a", "w"]}, {"name": "c", "op": "matmul", "inputs": ["b", "b"]},
            {"name": "z", "op": "sum", "inputs": ["c"], "attrs": {"dims": [1]}}],
            "outputs": [{"name": "z", "value": "z"})" +
         std::string(outputs) + "]}";
}
constexpr std::string_view donated = R"("kiln.donate": {"bool": true})";

TEST_P(OutputTest, ADonatedInputServesAsWorkingMemory) {
  const bool uses = compiles();
  const std::vector<float> x_values(64 * 64, 0.01f), w_values(64 * 64, 0.02f);
  const auto run = [&](const std::string &graph, bool x_stays, bool w_stays) {
    const host::Call call = open(graph);
    const host::Array x({64, 64}, x_values), w({64, 64}, w_values), z({64}, std::vector<float>(64));
    const DLTensor *args[] = {&x.tensor, &w.tensor, &z.tensor};
    EXPECT_OK(kiln_call_run(call.get(), args, 3, nullptr));
    const double a = 64 * 0.01 * 0.02, b = 64 * a * 0.02, expected = 64 * 64 * b * b;
    for (const float value : z.values) EXPECT_NEAR(value, expected, 1e-5);
    if (x_stays) {
      EXPECT_EQ(x.values, x_values);
    }
    if (w_stays) {
      EXPECT_EQ(w.values, w_values);
    }
    return memory_bytes(call);
  };
  const int64_t all = run(two_layers("", "", ""), true, true), one = run(two_layers(donated, "", ""), false, true),
                two = run(two_layers(donated, donated, ""), false, false);
  EXPECT_EQ(all - one, uses ? 64 * 64 * 4 : 0);
  EXPECT_LE(two, one);
  // One that is an output, too, is read to the end.
  EXPECT_EQ(run(two_layers(donated, "", R"(, {"name": "x", "value": "x"})"), true, true), all);
}

TEST_P(OutputTest, ADonatedInputOverlapsNothing) {
  if (!compiles()) return;
  const host::Call call = open(two_layers(donated, "", ""));
  const host::Array x({64, 64}, std::vector<float>(64 * 64, 0.01f)), z({64}, std::vector<float>(64));
  const DLTensor *args[] = {&x.tensor, &x.tensor, &z.tensor};
  EXPECT_FAILS(kiln_call_run(call.get(), args, 3, nullptr), KILN_INVALID_ARGUMENT,
               "input 'x' overlaps input 'w'; a run writes it");
}

// ---- edits

class OutputOfEditTest : public testing::Test {
 protected:
  void SetUp() override {
    kiln_edit *made = nullptr;
    ASSERT_OK(kiln_edit_begin(context.get(), nullptr, &made));
    edit.reset(made);
    const kiln_type type{sizeof type, KILN_F32, 2, KILN_LAYOUT_ROW_MAJOR, dims, nullptr};
    ASSERT_OK(kiln_edit_input(edit.get(), "x", 1, &type, &x));
    kiln_op neg = 0;
    ASSERT_OK(kiln_op_find(context.get(), "neg", 3, &neg));
    kiln_node node = 0;
    ASSERT_OK(kiln_edit_add(edit.get(), neg, "y", 1, &x, 1, nullptr, 0, &node));
    y = node << 32;
  }
  kiln_error *add(kiln_value value, std::string_view name, const kiln_type *type, uint32_t flags = 0) {
    const kiln_output output{sizeof output, flags, value, name.data(), name.size(), type};
    return kiln_edit_output(edit.get(), &output);
  }
  static kiln_type of(const kiln_dim *dims, uint32_t layout, const kiln_dim *strides = nullptr,
                      kiln_dtype dtype = KILN_F32) {
    return {sizeof(kiln_type), dtype, 2, layout, dims, strides};
  }
  kiln_error *finish(host::Graph &out) {
    kiln_graph *made = nullptr;
    kiln_error *error = kiln_edit_finish(edit.get(), &made);
    out.reset(made);
    return error;
  }

  const kiln_dim dims[2] = {{2, 0}, {3, 0}};
  host::Context context = host::make_context();
  host::Edit edit;
  kiln_value x = 0, y = 0;
  host::Graph graph;
};

TEST_F(OutputOfEditTest, ReadsBackFromItsJsonAndIsDescribed) {
  const kiln_dim turned[] = {{1, 0}, {2, 0}};
  const kiln_type strided = of(dims, KILN_LAYOUT_STRIDED, turned), any = of(dims, KILN_LAYOUT_ANY),
                  dense = of(dims, KILN_LAYOUT_ROW_MAJOR);
  ASSERT_OK(add(y, "strided", &strided));
  ASSERT_OK(add(y, "any", &any));
  ASSERT_OK(add(y, "dense", &dense));
  ASSERT_OK(add(y, "plain", nullptr));
  ASSERT_OK(add(x, "view", nullptr, KILN_OUTPUT_VIEW));
  ASSERT_OK(finish(graph));
  const std::string json = host::write(graph.get(), "json");
  EXPECT_EQ(host::write(host::parse(context.get(), json).get(), "json"), json);
  EXPECT_NE(host::write(graph.get(), "text")
                .find("output strided = y strides [1, 2]\noutput any = y of any strides\n"
                      "output dense = y\noutput plain = y\noutput view = x as a view\n"),
            std::string::npos);
  kiln_report *report = nullptr;
  ASSERT_OK(kiln_graph_describe(graph.get(), &report));
  const host::Report description(report);
  EXPECT_EQ(host::i64(description, "outputs.0.strides.1"), 2);
  EXPECT_EQ(host::text(description, "outputs.1.strides"), "any");
  EXPECT_EQ(host::text(description, "outputs.4.view_of"), "x");

  // Given anew under their names, they stay what they are.
  kiln_edit *made = nullptr;
  ASSERT_OK(kiln_edit_begin(context.get(), graph.get(), &made));
  edit.reset(made);
  const kiln_text name{"any", 3};
  ASSERT_OK(kiln_edit_outputs(edit.get(), &y, &name, 1));
  ASSERT_OK(finish(graph));
  EXPECT_NE(host::write(graph.get(), "text").find("output any = y of any strides\n"), std::string::npos);
}

TEST_F(OutputOfEditTest, OfAnotherTypeThanItsValueIsRefusedWithBoth) {
  const kiln_dim other[] = {{3, 0}, {2, 0}};
  const kiln_type turned = of(other, KILN_LAYOUT_ROW_MAJOR), wide = of(dims, KILN_LAYOUT_ANY, nullptr, KILN_F64);
  EXPECT_FAILS(add(y, "out", &turned), KILN_TYPE_MISMATCH,
               "output 'out' is declared as f32[3, 2], its value 'y' is f32[2, 3]");
  EXPECT_FAILS(add(y, "out", &wide), KILN_TYPE_MISMATCH, "f64[2, 3], its value 'y' is f32[2, 3]");
}

TEST_F(OutputOfEditTest, WhoseStridesHoldAnElementTwiceIsRefusedByName) {
  const kiln_dim zero[] = {{0, 0}, {1, 0}}, close[] = {{2, 0}, {1, 0}};
  const kiln_type of_zero = of(dims, KILN_LAYOUT_STRIDED, zero), of_close = of(dims, KILN_LAYOUT_STRIDED, close);
  ASSERT_OK(add(y, "out", &of_zero));
  EXPECT_FAILS(finish(graph), KILN_INVARIANT, "at output 'out': stride 0 of dim 0 of 2 elements");
  SetUp();
  ASSERT_OK(add(y, "out", &of_close));
  EXPECT_FAILS(finish(graph), KILN_INVARIANT, "at output 'out': stride 2 of dim 0 of 2 elements");
}

TEST_F(OutputOfEditTest, AsAViewIsOfAnInput) {
  const kiln_type type = of(dims, KILN_LAYOUT_ROW_MAJOR);
  EXPECT_FAILS(add(x, "out", &type, KILN_OUTPUT_VIEW), KILN_INVALID_ARGUMENT, "a view has the type and strides");
  EXPECT_FAILS(add(x, "out", nullptr, 2), KILN_INVALID_ARGUMENT, "output->flags has unknown bits: 2");
  ASSERT_OK(add(y, "out", nullptr, KILN_OUTPUT_VIEW));
  EXPECT_FAILS(finish(graph), KILN_INVARIANT, "at output 'out': it is to be a view of an input, and 'y' is none");
}

TEST_F(OutputOfEditTest, OnlyInputsAreDonated) {
  const uint8_t yes = 1;
  const kiln_attr donate = host::attr("kiln.donate", KILN_ATTR_BOOL, 1, &yes);
  EXPECT_FAILS(kiln_edit_annotate(edit.get(), y >> 32, &donate, 1), KILN_INVALID_ARGUMENT,
               "annotation 'kiln.donate': node 2, 'y', is no input of this graph");
  EXPECT_OK(kiln_edit_annotate(edit.get(), x >> 32, &donate, 1));
  ASSERT_OK(add(y, "out", nullptr));
  ASSERT_OK(finish(graph));
  EXPECT_NE(host::write(graph.get(), "json").find(R"("annotations":{"kiln.donate":{"bool":true}})"), std::string::npos);
}

}  // namespace
