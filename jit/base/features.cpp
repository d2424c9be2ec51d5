#include "jit/base/features.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <utility>

#include "jit/base/cpuid.h"

namespace kiln {
namespace {

struct Row {
  std::string_view name;
  CpuidBit bit;
  uint64_t state;  // of XCR0
  uint64_t needs;  // bits of features, as FeatureSet's
};

constexpr uint64_t bit_of(Feature feature) { return uint64_t{1} << static_cast<int>(feature); }
template <class... Features>
constexpr uint64_t bits_of(Features... features) {
  return (uint64_t{0} | ... | bit_of(features));
}

constexpr Row rows[] = {
#define FEATURE(id, name, llvm, leaf, subleaf, register, bit, state, ...) \
  {name, {leaf, subleaf, &CpuidWords::register, bit}, state, bits_of(__VA_ARGS__)},
#include "jit/base/features.def"
#undef FEATURE
};
constexpr size_t count = std::size(rows);
static_assert(count <= 64);

// Needs stand above, so that one walk down or up closes a set.
constexpr uint64_t with_needs(uint64_t bits) {
  for (size_t i = count; i-- > 0;)
    if (bits >> i & 1) bits |= rows[i].needs;
  return bits;
}
constexpr uint64_t without_unmet(uint64_t bits) {
  for (size_t i = 0; i < count; ++i)
    if ((rows[i].needs & ~bits) != 0) bits &= ~(uint64_t{1} << i);
  return bits;
}

struct Level {
  std::string_view name, alias;
  uint64_t bits;
};
constexpr uint64_t v3 = bit_of(Feature::movbe) * 2 - 1;  // all rows to there
constexpr uint64_t v4 =
    v3 | bits_of(Feature::avx512f, Feature::avx512cd, Feature::avx512bw, Feature::avx512dq, Feature::avx512vl);
constexpr Level levels[] = {{"x86-64", "x86-64", 0}, {"v3", "avx2", v3}, {"v4", "avx512", v4}};  // smallest first
static_assert(std::ranges::all_of(levels, [](const Level &l) { return without_unmet(l.bits) == l.bits; }));

constexpr uint64_t amx = bits_of(Feature::amx_tile, Feature::amx_bf16, Feature::amx_int8);

// 0: there is none of that name.
uint64_t named(std::string_view name) {
  if (name == "amx") return amx;
  const auto *found = std::ranges::find(rows, name, &Row::name);
  return found == std::end(rows) ? 0 : uint64_t{1} << (found - rows);
}

std::string names_of(uint64_t bits, std::string_view between) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    if (bits >> i & 1) text += str_cat(text.empty() ? "" : between, rows[i].name);
  return text;
}

Status unknown(std::string_view text, std::string_view why) {
  return error(Code::unknown_name, "cpu '", text, "' is unknown; ", why);
}

}  // namespace

FeatureSet FeatureSet::with(Feature feature) const { return FeatureSet(with_needs(bits_ | bit_of(feature))); }
FeatureSet FeatureSet::without(Feature feature) const { return FeatureSet(without_unmet(bits_ & ~bit_of(feature))); }

std::string_view FeatureSet::level() const {
  std::string_view largest;
  for (const Level &level : levels)
    if (has(FeatureSet(level.bits))) largest = level.name;
  return largest;
}

std::string FeatureSet::text() const {
  const Level *nearest = &levels[0];
  for (const Level &level : levels)
    if (std::popcount(level.bits ^ bits_) <= std::popcount(nearest->bits ^ bits_)) nearest = &level;
  std::string text(nearest->name);
  if (const uint64_t more = bits_ & ~nearest->bits) text += "+" + names_of(more, "+");
  if (const uint64_t fewer = nearest->bits & ~bits_) text += "-" + names_of(fewer, "-");
  return text;
}

std::string FeatureSet::lacking(FeatureSet wanted) const {
  const uint64_t missing = wanted.bits_ & ~bits_;
  uint64_t first = missing;
  for (size_t i = 0; i < count; ++i)
    if ((rows[i].needs & missing) != 0) first &= ~(uint64_t{1} << i);
  return names_of(first, ", ");
}

Result<FeatureSet> FeatureSet::parse(std::string_view text, FeatureSet native) {
  FeatureSet set = native;
  std::string_view rest = text;
  const auto begins_with = [&](std::string_view name) {
    if (!text.starts_with(name) || (text.size() > name.size() && text[name.size()] != '+' && text[name.size()] != '-'))
      return false;
    rest = text.substr(name.size());
    return true;
  };
  bool found = begins_with("native");
  for (const Level &level : levels) {
    if (found || !(begins_with(level.name) || begins_with(level.alias))) continue;
    found = true;
    set = FeatureSet(level.bits);
  }
  if (!found) return unknown(text, "expected native, x86-64, v3 (avx2) or v4 (avx512), then +FEATURE and -FEATURE");
  while (!rest.empty()) {
    const bool add = rest.front() == '+';
    const size_t end = std::min(rest.find_first_of("+-", 1), rest.size());
    const std::string_view name = rest.substr(1, end - 1);
    const uint64_t bits = named(name);
    if (bits == 0)
      return unknown(text, str_cat("there is no feature '", name, "' but ", names_of(~uint64_t{0}, ", "), ", and amx"));
    set = FeatureSet(add ? with_needs(set.bits_ | bits) : without_unmet(set.bits_ & ~bits));
    rest.remove_prefix(end);
  }
  return set;
}

FeatureSet FeatureSet::of_host() {
  static const FeatureSet host = [] {
    uint64_t bits = 0;
    const uint64_t kept = kept_state();
    // Each leaf once: under a hypervisor a question takes microseconds.
    std::map<std::pair<uint32_t, uint32_t>, CpuidWords> leaves;
    for (size_t i = 0; i < count; ++i) {
      const CpuidBit &bit = rows[i].bit;
      const auto [leaf, is_new] = leaves.try_emplace({bit.leaf, bit.subleaf});
      if (is_new) leaf->second = cpuid(bit.leaf, bit.subleaf);
      if (bit.is_set(leaf->second) && (rows[i].state & ~kept) == 0) bits |= uint64_t{1} << i;
    }
    return FeatureSet(without_unmet(bits));
  }();
  return host;
}

}  // namespace kiln
