// Programs for the sizes that the option `specialize` names, beside the one for all: which are wanted, and the making
// of each, by the compile or later.
#pragma once
#include <memory>
#include <vector>

#include "runtime/compile.h"
#include "runtime/passes/specialize.h"

namespace kiln {

// Errors name the option, the text and what was expected.
Result<std::vector<FixedSizes>> wanted_entries(const CompileOptions &options, const Graph &graph);

// What entries are made from when the compile of the program for all sizes has ended.
struct EntryMaker {
  CompileOptions options;
  Target target;
  GraphPtr given;  // what the key is of
  GraphPtr whole;  // after passes; null: none ran, and the executable's artifact keeps it
  std::vector<std::shared_ptr<const Pass>> lower;  // passes that run on its regions
  std::shared_ptr<const FunctionTable> functions;  // those that the program for all sizes was made with
  std::shared_ptr<const BackendTable> backends;    // likewise
  std::shared_ptr<Questions> questions;            // with their answers
  std::string uncacheable;                         // why neither it nor entries are anybody else's; empty: they may be
};

// Makes one entry of the executable, or takes it from the cache. Of passes, runs those of stage lower. Errors are a
// compile's.
Status make_entry(const CompileEnvironment &env, const EntryMaker &maker, const Executable &general, size_t number,
                  CompileReport &report);

// Of the sizes, entries of the executable that nobody else has yet: made here, or given to `env.later`. Passes run on
// the thread of their compile alone: where there are some of stage lower, all is made here; so, too, where a backend is
// called on the host's threads alone.
Status make_entries(const CompileEnvironment &env, const std::shared_ptr<const EntryMaker> &maker,
                    const std::vector<FixedSizes> &sizes, const std::shared_ptr<const Executable> &general,
                    CompileReport &report);

}  // namespace kiln
