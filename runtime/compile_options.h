// What a host may ask of a compile.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/graph/json_view.h"
#include "runtime/options.h"
#include "runtime/regions/modes.h"
#include "runtime/regions/region_options.h"

namespace kiln {

AttrValue to_attr(Rounding rounding);
Status from_attr(const AttrValue &value, Rounding &out);

AttrValue to_attr(Mode mode);
Status from_attr(const AttrValue &value, Mode &out);
AttrValue to_attr(const std::optional<Mode> &mode);  // none is ""
Status from_attr(const AttrValue &value, std::optional<Mode> &out);
AttrValue to_attr(Fallback fallback);
Status from_attr(const AttrValue &value, Fallback &out);

// ahead: by the compile. background: by the context's own thread, from then on. lazy: likewise, when a run first meets
// the sizes.
enum class SpecializeWhen : uint8_t { ahead, background, lazy };
AttrValue to_attr(SpecializeWhen when);
Status from_attr(const AttrValue &value, SpecializeWhen &out);

struct CompileOptions {
  std::string backend = "cpu";  // one of Kiln's own (runtime/backends/backend.h), or a registered one
  std::string cpu = "native";   // Target::by_name
  std::string arch = "native";  // of a backend for a device; "native": the device's own, which must be there
  bool code = true;             // false: kernels are made but not compiled; the executable can be looked at, not called
  bool use_cache = true;
  bool strict = false;                                  // a bypass that the host did not ask for is an error
  bool verify = false;                                  // a hit is made again, and compared
  bool require_hit = false;                             // anything but HIT is an error NOT_CACHED with the report
  std::optional<std::vector<std::string>> passes = {};  // exact names of those to run; none: all
  std::vector<std::string> disable_passes = {};
  bool fuse = true;
  Mode mode = Mode::all;
  std::optional<Mode> mode_forward = {}, mode_backward = {};  // of the nodes of one phase; none: `mode`
  Fallback fallback = Fallback::kernel;
  std::vector<std::string> split_at = {};  // names of ops: a piece ends after each of their nodes
  Rounding rounding = Rounding::strict;
  bool algebra = false;
  NamedRegionOptions of_regions = {};        // "region.NAME.OPTION"; no rows: names are the graph's
  AttrMap of_backends = {};                  // "backend.NAME.OPTION"; no rows: registered ones have their own
  std::vector<std::string> specialize = {};  // "batch=1,length=128", an entry each
  SpecializeWhen specialize_when = SpecializeWhen::ahead;
  uint32_t compile_threads = 0;            // 0: one per usable core
  std::string dump = {};                   // a folder (dump.h); the graph's key is then not used
  std::string report_html = {};            // a file (compile_page.h); likewise
  bool want_ir = false, want_asm = false;  // texts into the result (the cache is then not asked); no host's to ask

  // The registered backend that is asked before one of Kiln's own; empty: none is.
  std::string registered_backend() const { return find_backend(backend).ok() ? "" : backend; }
  RegionOptions region_options() const { return {fuse, rounding, registered_backend()}; }
  Modes modes() const { return {mode_forward.value_or(mode), mode_backward.value_or(mode), fallback}; }
};

std::span<const OptionRow<CompileOptions>> compile_option_rows();
// Of those that are in the key, "fuse=true, rounding=strict".
std::string keyed_text(const CompileOptions &options);
// Those that say what is made and are not as by default, as JSON, {"mode": "marked"}; "{}": none is. Options of regions
// and backends, which have no row, tell their kind, {"kind", "list", "value"}. Reads back: code corrupt.
std::string to_json(const CompileOptions &options);
Result<CompileOptions> read_compile_options(const json::View &object);

}  // namespace kiln
