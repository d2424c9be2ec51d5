#include "runtime/context_options.h"

#include <array>

namespace kiln {
namespace {

constexpr std::array<std::string_view, 2> failure_names = {"fail", "skip"};

}  // namespace

AttrValue to_attr(PassFailures policy) { return std::string(failure_names[static_cast<size_t>(policy)]); }
Status from_attr(const AttrValue &value, PassFailures &out) {
  KILN_ASSIGN(const size_t which, which_of(value.text_value(), failure_names));
  out = static_cast<PassFailures>(which);
  return {};
}

namespace {

constexpr std::string_view not_shared = "what is made without a pass is given to nobody else";
constexpr std::string_view of_running = "it says how to run, not what to make";

const std::array context_rows = {
    option_row<&ContextOptions::threads>("threads", of_running,
                                         "threads that run kernels; 0: KILN_THREADS, else one per usable core"),
    option_row<&ContextOptions::cache>("cache", "it says where records lie",
                                       "the cache's folder; empty: KILN_CACHE, else the user's cache folder; \"off\""),
    option_row<&ContextOptions::cache_max_bytes>("cache_max_bytes", "it says how many records are kept",
                                                 "beyond it, the oldest records are evicted; 0: 1 GiB"),
    option_row<&ContextOptions::prepared>(
        "prepared", of_running,
        "whether what is made of parameters that lie in files is kept in the cache, for the next "
        "process to map"),
    option_row<&ContextOptions::prepared_max_bytes>(
        "prepared_max_bytes", "it says how many records are kept",
        "beyond it, the oldest of these are evicted; 0: a tenth of the disk"),
    option_row<&ContextOptions::pass_failures>(
        "pass_failures", not_shared,
        "when a pass fails: fail, so does the compile; skip, it goes on without that pass, "
        "with a warning"),
    option_row<&ContextOptions::pass_budget_ms>(
        "pass_budget_ms", not_shared,
        "a pass has failed that calls Kiln after so many ms; 0: passes may take any time"),
    option_row<&ContextOptions::load_symbols>(
        "load_symbols", "the identity of each function is in the key",
        "files, by absolute paths, of which functions may be registered by symbol"),
};

}  // namespace

std::span<const OptionRow<ContextOptions>> context_option_rows() { return context_rows; }

}  // namespace kiln
