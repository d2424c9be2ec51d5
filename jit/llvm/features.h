// What a target lets the emitter use, what LLVM is told about it, and the forms of access that may be emitted.
//
// Vector accesses under a mask and to scattered addresses, by the bytes of the widest vector (masked.cpp writes them,
// and nothing else does; a test reads all IR for others):
//
//   bytes         masked loads and stores                    bits      elements    gathers, scatters
//   16 (x86-64)   none                                                             none
//   32 (v3)       llvm.x86.avx.mask{load,store}.{ps,pd}      128, 256  4, 8 bytes  none
//   64 (v4)       llvm.masked.{load,store}                   to 512    all         llvm.masked.{gather,scatter}, to 512
//                                                                                  bits of 4 or 8 byte elements
//
// What is wider is split by masked.cpp; what has no form goes lane by lane.
//
// Why v3 has intrinsics of the target. LLVM 19 and 22 compile a generic masked load to a wrong one where masks are
// vector registers: of such a mask only the sign bits count, so a mask that is known to be false may become the
// constant 1, whose sign bit is clear; and then every constant but 0 is taken for true. The access is no longer masked,
// and the value for false lanes is lost:
//
//   define <8 x i64> @f(ptr %p, i1 %c) {   ; llc -mcpu=x86-64-v3: vmovups 32(%rdi), %ymm1
//     %i = insertelement <8 x i1> poison, i1 %c, i64 0
//     %s = shufflevector <8 x i1> %i, <8 x i1> poison, <8 x i32> zeroinitializer
//     %m = and <8 x i1> %s, <i1 0, i1 0, i1 1, i1 0, i1 0, i1 0, i1 0, i1 0>
//     %v = call <8 x i64> @llvm.masked.load.v8i64.p0(ptr %p, i32 8, <8 x i1> %m, <8 x i64> splat (i64 -7))
//     ret <8 x i64> %v
//   }
//
// It is not a matter of width: two loads of <4 x i64> with the halves of %m go wrong in the same way. The code
// generator has no rules for the intrinsics: it evaluates their mask, a vector of integers, in full and leaves the
// access as it is. InstCombine would make generic loads of them; it is not among our passes (optimize.cpp). On v4 lanes
// of a mask are single bits in mask registers, of which nothing is ignored.
#pragma once
#include <string>

#include "jit/base/target.h"

namespace kiln::codegen {

struct Features {
  enum class Masks : uint8_t { none, vectors, registers };  // the three rows of the table

  std::string cpu;         // LLVM's name of the level
  std::string attributes;  // LLVM's string of the features beyond it
  FeatureSet set;          // all of them
  unsigned vector_bits;    // of the widest registers
  bool fma;                // fused multiply-add instructions
  bool rounding;           // floor and round to even
  Masks masks;

  // Whether there are masked loads and stores of `width` elements, and gathers and scatters.
  bool has_masked(unsigned element_bytes, unsigned width) const {
    if (masks == Masks::vectors) return element_bytes >= 4 && element_bytes * 8 * width >= 128;
    return masks == Masks::registers;
  }
  bool has_scattered(unsigned element_bytes) const { return masks == Masks::registers && element_bytes >= 4; }
};

inline Features features_of(const Target &target) {
  const FeatureSet &set = target.features, level = *FeatureSet::parse(set.level(), {});
  std::string attributes;
  const auto tell = [&](Feature feature, const char *llvm) {
    if (set.has(feature) && !level.has(feature)) attributes.append(attributes.empty() ? "" : ",").append(llvm);
  };
#define FEATURE(id, name, llvm, ...) tell(Feature::id, llvm);
#include "jit/base/features.def"
#undef FEATURE
  const uint32_t bytes = target.vector_bytes();
  return {.cpu = set.level() == "x86-64" ? "x86-64" : str_cat("x86-64-", set.level()),
          .attributes = std::move(attributes),
          .set = set,
          .vector_bits = bytes * 8,
          .fma = set.has(Feature::fma),
          .rounding = set.has(Feature::sse41),
          .masks = bytes == 64   ? Features::Masks::registers
                   : bytes == 32 ? Features::Masks::vectors
                                 : Features::Masks::none};
}

}  // namespace kiln::codegen
