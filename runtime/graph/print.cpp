// A graph for people: one line a node, or a dot drawing.
#include "runtime/graph/graph.h"

namespace kiln {
namespace {

std::string text_of_map(const AttrMap &map) {
  return join(map, ", ", [](const auto &entry) { return str_cat(entry.first, "=", entry.second.text()); });
}

// Attributes that differ from their defaults: what is written in a graph's text form, too.
std::string text_of_attrs(const Node &node) {
  AttrMap shown;
  for (const auto &[name, value] : node.attrs) {
    const AttrDef *def = node.op->find_attr(name);
    if (!def || def->required || default_of(*def) != value) shown.emplace(name, value);
  }
  return text_of_map(shown);
}

std::string text_of_results(const Node &node) {
  return join(node.results, ", ", [](const TensorType &type) { return type.text(); });
}

std::string text_of(const OutputLayout &layout) {
  switch (layout.kind) {
    case OutputLayout::Kind::row_major:
      break;
    case OutputLayout::Kind::strided:
      return str_cat(" strides ", kiln::text_of(layout.strides));
    case OutputLayout::Kind::any:
      return " of any strides";
    case OutputLayout::Kind::view:
      return " as a view";
  }
  return "";
}

std::string dot_quoted(const std::string &text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

std::string print(const Graph &graph) {
  std::string out;
  for (const auto &[name, info] : graph.symbols()) {
    str_append(out, str_cat("symbol ", name));
    if (info.min != 0 || info.max != INT64_MAX) str_append(out, str_cat(" from ", info.min));
    if (info.max != INT64_MAX) str_append(out, str_cat(" to ", info.max));
    if (info.divisor != 1) str_append(out, str_cat(" by ", info.divisor));
    if (info.hint != 0) str_append(out, str_cat(" about ", info.hint));
    out += '\n';
  }
  for (const Node &node : graph.nodes()) {
    switch (node.kind) {
      case Node::Kind::input:
        str_append(out, str_cat("input ", node.name));
        break;
      case Node::Kind::parameter:
        str_append(out, str_cat("parameter ", node.name));
        break;
      case Node::Kind::constant:
        str_append(out, str_cat("constant ", node.name));
        break;
      case Node::Kind::op: {
        std::string operands = join(node.inputs, ", ", [&](ValueId v) { return text_of(graph, v); });
        std::string attrs = text_of_attrs(node);
        str_append(out, str_cat(node.name, " = ", node.op->name, "(", operands, attrs.empty() ? "" : "; ", attrs, ")"));
      }
    }
    str_append(out, str_cat(": ", text_of_results(node)));
    if (!node.annotations.empty()) str_append(out, str_cat("  {", text_of_map(node.annotations), "}"));
    out += '\n';
  }
  for (const GraphOutput &output : graph.outputs())
    str_append(out, str_cat("output ", output.name, " = ", text_of(graph, output.value), text_of(output.layout), "\n"));
  return out;
}

std::string print_dot(const Graph &graph) {
  std::string out = "digraph kiln {\n  node [shape=box, fontname=\"monospace\"];\n";
  for (const Node &node : graph.nodes()) {
    std::string what = node.kind == Node::Kind::input       ? "input"
                       : node.kind == Node::Kind::parameter ? "parameter"
                       : node.kind == Node::Kind::constant  ? "constant"
                                                            : std::string(node.op->name);
    std::string label = dot_quoted(str_cat(node.name, " = ", what, " ", text_of_results(node)));
    std::string style = node.kind == Node::Kind::op ? "" : ", style=rounded";
    str_append(out, str_cat("  n", node.id, " [label=", label, style, "];\n"));
    for (ValueId value : node.inputs) {
      str_append(out, str_cat("  n", value.node, " -> n", node.id));
      if (graph.find(value.node)->results.size() > 1) str_append(out, str_cat(" [label=", value.output, "]"));
      out += ";\n";
    }
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const GraphOutput &output = graph.outputs()[i];
    str_append(out, str_cat("  o", i, " [label=", dot_quoted("output " + output.name), ", style=rounded];\n"));
    str_append(out, str_cat("  n", output.value.node, " -> o", i, ";\n"));
  }
  return out + "}\n";
}

}  // namespace kiln
