// The forms that no op uses yet, at every level, against the interpreter.
#include "tests/unit/jit/kernel/contraction_forms.h"
#include "tests/unit/jit/kernel/order_forms.h"
#include "tests/unit/jit/kernel/scan_forms.h"
#include "tests/unit/jit/llvm/compiled_kernel.h"

namespace kiln::codegen::testing {
namespace {

void expect_interpreted(const std::vector<Form> &forms) {
  for (const Form &form : forms) {
    SCOPED_TRACE(form.name);
    at_every_level([&](const Target &target) {
      Form scheduled = form;
      set_target(scheduled.kernel, target);
      const Status status = verify(scheduled.kernel);
      ASSERT_TRUE(status.ok()) << status.message() << "\n" << print(form.kernel);
      FormMemory memory(scheduled);
      std::vector<void *> buffers;
      for (std::vector<uint8_t> &bytes : memory.bytes) buffers.push_back(bytes.data());
      EXPECT_EQ(LoadedKernel(form.kernel, target).run(buffers, form.sizes), form.error_word);
      memory.expect_interpreted();
    });
  }
}

TEST(Forms, StoresCombineScatterAndAreGuarded) { expect_interpreted(store_forms()); }
TEST(Forms, ScansGoEitherWayWithOrWithoutThePoint) { expect_interpreted(scan_forms()); }
TEST(Forms, SearchesAndSortsHaveOneOrder) { expect_interpreted(order_forms()); }
TEST(Forms, ContractionsPassSumsOnThroughBuffersOfTheirOwn) { expect_interpreted(contraction_forms()); }

}  // namespace
}  // namespace kiln::codegen::testing
