// Why a lookup found nothing. Internal to this folder.
#pragma once
#include <string>
#include <vector>

#include "runtime/cache/artifact_bytes.h"

namespace kiln {

// "component 'graph' differs from the nearest record", or "no record". The nearest is, of the records written last,
// the one that shares most components. Bounded work: few folders are looked at, and of each record only what names its
// key.
std::string nearest_record(const std::string &dir, const std::vector<KeyComponent> &components);

}  // namespace kiln
