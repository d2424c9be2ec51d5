// A graph as JSON: the form that json_read.cpp reads, one line a node, defaults left out.
#include <cstring>
#include <map>

#include "jit/base/json_writer.h"
#include "runtime/graph/json.h"
#include "runtime/graph/json_number.h"

namespace kiln {
namespace {

constexpr size_t largest_inline = 64;  // elements, where tensors are kept apart

class Writer {
 public:
  Writer() = default;
  Writer(Apart &apart, const std::function<size_t(const Node &)> &number_of) : apart_(&apart), number_of_(&number_of) {
    for (size_t i = 0; i < apart.tensors.size(); ++i) number_of_tensor_.emplace(apart.tensors[i].get(), i);
  }

  std::string write(const Graph &graph) {
    // Writing the top graph finds the nested ones, writing those finds theirs.
    std::string out = "{\"kiln\":1,\n" + body(graph);
    std::string nested;
    for (size_t i = 0; i < graphs_.size(); ++i)
      nested += str_cat(i ? ",\n" : "\n", JsonWriter().value(name_of_graph(i)).text(), ":{", body(*graphs_[i]), "}");
    if (!nested.empty()) out += ",\n\"graphs\":{" + nested + "}";
    return out + "}\n";
  }

  // A graph is written as its name among those around it.
  void value(const AttrValue &value, JsonWriter &json) {
    if (value.is_list) json.begin_list();
    std::visit(
        [&](const auto &list) {
          using Item = typename std::decay_t<decltype(list)>::value_type;
          for (const Item &e : list) item(e, json);
        },
        value.items);
    if (value.is_list) json.end_list();
  }

 private:
  std::string name_of(const Node &node) const {
    const bool is_signature = node.kind == Node::Kind::input || node.kind == Node::Kind::parameter;
    return apart_ && !apart_->mark.empty() && !is_signature ? str_cat(apart_->mark, (*number_of_)(node)) : node.name;
  }
  std::string text_of(const Graph &graph, ValueId value) const {
    const Node &node = *graph.find(value.node);
    return node.results.size() == 1 ? name_of(node) : str_cat(name_of(node), ":", value.output);
  }
  static std::string name_of_graph(size_t number) { return str_cat("graph", number); }

  // All members of a graph but "kiln" and "graphs".
  std::string body(const Graph &graph) {
    std::vector<std::string> inputs, parameters, constants, nodes, outputs;
    for (uint32_t id : graph.inputs()) inputs.push_back(placeholder(*graph.find(id)));
    for (uint32_t id : graph.parameters()) parameters.push_back(placeholder(*graph.find(id)));
    for (const Node &node : graph.nodes()) {
      if (node.kind == Node::Kind::constant) constants.push_back(constant(node));
      if (node.kind == Node::Kind::op) nodes.push_back(op_node(graph, node));
    }
    for (const GraphOutput &output : graph.outputs()) {
      JsonWriter json;
      json.begin_object().member("name", output.name).member("value", text_of(graph, output.value));
      layout(graph.type(output.value), output.layout, json);
      outputs.push_back(json.end_object().take());
    }
    std::string out = symbols(graph);
    for (auto [name, list] : {std::pair("inputs", &inputs),
                              {"parameters", &parameters},
                              {"constants", &constants},
                              {"nodes", &nodes},
                              {"outputs", &outputs}}) {
      if (list->empty() && list != &outputs) continue;
      if (!out.empty()) out += ",\n";
      out += str_cat('"', name, "\":[\n", join(*list, ",\n", [](const std::string &line) { return line; }), "]");
    }
    return out;
  }

  static std::string symbols(const Graph &graph) {
    JsonWriter json;
    json.begin_object();
    bool any = false;
    for (const auto &[name, info] : graph.symbols()) {
      if (info == SymbolInfo()) continue;  // a symbol of which nothing is known needs no declaration
      any = true;
      json.key(name).begin_object();
      if (info.min != 0) json.member("min", info.min);
      if (info.max != INT64_MAX) json.member("max", info.max);
      if (info.divisor != 1) json.member("divisor", info.divisor);
      if (info.hint != 0) json.member("hint", info.hint);
      json.end_object();
    }
    json.end_object();
    return any ? str_cat("\"symbols\":", json.text()) : std::string();
  }

  static void dim(const Dim &d, JsonWriter &json) {
    if (d.is_integer())
      json.value(d.integer());
    else
      json.value(d.text());
  }

  static void type(const TensorType &t, JsonWriter &json, bool any_strides = false) {
    auto dims = [&](std::string_view key, const Shape &shape) {
      json.key(key).begin_list();
      for (const Dim &d : shape) dim(d, json);
      json.end_list();
    };
    json.begin_object().member("dtype", kiln::name_of(t.dtype));
    dims("shape", t.dims);
    if (t.layout == TensorType::Layout::exact && t.strides != row_major_strides(t.dims)) dims("strides", t.strides);
    if (any_strides) json.member("strides", "any");
    if (t.device != 0) json.member("device", t.device);
    json.end_object();
  }

  // What is not as it is by default.
  static void layout(TensorType t, const OutputLayout &layout, JsonWriter &json) {
    if (layout.kind == OutputLayout::Kind::row_major) return;
    if (layout.kind == OutputLayout::Kind::view) {
      json.member("view", true);
      return;
    }
    json.key("type");
    const bool any = layout.kind == OutputLayout::Kind::any;
    t = exact_type(t.dtype, t.dims);
    if (!any) t.strides = layout.strides;
    type(t, json, any);
  }

  std::string placeholder(const Node &node) {
    JsonWriter json;
    json.begin_object().member("name", node.name).key("type");
    type(node.results[0], json);
    annotations(node, json);
    return json.end_object().take();
  }

  void data(const TensorPtr &data, JsonWriter &json) {
    const TensorData &tensor = *data;
    uint32_t size = size_of(tensor.dtype);
    if (apart_ && tensor.bytes.size() / size > largest_inline) {
      const auto [found, is_new] = number_of_tensor_.emplace(data.get(), apart_->tensors.size());
      if (is_new) apart_->tensors.push_back(data);
      json.begin_object().member("apart", found->second).end_object();
      return;
    }
    json.begin_list();
    for (size_t at = 0; at < tensor.bytes.size(); at += size) {
      uint64_t bits = 0;
      std::memcpy(&bits, &tensor.bytes[at], size);
      json.raw(json::text_of_element(tensor.dtype, bits));
    }
    json.end_list();
  }

  std::string constant(const Node &node) {
    JsonWriter json;
    json.begin_object().member("name", name_of(node)).key("type");
    type(node.results[0], json);
    json.key("data");
    data(node.constant, json);
    return json.end_object().take();
  }

  std::string op_node(const Graph &graph, const Node &node) {
    JsonWriter json;
    json.begin_object().member("name", name_of(node)).member("op", node.op->name).key("inputs").begin_list();
    for (ValueId value : node.inputs) json.value(text_of(graph, value));
    json.end_list();
    bool open = false;
    for (const auto &[name, value] : node.attrs) {
      const AttrDef *def = node.op->find_attr(name);
      if (def && !def->required && default_of(*def) == value) continue;
      if (!std::exchange(open, true)) json.key("attrs").begin_object();
      json.key(name);
      this->value(value, json);
    }
    if (open) json.end_object();
    annotations(node, json);
    return json.end_object().take();
  }

  void annotations(const Node &node, JsonWriter &json) {
    if (node.annotations.empty()) return;
    json.key("annotations").begin_object();
    for (const auto &[name, value] : node.annotations) {
      json.key(name).begin_object().key(kiln::name_of(value.kind()));
      this->value(value, json);
      json.end_object();
    }
    json.end_object();
  }

  void item(int64_t v, JsonWriter &json) { json.value(v); }
  void item(double v, JsonWriter &json) { json.raw(json::text_of_element(DType::f64, std::bit_cast<uint64_t>(v))); }
  void item(const std::string &v, JsonWriter &json) { json.value(v); }
  void item(DType v, JsonWriter &json) { json.value(kiln::name_of(v)); }
  void item(const Dim &v, JsonWriter &json) { dim(v, json); }
  void item(bool v, JsonWriter &json) { json.value(v); }
  void item(const TensorPtr &v, JsonWriter &json) {
    json.begin_object().key("type");
    type(make_type(v->dtype, Shape(v->shape.begin(), v->shape.end())), json);
    json.key("data");
    data(v, json);
    json.end_object();
  }
  // A graph that is used twice, or equal to another, is written once.
  void item(const GraphPtr &v, JsonWriter &json) {
    auto [found, is_new] = number_of_graph_.emplace(digest_of(*v), graphs_.size());
    if (is_new) graphs_.push_back(v);
    json.value(name_of_graph(found->second));
  }

  Apart *const apart_ = nullptr;  // null: all is in the text
  const std::function<size_t(const Node &)> *const number_of_ = nullptr;
  std::map<const TensorData *, size_t> number_of_tensor_;
  std::vector<GraphPtr> graphs_;
  std::map<Digest, size_t> number_of_graph_;
};

}  // namespace

std::string write_json(const Graph &graph) { return Writer().write(graph); }

std::string write_json(const Graph &graph, Apart &apart, const std::function<size_t(const Node &)> &number_of) {
  return Writer(apart, number_of).write(graph);
}

std::string write_json(const AttrValue &value) {
  JsonWriter json;
  if (value.kind() != AttrKind::graph) {
    Writer().value(value, json);
    return json.take();
  }
  if (value.is_list) json.begin_list();
  for (const GraphPtr &graph : std::get<std::vector<GraphPtr>>(value.items)) json.raw(write_json(*graph));
  if (value.is_list) json.end_list();
  return json.take();
}

}  // namespace kiln
