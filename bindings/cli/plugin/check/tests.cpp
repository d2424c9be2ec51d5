#include "tests.h"

namespace kiln::cli::plugin_check {
namespace {

// By level; a test of an op or a backend passes where there is none. The limits are for what hangs: what takes a few
// seconds may take minutes on a machine that is busy, and that is no failure of the plugin.
constexpr Test all[] = {
    {"load", 1, 20, test_load,
     "setup should register and return: what takes long belongs where it is first needed; a graph that is given must "
     "be one, of Kiln's ops and the plugin's"},
    {"invariants", 2, 600, test_invariants,
     "kiln plugin check P.so --graph NAME writes the graph, kiln run GRAPH --plugin P.so shows the same error; "
     "docs/passes.md tells each invariant"},
    {"numerics", 3, 600, test_numerics,
     "check the conditions of the pattern: types, shapes, attributes that are not their defaults, other uses of inner "
     "values; what has an effect stays, in its order"},
    {"repeat", 4, 600, test_repeat,
     "what a pass makes must follow from the graph: no random numbers, no state between runs, no order of addresses"},
    {"identity", 5, 600, test_identity, "name, version, UUID and options must be the same in every process"},
    {"cache", 5, 600, test_cache,
     "fingerprint may only add what is the same whenever the result is the same, in every process; load may only use "
     "the bytes that compile made"},
    {"ops", 6, 600, test_ops, "run and decompose must compute the same, and each result must be written whole"},
    {"backends", 6, 600, test_backends,
     "takes should refuse what run does not compute as the reference does, and take something of some graph"},
    {"surroundings", 7, 600, test_surroundings,
     "declare what is read: an option of the pass, host->context->add_file in setup, or bytes that fingerprint adds"},
    {"facts", 7, 600, test_facts,
     "ask with host->pass->query inside each run: what a fingerprint asks, or what is kept from another run, is in no "
     "key"},
    {"names", 7, 600, test_names, "names of op nodes and annotations debug.* are in no key: decide by ops and types"},
    {"random", 8, 600, test_random, "see the graph alone: kiln plugin check P.so --reproduce SEED"},
    {"threads", 9, 600, test_threads, "keep state in what setup returns, or in the run, not in globals"},
    {"leaks", 10, 600, test_leaks, "free what a run makes; graphs and edits that it begins are its to destroy"},
    {"hosts", 10, 600, test_hosts,
     "look at a table's struct_size before calling a slot that host_minor_needed does not promise; accept larger ones"},
};

}  // namespace

std::span<const Test> tests() { return all; }

}  // namespace kiln::cli::plugin_check
