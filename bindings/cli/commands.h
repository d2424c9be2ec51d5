// The commands of the program, one file each; main.cpp lists them.
#pragma once
#include "args.h"

namespace kiln::cli {

extern const Command run_command, compile_command, inspect_command, passes_command, ops_command, options_command,
    bench_command, cache_command, pack_command, unpack_command, plugin_command, version_command;

}  // namespace kiln::cli
