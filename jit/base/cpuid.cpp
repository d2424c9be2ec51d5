#include "jit/base/cpuid.h"

#if !defined(__x86_64__)
#error "Kiln generates code for x86-64 only"
#endif
#include <cpuid.h>

#include <bit>

namespace kiln {

CpuidWords cpuid(uint32_t leaf, uint32_t subleaf) {
  CpuidWords words{};
  // It gives false for a leaf beyond the last, and for sub-leaf 1 asks nothing: the processor answers with zeros.
  if (!__get_cpuid_count(leaf, subleaf, &words.eax, &words.ebx, &words.ecx, &words.edx)) return {};
  return words;
}

bool cpuid_has(const CpuidBit &bit) { return bit.is_set(cpuid(bit.leaf, bit.subleaf)); }

uint64_t kept_state() {
  constexpr CpuidBit osxsave{1, 0, &CpuidWords::ecx, 27};
  if (!cpuid_has(osxsave)) return 0;
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

Caches Caches::of_host() {
  // Intel and others list their caches in leaf 4; AMD in a leaf of its own, of the same form, where a bit says so.
  constexpr CpuidBit amd_leaf{0x80000001, 0, &CpuidWords::ecx, 22};
  const uint32_t leaf = cpuid_has(amd_leaf) ? 0x8000001d : 4;
  Caches caches;
  for (uint32_t i = 0; i < 16; ++i) {
    const CpuidWords words = cpuid(leaf, i);
    const uint32_t kind = words.eax & 31, level = words.eax >> 5 & 7;
    if (kind == 0) break;
    if (kind == 2) continue;  // of instructions
    const uint64_t ways = (words.ebx >> 22) + 1, partitions = (words.ebx >> 12 & 1023) + 1;
    const uint64_t bytes = ways * partitions * ((words.ebx & 4095) + 1) * (uint64_t{words.ecx} + 1);
    uint64_t *of_level[] = {&caches.l1, &caches.l2, &caches.l3};
    if (level >= 1 && level <= 3) *of_level[level - 1] = std::bit_floor(bytes);
  }
  return caches;
}

}  // namespace kiln
