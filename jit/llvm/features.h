// What a feature level lets the emitter use, and what LLVM is told about it.
#pragma once
#include <string_view>

#include "jit/base/target.h"

namespace kiln::codegen {

struct Features {
  Target::Level level;
  std::string_view cpu;         // LLVM's name of the level
  std::string_view attributes;  // LLVM's feature string
  unsigned prefer_vector_bits;
  bool fma;       // fused multiply-add instructions
  bool rounding;  // floor and round to even
  bool gather;    // gathers of 4 and 8 byte elements that are worth using
  bool mask32;    // masked loads and stores of 4 and 8 byte elements
  bool mask8;     // of 1 and 2 byte elements too: real mask registers

  bool masks(unsigned element_bytes) const { return element_bytes >= 4 ? mask32 : mask8; }
};

inline Features features_of(Target::Level level) {
  switch (level) {
    case Target::Level::v4:
      return {level, "x86-64-v4", "", 512, true, true, true, true, true};
    case Target::Level::v3:
      return {level, "x86-64-v3", "", 256, true, true, false, true, false};
    case Target::Level::x86_64:
    case Target::Level::device:  // no target of this module: Target::by_name names none
      break;
  }
  return {Target::Level::x86_64, "x86-64", "", 128, false, false, false, false, false};
}

}  // namespace kiln::codegen
