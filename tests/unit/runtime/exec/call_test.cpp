#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "tests/unit/runtime/exec/example_call.h"

namespace kiln {
namespace {

using example::Floats;
using example::floats_of;
using example::run;
using testing::ElementsAre;
using testing::HasSubstr;

const Expr n = Expr::symbol("n");

TEST(Call, RunsOnArraysThatAreGiven) {
  auto call = example::call_of(example::add(4));
  Floats x({4}), y({4}, 10), z({4});
  ASSERT_TRUE(run(*call, x, y, z).ok());
  EXPECT_THAT(z.values, ElementsAre(10, 12, 14, 16));
}

TEST(Call, RunsOnArraysThatAreBound) {
  auto call = example::call_of(example::add(4));
  Floats x({4}), y({4}, 10), z({4});
  ASSERT_TRUE(call->bind(*call->slot("y"), y, nullptr).ok());
  ASSERT_TRUE(call->bind(*call->slot("z"), z, nullptr).ok());
  ASSERT_TRUE(run(*call, x).ok());
  EXPECT_THAT(z.values, ElementsAre(10, 12, 14, 16));
  x.values = {0, 0, 0, 1};
  ASSERT_TRUE(run(*call, x).ok());
  EXPECT_THAT(z.values, ElementsAre(10, 11, 12, 14));
}

TEST(Call, OneCompilationServesAllSizes) {
  auto call = example::call_of(example::add(n));
  for (int64_t size : {3, 1, 0, 1000, 17, 3}) {
    Floats x({size}), y({size}, 5), z({size});
    ASSERT_TRUE(run(*call, x, y, z).ok()) << size;
    for (size_t i = 0; i < z.values.size(); ++i) ASSERT_EQ(z.values[i], x.values[i] + y.values[i]);
    EXPECT_THAT(*call->dims(2), ElementsAre(size));
  }
}

TEST(Call, EverySortOfSlotAndStep) {
  auto call = example::call_of(example::everything());
  Floats x({2, 2}), y({4}, 100), size({4}), w({4}, 1), z({4});
  ASSERT_TRUE(call->bind(*call->slot("w"), w, nullptr).ok());
  ASSERT_TRUE(run(*call, x, y, size, z).ok());
  // (x + y) + (w + c) + 2n, with n = 2; y = x + y
  EXPECT_THAT(z.values, ElementsAre(100 + 11 + 4, 102 + 22 + 4, 104 + 33 + 4, 106 + 44 + 4));
  EXPECT_THAT(y.values, ElementsAre(100, 102, 104, 106));
  EXPECT_GE(call->arena_bytes(), 16u + 32u + 64u);
}

TEST(Call, CopiesWhatIsLargeInPieces) {
  Artifact a = example::add(n);
  Plan::Step copy;
  copy.kind = Plan::Step::Kind::copy;
  copy.slots = {0, 2};
  a.plan.steps = {copy};
  auto call = example::call_of(std::move(a));
  for (int64_t size : {0, 1, 65536, 65537, 1'000'003}) {
    Floats x({size}, 1), y({size}), z({size});
    ASSERT_TRUE(run(*call, x, y, z).ok()) << size;
    EXPECT_TRUE(z.values == x.values) << size;
  }
}

// Kernels take the lowest address, which a run has to find, and to keep apart from others.
TEST(Call, AnArrayThatGoesDownBeginsAtItsLastElement) {
  Artifact a = example::add(4);
  a.plan.inputs[0].strides = {-1};
  auto call = example::call_of(std::move(a));
  Floats x({8}), y({4}, 10), z({4});
  const int64_t four[] = {4}, down[] = {-1};
  ArrayRef last_first{x.values.data() + 5, DType::f32, 1, four, down};
  ASSERT_TRUE(run(*call, last_first, y, z).ok());
  EXPECT_THAT(z.values, ElementsAre(2 + 10, 3 + 11, 4 + 12, 5 + 13));
  const ArrayRef over_the_lowest{x.values.data(), DType::f32, 1, four, nullptr};
  EXPECT_EQ(run(*call, last_first, y, over_the_lowest).message(), "output 'z' overlaps input 'x'; a run writes it");
  EXPECT_EQ(run(*call, last_first, ArrayRef{x.values.data(), DType::f32, 1, four, nullptr}, z).message(), "");
  last_first.data = x.values.data() + 3;
  EXPECT_EQ(run(*call, last_first, y, ArrayRef{x.values.data() + 4, DType::f32, 1, four, nullptr}).message(), "");
  EXPECT_THAT(std::span(x.values).subspan(4), ElementsAre(0 + 10, 1 + 11, 2 + 12, 3 + 13));
}

TEST(Call, RunDataOnlyChangesAddresses) {
  auto call = example::call_of(example::add(n));
  Floats x({3}), y({3}, 10), z({3});
  void *data[] = {x.values.data(), y.values.data(), z.values.data()};
  EXPECT_THAT(call->run_data(data).message(), HasSubstr("there was no run"));
  ASSERT_TRUE(run(*call, x, y, z).ok());
  Floats other({3}, 100), out({3});
  data[0] = other.values.data();
  data[2] = out.values.data();
  ASSERT_TRUE(call->run_data(data).ok());
  EXPECT_THAT(out.values, ElementsAre(110, 112, 114));
  data[2] = nullptr;
  ASSERT_TRUE(call->run_data(data).ok());
  EXPECT_THAT(floats_of(*call->take(2)), ElementsAre(110, 112, 114));
  EXPECT_THAT(call->run_data({data, 2}).message(), HasSubstr("2 addresses given, expected 3"));
  data[0] = nullptr;
  EXPECT_EQ(call->run_data(data).message(), "input 'x': data is null");
}

TEST(Call, RunDataSeesThatABoundArrayChangedItsShape) {
  auto call = example::call_of(example::add(n));
  Floats x({3}), y({3}, 10), z({3}), longer({5});
  ASSERT_TRUE(call->bind(0, x, nullptr).ok());
  ASSERT_TRUE(run(*call, y, z).ok());
  ASSERT_TRUE(call->bind(0, longer, nullptr).ok());
  void *data[] = {y.values.data(), z.values.data()};
  EXPECT_EQ(call->run_data(data).message(), "input 'x': dim 0 is 5, expected 3 (symbol 'n', bound by input 'x' dim 0)");
}

// ---- what is refused, and in which words

TEST(CallErrors, NameSlotDimAndSymbol) {
  auto call = example::call_of(example::add(n));
  Floats x({4}), y({5}), z({4}), matrix({2, 2});
  EXPECT_EQ(run(*call, x, y, z).message(), "input 'y': dim 0 is 5, expected 4 (symbol 'n', bound by input 'x' dim 0)");
  EXPECT_EQ(run(*call, x, x, y).message(), "output 'z': dim 0 is 5, expected 4 (symbol 'n', bound by input 'x' dim 0)");
  EXPECT_EQ(run(*call, x, matrix, z).message(), "input 'y': rank is 2, expected 1");
  EXPECT_EQ(run(*call, matrix, x, z).message(), "input 'x': rank is 2, expected 1");
  ArrayRef wrong = x;
  wrong.dtype = DType::f64;
  const Status status = run(*call, x, wrong, z);
  EXPECT_EQ(status.message(), "input 'y': dtype is f64, expected f32");
  EXPECT_EQ(status.code(), Code::type_mismatch);
  EXPECT_TRUE(run(*call, x, x, z).ok()) << "and the call goes on";
}

TEST(CallErrors, NameRangesDivisorsAndChecks) {
  auto call = example::call_of(example::everything());
  const auto run_with = [&](int64_t rows, int64_t size) {
    Floats x({rows, 2}), y({2 * rows}), s({size}), w({4});
    EXPECT_TRUE(call->bind(3, w, nullptr).ok());
    return run(*call, x, y, s).message();
  };
  EXPECT_EQ(run_with(0, 0), "input 'x': dim 0 is 0, expected at least 1 (symbol 'n')");
  EXPECT_EQ(run_with(1002, 4), "input 'x': dim 0 is 1002, expected at most 1000 (symbol 'n')");
  EXPECT_EQ(run_with(3, 6), "input 'x': dim 0 is 3, expected a multiple of 2 (symbol 'n')");
  EXPECT_EQ(
      run_with(2, 5),
      "size and z; m is 5, 2*n is 4 (symbol 'm', bound by input 'size' dim 0; symbol 'n', bound by input 'x' dim 0)");
  EXPECT_EQ(run_with(2, 4), "");
  Floats x({2, 2}), y({5}), s({4});
  EXPECT_EQ(run(*call, x, y, s).message(),
            "input 'y': dim 0 is 5, expected 4 (2*n; symbol 'n', bound by input 'x' dim 0)");
}

TEST(CallErrors, StridesMustBeTheDeclaredOnes) {
  auto call = example::call_of(example::everything());
  Floats x({2, 2}), y({4}), s({4}), w({4}), wide({8});
  ASSERT_TRUE(call->bind(3, w, nullptr).ok());
  ArrayRef transposed = x;
  const int64_t columns[] = {1, 2}, rows[] = {2, 1};
  transposed.strides = columns;
  EXPECT_EQ(run(*call, transposed, y, s).message(),
            "input 'x': stride of dim 0 is 1, expected 2 elements; make the array contiguous");
  transposed.strides = rows;
  EXPECT_TRUE(run(*call, transposed, y, s).ok());
  const int64_t four[] = {4}, two[] = {2};
  ArrayRef every_second{wide.values.data(), DType::f32, 1, four, two};
  EXPECT_THAT(run(*call, x, every_second, s).message(), HasSubstr("input 'y': stride of dim 0 is 2, expected 1"));
}

TEST(CallErrors, StridesOfSingleElementsSayNothing) {
  auto call = example::call_of(example::add(n));
  Floats x({1}), y({1}, 10), z({1});
  const int64_t one[] = {1}, far[] = {77};
  ASSERT_TRUE(run(*call, ArrayRef{x.values.data(), DType::f32, 1, one, far}, y, z).ok());
  EXPECT_EQ(z.values[0], 10);
}

TEST(CallErrors, OutputsMayNotOverlapAnything) {
  auto call = example::call_of(example::add(4));
  Floats buffer({8});
  const int64_t four[] = {4};
  const auto at = [&](size_t offset) { return ArrayRef{buffer.values.data() + offset, DType::f32, 1, four, nullptr}; };
  EXPECT_EQ(run(*call, at(0), at(4), at(0)).message(), "output 'z' overlaps input 'x'; a run writes it");
  EXPECT_EQ(run(*call, at(0), at(4), at(3)).code(), Code::invalid_argument);
  EXPECT_TRUE(run(*call, at(0), at(1), at(4)).message().find("overlaps input 'y'") != std::string::npos);
  EXPECT_TRUE(run(*call, at(0), at(0), at(4)).ok()) << "inputs may share memory";
}

TEST(CallErrors, AWrittenInputMayNotOverlapAnotherInput) {
  auto call = example::call_of(example::everything());
  Floats x({2, 2}), s({4}), w({4});
  ASSERT_TRUE(call->bind(3, w, nullptr).ok());
  const int64_t four[] = {4};
  EXPECT_EQ(run(*call, x, ArrayRef{x.values.data(), DType::f32, 1, four, nullptr}, s).message(),
            "input 'y' overlaps input 'x'; a run writes it");
  EXPECT_EQ(run(*call, x, ArrayRef{w.values.data(), DType::f32, 1, four, nullptr}, s).message(),
            "input 'y' overlaps parameter 'w'; a run writes it");
}

TEST(CallErrors, NullAndMisalignedData) {
  auto call = example::call_of(example::add(4));
  Floats x({4}), z({4});
  const int64_t four[] = {4};
  EXPECT_EQ(run(*call, x, ArrayRef{nullptr, DType::f32, 1, four, nullptr}, z).message(), "input 'y': data is null");
  std::vector<char> bytes(32);
  EXPECT_EQ(run(*call, x, ArrayRef{bytes.data() + 1, DType::f32, 1, four, nullptr}, z).message(),
            "input 'y': data is not aligned to its element of 4 bytes");
}

TEST(CallErrors, MissingAndSuperfluousArrays) {
  auto call = example::call_of(example::everything());
  Floats x({2, 2}), y({4}), s({4}), z({4}), w({4});
  EXPECT_EQ(run(*call, x, y, s, z).message(), "run: parameter 'w' is not bound");
  ASSERT_TRUE(call->bind(3, w, nullptr).ok());
  EXPECT_EQ(run(*call, x, y).message(), "run: input 'size' is neither bound nor given");
  EXPECT_EQ(run(*call, x, y, s, z, z).message(),
            "run: 5 arrays given, expected at most 4: the inputs and outputs that are not bound");
  EXPECT_EQ(call->slot("foo").status().message(),
            "no slot 'foo'; the signature has input 'x', input 'y', input 'size', parameter 'w', output 'z'");
  EXPECT_EQ(call->bind(5, x, nullptr).message(), "there is no slot 5; the signature has 5");
  EXPECT_EQ(call->bind(0, y, nullptr).message(), "input 'x': rank is 1, expected 2");
  EXPECT_EQ(call->dims(9).status().message(), "there is no slot 9; the signature has 5");
}

TEST(CallErrors, WhatAKernelFound) {
  Artifact a = example::add(4);
  a.images.push_back(example::failing_kernel());
  a.kernels.emplace_back();
  a.contracts.push_back(example::contract(0, 1));
  a.contracts.back().buffers[0].written = false;
  a.plan.steps.insert(a.plan.steps.begin(), example::launch(1, {0}));
  auto call = example::call_of(std::move(a));
  Floats x({4}), y({4}, 10), z({4});
  for (int i = 0; i < 2; ++i) {
    const Status status = run(*call, x, y, z);
    EXPECT_EQ(status.code(), Code::out_of_range);
    EXPECT_EQ(status.message(), "an index is out of range (first in step 0, kernel 1)");
  }
  EXPECT_THAT(z.values, ElementsAre(10, 12, 14, 16)) << "outputs are defined all the same";
}

// ---- plans that lie in a way that only a call's sizes show

// Runs `everything` after `forge`; size is 2n for the example, anything for what is forged.
Status run_forged(void (*forge)(Artifact &), int64_t size = 4) {
  Artifact a = example::everything();
  forge(a);
  auto executable = example::try_load(std::move(a));
  if (!executable.ok()) return executable.take_status();
  auto call = std::move(Call::create(std::move(executable).value())).value();
  Floats x({2, 2}), y({4}), sizes({size}), w({4}), z({4});
  EXPECT_TRUE(call->bind(3, w, nullptr).ok());
  return run(*call, x, y, sizes, z);
}

TEST(CallErrors, ASlotThatIsLargerThanItsArrayOrStorage) {
  ASSERT_TRUE(run_forged([](Artifact &) {}).ok());
  const auto expect_damaged = [](void (*forge)(Artifact &), std::string_view why) {
    const Status status = run_forged(forge);
    EXPECT_EQ(status.code(), Code::corrupt);
    EXPECT_EQ(status.message(), str_cat("the plan is damaged: ", why));
  };
  expect_damaged([](Artifact &a) { a.plan.slots[0].size_bytes = 8 * n + 1; }, "slot 0 of 17 bytes lies in 16 bytes");
  expect_damaged([](Artifact &a) { a.plan.slots[7].size_bytes = 16 * n; }, "slot 7 of 32 bytes lies in 16 bytes");
  expect_damaged([](Artifact &a) { a.plan.slots[5].size_bytes = 8 * n + 8; }, "slot 5 of 24 bytes lies in 16 bytes");
  expect_damaged([](Artifact &a) { a.plan.arena[0].size_bytes = n; }, "slot 5 of 16 bytes lies in 2 bytes");
  expect_damaged([](Artifact &a) { a.contracts[0].buffers[1].size_bytes = n * n * n * 4; },
                 "slot 1 of 32 bytes lies in 16 bytes");
}

TEST(CallErrors, SizesThatAKernelTakesToBeEqual) {
  constexpr auto forge = [](Artifact &a) {
    a.plan.checks.clear();
    a.plan.slots[6].size_bytes = a.plan.slots[7].size_bytes = 8 * n;
    a.contracts[1].symbols = {{.name = "m"}, {.name = "n"}};
    a.contracts[1].equalities = {{Expr::symbol("m"), 2 * n}};
    a.contracts[1].buffers[0].size_bytes = a.contracts[1].buffers[1].size_bytes = 8 * n;
    a.plan.steps[2].symbols = {1, 0};
  };
  EXPECT_TRUE(run_forged(forge, 4).ok());
  const Status status = run_forged(forge, 5);
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_EQ(status.message(), "the plan is damaged: a kernel relies on 5 = 4");
}

TEST(CallErrors, SizesThatNoMachineHas) {
  auto call = example::call_of(example::add(n));
  const int64_t huge[] = {INT64_MAX / 2};
  Floats x({1});
  const ArrayRef array{x.values.data(), DType::f32, 1, huge, nullptr};
  EXPECT_EQ(run(*call, array, array).code(), Code::out_of_memory);
  const int64_t large[] = {int64_t{1} << 45};
  const ArrayRef other{x.values.data(), DType::f32, 1, large, nullptr};
  EXPECT_THAT(run(*call, other, other).message(), HasSubstr("cannot allocate"));
}

TEST(CallErrors, ASecondThreadIsTurnedAway) {
  Artifact a = example::add(4);
  // A kernel that waits until the first byte of its buffer is set: jump back while it is 0.
  a.images[0] =
      example::image({0x48, 0x8b, 0x07, 0x48, 0x8b, 0x08, 0x80, 0x39, 0x00, 0x74, 0xfb, 0x31, 0xc0, 0xc3}, "wait");
  a.contracts[0].tasks = 1;
  auto call = example::call_of(std::move(a));
  Floats x({4}), y({4}), z({4});
  std::atomic<bool> started{false};
  auto running = std::async(std::launch::async, [&] {
    started = true;
    return run(*call, x, y, z).ok();
  });
  while (!started) std::this_thread::yield();
  Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    status = call->take(2).status().code() == Code::busy ? error(Code::busy, "take") : Status();
  }
  EXPECT_EQ(run(*call, x, y, z).code(), Code::busy);
  EXPECT_EQ(call->bind(0, x, nullptr).code(), Code::busy);
  EXPECT_EQ(call->clone().status().code(), Code::busy);
  *reinterpret_cast<volatile char *>(x.values.data()) = 1;
  EXPECT_TRUE(running.get());
}

// ---- outputs that Kiln allocates

TEST(CallOutputs, AreAllocatedWhenNoneIsGiven) {
  auto call = example::call_of(example::add(n));
  Floats x({3}), y({3}, 10);
  ASSERT_TRUE(run(*call, x, y).ok());
  const auto taken = call->take(2);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->dtype, DType::f32);
  EXPECT_THAT(taken->shape, ElementsAre(3));
  EXPECT_THAT(taken->strides, ElementsAre(1));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(taken->data) % 64, 0u);
  EXPECT_THAT(floats_of(*taken), ElementsAre(10, 12, 14));
  EXPECT_THAT(call->take(2).status().message(), HasSubstr("output 'z' holds nothing that Kiln allocated"));
}

TEST(CallOutputs, TakenOnesOutliveCallAndExecutable) {
  auto call = example::call_of(example::add(n));
  Floats x({3}), y({3}, 10);
  ASSERT_TRUE(run(*call, x, y).ok());
  Call::Taken first = *call->take(2);
  ASSERT_TRUE(run(*call, x, x).ok());
  EXPECT_THAT(floats_of(first), ElementsAre(10, 12, 14));
  call.reset();
  EXPECT_THAT(floats_of(first), ElementsAre(10, 12, 14));
}

TEST(CallOutputs, AreRecycled) {
  auto call = example::call_of(example::add(n));
  Floats x({300}), y({300}, 10);
  ASSERT_TRUE(run(*call, x, y).ok());
  const void *memory = call->take(2)->data;  // and let go of
  ASSERT_TRUE(run(*call, x, y).ok());
  EXPECT_EQ(call->take(2)->data, memory);
}

TEST(CallOutputs, GivenOnesCannotBeTaken) {
  auto call = example::call_of(example::add(4));
  Floats x({4}), y({4}), z({4});
  ASSERT_TRUE(run(*call, x, y, z).ok());
  EXPECT_FALSE(call->take(2).ok());
  EXPECT_EQ(call->take(0).status().message(), "slot 0 is not an output; outputs are 2 to 3, exclusive");
}

// ---- parameters, prepare and clones

TEST(CallParameters, BindingAgainPreparesAgain) {
  auto call = example::call_of(example::everything());
  Floats x({2, 2}), y({4}), s({4}), w({4}), other({4}, 1000), z({4});
  ASSERT_TRUE(call->bind(3, w, nullptr).ok());
  ASSERT_TRUE(run(*call, x, y, s, z).ok());
  EXPECT_EQ(z.values[0], 0 + 10 + 4);
  w.values[0] = 500;
  y.values = {0, 0, 0, 0};
  ASSERT_TRUE(run(*call, x, y, s, z).ok());
  EXPECT_EQ(z.values[0], 0 + 10 + 4) << "a bound parameter does not change";
  ASSERT_TRUE(call->bind(3, other, nullptr).ok());
  y.values = {0, 0, 0, 0};
  ASSERT_TRUE(run(*call, x, y, s, z).ok());
  EXPECT_EQ(z.values[0], 0 + 1010 + 4);
}

TEST(CallParameters, ClonesShareThemUntilOneBindsAnother) {
  auto call = example::call_of(example::everything());
  Floats x({2, 2}), y({4}), s({4}), w({4}), other({4}, 1000), z({4});
  ASSERT_TRUE(call->bind(3, w, nullptr).ok());
  auto clone = std::move(call->clone()).value();
  ASSERT_TRUE(clone->bind(3, other, nullptr).ok());
  ASSERT_TRUE(run(*clone, x, y, s, z).ok());
  EXPECT_EQ(z.values[0], 0 + 1010 + 4);
  y.values = {0, 0, 0, 0};
  ASSERT_TRUE(run(*call, x, y, s, z).ok());
  EXPECT_EQ(z.values[0], 0 + 10 + 4);
}

TEST(CallParameters, AreHeldWhileBound) {
  auto call = example::call_of(example::everything());
  Floats w({4});
  auto owner = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = owner;
  ASSERT_TRUE(call->bind(3, w, std::move(owner)).ok());
  auto clone = std::move(call->clone()).value();
  call.reset();
  EXPECT_FALSE(watch.expired()) << "the clone holds them";
  ASSERT_TRUE(clone->bind(3, ArrayRef(), nullptr).ok());
  EXPECT_TRUE(watch.expired());
  Floats x({2, 2}), y({4}), s({4});
  EXPECT_EQ(run(*clone, x, y, s).message(), "run: parameter 'w' is not bound");
}

TEST(CallParameters, ClonesPrepareOnceThoughTheyStartTogether) {
  auto call = example::call_of(example::everything());
  Floats w({4});
  ASSERT_TRUE(call->bind(3, w, nullptr).ok());
  std::vector<std::unique_ptr<Call>> clones;
  for (int i = 0; i < 4; ++i) clones.push_back(std::move(call->clone()).value());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (auto &clone : clones)
    threads.emplace_back([&wrong, &clone] {
      for (int i = 0; i < 200; ++i) {
        Floats x({2, 2}), y({4}), s({4}), z({4});
        wrong += !run(*clone, x, y, s, z).ok() || z.values[3] != 6 + 43 + 4;
      }
    });
  for (std::thread &thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace kiln
