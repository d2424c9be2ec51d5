// Requests that find no memory beside their reserve (jit/llvm/reserve.h), or not enough in it.
#include <gtest/gtest.h>

#include <chrono>
#include <climits>
#include <cstdlib>
#include <thread>
#include <vector>

extern "C" {
#include "tests/limits/failing_malloc.h"
}
#include "tests/child.h"
#include "tests/unit/jit/llvm/compiled_kernel.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NEEDS_THE_SYSTEMS_MALLOC GTEST_SKIP() << "sanitizers end the process when there is no memory"
#else
#define NEEDS_THE_SYSTEMS_MALLOC
#endif

namespace kiln::codegen::testing {
namespace {

// A kernel of so many steps, serialized.
Bytes kernel_of(int steps, const Target &target) {
  return serialize(map_kernel(target, [steps](BodyBuilder &b, int x) {
    for (int step = 0; step < steps; ++step) x = b.op(Core::erf, x);
    return x;
  }));
}

struct Seen {
  uint64_t delivered = 0, compiled = 0, refused = 0;
};

// By one thread for level v3, with texts. From the moment that it has its reserve nothing else gives memory; once the
// first kernel is under way, `hogged` bytes of the reserve are somebody else's.
Seen compile_without_memory(const std::vector<Bytes> &kernels, size_t hogged) {
  constexpr size_t block = size_t{64} << 10;
  struct State {
    Seen seen;
    size_t left_to_hog;
    std::vector<void *> blocks;
  } state{{}, hogged, {}};
  state.blocks.reserve(hogged / block + 1);
  kiln::test::CodegenRequest request(kernels, "v3", 1, KILN_CODEGEN_IR | KILN_CODEGEN_ASM);
  request.c.user = &state;
  request.c.cancelled = [](void *user) -> uint32_t {  // first asked when the thread has been started
    auto &to = *static_cast<State *>(user);
    for (bool under_way = to.left_to_hog == 0; !under_way; under_way = failing_malloc_disarm() > 200) {
      failing_malloc_arm(LONG_MAX, LONG_MAX);  // counts
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    failing_malloc_arm(1, LONG_MAX);
    for (; to.left_to_hog >= block; to.left_to_hog -= block) {
      if (void *taken = std::malloc(block)) to.blocks.push_back(taken);
    }
    return 0;
  };
  kiln_codegen_entry()->compile(
      &request.c,
      [](void *user, const kiln_codegen_result *result) {
        Seen &to = static_cast<State *>(user)->seen;
        ++to.delivered;
        to.compiled += result->image != nullptr;
        to.refused += result->error_code == static_cast<uint32_t>(Code::out_of_memory);
      },
      &state);
  failing_malloc_disarm();
  for (void *taken : state.blocks) std::free(taken);
  return state.seen;
}

// In children, since a reserve stays as long as LLVM keeps something in it.

TEST(ShortOfMemory, ARequestGoesOnFromItsReserveAndBeginsNoKernelOnceThatIsLow) {
  NEEDS_THE_SYSTEMS_MALLOC;
  const Target target = *Target::by_name("v3");
  std::vector<Bytes> kernels(400, kernel_of(1, target));
  kernels[0] = kernel_of(0, target);  // the smallest is compiled last: what becomes of the others has to wait
  kiln::test::in_child([&] {
    const Seen seen = compile_without_memory(kernels, 0);
    EXPECT_EQ(seen.delivered, kernels.size());
    EXPECT_EQ(seen.compiled + seen.refused, kernels.size());
    EXPECT_GE(seen.compiled, 4u);
    EXPECT_LE(seen.compiled, 100u) << "they fill more than an eighth";
  });
}

TEST(ShortOfMemory, AKernelThatTheReserveDoesNotSufficeForIsRefusedAndTheNextRequestCompilesIt) {
  NEEDS_THE_SYSTEMS_MALLOC;
  const Target target = *Target::by_name("v3");
  const std::vector<Bytes> kernel = {kernel_of(30, target)};
  EXPECT_EQ(compile_all(kernel, target.name())[0].error, "");
  for (const size_t quarters : {20, 22, 24, 26}) {
    kiln::test::in_child([&] {
      Seen seen;
      // A kernel that was nearly finished by then is finished.
      for (int tries = 0; tries < 10 && seen.refused == 0; ++tries)
        seen = compile_without_memory(kernel, quarters << 18);
      EXPECT_EQ(seen.refused, 1u) << quarters;
      EXPECT_EQ(compile_all(kernel, target.name())[0].error, "") << quarters;
    });
  }
}

}  // namespace
}  // namespace kiln::codegen::testing
