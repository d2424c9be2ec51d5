#include "runtime/plan/view_output.h"

#include <algorithm>

#include "runtime/graph/edit.h"
#include "runtime/ops/op.h"

namespace kiln {
namespace {

bool is_view(const GraphOutput &output) { return output.layout.kind == OutputLayout::Kind::view; }

// Of the value, as an element of the input that it is a view of.
Result<std::vector<Expr>> index_in_input(const Graph &graph, ValueId value, std::vector<Expr> index) {
  while (const ValueId base = graph.type(value).alias_of) {
    const Node &node = *graph.find(value.node);
    if (!(node.op->flags & op_flags::mutates)) {
      ViewContext view{op_of(node), graph.type(base), node.results[0], node.attrs, index, {}};
      KILN_TRY(op_of(node).view(view));
      index = std::move(view.operand_index);
    }
    value = base;
  }
  return index;
}

}  // namespace

Result<Plan::Presented> present_view(const Graph &graph, size_t output) {
  const GraphOutput &given = graph.outputs()[output];
  const Node &input = *graph.find(graph.storage_of(given.value).node);
  std::vector<Expr> axes;
  for (const Dim &dim : graph.type(given.value).dims)
    axes.push_back(Expr::axis(static_cast<uint32_t>(axes.size()), dim));
  const size_t rank = axes.size();
  KILN_ASSIGN(const std::vector<Expr> index, index_in_input(graph, given.value, std::move(axes)));

  Plan::Presented view{.output = static_cast<uint32_t>(output), .kind = Plan::Presented::Kind::view};
  view.input = static_cast<uint32_t>(std::ranges::find(graph.inputs(), input.id) - graph.inputs().begin());
  Expr at = 0;  // in elements from the input's first
  for (size_t d = 0; d < index.size(); ++d) at += index[d] * input.results[0].strides[d];
  const auto depends_on_axes = [&](const Expr &e) {
    for (uint32_t d = 0; d < rank; ++d)
      if (e.depends_on_axis(d)) return true;
    return false;
  };
  bool is_linear = true;
  for (uint32_t d = 0; d < rank && is_linear; ++d) {
    const std::optional<Expr> stride = at.coefficient(d);
    is_linear = stride && !depends_on_axes(*stride);
    view.strides.push_back(stride.value_or(0));
  }
  if (!is_linear)
    return invalid("output '", given.name, "' is to be a view of input '", input.name,
                   "', and no strides lead to its elements; let it be a copy");
  view.offset = at.substitute(
      [](const Expr &leaf) { return leaf.kind() == Expr::Kind::axis ? std::optional<Expr>(0) : std::nullopt; });
  return view;
}

Result<GraphPtr> without_views(const GraphPtr &graph) {
  if (std::ranges::none_of(graph->outputs(), is_view)) return graph;
  std::vector<GraphOutput> made;
  std::ranges::copy_if(graph->outputs(), std::back_inserter(made), [](const auto &output) { return !is_view(output); });
  Edit edit(graph);
  KILN_TRY(edit.set_outputs(std::move(made)));
  return edit.finish();
}

}  // namespace kiln
