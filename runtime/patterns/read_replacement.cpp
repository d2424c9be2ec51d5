// What takes a match's place.
#include <algorithm>

#include "runtime/graph/json_values.h"
#include "runtime/patterns/read.h"

namespace kiln::patterns {

Result<uint32_t> Reader::read_term(const View &v) const {
  KILN_ASSIGN(const std::string_view name, v.as_text());
  if (const Term *term = name == "_" || name.empty() ? nullptr : pattern_.find(name))
    return static_cast<uint32_t>(term - pattern_.terms.data());
  return v.fail(Code::unknown_name, "no capture or node of the pattern is named '", name, "'");
}

Result<MadeOperand> Reader::read_made_operand(const View &v) const {
  KILN_ASSIGN(const auto parts, split_operand(v));
  const auto [name, output] = parts;
  const std::vector<MadeNode> &made = pattern_.replacement->nodes;
  const auto own = std::ranges::find(made, name, &MadeNode::name);
  const Term *term = name.empty() ? nullptr : pattern_.find(name);
  if (own == made.end() && !term)
    return v.fail(Code::unknown_name, "no capture or node of the pattern, and no earlier node here, is named '", name,
                  "'");
  const size_t results = own != made.end() ? own->op->result_names.size()
                         : term->is_node() ? term->ops.front()->result_names.size()
                                           : 1;
  if (output >= results) return v.fail("'", name, "' has ", results, " results, '", name, ":", output, "' is none");
  if (own != made.end()) return MadeOperand{true, static_cast<uint32_t>(own - made.begin()), output};
  return MadeOperand{false, static_cast<uint32_t>(term - pattern_.terms.data()), output};
}

Result<MadeAttr> Reader::read_made_attr(const View &v, const OpSchema &op) const {
  KILN_ASSIGN(const AttrDef *def, find_attr(v, op));
  MadeAttr made{.name = std::string(def->name)};
  if (!v.is_object()) {
    KILN_ASSIGN(made.value, json::read_attr(v.of_op(op.name), def->kind, def->is_list));
    if (def->kind != AttrKind::dim) return made;
    std::set<std::string> symbols;
    for (const Dim &dim : made.value.dim_list()) dim.collect_symbols(symbols);
    for (const std::string &symbol : symbols)
      if (std::ranges::find(pattern_.dims, symbol) == pattern_.dims.end())
        return v.fail(Code::unknown_name, "no shape of the pattern names a size '", symbol, "'");
    return made;
  }
  KILN_TRY(v.allow_members({"attr", "number", "dtype"}));
  KILN_ASSIGN(const std::vector<View> members, v.as_object());
  if (members.size() != 1) return v.fail("expected one of attr, number and dtype");
  const View &only = members.front();
  if (only.key() == "attr") {
    KILN_ASSIGN(const std::string_view text, only.as_text());
    const size_t dot = text.rfind('.');
    if (dot == text.npos) return only.expected("NODE.ATTRIBUTE");
    const Term *term = pattern_.find(text.substr(0, dot));
    if (!term || !term->is_node())
      return only.fail(Code::unknown_name, "no node of the pattern is named '", text.substr(0, dot), "'");
    made.kind = MadeAttr::Kind::attr;
    made.term = static_cast<uint32_t>(term - pattern_.terms.data());
    made.attr = text.substr(dot + 1);
    for (const OpSchema *from : term->ops) {
      const AttrDef *its = from->find_attr(made.attr);
      if (!its) return only.fail(Code::unknown_name, "op '", from->name, "' has no attribute '", made.attr, "'");
      if (its->kind != def->kind || its->is_list != def->is_list)
        return only.fail(Code::type_mismatch, "'", text, "' is of another kind than '", def->name, "'");
    }
    return made;
  }
  KILN_ASSIGN(made.term, read_term(only));
  const bool is_number = only.key() == "number";
  if (def->is_list || def->kind != (is_number ? AttrKind::f64 : AttrKind::dtype))
    return only.fail(Code::type_mismatch, "'", def->name, "' is of another kind");
  if (is_number && !pattern_.terms[made.term].is_number)
    return only.fail("'", pattern_.terms[made.term].name, "' is no capture with 'number'");
  made.kind = is_number ? MadeAttr::Kind::number : MadeAttr::Kind::dtype;
  return made;
}

Status Reader::read_made_node(const View &v) {
  KILN_TRY(v.allow_members({"name", "op", "inputs", "attrs", "when"}));
  Replacement &replacement = *pattern_.replacement;
  if (replacement.nodes.size() >= most_terms) return v.fail("a replacement has ", most_terms, " nodes at most");
  MadeNode node;
  KILN_ASSIGN(node.name, read_new_name(v));
  if (std::ranges::find(replacement.nodes, node.name, &MadeNode::name) != replacement.nodes.end())
    return v.fail("'", node.name, "' is the name of another node");
  KILN_ASSIGN(const View op_view, v.required("op"));
  KILN_ASSIGN(node.op, read_op(op_view));
  if (const std::optional<View> list = v.member("inputs")) {
    KILN_ASSIGN(const std::vector<View> elements, list->as_list());
    for (const View &element : elements) {
      if (++operand_count_ > most_operands) return element.fail("there are ", most_operands, " operands at most");
      KILN_ASSIGN(const MadeOperand operand, read_made_operand(element));
      node.operands.push_back(operand);
    }
  }
  if (const std::optional<View> attrs = v.member("attrs")) {
    KILN_ASSIGN(const std::vector<View> members, attrs->as_object());
    for (const View &member : members) {
      KILN_ASSIGN(MadeAttr attr, read_made_attr(member, *node.op));
      node.attrs.push_back(std::move(attr));
    }
  }
  for (const AttrDef &def : node.op->attrs)
    if (def.required && std::ranges::find(node.attrs, def.name, &MadeAttr::name) == node.attrs.end())
      return v.fail("op '", node.op->name, "' needs attribute '", def.name, "'");
  if (const std::optional<View> when = v.member("when")) {
    KILN_ASSIGN(node.when, read_term(*when));
    if (node.operands.empty()) return when->fail("without an operand there is nothing that it then stands for");
  }
  replacement.nodes.push_back(std::move(node));
  return {};
}

Status Reader::read_replacement(const View &v) {
  KILN_TRY(v.allow_members({"nodes", "outputs"}));
  pattern_.replacement.emplace();
  if (const std::optional<View> nodes = v.member("nodes")) {
    KILN_ASSIGN(const std::vector<View> elements, nodes->as_list());
    for (const View &element : elements) KILN_TRY(read_made_node(element));
  }
  KILN_ASSIGN(const View outputs, v.required("outputs"));
  KILN_ASSIGN(const std::vector<View> elements, outputs.as_list());
  if (elements.size() != pattern_.outputs.size())
    return outputs.fail(elements.size(), " outputs, and the pattern has ", pattern_.outputs.size());
  for (const View &element : elements) {
    KILN_ASSIGN(const MadeOperand output, read_made_operand(element));
    pattern_.replacement->outputs.push_back(output);
  }
  return {};
}

}  // namespace kiln::patterns
