// A kernel that verify() accepts, one thing changed, and the message of the refusal.
#pragma once
#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/jit/kernel/by_hand.h"

namespace kiln::kernel::testing {

struct Refusal {
  std::string_view message;  // without "kernel: "
  std::function<void(Kernel &)> change;
};

inline Value &value(Kernel &kernel, size_t stage, size_t number) { return kernel.stages[stage].body.values[number]; }

inline void expect_refused(const Kernel &valid, const Refusal &refusal) {
  Kernel kernel = valid;
  refusal.change(kernel);
  const Status status = verify(kernel);
  ASSERT_FALSE(status.ok()) << refusal.message << "\n" << print(valid);
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_EQ(status.message(), str_cat("kernel: ", refusal.message));
}

inline void expect_accepted(const Kernel &kernel) {
  const Status status = verify(kernel);
  ASSERT_TRUE(status.ok()) << status.message() << "\n" << print(kernel);
  const Result<Kernel> read = parse(serialize(kernel));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(print(*read), print(kernel));
  EXPECT_EQ(serialize(*read), serialize(kernel));
}

}  // namespace kiln::kernel::testing
