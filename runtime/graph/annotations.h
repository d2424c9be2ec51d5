// Annotations by their names. Those under `kiln.` mean something to Kiln: they are the ones listed in annotations.cpp,
// each of its type, and no others. Those under `debug.` are for people: no key, no comparison sees them. All others are
// the user's own: part of keys, otherwise inert.
#pragma once
#include <string_view>

#include "jit/base/status.h"
#include "runtime/graph/attr.h"

namespace kiln {

// The function of the host's that runs a node, in place of what Kiln makes of its op.
inline constexpr std::string_view function_annotation = "kiln.fallback.function";

// Options of the registered backend that is chosen for a node's region, which the compile checks: these and a name.
inline constexpr std::string_view backend_annotations = "kiln.region.backend.";

// unknown_name, invalid_argument: it is no annotation's.
Status check_annotation_name(std::string_view name);
// unknown_name: a name under `kiln.` that there is not; type_mismatch: another kind of value than it has;
// invalid_argument: a value that it does not take, or a kind that no annotation has.
Status check_annotation(std::string_view name, const AttrValue &value);

// Whether it is for inputs, and no other nodes; else for op nodes alone.
bool is_for_inputs(std::string_view name);
// Whether op nodes may have all of them.
Status check_op_annotations(const AttrMap &annotations);

// Whether the value takes back what an outer scope, or a replaced node, would give: such a one is not kept.
bool unmarks(std::string_view name, const AttrValue &value);

// Whether an annotation of `from` may be inherited by a node with the annotations `to`: an option of a region is for
// the nodes of that region.
bool may_pass_on(std::string_view name, const AttrMap &from, const AttrMap &to);

// Whether it says what comes after a node: of several that take a node's place, the last alone inherits it.
bool marks_an_end(std::string_view name);

// Whether it is of a node's own op: what takes the node's place does not inherit it.
inline bool is_of_one_node(std::string_view name) { return name == function_annotation; }

inline bool is_for_people(std::string_view name) { return name.starts_with("debug."); }
// Whether two nodes carry the same, but for what is for people.
bool same_annotations(const AttrMap &a, const AttrMap &b);

}  // namespace kiln
