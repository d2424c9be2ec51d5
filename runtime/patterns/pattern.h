// A pattern: what a part of a graph looks like, and what takes its place. docs/patterns.md says what each member of its
// JSON means; read_pattern() makes one, matcher.h finds the places, pattern_set.h rewrites them.
// Threads: a Pattern may be read from any thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace kiln::patterns {

inline constexpr size_t most_terms = 256, most_operands = 1024;

// On one size: any, this one, or the one that a name stands for, which is bound where it is first met.
struct DimCondition {
  enum class Kind : uint8_t { any, exact, named };
  Kind kind = Kind::any;
  int64_t size = 0;
  uint32_t name = 0;  // into Pattern::dims
};
struct ShapeCondition {
  bool leading = false;  // "...": any number of sizes before these
  std::vector<DimCondition> dims;
};
struct TypeCondition {
  std::vector<DType> dtypes = {};  // empty: any
  std::optional<ShapeCondition> shape = {};
};

struct AttrCondition {
  // axes: of operand 0, counted from either side, in any order.
  enum class Kind : uint8_t { any, among, axes, between };
  std::string name;
  Kind kind = Kind::any;
  std::vector<AttrValue> values = {};  // among: one or more; axes: one list
  double least = 0, most = 0;          // between: both may be infinite
};

// What stands for a value, or for a node with its values.
struct Operand {
  uint32_t term = 0, output = 0;
};
struct Term {
  std::string name;  // empty: "_", of which nothing is asked
  TypeCondition type = {};
  // A capture: an operand that may be left out. A node: it may be missing, and then its first operand is what it
  // stands for.
  bool optional = false;

  // A capture
  enum class Source : uint8_t { any, input, parameter, constant, op, fixed };  // fixed: a parameter or a constant
  Source source = Source::any;
  bool is_number = false;             // a scalar that the graph itself holds
  std::optional<double> number = {};  // which it has to be

  // A node
  std::vector<const OpSchema *> ops = {};  // one of these; empty: a capture
  std::vector<Operand> operands = {};
  std::vector<AttrCondition> attrs = {};  // what they do not name has its default
  bool keeps = false;                     // its results may be used elsewhere, too

  bool is_node() const { return !ops.empty(); }
  bool commutes() const;
};

// Of a node that no operand leads to from the first output: it uses what `operand` of it is, which is known by then.
struct Join {
  uint32_t term = 0, operand = 0;
};

// A value in a replacement: of the match, or of one of its own nodes.
struct MadeOperand {
  bool made = false;
  uint32_t index = 0, output = 0;
};
struct MadeAttr {
  // attr: that of the node `term`. number, dtype: of the capture or node `term`.
  enum class Kind : uint8_t { value, attr, number, dtype };
  std::string name;
  Kind kind = Kind::value;
  AttrValue value = {};  // dims: over the pattern's names of sizes
  uint32_t term = 0;
  std::string attr = {};
};
struct MadeNode {
  std::string name;  // in the pattern alone
  const OpSchema *op = nullptr;
  std::vector<MadeOperand> operands = {};
  std::vector<MadeAttr> attrs = {};
  std::optional<uint32_t> when = {};  // this term is there; else its first operand is what it stands for
};
struct Replacement {
  std::vector<MadeNode> nodes;
  std::vector<MadeOperand> outputs;  // as many as the pattern has
};

struct Pattern {
  std::string name;
  std::vector<Term> terms;  // captures and nodes; a node after its operands
  std::vector<std::string> dims;
  std::vector<Operand> outputs;  // the first one's node is where a place is looked for
  std::vector<Join> joins;
  uint64_t expected = 0;         // matches in a compile, at least
  bool any_annotations = false;  // else its nodes carry the same
  std::optional<Replacement> replacement = {};

  const Term *find(std::string_view name) const;  // null: none
  uint32_t root() const { return outputs.front().term; }
};

// Strict, as graphs are read. Errors say where: "nodes[2].attrs.dims: …".
Result<Pattern> read_pattern(std::string_view json, const OpTable &ops);

}  // namespace kiln::patterns
