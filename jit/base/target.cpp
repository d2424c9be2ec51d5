#include "jit/base/target.h"

namespace kiln {

uint32_t Target::vector_bytes() const {
  if (on_device()) return 4;
  // Masks, and elements of each size, take all of AVX-512 that v4 names.
  const bool is_wide = features.has(Feature::avx512cd) && features.has(Feature::avx512bw) &&
                       features.has(Feature::avx512dq) && features.has(Feature::avx512vl);
  return is_wide ? 64 : features.has(Feature::avx2) ? 32 : 16;
}

Target Target::host() { return {.features = FeatureSet::of_host(), .arch = {}}; }

Target Target::device(std::string_view arch) { return {.features = {}, .is_device = true, .arch = std::string(arch)}; }

Result<Target> Target::by_name(std::string_view name) {
  Target target;
  KILN_ASSIGN(target.features, FeatureSet::parse(name, FeatureSet::of_host()));
  return target;
}

Status Target::check_host() const {
  const FeatureSet host = FeatureSet::of_host();
  if (on_device()) return error(Code::incompatible, "code for ", arch, " does not run on this processor");
  if (host.has(features)) return {};
  return error(Code::incompatible, "code for ", name(), " needs ", host.lacking(features), ", which this machine (",
               host.text(), ") lacks");
}

}  // namespace kiln
