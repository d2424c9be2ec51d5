#include "jit/llvm/features.h"

#include <gtest/gtest.h>
#include <llvm/MC/MCSubtargetInfo.h>

#include <vector>

#include "jit/llvm/object_compiler.h"

namespace kiln::codegen {
namespace {

struct Named {
  Feature feature;
  const char *name, *llvm;
};
constexpr Named all[] = {
#define FEATURE(id, name, llvm, ...) {Feature::id, name, llvm},
#include "jit/base/features.def"
#undef FEATURE
};

// LLVM adds what a feature implies: were that not in the set, its code could need what the machine was not asked for.
void expect_llvm_knows(const std::string &text) {
  const Target target = *Target::by_name(text);
  const auto machine = make_target_machine(features_of(target));
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  for (const Named &each : all)
    EXPECT_EQ((*machine)->getMCSubtargetInfo()->checkFeatures(each.llvm), target.features.has(each.feature))
        << each.name << " of " << text;
}

TEST(Features, AreTheSameToLlvm) {
  for (const char *level : {"x86-64", "v3", "v4", "native"}) expect_llvm_knows(level);
  for (const Named &each : all) {
    expect_llvm_knows(str_cat("x86-64+", each.name));
    expect_llvm_knows(str_cat("v4+vnni+vbmi+amx-", each.name));
  }
}

TEST(Features, DecideWhatMayBeEmitted) {
  EXPECT_TRUE(features_of(*Target::by_name("v3")).fma);
  EXPECT_FALSE(features_of(*Target::by_name("v3-fma")).fma);
  EXPECT_EQ(features_of(*Target::by_name("v3-fma")).vector_bits, 256u);
  EXPECT_TRUE(features_of(*Target::by_name("x86-64+sse4.1")).rounding);
  EXPECT_EQ(features_of(*Target::by_name("v4-avx512vl")).masks, Features::Masks::vectors);
}

}  // namespace
}  // namespace kiln::codegen
