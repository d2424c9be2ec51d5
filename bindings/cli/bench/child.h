// What one process measures: a command of the program that no help lists.
#pragma once
#include <string_view>

#include "../args.h"

namespace kiln::cli::bench {

inline constexpr std::string_view stage_names[] = {"describe", "cold", "warm"};  // by Stage

// Tells one JSON object on standard output, also of a failure: {"error", "usage"}. Stage "describe": {"artifact",
// "symbols": [NAME]}. "cold" and "warm": {"made" (a compile, or opening an artifact): {"real", "cpu" (seconds),
// "iterations"}, "lookup", "reason", "lookup_seconds", "threads", "peak_bytes"}; "warm" also {"first_run", "run" (a
// median), "backend", "steps": [{"name", "outermost", "kernel", "ns", "bytes", "flops", "runs"}], "roof":
// {"bytes_per_second", "flops_per_second"}}.
extern const Command child_command;

}  // namespace kiln::cli::bench
