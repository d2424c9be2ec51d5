// Compiles a kernel through the module's table, loads its image into read-execute memory and runs it.
#pragma once
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "jit/base/codegen.h"
#include "jit/base/kernel_args.h"
#include "jit/kernel/compute.h"
#include "jit/kernel/kernel.h"
#include "tests/unit/jit/codegen_request.h"
#include "tests/unit/jit/kernel/by_hand.h"

extern "C" const kiln_codegen_table *kiln_codegen_entry(void);

namespace kiln::codegen::testing {

using namespace kiln::kernel;
using namespace kiln::kernel::testing;

struct Compiled {
  Bytes image;
  uint64_t entry_offset = 0;
  std::string text, error;
};

inline std::vector<Compiled> compile_all(const std::vector<Bytes> &kernels, const std::string &target,
                                         uint32_t threads = 1, uint32_t want = 0,
                                         const kiln_codegen_table *table = kiln_codegen_entry()) {
  const kiln::test::CodegenRequest request(kernels, target, threads, want);
  std::vector<Compiled> results;
  table->compile(
      &request.c,
      [](void *user, const kiln_codegen_result *r) {
        auto &out = *static_cast<std::vector<Compiled> *>(user);
        EXPECT_EQ(r->kernel, out.size()) << "results come in the order of the kernels";
        Compiled compiled;
        if (r->image) compiled.image.assign(r->image, r->image + r->image_size);
        compiled.entry_offset = r->entry_offset;
        if (r->text) compiled.text.assign(r->text, r->text_size);
        if (r->error) compiled.error.assign(r->error, r->error_size);
        out.push_back(std::move(compiled));
      },
      &results);
  return results;
}

inline Compiled compile(const Kernel &kernel, const Target &target, uint32_t want = 0) {
  return compile_all({serialize(kernel)}, target.name(), 1, want)[0];
}

// Every level, and all that this machine has, where that is something else.
inline std::vector<Target> all_targets() {
  std::vector<Target> targets;
  for (const char *level : {"x86-64", "v3", "v4"}) targets.push_back(*Target::by_name(level));
  if (std::ranges::find(targets, Target::host().name(), &Target::name) == targets.end())
    targets.push_back(Target::host());
  return targets;
}

inline void set_target(Kernel &kernel, const Target &target) {
  kernel.schedule.vector_bytes = target.vector_bytes();
  kernel.schedule.masked_tail = target.vector_bytes() > 16;
}

// A kernel in executable memory.
class LoadedKernel {
 public:
  LoadedKernel(const Kernel &kernel, const Target &target) : kernel_(kernel) {
    Kernel scheduled = kernel;
    set_target(scheduled, target);
    kernel_ = scheduled;
    const Compiled compiled = compile(kernel_, target);
    EXPECT_EQ(compiled.error, "") << print(kernel_);
    size_ = compiled.image.size();
    if (size_ == 0) return;
    memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(memory_, compiled.image.data(), size_);
    mprotect(memory_, size_, PROT_READ | PROT_EXEC);
    entry_ = reinterpret_cast<kiln_kernel_fn>(static_cast<uint8_t *>(memory_) + compiled.entry_offset);
  }
  LoadedKernel(const LoadedKernel &) = delete;
  LoadedKernel &operator=(const LoadedKernel &) = delete;
  ~LoadedKernel() {
    if (size_ != 0) munmap(memory_, size_);
  }

  // Runs all tasks, each in a call of its own; gives the error word.
  uint32_t run(const std::vector<void *> &buffers, const std::vector<int64_t> &sizes = {}) const {
    const auto value = [&](const Expr &e) {
      return e.evaluate([&](const std::string &name) {
        const auto at = std::find(kernel_.symbols.begin(), kernel_.symbols.end(), name);
        return sizes.at(static_cast<size_t>(at - kernel_.symbols.begin()));
      });
    };
    const size_t scratch_size = static_cast<size_t>(value(scratch_layout(kernel_).size_bytes));
    std::vector<uint8_t> scratch(scratch_size + 128, 0xA5);  // garbage, and behind it what must stay
    uint32_t error_word = 0;
    kiln_kernel_args args{};
    args.buffers = buffers.data();
    args.sizes = sizes.data();
    args.scratch = reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
    args.error_word = &error_word;
    const int64_t tasks = value(task_count(kernel_));
    for (int64_t task = 0; entry_ && task < tasks; ++task) {
      args.begin = task;
      args.end = task + 1;
      EXPECT_EQ(entry_(&args), 0);
    }
    const uint8_t *end = static_cast<uint8_t *>(args.scratch) + scratch_size;
    EXPECT_TRUE(std::all_of(end, end + 64, [](uint8_t byte) { return byte == 0xA5; })) << "wrote beyond its scratch";
    return error_word;
  }

 private:
  Kernel kernel_;
  void *memory_ = nullptr;
  size_t size_ = 0;
  kiln_kernel_fn entry_ = nullptr;
};

// Runs `test(target)` at every level that this machine can run.
template <class Test>
void at_every_level(Test test) {
  for (const Target &target : all_targets()) {
    SCOPED_TRACE("at level " + target.name());
    if (target.runs_on_host()) test(target);
  }
}

// ---- kernels by hand
// out[i] = value(x[i]) of f32 over n points: value(builder, id of x[i]) gives the id of the result.
template <class Fn>
Kernel map_kernel(const Target &target, Fn value) {
  const Expr n = Expr::symbol("s0"), i = axis(0, n);
  Kernel kernel;
  kernel.symbols = {"s0"};
  kernel.buffers = {in(DType::f32), out(DType::f32)};
  kernel.parallel = {parallel(n)};
  kernel.schedule.tiles = {128};
  Stage stage;
  BodyBuilder b(stage.body);
  b.yield(value(b, b.load(0, DType::f32, {i})));
  stage.stores = {store_at(1, i)};
  kernel.stages = {stage};
  set_target(kernel, target);
  return kernel;
}

template <class T>
inline void *data_of(std::vector<T> &values) {
  return values.data();
}

}  // namespace kiln::codegen::testing
