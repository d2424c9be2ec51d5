// Steps of a plan, as reports and listings tell them.
#pragma once
#include <span>
#include <string>

#include "jit/base/json_writer.h"
#include "runtime/plan/artifact.h"

namespace kiln {

// "nodes": [{"node", "op", "debug" (where it has some)}]. `json` is inside an object.
void write_origins(std::span<const Plan::Origin> origins, JsonWriter &json);

// What each kernel's launches compute, by its number; a text of the first few.
std::vector<std::string> nodes_of_kernels(const Artifact &artifact);

// The listing "steps": {"plans": [{"plan" (by its numbers; "": the outermost), "slots": [{"kind", "index", "name" (of
// the signature), "bytes"}], "arena" and "prepared" (bytes of each storage), "prepare" and "steps": [{"what", "kind",
// "slots", "written" (which of them), and of a kernel "kernel", "nodes", "bytes", "flops" (estimated)}]}]}. Sizes are
// texts over the plan's symbols.
std::string list_steps(const Artifact &artifact);

// What the planner made in place, and what it could not, a copy step each: {"copies": [{"what", "plan" (by its numbers;
// "": the outermost), "bytes", "nodes", "why" (Plan::Step::Why), "reason" (for people)}], "made", "missed",
// "missed_bytes"}. Sizes are texts over the symbols of the outermost plan; a nested one's copies count once.
std::string in_place_json(const Plan &plan);

}  // namespace kiln
