// What a function is called with when it runs a node.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/functions/signature.h"
#include "runtime/graph/graph.h"

namespace kiln {

// A signature, held against one node. Arrays are numbered: operands, then results; all are row-major.
struct FunctionBinding {
  struct Argument {
    FunctionSignature::Argument::Kind kind = FunctionSignature::Argument::Kind::user;
    DType type = DType::none;  // scalar
    bool by_pointer = false;   // scalar
    uint32_t array = 0;        // data, inout, tensor
    uint32_t operand = 0;      // inout: what `array` begins as
    // scalar: what is passed, or pointed to, for each of `values` one of the type; of a text, its bytes.
    std::vector<Expr> values = {};  // also scratch: bytes
    std::vector<double> numbers = {};
    std::string text = {};
  };
  struct Equal {
    Expr left, right;
    std::string what;  // "at 61: dim 0 of 'b' is 'k', which dim 1 of 'a' is"
  };
  std::vector<Argument> arguments;
  std::vector<Equal> checks;  // of sizes that types do not tell
};

// Errors: type_mismatch, unknown_name; they say where in the signature, and what does not fit.
Result<FunctionBinding> bind_function(const FunctionSignature &signature, const Graph &graph, const Node &node);

// Expressions of a binding are over the sizes of its arrays. `dims` are theirs.
int64_t evaluate(const Expr &expression, const std::vector<std::vector<int64_t>> &dims);

}  // namespace kiln
