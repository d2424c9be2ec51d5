// What the image writer takes, and what it refuses, on modules by hand.
#include "jit/llvm/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/IR/IRBuilder.h>

#include "jit/llvm/emitter.h"
#include "jit/llvm/linker.h"

namespace kiln::codegen {
namespace {

using ::testing::HasSubstr;

// A module with `i32 kernel(ptr)`, filled in by `fill(builder, module)`, which gives the result.
template <class Fill>
Result<Image> link_with(Fill fill) {
  Result<std::unique_ptr<Linker>> linker = Linker::create(features_of(Target()));
  if (!linker.ok()) return linker.take_status();
  std::unique_ptr<llvm::Module> module = (*linker)->make_module();
  llvm::IRBuilder<> b(module->getContext());
  auto *type = llvm::FunctionType::get(b.getInt32Ty(), {b.getPtrTy()}, false);
  auto *function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, entry_name, *module);
  b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "entry", function));
  b.CreateRet(fill(b, *module));
  return (*linker)->link(std::move(module));
}

llvm::GlobalVariable *add_table(llvm::Module &module, llvm::Constant *content, bool constant) {
  auto *table = new llvm::GlobalVariable(module, content->getType(), constant, llvm::GlobalValue::PrivateLinkage,
                                         content, "table");
  table->setAlignment(llvm::Align(64));
  return table;
}

TEST(Image, HoldsConstantsBeforeCodeWithTheirAlignment) {
  Result<Image> image = link_with([](llvm::IRBuilder<> &b, llvm::Module &module) -> llvm::Value * {
    const uint32_t numbers[] = {11, 22, 33, 44};
    llvm::Constant *content = llvm::ConstantDataArray::get(b.getContext(), numbers);
    llvm::Value *at = b.CreateLoad(b.getInt64Ty(), module.getFunction(entry_name)->getArg(0));
    return b.CreateLoad(b.getInt32Ty(), b.CreateGEP(b.getInt32Ty(), add_table(module, content, true), at));
  });
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_GE(image->entry_offset, 16u);
  EXPECT_LT(image->entry_offset, image->bytes.size());
  EXPECT_EQ(image->bytes[0], 11);
  EXPECT_EQ(image->bytes[12], 44);
  EXPECT_EQ(image->entry_offset % 16, 0u);
}

TEST(Image, RefusesAnUndefinedSymbolByName) {
  Result<Image> image = link_with([](llvm::IRBuilder<> &b, llvm::Module &module) -> llvm::Value * {
    return b.CreateCall(module.getOrInsertFunction("memset_of_someone", b.getInt32Ty()));
  });
  ASSERT_FALSE(image.ok());
  EXPECT_THAT(image.status().message(), HasSubstr("undefined symbol 'memset_of_someone'"));
}

TEST(Image, RefusesACallThatLoweringIntroduced) {
  Result<Image> image = link_with([](llvm::IRBuilder<> &b, llvm::Module &module) -> llvm::Value * {
    llvm::Value *x = b.CreateLoad(b.getDoubleTy(), module.getFunction(entry_name)->getArg(0));
    return b.CreateFPToSI(b.CreateUnaryIntrinsic(llvm::Intrinsic::exp, x), b.getInt32Ty());
  });
  ASSERT_FALSE(image.ok());
  EXPECT_THAT(image.status().message(), HasSubstr("undefined symbol 'exp'"));
}

TEST(Image, RefusesWritableData) {
  Result<Image> image = link_with([](llvm::IRBuilder<> &b, llvm::Module &module) -> llvm::Value * {
    llvm::GlobalVariable *counter = add_table(module, b.getInt32(1), false);
    b.CreateStore(b.getInt32(2), counter, true);
    return b.CreateLoad(b.getInt32Ty(), counter);
  });
  ASSERT_FALSE(image.ok());
  EXPECT_THAT(image.status().message(), HasSubstr("writable data"));
}

TEST(Image, RefusesAddressesInData) {
  Result<Image> image = link_with([](llvm::IRBuilder<> &b, llvm::Module &module) -> llvm::Value * {
    llvm::GlobalVariable *number = add_table(module, b.getInt32(5), true);
    llvm::GlobalVariable *pointers =
        add_table(module, llvm::ConstantArray::get(llvm::ArrayType::get(b.getPtrTy(), 1), {number}), true);
    llvm::Value *at = b.CreateLoad(b.getInt64Ty(), module.getFunction(entry_name)->getArg(0));
    llvm::Value *pointer = b.CreateLoad(b.getPtrTy(), b.CreateGEP(b.getPtrTy(), pointers, at));
    return b.CreateLoad(b.getInt32Ty(), pointer);
  });
  ASSERT_FALSE(image.ok());
  // The section of constants with relocations is one that a dynamic linker would write to.
  EXPECT_THAT(image.status().message(), ::testing::AnyOf(HasSubstr("writable data"), HasSubstr("not PC-relative")));
}

TEST(Image, ALinkerGoesOnAfterARefusal) {
  Result<std::unique_ptr<Linker>> linker = Linker::create(features_of(Target()));
  ASSERT_TRUE(linker.ok());
  for (bool good : {false, true, false, true}) {
    std::unique_ptr<llvm::Module> module = (*linker)->make_module();
    llvm::IRBuilder<> b(module->getContext());
    auto *type = llvm::FunctionType::get(b.getInt32Ty(), {b.getPtrTy()}, false);
    auto *function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, entry_name, *module);
    b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "entry", function));
    b.CreateRet(good ? static_cast<llvm::Value *>(b.getInt32(3))
                     : b.CreateCall(module->getOrInsertFunction("nobody", b.getInt32Ty())));
    EXPECT_EQ((*linker)->link(std::move(module)).ok(), good);
  }
}

}  // namespace
}  // namespace kiln::codegen
