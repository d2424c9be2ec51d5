// What the graph layer must know of an op: its signature and its inference. The op's record (runtime/ops/op.h) is one
// of these and more.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "jit/base/status.h"
#include "runtime/graph/attr.h"
#include "runtime/graph/type.h"

namespace kiln {

enum class Arity : uint8_t { one, optional, variadic };  // optional ones come last, a variadic one is the last

struct ArgDef {
  std::string_view name, doc;
  DTypes dtypes;
  Arity arity = Arity::one;
  bool same_dtype = true;  // as the first argument with this flag; a difference is an error that names convert
};
struct AttrDef {
  std::string_view name, doc;
  AttrKind kind;
  bool is_list = false;
  bool required = false;
  AttrValue fallback = {};  // when not required
};
AttrValue default_of(const AttrDef &attr);  // fallback, with the attribute's kind; of one that is not required

// Two sizes that must be equal, which only a call can tell (n against m); `what` says it to people: "a dim 1 and b dim
// 0 must be equal".
struct Equality {
  Dim left, right;
  std::string what;
  bool operator==(const Equality &) const = default;
};

// A size that a node tells: the symbol is the value of its last result, an i64 scalar, and at most `bound`.
struct ResolvedSymbol {
  std::string name;
  Dim bound;
  bool operator==(const ResolvedSymbol &) const = default;
};

struct OpSchema;

// Inputs and attributes (complete: defaults filled in, kinds checked) of the node that is being inferred.
struct InferContext {
  const OpSchema &op;  // whose inference it is: one function may serve several ops
  std::span<const TensorType> inputs;
  const AttrMap &attrs;
  std::vector<TensorType> results;   // to fill
  std::vector<Equality> equalities;  // to be checked at each call
  std::vector<ResolvedSymbol> symbols = {};

  const AttrValue &attr(std::string_view name) const { return attrs.find(name)->second; }
  // The name of operand `input`; of one of several that a variadic argument takes, with its number.
  std::string arg_name(size_t input) const;
  // "[matmul] lhs dim 1 is 3, rhs dim 0 is 4" : a type_mismatch error with the op's name in brackets.
  template <class... Parts>
  Status fail(const Parts &...parts) const {
    return error(Code::type_mismatch, "[", op_name(), "] ", parts...);
  }
  std::string_view op_name() const;
  // Ok if equal, or if they may be equal (symbolic: then recorded); an error when they are different integers.
  Status require_equal(const Dim &a, const Dim &b, std::string_view what);
  // Numpy's rule, but only a literal 1 broadcasts.
  Result<Shape> broadcast(std::span<const Dim> a, std::span<const Dim> b);
  // -rank <= axis < rank, as 0 <= axis < rank.
  Result<int64_t> axis(int64_t axis, size_t rank, std::string_view attr_name) const;
};

struct OpSchema {
  std::string_view name, doc;
  uint16_t version = 1;
  uint32_t flags = 0;  // OpFlags
  std::vector<ArgDef> args = {};
  std::vector<std::string_view> result_names = {};
  std::vector<AttrDef> attrs = {};
  Status (*infer)(InferContext &) = nullptr;

  const AttrDef *find_attr(std::string_view name) const;  // null: none
  bool takes(size_t operands) const;                      // whether a node may have as many
};

// What Edit::add and verify() share. Errors have the op's name in brackets.
Status check_operands(const OpSchema &op, std::span<const TensorType> inputs);  // count and dtypes
// Fills in defaults; refuses what the schema does not name, or names with another kind. An i64 is taken for an f64 or a
// dim, a list that is empty for an empty list of any kind.
Status complete_attrs(const OpSchema &op, AttrMap &attrs);
struct Inferred {
  std::vector<TensorType> results;  // layout free
  std::vector<Equality> equalities;
  std::vector<ResolvedSymbol> symbols;
};
Result<Inferred> infer(const OpSchema &op, std::span<const TensorType> inputs, const AttrMap &attrs);

namespace op_flags {
inline constexpr uint32_t random = 1, effect = 2, changes_numerics = 4;
inline constexpr uint32_t mutates = 8;  // result 0 is operand 0, overwritten: copy_ alone
inline constexpr uint32_t view = 16;    // result 0 may be a view of operand 0's storage
// Results are elements of operands, or converted numbers: no arithmetic, which small floats would need f32 for.
inline constexpr uint32_t moves = 32;
inline constexpr uint32_t control = 64;            // steps of a plan of their own: cond, while, resolve
inline constexpr uint32_t fewer_results = 256;     // attributes may leave out the last of result_names
inline constexpr uint32_t replaces = 512;          // result 0 is operand 0 but for some elements
inline constexpr uint32_t registered = 1024;       // not built in (runtime/ops/registered.h)
inline constexpr uint32_t carries_effects = 2048;  // nodes of the graphs that it carries may have effects
inline constexpr uint32_t commutes = 4096;         // two operands, in either order
inline constexpr uint32_t new_dims = 8192;         // axes that attributes name are the result's, and not operand 0's
inline constexpr uint32_t resolves = 128;  // binds the symbol that its attribute "symbol" names; "": a fresh one
}  // namespace op_flags

// Where names of ops are looked up: the registry of runtime/ops, and what plugins add to a context.
class OpTable {
 public:
  virtual ~OpTable() = default;
  virtual const OpSchema *find(std::string_view name) const = 0;  // null: unknown
  virtual std::string suggest(std::string_view name) const = 0;   // "; did you mean 'add'?", or ""
  // Which op has the name: "version 1", of one that was registered more; empty: none has.
  virtual std::string identity(std::string_view name) const;
};

}  // namespace kiln
