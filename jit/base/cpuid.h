// What the processor says of itself.
#pragma once
#include <cstdint>
#include <string>

namespace kiln {

struct CpuidWords {
  uint32_t eax, ebx, ecx, edx;
};
struct CpuidBit {
  uint32_t leaf, subleaf;
  uint32_t CpuidWords::*word;
  int bit;

  bool is_set(const CpuidWords &words) const { return (words.*word >> bit & 1) != 0; }  // words: of the leaf
};
// All 0 for a leaf that the processor does not have.
CpuidWords cpuid(uint32_t leaf, uint32_t subleaf);
bool cpuid_has(const CpuidBit &bit);
// XCR0: which registers the operating system keeps. 0 where it does not say.
uint64_t kept_state();

// Bytes of this machine's caches of data, of one core or of those that share it, rounded down to powers of two, so that
// machines with about the same caches are alike. 0: there is none, or the processor does not tell.
struct Caches {
  uint64_t l1 = 0, l2 = 0, l3 = 0;

  static Caches of_host();
};

}  // namespace kiln
