// Reading graphs, and their text forms.
#include "abi/src/convert.h"
#include "runtime/graph/json.h"
#include "runtime/regions/extract.h"
#include "runtime/report/describe.h"

using namespace kiln;
using namespace kiln::abi;

namespace {

Result<const Node *> find_node(const Checks &check, const kiln_graph *graph, kiln_node node) {
  KILN_TRY(check.handle(graph, "graph"));
  if (node <= UINT32_MAX)
    if (const Node *found = graph->get().find(static_cast<uint32_t>(node))) return found;
  return error(Code::out_of_range, "the graph has no node ", node);
}

Result<ValueId> find_value(const Checks &check, const kiln_graph *graph, kiln_value value) {
  KILN_TRY(check.handle(graph, "graph"));
  const ValueId id = ValueId::unpack(value);
  if (graph->get().has(id)) return id;
  return error(Code::out_of_range, "the graph has no value ", id.node, ":", id.output);
}

// For the accessors that answer 0: the node, or null for anything wrong.
const Node *node_or_null(const kiln_graph *graph, kiln_node node) {
  if (!is_usable(graph) || node > UINT32_MAX) return nullptr;
  return graph->get().find(static_cast<uint32_t>(node));
}

Status write_attrs(const Checks &check, const kiln_graph *graph, const AttrMap &attrs,
                   const std::function<bool(const std::string &name, const AttrValue &value)> &wanted,
                   kiln_attr *buffer, uint64_t capacity, uint64_t *out_count) {
  std::vector<kiln_attr> out;
  for (const auto &[name, value] : attrs)
    if (wanted(name, value)) out.push_back(graph->views.attr(graph->context, name, value));
  return write_list<kiln_attr>(check, out, buffer, capacity, out_count);
}

}  // namespace

// ---- graphs

kiln_error *kiln_graph_nodes(const kiln_graph *graph, kiln_node *buffer, uint64_t capacity, uint64_t *out_count) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(graph, "graph"));
    std::vector<kiln_node> ids;
    for (const Node &node : graph->get().nodes()) ids.push_back(node.id);
    return write_list<kiln_node>(check, ids, buffer, capacity, out_count);
  });
}

kiln_error *kiln_graph_signature(const kiln_graph *graph, uint32_t side, kiln_value *buffer, uint64_t capacity,
                                 uint64_t *out_count) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(graph, "graph"));
    std::vector<kiln_value> values;
    switch (side) {
      case KILN_SIDE_INPUTS:
        for (uint32_t id : graph->get().inputs()) values.push_back(ValueId{id, 0}.packed());
        break;
      case KILN_SIDE_PARAMETERS:
        for (uint32_t id : graph->get().parameters()) values.push_back(ValueId{id, 0}.packed());
        break;
      case KILN_SIDE_OUTPUTS:
        for (const GraphOutput &output : graph->get().outputs()) values.push_back(output.value.packed());
        break;
      default:
        return check.fail("no side of a signature has number ", side);
    }
    return write_list<kiln_value>(check, values, buffer, capacity, out_count);
  });
}

kiln_error *kiln_graph_output_name(const kiln_graph *graph, uint64_t index, kiln_text *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(graph, "graph"));
    KILN_TRY(check.pointer(out, "out"));
    const std::span<const GraphOutput> outputs = graph->get().outputs();
    if (index >= outputs.size()) return error(Code::out_of_range, "output ", index, " of ", outputs.size());
    *out = text_view(outputs[index].name);
    return {};
  });
}

kiln_error *kiln_graph_find(const kiln_graph *graph, const char *name, uint64_t name_size, kiln_node *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(graph, "graph"));
    KILN_ASSIGN(const std::string_view wanted, check.text(name, name_size, "name"));
    KILN_TRY(check.pointer(out, "out"));
    const Node *node = graph->get().find(wanted);
    if (!node) return error(Code::unknown_name, "no node is named '", wanted, "'");
    *out = node->id;
    return {};
  });
}

void kiln_graph_destroy(kiln_graph *graph) {
  if (graph && graph->magic.ok() && graph->live) delete graph;  // views have no count, and are their owner's
}

kiln_error *kiln_graph_parse(kiln_context *context, const void *json, uint64_t json_size, kiln_graph **out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    KILN_ASSIGN(const std::span<const char> text, check.array(static_cast<const char *>(json), json_size, "json"));
    KILN_TRY(check.pointer(out, "out"));
    KILN_ASSIGN(GraphPtr graph, read_json({text.data(), text.size()}, context->ops()));
    *out = make_graph(share(context), std::move(graph));
    return {};
  });
}

kiln_error *kiln_graph_extract(kiln_context *context, const kiln_graph *graph, const char *key, uint64_t key_size,
                               const char *value, uint64_t value_size, kiln_graph **out, kiln_report **out_map) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    KILN_TRY(check.own_graph(graph, context->context, "graph"));
    KILN_ASSIGN(const std::string_view name, check.text(key, key_size, "key"));
    KILN_ASSIGN(const std::string_view wanted, check.text(value, value_size, "value"));
    KILN_TRY(check.pointer(out, "out"));
    KILN_TRY(check.pointer(out_map, "out_map"));
    KILN_ASSIGN(Region part, extract(graph->get(), name, wanted));
    std::unique_ptr<kiln_report> map = make_report(describe_part(graph->get(), part));
    *out = make_graph(share(context), std::move(part.graph));
    *out_map = map.release();
    return {};
  });
}

kiln_error *kiln_graph_write(const kiln_graph *graph, const char *format, uint64_t format_size, kiln_blob **out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(graph, "graph"));
    KILN_ASSIGN(const std::string_view wanted, check.text(format, format_size, "format"));
    KILN_TRY(check.pointer(out, "out"));
    if (wanted == "json") {
      *out = make_blob(write_json(graph->get()));
    } else if (wanted == "text") {
      *out = make_blob(print(graph->get()));
    } else if (wanted == "dot") {
      *out = make_blob(print_dot(graph->get()));
    } else {
      return error(Code::unknown_name, "no graph format is named '", wanted, "'; there are: json, text, dot");
    }
    return {};
  });
}

kiln_error *kiln_graph_describe(const kiln_graph *graph, kiln_report **out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(graph, "graph"));
    KILN_TRY(check.pointer(out, "out"));
    *out = make_report(describe(graph->get())).release();
    return {};
  });
}

// ---- nodes

uint32_t kiln_node_kind(const kiln_graph *graph, kiln_node node) {
  return answer(0u, [&]() -> uint32_t {
    const Node *found = node_or_null(graph, node);
    if (found && found->given_fixed) return KILN_NODE_PARAMETER;
    return found ? static_cast<uint32_t>(found->kind) + KILN_NODE_INPUT : 0;
  });
}

kiln_error *kiln_node_name(const kiln_graph *graph, kiln_node node, kiln_text *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const Node *found, find_node(check, graph, node));
    KILN_TRY(check.pointer(out, "out"));
    *out = text_view(found->name);
    return {};
  });
}

kiln_op kiln_node_op(const kiln_graph *graph, kiln_node node) {
  return answer(kiln_op{0}, [&]() -> kiln_op {
    const Node *found = node_or_null(graph, node);
    return found && found->op ? ContextOps::number_of(*found->op) : 0;
  });
}

uint32_t kiln_node_input_count(const kiln_graph *graph, kiln_node node) {
  return answer(0u, [&]() -> uint32_t {
    const Node *found = node_or_null(graph, node);
    return found ? static_cast<uint32_t>(found->inputs.size()) : 0;
  });
}

kiln_value kiln_node_input(const kiln_graph *graph, kiln_node node, uint32_t index) {
  return answer(kiln_value{0}, [&]() -> kiln_value {
    const Node *found = node_or_null(graph, node);
    return found && index < found->inputs.size() ? found->inputs[index].packed() : 0;
  });
}

uint32_t kiln_node_output_count(const kiln_graph *graph, kiln_node node) {
  return answer(0u, [&]() -> uint32_t {
    const Node *found = node_or_null(graph, node);
    return found ? static_cast<uint32_t>(found->results.size()) : 0;
  });
}

kiln_error *kiln_node_attr(const kiln_graph *graph, kiln_node node, const char *name, uint64_t name_size,
                           kiln_attr *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const Node *found, find_node(check, graph, node));
    return give_attr(check, found->attrs, {name, name_size}, str_cat("node '", found->name, "' has no attribute"),
                     graph->views, graph->context, out);
  });
}

kiln_error *kiln_node_attrs(const kiln_graph *graph, kiln_node node, kiln_attr *buffer, uint64_t capacity,
                            uint64_t *out_count) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const Node *found, find_node(check, graph, node));
    auto differs = [&](const std::string &name, const AttrValue &value) {
      const AttrDef *def = found->op ? found->op->find_attr(name) : nullptr;
      return !def || def->required || default_of(*def) != value;
    };
    return write_attrs(check, graph, found->attrs, differs, buffer, capacity, out_count);
  });
}

kiln_error *kiln_node_annotations(const kiln_graph *graph, kiln_node node, kiln_attr *buffer, uint64_t capacity,
                                  uint64_t *out_count) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const Node *found, find_node(check, graph, node));
    auto all = [](const std::string &, const AttrValue &) { return true; };
    return write_attrs(check, graph, found->annotations, all, buffer, capacity, out_count);
  });
}

kiln_error *kiln_node_constant(const kiln_graph *graph, kiln_node node, const DLTensor **out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const Node *found, find_node(check, graph, node));
    KILN_TRY(check.pointer(out, "out"));
    if (!found->constant) return check.fail("node '", found->name, "' is no constant");
    *out = graph->views.tensor(*found->constant);
    return {};
  });
}

// ---- values

uint32_t kiln_value_use_count(const kiln_graph *graph, kiln_value value) {
  return answer(0u, [&]() -> uint32_t {
    const ValueId id = ValueId::unpack(value);
    return is_usable(graph) && graph->get().has(id) ? graph->get().use_count(id) : 0;
  });
}

kiln_error *kiln_value_users(const kiln_graph *graph, kiln_value value, kiln_node *buffer, uint64_t capacity,
                             uint64_t *out_count) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const ValueId id, find_value(check, graph, value));
    std::vector<kiln_node> nodes;
    for (uint32_t user : graph->get().users(id)) nodes.push_back(user);
    return write_list<kiln_node>(check, nodes, buffer, capacity, out_count);
  });
}

kiln_error *kiln_value_dtype(const kiln_graph *graph, kiln_value value, kiln_dtype *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const ValueId id, find_value(check, graph, value));
    KILN_TRY(check.pointer(out, "out"));
    *out = static_cast<kiln_dtype>(graph->get().type(id).dtype);
    return {};
  });
}

kiln_error *kiln_value_dims(const kiln_graph *graph, kiln_value value, kiln_dim *buffer, uint64_t capacity,
                            uint64_t *out_rank) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const ValueId id, find_value(check, graph, value));
    return write_dims(check, *graph->context, graph->get().type(id).dims, buffer, capacity, out_rank);
  });
}

kiln_error *kiln_value_strides(const kiln_graph *graph, kiln_value value, kiln_dim *buffer, uint64_t capacity,
                               uint64_t *out_rank) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const ValueId id, find_value(check, graph, value));
    const TensorType &type = graph->get().type(id);
    if (type.layout != TensorType::Layout::exact)
      return check.fail("the layout of value ", id.node, ":", id.output, " is the planner's to choose");
    return write_dims(check, *graph->context, type.strides, buffer, capacity, out_rank);
  });
}

kiln_value kiln_value_view_of(const kiln_graph *graph, kiln_value value) {
  return answer(kiln_value{0}, [&]() -> kiln_value {
    const ValueId id = ValueId::unpack(value);
    return is_usable(graph) && graph->get().has(id) ? graph->get().type(id).alias_of.packed() : 0;
  });
}
