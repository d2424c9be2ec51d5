// What may differ from one region to another: for a whole compile (compile_options.h), by annotations of a region's
// nodes (kiln.region.OPTION), and by options of the compile that name it (region.NAME.OPTION,
// region.NAME.PHASE.OPTION). OPTION is a row of region_options.cpp, or "backend.NAME": option NAME of the registered
// backend that is chosen for the region.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backends/registered.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/rounding.h"
#include "runtime/regions/modes.h"

namespace kiln {

struct RegionOptions {
  bool fuse = true;
  Rounding rounding = Rounding::strict;
  std::string backend = {};      // a registered one, which is asked first (runtime/backends/registered.h); "": none is
  AttrMap backend_options = {};  // what is said of its options here; of the others the compile's hold

  bool ordered() const { return rounding == Rounding::strict; }
  // The backend and all that it is told: equal ones make the same of equal graphs.
  std::string backend_text() const;
  bool operator==(const RegionOptions &) const = default;
  std::strong_ordering operator<=>(const RegionOptions &other) const;
};

// What differs, but for the backend: "fuse=false", "backend.threads=2" of its options.
std::vector<std::string> differences(const RegionOptions &options, const RegionOptions &base);

// The options of a compile that name a region, by their full names ("region.block.backward.fuse").
using NamedRegionOptions = std::map<std::string, AttrValue, std::less<>>;
inline bool names_a_region(std::string_view option) { return option.starts_with("region."); }
// Whether the option of a compile is one that regions have, too.
bool is_of_regions(std::string_view option);
// The PHASE that the option of a region names; "": none.
std::string_view phase_named_by(std::string_view option);
// "region.NAME.OPTION" and so on. unknown_name: there is no such OPTION; type_mismatch, invalid_argument: it does not
// take the value.
Status check_region_option(std::string_view name, const AttrValue &value);
// The backends that regions of the graph, or of one nested in it, are marked for, and those that options name, each
// with who names it.
std::map<std::string, std::string> backends_named(const Graph &graph, const NamedRegionOptions &named);
// Whether a node of the graph, or of one nested in it, is marked for a region.
bool has_regions(const Graph &graph);
// All name a region that a node is marked for: of the graph before or after passes, which may take nodes away and mark
// others, or of one nested in it. Else unknown_name, with the regions that there are.
Status check_regions_named(const Graph &before, const Graph &after, const NamedRegionOptions &named);

// The options of the regions of one graph, whose calls are inlined.
class RegionChoices {
 public:
  // What the compile says of a region comes first, of its phase before of all of it; then what its nodes are marked
  // with; then `base`. invalid_argument: two nodes of a region and phase are marked with different values, of which
  // both are named.
  static Result<RegionChoices> of(const Graph &graph, const Modes &modes, const RegionOptions &base,
                                  const NamedRegionOptions &named);
  // What is said of options of registered backends is of such as there are, and of their kinds: else invalid_argument,
  // unknown_name, type_mismatch. `chosen`: with those of all regions.
  Status check(const ChosenBackends &chosen) const;
  // Of a node of region `name`.
  const RegionOptions &at(const Node &node, const std::string &name) const;
  const RegionOptions &base() const { return base_; }

 private:
  using Place = std::pair<std::string, bool>;  // a region and whether its phase is backward
  std::map<Place, RegionOptions> places_;
  RegionOptions base_;
};

}  // namespace kiln
