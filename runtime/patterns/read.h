// For read*.cpp: what of a pattern has been read so far.
#pragma once
#include <string_view>

#include "runtime/graph/json_view.h"
#include "runtime/patterns/pattern.h"

namespace kiln::patterns {

using json::View;

class Reader {
 public:
  explicit Reader(const OpTable &ops) : ops_(ops) {}
  Result<Pattern> read(const View &v);

 private:
  // read.cpp
  Status read_capture(const View &v);
  Status read_node(const View &v);
  Result<Operand> read_operand(const View &v);
  Status read_outputs(const View &v);
  Result<const OpSchema *> read_op(const View &v) const;
  Result<std::string> read_new_name(const View &v) const;
  Status check_reach(const View &v);
  // read_conditions.cpp
  Status read_type(const View &v, TypeCondition &out);
  Result<ShapeCondition> read_shape(const View &v);
  Status read_attrs(const View &v, Term &node) const;
  // read_replacement.cpp
  Status read_replacement(const View &v);
  Status read_made_node(const View &v);
  Result<MadeAttr> read_made_attr(const View &v, const OpSchema &op) const;
  Result<MadeOperand> read_made_operand(const View &v) const;
  Result<uint32_t> read_term(const View &v) const;

  const OpTable &ops_;
  Pattern pattern_;
  size_t operand_count_ = 0;
};

// "NODE" or "NODE:K".
Result<std::pair<std::string_view, uint32_t>> split_operand(const View &v);
// The attribute of that name, or an error that lists those that there are.
Result<const AttrDef *> find_attr(const View &v, const OpSchema &op);

}  // namespace kiln::patterns
