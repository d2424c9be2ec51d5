// The reference as what executes: on operands where they lie, values as their dtype has them, on several threads.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runtime/ops/samples.h"
#include "tests/backend/harness.h"

namespace kiln::testing {
namespace {

// The bytes of a tensor, with gaps; every other dim, the last one too, goes down in memory. Or one that repeats what is
// first along its last dim, which is there once.
struct Scattered {
  explicit Scattered(const TensorData &data, bool repeats = false) : strides(data.shape.size()) {
    const std::vector<int64_t> &shape = data.shape;
    int64_t step = 2, first = 0;
    for (size_t d = shape.size(); d-- > 0; step *= std::max<int64_t>(shape[d], 1) + 1) strides[d] = step;
    const auto size = static_cast<int64_t>(size_of(data.dtype));
    memory.resize(static_cast<size_t>((step + 1) * size), 0xa5);
    for (size_t d = shape.size(); data.element_count() > 0 && d-- > 0;)
      if ((shape.size() - d) % 2 == 1) {
        first += strides[d] * (shape[d] - 1);
        strides[d] = -strides[d];
      }
    if (repeats && !shape.empty()) strides.back() = 0;
    for (int64_t k = data.element_count(); k-- > 0;) {
      int64_t at = first, rest = k;
      for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) at += rest % shape[d] * strides[d];
      std::memcpy(memory.data() + at * size, data.bytes.data() + k * size, static_cast<size_t>(size));
    }
    view = view_of(data.dtype, shape, strides, memory.data() + first * size);
  }
  std::vector<int64_t> strides;
  Bytes memory;
  RefTensor view;
};

// Each range on its own, the last first.
const ReferenceThreads backwards{.run =
                                     [](int64_t tasks, const std::function<void(int64_t)> &task) {
                                       while (tasks-- > 0) task(tasks);
                                     },
                                 .least_work = 1};

ReferenceThreads on_three_threads() {
  return {.run =
              [](int64_t tasks, const std::function<void(int64_t)> &task) {
                std::atomic<int64_t> next = 0;
                std::vector<std::thread> threads;
                for (int k = 0; k < 3; ++k)
                  threads.emplace_back([&] {
                    for (int64_t t = next++; t < tasks; t = next++) task(t);
                  });
                for (std::thread &thread : threads) thread.join();
              },
          .least_work = 64};
}

Result<std::vector<RefTensor>> run_wide(const Case &c) {
  std::vector<RefTensor> tensors;
  for (const TensorData &argument : c.arguments) tensors.push_back(to_reference(argument));
  std::vector<const RefTensor *> pointers;
  for (const RefTensor &tensor : tensors) pointers.push_back(&tensor);
  return run_reference(*c.graph, pointers, nullptr, [](const Graph &, const Node &, const ReferenceContext &context) {
    for (RefTensor &result : context.results)
      if (result.dtype == DType::f32)
        for (double &x : result.f) x = static_cast<float>(x);
  });
}

Result<std::vector<RefTensor>> run_native(const Case &c, const std::vector<Scattered> &arguments,
                                          ReferenceThreads threads) {
  std::vector<const RefTensor *> pointers;
  for (const Scattered &argument : arguments) pointers.push_back(&argument.view);
  return run_reference(*c.graph, pointers, nullptr, {}, nullptr, {}, {.native = true, .threads = std::move(threads)});
}

// How many results native storage and several threads have as wide storage does, which has `arguments`' values.
int compare(const Case &c, const std::vector<Scattered> &arguments) {
  Case same = c;
  for (size_t k = 0; k < arguments.size(); ++k) same.arguments[k] = from_reference(arguments[k].view);
  const Result<std::vector<RefTensor>> expected = run_wide(same);
  int compared = 0;
  for (const ReferenceThreads &threads : {ReferenceThreads(), backwards}) {
    const Result<std::vector<RefTensor>> got = run_native(c, arguments, threads);
    EXPECT_EQ(got.status().message(), expected.status().message());
    for (size_t k = 0; got.ok() && expected.ok() && k < expected->size(); ++k) {
      EXPECT_TRUE((*got)[k].native && (*got)[k].f.empty() && (*got)[k].i.empty()) << "result " << k;
      EXPECT_EQ((*got)[k].shape, (*expected)[k].shape);
      EXPECT_EQ(from_reference((*got)[k]).bytes, from_reference((*expected)[k]).bytes) << "result " << k;
      ++compared;
    }
  }
  return compared;
}

TEST(NativeReference, HasTheBitsOfWideStorageForEveryOpAndTypeOnAnyNumberOfThreads) {
  int compared = 0, compared_repeated = 0;
  for (const Op *op : all_ops()) {
    const Result<std::vector<Case>> cases = all_cases_of(*op);
    ASSERT_TRUE(cases.ok()) << cases.status().message();
    for (const Case &c : *cases) {
      SCOPED_TRACE(c.name);
      std::vector<Scattered> arguments, repeated;
      for (const TensorData &argument : c.arguments) {
        arguments.emplace_back(argument);
        repeated.emplace_back(argument, true);
      }
      const int results = compare(c, arguments);
      EXPECT_GT(results, 0);
      compared += results;
      compared_repeated += compare(c, repeated);
    }
  }
  EXPECT_GT(compared, 2000);
  EXPECT_GT(compared_repeated, 2000);
}

Case native_case(std::string_view op, const std::vector<TensorData> &arguments, const AttrMap &attrs = {}) {
  Edit edit;
  std::vector<ValueId> inputs;
  for (const TensorData &argument : arguments) {
    Shape dims(argument.shape.begin(), argument.shape.end());
    inputs.push_back(*edit.input(str_cat("x", inputs.size()), make_type(argument.dtype, std::move(dims))));
  }
  const std::vector<ValueId> outputs = {{*edit.add(find_op(op), inputs, attrs, "y"), 0}};
  EXPECT_TRUE(edit.set_output_values(outputs).ok());
  Case made;
  made.graph = *edit.finish();
  made.arguments = arguments;
  return made;
}

TEST(NativeReference, TellsTheFirstIndexInOrderThatIsOutOfRange) {
  constexpr int64_t count = 10000;
  std::vector<int64_t> numbers(count, 1);
  numbers[977] = 70;
  numbers[978] = -3;
  numbers[count - 1] = 90;
  const TensorData index = ops::i64_data({count}, numbers), rows = ops::i64_data({count, 1}, numbers);
  const TensorData table = ops::f32_data({2, 3}, {1, 2, 3, 4, 5, 6});
  const TensorData many = ops::f32_data({count, 2}, std::vector<float>(2 * count));
  const AttrMap along = {{"dim", AttrValue(int64_t{0})}};
  for (const Case &c : {native_case("embedding", {table, index}), native_case("index_select", {table, index}, along),
                        native_case("gather_nd", {table, rows}), native_case("index", {table, index}, along),
                        native_case("index_add", {ops::f32_data({2, 2}, {1, 2, 3, 4}), index, many}, along),
                        native_case("one_hot", {index}, {{"classes", AttrValue(Dim(2))}}),
                        native_case("cross_entropy", {many, index})}) {
    const std::string_view op = c.graph->nodes().back().op->name;
    const std::vector<Scattered> arguments(c.arguments.begin(), c.arguments.end());
    for (const ReferenceThreads &threads : {ReferenceThreads(), backwards, on_three_threads()})
      EXPECT_EQ(run_native(c, arguments, threads).status().message(),
                str_cat("node 'y' (", op, "): index 70 is out of range: expected 0 <= index < 2"));
  }
}

TEST(NativeReference, SharesRangesAmongThreadsWithTheSameBits) {
  std::mt19937_64 random(3);
  const Sample numbers;
  for (const DType type : {DType::f32, DType::f16, DType::i8}) {
    SCOPED_TRACE(name_of(type));
    const bool is_float = dtype_info(type).is_float;
    const TensorData x = random_tensor(type, {70, 90}, numbers, random);
    for (const char *op : {"mul", "sum", is_float ? "softmax" : "max", is_float ? "matmul" : "abs"}) {
      std::vector<TensorData> operands = {x};
      if (op == std::string_view("mul")) operands.push_back(x);
      if (op == std::string_view("matmul")) operands.push_back(random_tensor(type, {90, 65}, numbers, random));
      AttrMap attrs;
      if (op == std::string_view("sum")) attrs = {{"dims", ops::ints({1})}};
      const Case c = native_case(op, operands, attrs);
      const std::vector<Scattered> arguments(c.arguments.begin(), c.arguments.end());
      const auto alone = run_native(c, arguments, {}), shared = run_native(c, arguments, on_three_threads());
      ASSERT_TRUE(alone.ok() && shared.ok()) << alone.status().message() << shared.status().message();
      EXPECT_EQ(from_reference((*shared)[0]).bytes, from_reference((*alone)[0]).bytes) << op;
    }
  }
}

TEST(NativeReference, ReadsOperandsWhereTheyLieAndKeepsValuesInTheirOwnBytes) {
  std::vector<float> ones(1 << 16, 1.0f);
  const RefTensor x = view_of(DType::f32, {1 << 16}, {1}, ones.data());
  EXPECT_EQ(x.native->first, reinterpret_cast<uint8_t *>(ones.data()));
  EXPECT_TRUE(x.f.empty());
  const Case c = native_case("exp", {ops::f32_data({1 << 16}, ones)});
  const RefTensor *pointer = &x;
  const auto y = run_reference(*c.graph, {&pointer, 1}, nullptr, {}, nullptr, {}, {.native = true});
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_TRUE((*y)[0].f.empty());
  EXPECT_EQ((*y)[0].native->owner->size(), 4u << 16);
}

}  // namespace
}  // namespace kiln::testing
