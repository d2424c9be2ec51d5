// What edits of an unpacked artifact (runtime/unpacked) ask to be made again.
#pragma once
#include "runtime/compile.h"
#include "runtime/unpacked/unpacked.h"

namespace kiln {

// The artifact as its members say now. An edited graph (or constant of it) is compiled with the options of the compile
// that made the artifact, and no pass runs: it is the graph after all passes. It decides all else, so that nothing else
// may be edited beside it. An edited kernel is compiled, and has to take and give the arrays that it took and gave. An
// edited plan is verified. Nothing is taken from the cache or put there, and the artifact says what was edited, and has
// no key. Where nothing is edited, it is as it was. Errors name the member and say where in it: corrupt, and what a
// compile answers.
Result<Artifact> make_edited(const CompileEnvironment &env, const Unpacked &unpacked);

}  // namespace kiln
