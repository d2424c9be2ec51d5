#include "runtime/context_options.h"

#include <array>

namespace kiln {
namespace {

constexpr std::string_view of_running = "it says how to run, not what to make";

using O = ContextOptions;
const std::array rows = {
    option_row<&O::threads>("threads", of_running,
                            "threads that run kernels; 0: KILN_THREADS, else one per usable core"),
    option_row<&O::cache>("cache", "it says where records lie",
                          "the cache's folder; empty: KILN_CACHE, else the user's cache folder; \"off\""),
    option_row<&O::cache_max_bytes>("cache_max_bytes", "it says how many records are kept",
                                    "beyond it, the oldest records are evicted; 0: 1 GiB"),
    option_row<&O::load_symbols>("load_symbols", "the identity of each function is in the key",
                                 "files, by absolute paths, of which functions may be registered by symbol"),
};

}  // namespace

std::span<const OptionRow<ContextOptions>> context_option_rows() { return rows; }

}  // namespace kiln
