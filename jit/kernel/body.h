// Work on SSA bodies that fusion is made of: copying one into another with its leaves replaced, never repeating a
// value.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "jit/kernel/compute.h"

namespace kiln::kernel {

// Appends, or finds the same value: value numbering keeps inlined bodies free of repetition.
int append(Body &body, const Value &value);

using AxisMap = std::function<std::optional<Expr>(uint32_t axis)>;
// Called for each load, its index, arguments and guard already translated; returns the id that takes its place.
using LoadHook = std::function<int(Body &to, Value load)>;

// Copies `from` onto the end of `to`: axes through `axes`, values renumbered. Returns the new id of each old value.
std::vector<int> copy_body(const Body &from, Body &to, const AxisMap &axes, const LoadHook &on_load);
// Replaces axes and values in `e`.
Expr translate(const Expr &e, const AxisMap &axes, const std::vector<int> &value_ids);
// Drops values that no yield needs.
void prune(Body &body);
// An estimate in units of one arithmetic instruction.
int cost_of(const Body &body);
bool has(const Body &body, Core op);
// Whether what it computes, or how often, changes from call to call with the sizes.
bool has_symbols(const Body &body);
bool has_symbols(const Compute &compute);
// Calls `fn` with every expression (index maps and `index` values) so that it can be replaced.
void for_each_expr(Body &body, const std::function<void(Expr &)> &fn);
// By which numbers the body's expressions divide an axis, (axis // a) % b counting as a * b. Empty: by none, or by what
// is no number.
std::vector<int64_t> divisors_of(const Body &body, size_t axis);

// Values of a map's body that are loaded along the last parallel axis but one, while lanes go along the last: a
// transpose, which blocks of both axes do in registers. Empty: none, or the kernel does more than such a block may.
std::vector<size_t> crossed_loads(const Kernel &kernel);

}  // namespace kiln::kernel
