#include "tests/standin/grid.h"

#include <ucontext.h>

#include <memory>
#include <vector>

#include "tests/standin/shim.h"

#undef blockIdx
#undef threadIdx
#undef blockDim
#undef gridDim

namespace kiln::standin {
namespace {

constexpr size_t stack_bytes = 64 << 10;

// The threads of one block. The one that runs is named by a thread_local: coroutines take no arguments of use.
class Block {
 public:
  Block(kiln_shim_state &shim, ShimEntry entry, const void *parameter, uint32_t threads)
      : shim_(shim), entry_(entry), parameter_(parameter), threads_(threads) {
    for (Thread &thread : threads_) thread.stack = std::make_unique<char[]>(stack_bytes);
  }

  bool run() {
    current = this;
    shim_.meet = [] { current->yield(); };
    for (Thread &thread : threads_) start(thread);
    size_t finished = 0;
    while (finished < threads_.size()) {
      finished = 0;
      for (uint32_t i = 0; i < threads_.size(); ++i) {
        running_ = i;
        shim_.thread_index = {i, 0, 0};
        if (!threads_[i].finished) swapcontext(&scheduler_, &threads_[i].context);
        finished += threads_[i].finished;
      }
      if (finished != 0 && finished != threads_.size()) return false;  // some wait for ever
    }
    return true;
  }

 private:
  struct Thread {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool finished = false;
  };

  void start(Thread &thread) {
    thread.finished = false;
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.get();
    thread.context.uc_stack.ss_size = stack_bytes;
    thread.context.uc_link = &scheduler_;
    makecontext(
        &thread.context,
        [] {
          current->entry_(current->parameter_);
          current->threads_[current->running_].finished = true;
        },
        0);
  }
  void yield() { swapcontext(&threads_[running_].context, &scheduler_); }

  static thread_local Block *current;
  kiln_shim_state &shim_;
  const ShimEntry entry_;
  const void *const parameter_;
  std::vector<Thread> threads_;
  ucontext_t scheduler_{};
  uint32_t running_ = 0;
};

thread_local Block *Block::current = nullptr;

}  // namespace

bool run_grid(void *shim_address, ShimEntry entry, const void *parameter, uint32_t blocks, uint32_t threads) {
  auto &shim = *static_cast<kiln_shim_state *>(shim_address);
  shim.grid_size = {blocks, 1, 1};
  shim.block_size = {threads, 1, 1};
  Block block(shim, entry, parameter, threads);
  for (uint32_t b = 0; b < blocks; ++b) {
    shim.block_index = {b, 0, 0};
    if (!block.run()) return false;
  }
  return true;
}

}  // namespace kiln::standin
