// Features of processors, and sets of them (features.def lists them).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "jit/base/status.h"

namespace kiln {

enum class Feature : uint8_t {
#define FEATURE(id, ...) id,
#include "jit/base/features.def"
#undef FEATURE
};

// A set that holds with each feature what that one needs.
class FeatureSet {
 public:
  constexpr FeatureSet() = default;  // plain x86-64

  constexpr bool has(Feature feature) const { return (bits_ >> static_cast<int>(feature) & 1) != 0; }
  constexpr bool has(FeatureSet other) const { return (bits_ & other.bits_) == other.bits_; }
  constexpr bool operator==(const FeatureSet &) const = default;
  // With what it needs; without what needs it.
  FeatureSet with(Feature feature) const;
  FeatureSet without(Feature feature) const;

  // The largest of the sets that have names that this one holds: "x86-64" (nothing), "v3" (AVX2, FMA, F16C, BMI, LZCNT,
  // MOVBE) or "v4" (and AVX-512 F, CD, BW, DQ, VL).
  std::string_view level() const;
  // The name of a set and what differs from it: "v4+vnni", "v3-fma". It is the same for equal sets, and parse reads it.
  std::string text() const;
  // The features of `wanted` that this set lacks; of those, what needs no other of them: "vnni, amx_tile".
  std::string lacking(FeatureSet wanted) const;

  // A name (alias avx2, avx512), or "native" for `native`; then any number of "+FEATURE" and "-FEATURE", read from left
  // to right, where "amx" is short for all of AMX. Error: unknown_name, with what there is.
  static Result<FeatureSet> parse(std::string_view text, FeatureSet native);
  // Of this machine, as far as its operating system keeps the registers.
  static FeatureSet of_host();

 private:
  explicit constexpr FeatureSet(uint64_t bits) : bits_(bits) {}

  uint64_t bits_ = 0;
};

}  // namespace kiln
