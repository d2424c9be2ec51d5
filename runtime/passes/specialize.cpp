#include "runtime/passes/specialize.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "runtime/graph/edit.h"
#include "runtime/ops/nested.h"

namespace kiln {

Result<FixedSizes> parse_fixed_sizes(std::string_view text) {
  FixedSizes sizes;
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    more = comma != text.npos;
    if (more) text.remove_prefix(comma + 1);
    const size_t equals = part.find('=');
    int64_t size = 0;
    const char *first = equals == part.npos ? part.data() : part.data() + equals + 1, *last = part.data() + part.size();
    const auto [end, failure] = std::from_chars(first, last, size);
    if (equals == 0 || equals == part.npos || failure != std::errc() || end != last)
      return invalid("'", part, "' is not SYMBOL=SIZE");
    if (!sizes.emplace(part.substr(0, equals), size).second)
      return invalid("symbol '", part.substr(0, equals), "' is there twice");
  }
  return sizes;
}

std::string text_of(const FixedSizes &sizes) {
  return join(sizes, ",", [](const auto &size) { return str_cat(size.first, "=", size.second); });
}

Dim at_sizes(const Dim &dim, const FixedSizes &sizes) {
  return dim.substitute([&](const Expr &leaf) -> std::optional<Expr> {
    if (leaf.kind() != Expr::Kind::symbol) return std::nullopt;
    const auto found = sizes.find(leaf.symbol_name());
    return found == sizes.end() ? std::nullopt : std::optional<Expr>(found->second);
  });
}

Shape at_sizes(const Shape &shape, const FixedSizes &sizes) {
  Shape fixed;
  for (const Dim &dim : shape) fixed.push_back(at_sizes(dim, sizes));
  return fixed;
}

namespace {

// A graph that is nested in several nodes is made once for each set of sizes that they give it.
class Specializer {
 public:
  // Null: some node of it requires what the graph at these sizes does not say any more. Of the outermost graph
  // (`!nested`) that is the planner's to check.
  Result<GraphPtr> run(const Graph &graph, const FixedSizes &sizes, bool nested) {
    Edit edit;
    for (const auto &[name, info] : graph.symbols())
      if (!sizes.contains(name)) KILN_TRY(edit.declare_symbol(name, info));
    std::map<uint32_t, uint32_t> made;  // ids
    for (const Node &node : graph.nodes()) {
      KILN_ASSIGN(const uint32_t id, copy(edit, graph, node, made, sizes));
      made.emplace(node.id, id);
      KILN_ASSIGN(const bool says_all, check(node, *edit.view().find(id), sizes));
      if (nested && !says_all) return GraphPtr();
    }
    std::vector<GraphOutput> outputs;
    for (const GraphOutput &y : graph.outputs())
      outputs.push_back({.name = y.name,
                         .value = {made.at(y.value.node), y.value.output},
                         .layout = {y.layout.kind, at_sizes(y.layout.strides, sizes)}});
    KILN_TRY(edit.set_outputs(std::move(outputs)));
    return edit.finish();
  }

 private:
  Result<uint32_t> copy(Edit &edit, const Graph &graph, const Node &node, const std::map<uint32_t, uint32_t> &made,
                        const FixedSizes &sizes) {
    if (node.kind == Node::Kind::op) {
      std::vector<ValueId> operands;
      for (const ValueId x : node.inputs) operands.push_back({made.at(x.node), x.output});
      AttrMap attrs = node.attrs;
      for (auto &[name, value] : attrs) {
        if (value.kind() == AttrKind::dim) KILN_TRY(specialize_dims(value, node, name, sizes));
        if (value.kind() == AttrKind::graph && (is_control(node) || (is_call(node) && name == called_attr(node))))
          KILN_TRY(specialize_attr(value, graph, node, sizes));
      }
      Result<uint32_t> id = edit.add(node.op, operands, std::move(attrs), node.name, node.annotations);
      if (!id.ok()) return id.take_status().at_node(node.name);
      return id;
    }
    ValueId value;
    if (node.kind == Node::Kind::constant) {
      KILN_ASSIGN(value, edit.constant(node.constant, node.name));
    } else {
      TensorType type = node.results[0];
      type.dims = at_sizes(type.dims, sizes);
      type.strides = at_sizes(type.strides, sizes);
      KILN_ASSIGN(value, node.kind == Node::Kind::input ? edit.input(node.name, std::move(type))
                                                        : edit.parameter(node.name, std::move(type)));
    }
    for (const auto &[name, annotation] : node.annotations) KILN_TRY(edit.annotate(value.node, name, annotation));
    return value.node;
  }

  // A size that is computed must not be taken for the number that says that there is none.
  static Status specialize_dims(AttrValue &value, const Node &node, std::string_view name, const FixedSizes &sizes) {
    const AttrDef *def = node.op->find_attr(name);
    const Shape before = value.dim_list();
    std::get<Shape>(value.items) = at_sizes(before, sizes);
    if (value.dim_list() != before && def && !def->required && value == default_of(*def) && !value.is_list)
      return invalid("[", node.op->name, "] ", name, " would be ", value.text()).at_node(node.name);
    return {};
  }

  Status specialize_attr(AttrValue &value, const Graph &graph, const Node &node, const FixedSizes &sizes) {
    for (GraphPtr &nested : std::get<std::vector<GraphPtr>>(value.items)) {
      FixedSizes inner;
      for (uint32_t i = 0; i < nested->inputs().size(); ++i) {
        const Shape &dims = nested->find(nested->inputs()[i])->results[0].dims;
        for (uint32_t d = 0; d < dims.size(); ++d) {
          if (dims[d].kind() != Expr::Kind::symbol) continue;
          const Dim given = at_sizes(dim_of_input(graph, node, i, d), sizes);
          if (given.is_integer()) inner.emplace(dims[d].symbol_name(), given.integer());
        }
      }
      if (inner.empty()) continue;
      const auto [known, is_new] = nested_.try_emplace({nested.get(), inner});
      if (is_new) {
        Result<GraphPtr> at = run(*nested, inner, true);
        if (!at.ok()) return at.take_status().at_node(node.name);
        nested_[{nested.get(), inner}] = *at ? *at : nested;  // the recursion may have added others
      }
      nested = nested_.at({nested.get(), inner});
    }
    return {};
  }

  // Whether all that the node requires holds, or is said by the one at these sizes, too.
  static Result<bool> check(const Node &node, const Node &fixed, const FixedSizes &sizes) {
    bool says_all = true;
    for (const auto &[left, right, what] : node.equalities) {
      const Dim a = at_sizes(left, sizes), b = at_sizes(right, sizes);
      if (a == b) continue;
      if (a.is_integer() && b.is_integer())
        return error(Code::type_mismatch, "[", node.op->name, "] ", what, "; they are ", a.text(), " and ", b.text())
            .at_node(node.name);
      says_all &= std::ranges::any_of(fixed.equalities, [&](const Equality &e) { return e.left == a && e.right == b; });
    }
    return says_all;
  }

  std::map<std::pair<const Graph *, FixedSizes>, GraphPtr> nested_;
};

}  // namespace

Result<GraphPtr> specialize(const GraphPtr &graph, const FixedSizes &sizes) {
  return Specializer().run(*graph, sizes, false);
}

}  // namespace kiln
