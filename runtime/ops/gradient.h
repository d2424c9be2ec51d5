// What an op's record declares for automatic differentiation: which operands a gradient flows back to, and by what.
// Nothing differentiates graphs yet; what will reads this alone. Of operands and results only floats count: an op whose
// types are chosen by a call has no gradient where they are integers.
#pragma once
#include <string_view>
#include <vector>

#include "runtime/graph/schema.h"

namespace kiln {

struct Op;

// Who gets the gradient of a result that several elements could have given: equal ones (max), or all that are for one
// place (scatter). Through a decomposition its ops decide.
enum class Ties : uint8_t {
  none,   // no result leaves that open
  even,   // all equal ones, in equal shares
  first,  // in row-major order
  last,
};

struct Gradient {
  enum class Kind : uint8_t {
    undeclared,     // no record's
    rule,           // of its own
    decomposition,  // that of the ops that Op::decompose adds
    zero,           // the results do not change with the operands, but where they jump: nothing flows back
    none,           // to ask for one is an error, which says why
  };
  Kind kind = Kind::undeclared;
  Ties ties = Ties::none;
  std::string_view operands = {};  // the arguments that get one, with ", " between; "": all that take floats
  std::string_view why = {};       // of zero and none, and of a rule for those nodes that it does not hold for:
  std::string_view given = {};     // those that leave this attribute at its default; "": it holds for all
};

// What records are initialised with: {..., .gradient = by_rule("x, weight"), ...}.
constexpr Gradient by_rule(std::string_view operands, Ties ties = Ties::none) {
  return {Gradient::Kind::rule, ties, operands, {}, {}};
}
// For nodes that are given an attribute; for the others there is none, and why.
constexpr Gradient by_rule_if_given(std::string_view attr, std::string_view operands, std::string_view why) {
  return {Gradient::Kind::rule, Ties::none, operands, why, attr};
}
constexpr Gradient through_decomposition() { return {Gradient::Kind::decomposition, Ties::none, {}, {}, {}}; }
constexpr Gradient zero_gradient(std::string_view why) { return {Gradient::Kind::zero, Ties::none, {}, why, {}}; }
constexpr Gradient no_gradient(std::string_view why) { return {Gradient::Kind::none, Ties::none, {}, why, {}}; }

// Of ops whose results hold no floats, or have no floats to depend on.
inline constexpr Gradient gives_indices = no_gradient("results are indices");
inline constexpr Gradient gives_booleans = no_gradient("results are booleans");
inline constexpr Gradient gives_integers = no_gradient("results are integers");
inline constexpr Gradient takes_no_floats = no_gradient("no operand holds floats");

// The arguments that a gradient flows back to; of zero and none, none.
std::vector<std::string_view> differentiable_operands(const Op &op);

}  // namespace kiln
