#include "graph_text.h"

#include "../../json.h"

namespace kiln::cli::plugin_check {
namespace {

void append(std::string &list, const std::string &item) { list += (list.empty() ? "" : ",\n  ") + item; }

}  // namespace

std::string GraphText::typed(const std::string &name, const std::string &shape, const std::string &dtype) const {
  return "{\"name\": \"" + name + "\", \"type\": {\"dtype\": \"" + (dtype.empty() ? dtype_ : dtype) +
         "\", \"shape\": " + shape + "}";
}

std::string GraphText::input(const std::string &name, const std::string &shape, const std::string &dtype) {
  append(inputs_, typed(name, shape, dtype) + "}");
  return name;
}

void GraphText::end_inputs() {
  input("vector", vector);
  input("matrix", matrix);
}

std::string GraphText::parameter(const std::string &shape) {
  if (is_nested()) return shape == vector ? "vector" : "matrix";
  const std::string name = "w" + std::to_string(parameter_count_++);
  append(parameters_, typed(name, shape, "") + "}");
  return name;
}

std::string GraphText::constant(double value) {
  const std::string name = "c" + std::to_string(constant_count_++);
  append(constants_, typed(name, "[]", "") + ", \"data\": [" + json_number(value) + "]}");
  return name;
}

std::string GraphText::integer(int64_t value) {
  const std::string name = "c" + std::to_string(constant_count_++);
  append(constants_, typed(name, "[]", "i64") + ", \"data\": [" + std::to_string(value) + "]}");
  return name;
}

std::string GraphText::node(const std::string &op, const std::vector<std::string> &operands, const std::string &attrs) {
  const std::string name = dress_.prefix + std::to_string(node_count_++);
  std::string text = "{\"name\": \"" + name + "\", \"op\": \"" + op + "\", \"inputs\": [";
  for (size_t i = 0; i < operands.size(); ++i) text.append(i ? ", \"" : "\"").append(operands[i]).append("\"");
  text += "], \"attrs\": {" + attrs + "}";
  if (dress_.debug) text += ", \"annotations\": {\"debug.line\": {\"i64\": " + std::to_string(node_count_) + "}}";
  append(nodes_, text + "}");
  return name;
}

void GraphText::yield(const std::string &value) {
  append(outputs_, "{\"name\": \"out" + std::to_string(output_count_++) + "\", \"value\": \"" + value + "\"}");
}

std::string GraphText::members() const {
  return "\"inputs\": [" + inputs_ + "], \"constants\": [" + constants_ + "],\n \"nodes\": [\n  " + nodes_ +
         "],\n \"outputs\": [" + outputs_ + "]";
}

std::string GraphText::close() {
  const std::string name = "g" + std::to_string(root_->graph_count_++);
  append(root_->graphs_, "\"" + name + "\": {" + members() + "}");
  return name;
}

std::string GraphText::json() const {
  const std::string symbols = is_symbolic_ ? R"("symbols": {"n": {"min": 1, "hint": 5}}, )" : "",
                    graphs = graphs_.empty() ? "" : ",\n \"graphs\": {\n  " + graphs_ + "}";
  return "{\"kiln\": 1, " + symbols + "\"parameters\": [" + parameters_ + "],\n " + members() + graphs + "}\n";
}

}  // namespace kiln::cli::plugin_check
