#include "runtime/patterns/replacement.h"

#include <algorithm>

namespace kiln::patterns {
namespace {

class Maker {
 public:
  Maker(const Pattern &pattern, const Place &place, Edit &edit) : pattern_(pattern), place_(place), edit_(edit) {}

  Result<std::vector<ValueId>> make() {
    for (const MadeNode &node : pattern_.replacement->nodes)
      if (Status status = add(node); !status.ok())
        return std::move(status).with_prefix(str_cat("replacement node '", node.name, "': "));
    std::vector<ValueId> outputs;
    for (const MadeOperand &output : pattern_.replacement->outputs) outputs.push_back(value_of(output));
    return outputs;
  }

 private:
  // None: what it is of is not there.
  ValueId value_of(const MadeOperand &operand) const {
    if (operand.made) return {made_[operand.index].node, made_[operand.index].output + operand.output};
    return term_value(operand.index, operand.output);
  }
  ValueId term_value(uint32_t index, uint32_t output) const {
    const Term &term = pattern_.terms[index];
    const ValueId value = place_.values[index];
    if (!term.is_node()) return value;
    if (value) return {value.node, output};
    const Operand &stands = term.operands.front();  // a node that is missing
    return term_value(stands.term, stands.output);
  }

  Status add(const MadeNode &node) {
    if (node.when && !place_.values[*node.when]) {
      made_.push_back(value_of(node.operands.front()));
      return {};
    }
    std::vector<ValueId> operands;
    for (const MadeOperand &operand : node.operands) operands.push_back(value_of(operand));
    while (!operands.empty() && !operands.back()) operands.pop_back();
    if (const auto none = std::ranges::find(operands, ValueId()); none != operands.end())
      return invalid("operand ", none - operands.begin(), " is not there; say with 'when' what it depends on");
    AttrMap attrs;
    for (const MadeAttr &attr : node.attrs) {
      KILN_ASSIGN(AttrValue value, value_of(attr));
      attrs.emplace(attr.name, std::move(value));
    }
    KILN_ASSIGN(const uint32_t id, edit_.add(node.op, operands, std::move(attrs)));
    made_.push_back({id, 0});
    return {};
  }

  Result<AttrValue> value_of(const MadeAttr &attr) const {
    const Graph &graph = edit_.view();
    switch (attr.kind) {
      case MadeAttr::Kind::value:
        return attr.value.kind() == AttrKind::dim ? in_place(attr) : attr.value;
      case MadeAttr::Kind::attr:
        if (const ValueId value = place_.values[attr.term])
          return graph.find(value.node)->attrs.find(attr.attr)->second;
        break;
      case MadeAttr::Kind::number:
        if (const ValueId value = place_.values[attr.term])
          if (const std::optional<double> number = number_of(graph, value)) return AttrValue(*number);
        break;
      case MadeAttr::Kind::dtype:
        if (const ValueId value = term_value(attr.term, 0)) return AttrValue(graph.type(value).dtype);
        break;
    }
    return invalid("attribute '", attr.name, "' is that of '", pattern_.terms[attr.term].name, "', which is not there");
  }

  // Sizes by the pattern's names for them, as what they are at the place.
  Result<AttrValue> in_place(const MadeAttr &attr) const {
    AttrValue value = attr.value;
    std::string absent;
    for (Dim &dim : std::get<std::vector<Dim>>(value.items))
      dim = dim.substitute([&](const Expr &leaf) -> std::optional<Expr> {
        if (leaf.kind() != Expr::Kind::symbol) return std::nullopt;
        const auto named = std::ranges::find(pattern_.dims, leaf.symbol_name());
        const std::optional<Dim> &size = place_.dims[static_cast<size_t>(named - pattern_.dims.begin())];
        if (!size) absent = leaf.symbol_name();
        return size;
      });
    if (!absent.empty())
      return invalid("attribute '", attr.name, "' has size '", absent, "', which is that of what is not there");
    return value;
  }

  const Pattern &pattern_;
  const Place &place_;
  Edit &edit_;
  std::vector<ValueId> made_;  // by node of the replacement; none: it is not there
};

}  // namespace

Result<std::vector<ValueId>> make_replacement(const Pattern &pattern, const Place &place, Edit &edit) {
  return Maker(pattern, place, edit).make();
}

}  // namespace kiln::patterns
