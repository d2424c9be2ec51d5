// The forms that no op uses yet, as CUDA C++: run on the stand-in for a device against the interpreter, and compiled by
// NVRTC where it is.
#include <map>

#include "tests/unit/jit/cuda/standin_device.h"
#include "tests/unit/jit/kernel/group_forms.h"
#include "tests/unit/jit/kernel/order_forms.h"
#include "tests/unit/jit/kernel/panel_forms.h"
#include "tests/unit/jit/kernel/scan_forms.h"

namespace kiln::cuda {
namespace {

using kernel::testing::Form;
using kernel::testing::FormMemory;

struct Emitted {
  std::vector<Form> forms;
  std::vector<std::string> names;
  std::string source = std::string(prelude());
};

Emitted emit_all() {
  Emitted all;
  for (const auto &forms :
       {kernel::testing::store_forms(), kernel::testing::scan_forms(), kernel::testing::order_forms(),
        kernel::testing::group_forms(), kernel::testing::contraction_forms(), kernel::testing::panel_forms()}) {
    for (const Form &form : forms) {
      all.forms.push_back(form);
      all.names.push_back(str_cat("f", all.names.size()));
      const Status status = kernel::verify(form.kernel);
      EXPECT_TRUE(status.ok()) << form.name << ": " << status.message();
      const Result<std::string> text = emit_source(form.kernel, all.names.back());
      EXPECT_TRUE(text.ok()) << form.name << ": " << text.status().message();
      all.source += *text;
    }
  }
  return all;
}

TEST(CudaForms, RunOnTheStandInAsTheInterpreterSays) {
  if (!standin::has_compiler()) GTEST_SKIP() << standin::no_compiler;
  standin::use_nvrtc();
  standin::DriverControl *driver = standin::use_driver();
  ASSERT_NE(driver, nullptr);
  driver->reset({.max_threads = 4});
  const Emitted all = emit_all();
  const Result<Nvrtc> nvrtc = Nvrtc::open();
  ASSERT_TRUE(nvrtc.ok()) << nvrtc.status().message();
  const Result<Cubin> cubin = nvrtc->compile(all.source, "sm_90");
  ASSERT_TRUE(cubin.ok()) << cubin.status().info()->report.substr(0, 2000);
  std::vector<kiln_device_kernel> kernels;
  for (size_t i = 0; i < all.forms.size(); ++i) {
    const kiln_kernel_use use{.group_threads = block_threads,
                              .whole_group = mapping_of(all.forms[i].kernel) == Mapping::block,
                              .registers = 0,
                              .spill_bytes = 0,
                              .shared_bytes = 0,
                              .reserved0 = 0};
    kernels.push_back({cubin->code.data(), cubin->code.size(), all.names[i].c_str(), use});
  }
  testing::Checked check;
  const auto device = testing::open_device(check);
  const auto program = testing::load(check, device.get(), kernels);
  const auto queue = testing::open_queue(check, device.get());
  for (size_t i = 0; i < all.forms.size(); ++i) {
    const Form &form = all.forms[i];
    FormMemory memory(form);
    std::vector<std::unique_ptr<testing::DeviceArray>> arrays;
    std::vector<uint64_t> buffers;
    for (const std::vector<uint8_t> &bytes : memory.bytes) {
      arrays.push_back(std::make_unique<testing::DeviceArray>(check, queue.get(), std::max<size_t>(bytes.size(), 4)));
      if (!bytes.empty()) arrays.back()->copy_in(check, bytes.data());
      buffers.push_back(arrays.back()->address());
    }
    Expr points = 1;
    for (const kernel::Axis &axis : form.kernel.parallel) points *= axis.extent;
    const kiln_device_launch launch{
        .program = program.get(),
        .kernel = i,
        .buffers = buffers.data(),
        .buffer_count = buffers.size(),
        .sizes = form.sizes.data(),
        .size_count = form.sizes.size(),
        .points = memory.value(points),
        .scratch_bytes = static_cast<uint64_t>(memory.value(kernel::scratch_layout(form.kernel).size_bytes))};
    check(device_table.launch, queue.get(), &launch);
    uint32_t error_word = 0;
    for (size_t b = 0; b < arrays.size(); ++b)
      if (!memory.bytes[b].empty()) arrays[b]->copy_out(check, memory.bytes[b].data());
    check(device_table.finish, queue.get(), &error_word);
    ASSERT_TRUE(check.status.ok()) << form.name << ": " << check.status.message();
    EXPECT_EQ(error_word, form.error_word) << form.name;
    memory.expect_interpreted();
  }
  EXPECT_EQ(driver->misuse(), std::vector<std::string>());
}

// Sums of integers may come in any order; those of floats, and what is written over, may not.
TEST(CudaForms, AreAtomicOnlyWhereOrderDoesNotShow) {
  std::map<std::string, bool> atomic;
  for (const Form &form : kernel::testing::store_forms()) {
    const Result<std::string> text = emit_source(form.kernel, "f");
    ASSERT_TRUE(text.ok());
    const bool one_by_one = text->find("threadIdx.x == 0") != std::string::npos;
    atomic[form.name] = text->find("kiln_combine_atomically") != std::string::npos;
    EXPECT_FALSE(atomic[form.name] && one_by_one) << form.name << "\n" << *text;
  }
  EXPECT_TRUE(atomic["bins i64 add "]);
  EXPECT_TRUE(atomic["bins f32 max "]);
  EXPECT_FALSE(atomic["bins f32 add "]);
  EXPECT_FALSE(atomic["bins u8 min "]);
  EXPECT_FALSE(atomic["points i64 add "]);
}

TEST(CudaForms, CompileByNvrtc) {
  const Result<Nvrtc> nvrtc = Nvrtc::open();
  if (!nvrtc.ok()) GTEST_SKIP() << "SKIP: " << nvrtc.status().message();
  const Emitted all = emit_all();
  const Result<Cubin> cubin = nvrtc->compile(all.source, "sm_90");
  ASSERT_TRUE(cubin.ok()) << cubin.status().message().substr(0, 2000);
  EXPECT_EQ(cubin->entries.size(), all.forms.size());
}

}  // namespace
}  // namespace kiln::cuda
