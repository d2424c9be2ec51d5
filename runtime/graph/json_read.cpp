// JSON to a graph. FORMAT.md is the schema; this file follows it member by member.
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "jit/base/utf8.h"
#include "runtime/graph/edit.h"
#include "runtime/graph/json.h"
#include "runtime/graph/json_values.h"
#include "runtime/graph/json_view.h"
#include "runtime/graph/nesting.h"

namespace kiln {
namespace {

using json::read_dim;
using json::read_dtype;
using json::read_element;
using json::read_tensor;
using json::read_type;
using json::View;

// Reads one graph of the document; those that nodes name in "graphs" are read when they are needed, once.
class Reader {
 public:
  // `outer` is where names of graphs are looked up that this one's "graphs" does not have; null at the top.
  Reader(const OpTable &ops, View v, const Apart &apart, const Reader *outer = nullptr, int depth = 0)
      : ops_(ops), view_(std::move(v)), apart_(apart), outer_(outer), depth_(depth) {}

  Result<GraphPtr> read() {
    if (depth_ > deepest_nesting) return view_.fail("graphs are nested deeper than ", deepest_nesting);
    if (outer_)
      KILN_TRY(view_.allow_members({"symbols", "inputs", "parameters", "constants", "nodes", "outputs", "graphs"}));
    else
      KILN_TRY(read_version());
    KILN_TRY(each_member("symbols", &Reader::read_symbol));
    KILN_TRY(each_element("inputs", &Reader::read_input));
    KILN_TRY(each_element("parameters", &Reader::read_parameter));
    KILN_TRY(each_element("constants", &Reader::read_constant));
    KILN_TRY(each_element("nodes", &Reader::read_node));
    KILN_TRY(each_element("outputs", &Reader::read_output));
    if (Status status = edit_.set_outputs(std::move(outputs_)); !status.ok())
      return view_.fail(std::move(status).with_prefix("outputs: "));
    Result<GraphPtr> graph = edit_.finish();
    if (!graph.ok()) return view_.fail(graph.take_status());
    return graph;
  }

 private:
  Status read_version() {
    KILN_TRY(
        view_.allow_members({"kiln", "symbols", "inputs", "parameters", "constants", "nodes", "outputs", "graphs"}));
    KILN_ASSIGN(View version_view, view_.required("kiln"));
    KILN_ASSIGN(int64_t version, version_view.as_integer());
    if (version != 1)
      return error(Code::incompatible, "kiln: schema version ", version, "; this build reads version 1");
    return {};
  }

  Status each_element(std::string_view name, Status (Reader::*read_one)(const View &)) {
    std::optional<View> list = view_.member(name);
    if (!list) return {};
    KILN_ASSIGN(std::vector<View> elements, list->as_list());
    for (const View &element : elements) KILN_TRY((this->*read_one)(element));
    return {};
  }
  Status each_member(std::string_view name, Status (Reader::*read_one)(const View &)) {
    std::optional<View> object = view_.member(name);
    if (!object) return {};
    KILN_ASSIGN(std::vector<View> members, object->as_object());
    for (const View &member : members) KILN_TRY((this->*read_one)(member));
    return {};
  }

  Status read_symbol(const View &v) {
    KILN_TRY(v.allow_members({"min", "max", "divisor", "hint"}));
    SymbolInfo info;
    for (auto [name, number] :
         {std::pair("min", &info.min), {"max", &info.max}, {"divisor", &info.divisor}, {"hint", &info.hint}})
      if (std::optional<View> member = v.member(name)) {
        KILN_ASSIGN(*number, member->as_integer());
      }
    Status status = edit_.declare_symbol(v.key(), info);
    return status.ok() ? status : v.fail(std::move(status));
  }

  // What is called so where names are apart.
  std::string_view actual(std::string_view name) const {
    if (apart_.mark.empty() || !name.starts_with(apart_.mark)) return name;
    const std::string_view digits = name.substr(apart_.mark.size());
    size_t number = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    const bool is_one = failure == std::errc() && end == digits.data() + digits.size() && number < apart_.names.size();
    return is_one ? std::string_view(apart_.names[number]) : name;
  }

  static Result<std::string_view> read_name(const View &v) {
    KILN_ASSIGN(View name, v.required("name"));
    return name.as_text();
  }

  Status read_placeholder(const View &v, Result<ValueId> (Edit::*declare)(std::string_view, TensorType)) {
    KILN_ASSIGN(std::string_view name, read_name(v));
    KILN_ASSIGN(View type_view, v.required("type"));
    KILN_ASSIGN(TensorType type, read_type(type_view));
    Result<ValueId> value = (edit_.*declare)(name, std::move(type));
    return value.ok() ? Status() : v.fail(value.take_status());
  }
  Status read_input(const View &v) {
    KILN_TRY(v.allow_members({"name", "type", "annotations"}));
    KILN_TRY(read_placeholder(v, &Edit::input));
    const std::optional<View> member = v.member("annotations");
    if (!member) return {};
    KILN_ASSIGN(AttrMap annotations, read_annotations(*member));
    for (auto &[key, value] : annotations)
      if (Status status = edit_.annotate(edit_.view().inputs().back(), key, std::move(value)); !status.ok())
        return v.fail(std::move(status));
    return {};
  }
  Status read_parameter(const View &v) {
    KILN_TRY(v.allow_members({"name", "type"}));
    return read_placeholder(v, &Edit::parameter);
  }

  Status read_constant(const View &v) {
    KILN_TRY(v.allow_members({"name", "type", "data"}));
    KILN_ASSIGN(std::string_view name, read_name(v));
    KILN_ASSIGN(View type, v.required("type"));
    KILN_ASSIGN(View data, v.required("data"));
    KILN_ASSIGN(TensorPtr tensor, read_tensor(type, data, apart_.tensors));
    if (name.empty()) return v.fail("the name is empty");
    Result<ValueId> value = edit_.constant(std::move(tensor), actual(name));
    return value.ok() ? Status() : v.fail(value.take_status());
  }

  // "NODE" or "NODE:K"; names have no colon.
  Result<ValueId> read_value(const View &v) {
    KILN_ASSIGN(std::string_view text, v.as_text());
    size_t colon = text.find(':');
    const Node *node = edit_.view().find(actual(text.substr(0, colon)));
    if (!node) return no_value(v, text.substr(0, colon));
    ValueId value{node->id, 0};
    if (colon != std::string_view::npos) {
      std::string_view digits = text.substr(colon + 1);
      const char *end = digits.data() + digits.size();
      auto [at, failure] = std::from_chars(digits.data(), end, value.output);
      if (failure != std::errc() || at != end) return v.fail("expected NODE or NODE:K, found '", text, "'");
    } else if (node->results.size() > 1) {
      return v.fail("'", text, "' has ", node->results.size(), " results; write '", text, ":0' for the first");
    }
    if (value.output >= node->results.size())
      return v.fail("'", node->name, "' has ", node->results.size(), " results, '", text, "' is none of them");
    return value;
  }

  Status no_value(const View &v, std::string_view name) const {
    const std::optional<View> list = view_.member("nodes");
    if (list && list->is_list()) {
      KILN_ASSIGN(const std::vector<View> nodes, list->as_list());
      for (const View &node : nodes) {
        const std::optional<View> its_name = node.is_object() ? node.member("name") : std::nullopt;
        if (its_name && its_name->is_text() && its_name->text() == name)
          return v.fail("'", name, "' is ", node.path(),
                        ", which does not stand before; a node uses earlier ones only, so there can be no cycle");
      }
    }
    return v.fail(Code::unknown_name, "no input, parameter, constant or node is named '", name, "'");
  }

  Status read_node(const View &v) {
    KILN_TRY(v.allow_members({"name", "op", "inputs", "attrs", "annotations"}));
    KILN_ASSIGN(std::string_view name, read_name(v));
    if (name.empty()) return v.fail("the name is empty");
    KILN_ASSIGN(View op_view, v.required("op"));
    KILN_ASSIGN(std::string_view op_name, op_view.as_text());
    const OpSchema *op = ops_.find(op_name);
    if (!op) return op_view.fail(Code::unknown_name, "unknown op '", op_name, "'", ops_.suggest(op_name));

    std::vector<ValueId> inputs;
    if (std::optional<View> list = v.member("inputs")) {
      KILN_ASSIGN(std::vector<View> elements, list->as_list());
      for (const View &element : elements) {
        KILN_ASSIGN(ValueId value, read_value(element));
        inputs.push_back(value);
      }
    }
    AttrMap attrs, annotations;
    if (std::optional<View> object = v.member("attrs")) {
      KILN_ASSIGN(attrs, read_attrs(*object, *op));
    }
    if (std::optional<View> object = v.member("annotations")) {
      KILN_ASSIGN(annotations, read_annotations(*object));
    }
    Result<uint32_t> node = edit_.add(op, inputs, std::move(attrs), actual(name), std::move(annotations));
    return node.ok() ? Status() : v.fail(node.take_status().at_node(name));
  }

  Result<AttrMap> read_attrs(const View &v, const OpSchema &op) {
    AttrMap attrs;
    KILN_ASSIGN(std::vector<View> members, v.as_object());
    for (const View &member : members) {
      const AttrDef *def = op.find_attr(member.key());
      if (!def)
        return v.fail(Code::unknown_name, "op '", op.name, "' has no attribute '", member.key(), "'; it has ",
                      op.attrs.empty() ? "none" : join(op.attrs, ", ", [](const AttrDef &a) { return a.name; }));
      KILN_ASSIGN(AttrValue value, read_attr(member.of_op(op.name), def->kind, def->is_list));
      attrs.emplace(member.key(), std::move(value));
    }
    return attrs;
  }

  // Annotations name their kind: {"i64": 3}, {"text": ["a", "b"]}.
  Result<AttrMap> read_annotations(const View &v) {
    static constexpr AttrKind kinds[] = {AttrKind::i64, AttrKind::f64, AttrKind::text, AttrKind::dtype,
                                         AttrKind::boolean};
    AttrMap annotations;
    KILN_ASSIGN(std::vector<View> members, v.as_object());
    for (const View &member : members) {
      KILN_ASSIGN(std::vector<View> tagged, member.as_object());
      std::optional<AttrKind> kind;
      for (AttrKind k : kinds)
        if (tagged.size() == 1 && tagged[0].key() == name_of(k)) kind = k;
      if (!kind) return member.fail("expected one member: i64, f64, text, dtype or bool");
      KILN_ASSIGN(AttrValue value, read_attr(tagged[0], *kind, tagged[0].is_list()));
      annotations.emplace(member.key(), std::move(value));
    }
    return annotations;
  }

  Result<AttrValue> read_attr(const View &v, AttrKind kind, bool is_list) const {
    if (kind == AttrKind::graph)
      return json::read_items<GraphPtr>(v, is_list, [this](const View &e) { return read_graph(e); });
    if (kind == AttrKind::tensor)
      return json::read_items<TensorPtr>(v, is_list, [this](const View &e) -> Result<TensorPtr> {
        KILN_TRY(e.allow_members({"type", "data"}));
        KILN_ASSIGN(View type, e.required("type"));
        KILN_ASSIGN(View data, e.required("data"));
        return read_tensor(type, data, apart_.tensors);
      });
    return json::read_attr(v, kind, is_list);
  }

  // The graph that a node names: of this graph's "graphs", or of an outer one's.
  Result<GraphPtr> read_graph(const View &v) const {
    KILN_ASSIGN(std::string_view name, v.as_text());
    for (const Reader *scope = this; scope; scope = scope->outer_) {
      std::optional<View> graphs = scope->view_.member("graphs");
      if (!graphs) continue;
      if (!graphs->is_object()) return graphs->fail("expected an object");
      std::optional<View> found = graphs->member(name);
      if (!found) continue;
      GraphPtr &known = scope->graphs_[found->item()];
      if (known) return known;
      if (!scope->open_.insert(found->item()).second) return v.fail("graph '", name, "' would contain itself");
      Reader nested(ops_, *found, apart_, scope, depth_ + 1);
      KILN_ASSIGN(known, nested.read());
      scope->open_.erase(found->item());
      return known;
    }
    return v.fail(Code::unknown_name, "no member of 'graphs' is named '", name, "'");
  }

  Status read_output(const View &v) {
    KILN_TRY(v.allow_members({"name", "value", "type", "view"}));
    KILN_ASSIGN(std::string_view name, read_name(v));
    KILN_ASSIGN(View value_view, v.required("value"));
    KILN_ASSIGN(ValueId value, read_value(value_view));
    std::optional<TensorType> type;
    OutputLayout layout;
    if (std::optional<View> type_view = v.member("type")) {
      KILN_ASSIGN(std::tie(type, layout), json::read_output_type(*type_view));
    }
    if (std::optional<View> view = v.member("view")) {
      if (!view->is_boolean()) return view->expected("true or false");
      if (view->boolean() && type) return v.fail("a view has the type and strides that it has; leave out 'type'");
      if (view->boolean()) layout.kind = OutputLayout::Kind::view;
    }
    outputs_.push_back({std::string(name), value, std::move(layout)});
    Status status = type ? edit_.check_output_type(outputs_.back(), *type) : Status();
    return status.ok() ? status : v.fail(std::move(status));
  }

  const OpTable &ops_;
  View view_;
  const Apart &apart_;
  const Reader *outer_;
  int depth_;
  Edit edit_;
  std::vector<GraphOutput> outputs_;
  mutable std::map<const cJSON *, GraphPtr> graphs_;  // of this scope's "graphs", as they are read
  mutable std::set<const cJSON *> open_;              // being read: naming one of them would be a cycle
};

}  // namespace

Result<GraphPtr> read_json(std::string_view text, const OpTable &ops) { return read_json(text, ops, {}); }

Result<GraphPtr> read_json(std::string_view text, const OpTable &ops, const Apart &apart) {
  KILN_ASSIGN(json::Document document, json::parse(text));
  Result<GraphPtr> graph = Reader(ops, View(document.get(), ""), apart).read();
  // A name in a document may be of any length, and have any character.
  if (!graph.ok()) graph.status().info()->message = printable(graph.status().message());
  return graph;
}

}  // namespace kiln
