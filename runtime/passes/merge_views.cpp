#include <algorithm>

#include "runtime/graph/annotations.h"
#include "runtime/passes/builtin.h"
#include "runtime/passes/replacing.h"
#include "runtime/passes/views.h"

namespace kiln {
namespace {

const AttrValue &attr(const Node &node, std::string_view name) { return node.attrs.find(name)->second; }

// A view that does what the two do, one of the other's result.
struct Merged {
  std::string_view op;
  AttrMap attrs;
};

bool keeps_order(const Node &view) {
  return view.op->name == "reshape" || view.op->name == "squeeze" || view.op->name == "unsqueeze";
}

Merged permuted(const Node &inner, const Node &outer) {
  const std::vector<int64_t> &first = attr(inner, "dims").i64_list(), &then = attr(outer, "dims").i64_list();
  const auto normal = [&](int64_t dim) { return dim < 0 ? dim + static_cast<int64_t>(first.size()) : dim; };
  std::vector<int64_t> dims;
  for (const int64_t dim : then) dims.push_back(normal(first[static_cast<size_t>(normal(dim))]));
  return {"permute", {{"dims", AttrValue(std::move(dims))}}};
}

// Where slices of one dim, all of whose numbers are known, begin, how many elements they have and how far apart.
struct Range {
  int64_t dim = 0, start = 0, count = 0, step = 0;
};
std::optional<Range> range_of(const Graph &graph, const Node &slice) {
  const TensorType &x = graph.type(slice.inputs[0]);
  int64_t dim = attr(slice, "dim").i64();
  if (dim < 0) dim += static_cast<int64_t>(x.rank());
  const Dim &size = x.dims[static_cast<size_t>(dim)], &count = slice.results[0].dims[static_cast<size_t>(dim)];
  const Dim &start = attr(slice, "start").dim();
  const int64_t step = attr(slice, "step").i64();
  if (!size.is_integer() || !count.is_integer() || !start.is_integer() || step < 1) return std::nullopt;
  const int64_t first = start.integer() < 0 ? start.integer() + size.integer() : start.integer();
  return Range{dim, first, count.integer(), step};
}

std::optional<Merged> sliced(const Graph &graph, const Node &inner, const Node &outer) {
  const std::optional<Range> first = range_of(graph, inner), then = range_of(graph, outer);
  if (!first || !then || first->dim != then->dim || then->count < 1) return std::nullopt;
  int64_t step = 0;
  if (__builtin_mul_overflow(first->step, then->step, &step)) return std::nullopt;
  if (then->count == 1) step = 1;  // a step may reach beyond the dim
  const int64_t start = first->start + then->start * first->step, last = start + (then->count - 1) * step;
  return Merged{"slice", {{"dim", first->dim}, {"start", Dim(start)}, {"end", Dim(last + 1)}, {"step", step}}};
}

std::optional<Merged> merged(const Graph &graph, const Node &inner, const Node &outer) {
  if (keeps_order(inner) && keeps_order(outer)) return Merged{"reshape", {{"shape", AttrValue(outer.results[0].dims)}}};
  if (inner.op != outer.op) return std::nullopt;
  if (outer.op->name == "permute") return permuted(inner, outer);
  if (outer.op->name == "expand") return Merged{"expand", {{"shape", AttrValue(outer.results[0].dims)}}};
  return outer.op->name == "slice" ? sliced(graph, inner, outer) : std::nullopt;
}

// The value that takes the place of `outer`, a view of a view.
Result<ValueId> merge(Edit &edit, const OpTable &ops, const Node &outer) {
  const Graph &graph = edit.view();
  if (!(outer.op->flags & op_flags::view)) return ValueId();
  const Node &inner = *graph.find(outer.inputs[0].node);
  if (!inner.op || !(inner.op->flags & op_flags::view) || !inner.equalities.empty() || !may_go(inner, outer))
    return ValueId();
  const std::optional<Merged> found = merged(graph, inner, outer);
  if (!found) return ValueId();
  const ValueId x = inner.inputs[0];
  Node made;
  made.op = ops.find(found->op);
  made.inputs = {x};
  made.attrs = found->attrs;
  KILN_TRY(complete_attrs(*made.op, made.attrs));
  KILN_ASSIGN(Inferred inferred, infer(*made.op, {{graph.type(x)}}, made.attrs));
  made.results = std::move(inferred.results);
  if (!inferred.equalities.empty() || !made.results[0].same_value_type(outer.results[0])) return ValueId();
  if (is_identity_view(graph, made) && may_go(outer, *graph.find(x.node))) return x;
  return replacement(edit, outer, made.op, made.inputs, made.attrs);
}

}  // namespace

Pass merge_views_pass() {
  return replacing_pass("merge_views", 1030, [](PassContext &context) -> MakeReplacement {
    return [&context](const Node &node, const OutputStorage &) { return merge(context.edit, context.ops, node); };
  });
}

}  // namespace kiln
