// A graph of a pattern as JSON.
#include <algorithm>

#include "../../json.h"
#include "declared.h"

namespace kiln::cli::plugin_check {
namespace {

// Its sizes, of which some have names: "#n" is the pattern's own, "x.0" that of an axis.
std::vector<Declared::Size> sizes_of(const Declared::Capture &capture, size_t rank) {
  std::vector<Declared::Size> sizes;
  if (!capture.number.empty()) return sizes;
  for (size_t i = 0; i < rank; ++i) sizes.push_back({capture.name + "." + std::to_string(i), 0});
  if (!capture.sizes) return sizes;
  for (const Declared::Size &size : *capture.sizes)
    sizes.push_back(size.exact          ? size
                    : size.name.empty() ? Declared::Size{capture.name + "." + std::to_string(sizes.size()), 0}
                                        : Declared::Size{"#" + size.name, 0});
  return sizes;
}

// Numbers that differ, but for bool.
std::string elements(const std::string &dtype, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t small = i % 7 + 1;
    const std::string number = dtype == "bool"                      ? (i % 2 ? "false" : "true")
                               : dtype[0] == 'f' || dtype == "bf16" ? json_number(static_cast<double>(small) / 4)
                                                                    : std::to_string(small);
    text += (i ? ", " : "") + number;
  }
  return text;
}

class Writer {
 public:
  Writer(const Declared &pattern, const Drawn &drawn) : pattern_(pattern), drawn_(drawn) {}

  std::string json() {
    for (size_t i = 0; i < pattern_.captures.size(); ++i)
      if (!drawn_.lacks_capture[i]) add_capture(i);
    for (size_t i = 0; i < drawn_.nodes; ++i)
      if (!drawn_.lacks_node[i]) add_node(i);
    std::string outputs;
    const auto add = [&](const std::string &value) {
      outputs += (outputs.empty() ? "" : ", ") +
                 JsonObject().add("name", "out" + std::to_string(count_++)).add("value", value).text();
    };
    if (drawn_.nodes == pattern_.nodes.size()) {
      for (const std::string &output : pattern_.outputs) add(present(output));
      for (const Declared::Node &node : pattern_.nodes)
        if (drawn_.shows_inner && node.keeps &&
            std::ranges::find(pattern_.outputs, node.name) == pattern_.outputs.end())
          add(present(node.name));
    } else if (drawn_.nodes > 0) {
      const Declared::Node &last = pattern_.nodes[drawn_.nodes - 1];
      add(present(last.name + (last.has_results ? ":0" : "")));
    }
    return "{\"kiln\": 1, \"inputs\": [" + inputs_ + "], \"parameters\": [" + parameters_ + "], \"constants\": [" +
           constants_ + "], \"nodes\": [" + nodes_ + "], \"outputs\": [" + outputs + "]}";
  }

 private:
  static void append(std::string &list, const std::string &item) { list += (list.empty() ? "" : ", ") + item; }

  void add_capture(size_t number) {
    const Declared::Capture &capture = pattern_.captures[number];
    const std::string &dtype = drawn_.dtypes[number];
    std::string shape;
    int64_t count = 1;
    for (const Declared::Size &size : sizes_of(capture, drawn_.ranks[number])) {
      const auto chosen = drawn_.sizes.find(size.name);
      const int64_t extent = size.exact ? size.exact : chosen != drawn_.sizes.end() ? chosen->second : usual_size;
      shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
      count *= extent;
    }
    const bool by_op = capture.from == "op";
    JsonObject value;
    value.add("name", by_op ? capture.name + "_given" : capture.name);
    value.raw("type", JsonObject().add("dtype", dtype).raw("shape", "[" + shape + "]").text());
    if (by_op)
      append(nodes_, JsonObject()
                         .add("name", capture.name)
                         .add("op", "clone")
                         .raw("inputs", "[" + json_text(capture.name + "_given") + "]")
                         .text());
    if (!capture.number.empty() || capture.from == "constant" || (capture.from == "fixed" && drawn_.has_constants))
      append(constants_,
             value.raw("data", "[" + (capture.number.empty() ? elements(dtype, count) : capture.number) + "]").text());
    else if (capture.from == "parameter" || capture.from == "fixed")
      append(parameters_, value.text());
    else
      append(inputs_, value.text());
  }

  void add_node(size_t number) {
    const Declared::Node &node = pattern_.nodes[number];
    std::vector<std::string> operands;
    for (const std::string &operand : node.operands)
      if (std::string name = present(operand); !name.empty()) operands.push_back(json_text(name));
    if (drawn_.swapped[number] && operands.size() == 2) std::swap(operands[0], operands[1]);
    std::string inputs, attrs;
    for (const std::string &operand : operands) append(inputs, operand);
    for (size_t i = 0; i < node.attrs.size(); ++i)
      if (const std::string &value = node.attrs[i].values[drawn_.attrs[number][i]]; !value.empty())
        append(attrs, json_text(node.attrs[i].name) + ": " + value);
    append(nodes_, JsonObject()
                       .add("name", node.name)
                       .add("op", node.ops[drawn_.ops[number]])
                       .raw("inputs", "[" + inputs + "]")
                       .raw("attrs", "{" + attrs + "}")
                       .text());
  }

  // What stands for the value: of a node that is missing its first operand; "": nothing.
  std::string present(const std::string &value) const {
    const std::string name = value.substr(0, value.find(':'));
    for (size_t i = 0; i < pattern_.nodes.size(); ++i)
      if (pattern_.nodes[i].name == name) return drawn_.lacks_node[i] ? present(pattern_.nodes[i].operands[0]) : value;
    for (size_t i = 0; i < pattern_.captures.size(); ++i)
      if (pattern_.captures[i].name == name) return drawn_.lacks_capture[i] ? "" : value;
    return value;
  }

  const Declared &pattern_;
  const Drawn &drawn_;
  std::string inputs_, parameters_, constants_, nodes_;
  size_t count_ = 0;
};

}  // namespace

Drawn::Drawn(const Declared &of)
    : lacks_capture(of.captures.size()),
      lacks_node(of.nodes.size()),
      swapped(of.nodes.size()),
      ops(of.nodes.size()),
      ranks(of.captures.size()),
      nodes(of.nodes.size()) {
  for (const Declared::Node &node : of.nodes) attrs.emplace_back(node.attrs.size());
  for (const Declared::Capture &capture : of.captures)
    dtypes.push_back(capture.dtypes.empty() ? "f32" : capture.dtypes[0]);
}

std::vector<std::string> variables(const Declared &pattern, const Drawn &drawn) {
  std::vector<std::string> names;
  for (size_t i = 0; i < pattern.captures.size(); ++i)
    for (const Declared::Size &size : sizes_of(pattern.captures[i], drawn.ranks[i]))
      if (!drawn.lacks_capture[i] && !size.exact && std::ranges::find(names, size.name) == names.end())
        names.push_back(size.name);
  return names;
}

std::string json_of(const Declared &pattern, const Drawn &drawn) { return Writer(pattern, drawn).json(); }

}  // namespace kiln::cli::plugin_check
