// The signature of a host's function: what it returns and what it is called with. docs/call-a-function.md says the
// language.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "jit/base/dtype.h"
#include "jit/base/expr.h"
#include "jit/base/status.h"

namespace kiln {

struct FunctionSignature {
  enum class Return : uint8_t { nothing, code, error };
  // An operand or a result: by its name in the op's schema, or by number, operands from 0, then results.
  struct Place {
    std::string name = {};  // empty: by number
    uint32_t number = 0;
    size_t at = 0;  // in the text
  };
  // What stands between brackets: a name (the first time it stands there, the size gets it), a number, or "_".
  struct Extent {
    std::string name = {};           // empty: a number, or any size
    std::optional<int64_t> is = {};  // a number
    size_t at = 0;
  };
  // What an expression speaks of; there it is the symbol reference_symbol(its number).
  struct Reference {
    enum class Kind : uint8_t { name, size, stride };
    Kind kind = Kind::name;
    std::string name = {};
    Place place = {};  // size, stride
    uint32_t dim = 0;
    size_t at = 0;
  };
  struct Argument {
    // scalar: by value, or a pointer to one or several. data: where elements lie. inout: where a result lies, which
    // begins as an operand. tensor: a const DLTensor *. scratch: memory of the call's own. user: as registered.
    enum class Kind : uint8_t { scalar, data, inout, tensor, scratch, user };
    Kind kind = Kind::user;
    DType type = DType::none;                         // of a scalar, or of elements; none: any
    bool by_pointer = false;                          // scalar
    Place place = {};                                 // data, inout (the result), tensor
    Place operand = {};                               // inout
    std::optional<std::vector<Extent>> extents = {};  // of `place`; none: of any rank
    Expr value = {};                                  // scalar of an integer type, scratch (bytes)
    double number = 0;                                // scalar of a float type, unless it is a name
    std::string name = {};                            // scalar that is a name and nothing else
    size_t at = 0, end = 0;                           // in the text
  };

  std::string text;
  Return returns = Return::nothing;
  std::vector<Argument> arguments;
  std::vector<Reference> references;

  std::string_view text_of(const Argument &argument) const {
    return std::string_view(text).substr(argument.at, argument.end - argument.at);
  }
};

// "void", "i32 (not 0: it failed)", ... Errors: invalid_argument; they say where ("at 12") and what was expected.
Result<FunctionSignature> parse_function_signature(std::string_view text);

// Whether an integer is one of the type.
bool fits(int64_t value, DType type);

std::string reference_symbol(size_t number);
size_t reference_number(std::string_view symbol);

}  // namespace kiln
