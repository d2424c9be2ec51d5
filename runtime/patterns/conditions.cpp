// What a pattern asks of one value or node, and, at the end, of all of them together.
#include <algorithm>

#include "jit/base/small_float.h"
#include "runtime/graph/annotations.h"
#include "runtime/ops/reference.h"
#include "runtime/patterns/matcher.h"

namespace kiln::patterns {
namespace {

constexpr std::array<std::string_view, 6> wanted_sources = {
    "anything", "an input", "a parameter", "a constant", "made by a node", "a parameter or a constant"};

bool is_from(Term::Source source, const Node &node) {
  switch (source) {
    case Term::Source::any:
      return true;
    case Term::Source::input:
      return node.kind == Node::Kind::input && !node.given_fixed;
    case Term::Source::parameter:
      return node.kind == Node::Kind::parameter;
    case Term::Source::constant:
      return node.kind == Node::Kind::constant;
    case Term::Source::op:
      return node.kind == Node::Kind::op;
    case Term::Source::fixed:
      return node.kind == Node::Kind::parameter || node.kind == Node::Kind::constant || node.given_fixed;
  }
  return false;
}

// The axes that an attribute names, from the front, sorted.
std::vector<int64_t> axes_of(const AttrValue &value, size_t rank) {
  std::vector<int64_t> axes = value.i64_list();
  for (int64_t &axis : axes)
    if (axis < 0) axis += static_cast<int64_t>(rank);
  std::ranges::sort(axes);
  return axes;
}

// Of what an op's axes count the dims.
size_t axes_rank(const Graph &graph, const Node &node) {
  if (node.op->flags & op_flags::new_dims) return graph.type({node.id, 0}).rank();
  return node.inputs.empty() ? 0 : graph.type(node.inputs.front()).rank();
}

std::string wanted(const AttrCondition &condition) {
  if (condition.kind == AttrCondition::Kind::between) return str_cat("from ", condition.least, " to ", condition.most);
  const std::string values = join(condition.values, " or ", [](const AttrValue &value) { return value.text(); });
  return condition.kind == AttrCondition::Kind::axes ? str_cat("axes ", values) : values;
}

}  // namespace

std::optional<double> number_of(const Graph &graph, ValueId value) {
  const Node &node = *graph.find(value.node);
  const TensorType &type = graph.type(value);
  if (type.rank()) return std::nullopt;
  if (node.op && node.op->name == "full") {
    const auto found = node.attrs.find("value"), exact = node.attrs.find("exact");
    if (exact != node.attrs.end() && !exact->second.text_value().empty()) return std::nullopt;  // beyond 2^53
    if (found != node.attrs.end() && found->second.kind() == AttrKind::f64) return found->second.f64();
  }
  if (!node.constant) return std::nullopt;
  const RefTensor scalar = to_reference(*node.constant);
  return scalar.is_float() ? std::optional(scalar.f[0]) : std::nullopt;
}

bool holds(const AttrCondition &condition, const Graph &graph, const Node &node) {
  const AttrValue &value = node.attrs.find(condition.name)->second;
  switch (condition.kind) {
    case AttrCondition::Kind::any:
      return true;
    case AttrCondition::Kind::among:
      return std::ranges::find(condition.values, value) != condition.values.end();
    case AttrCondition::Kind::axes: {
      const size_t rank = axes_rank(graph, node);
      return axes_of(value, rank) == axes_of(condition.values.front(), rank);
    }
    case AttrCondition::Kind::between: {
      const double number = value.kind() == AttrKind::f64 ? value.f64() : static_cast<double>(value.i64());
      return number >= condition.least && number <= condition.most;
    }
  }
  return false;
}

bool Matcher::fits_shape(const Term &term, const ShapeCondition &shape, const TensorType &type) {
  const size_t least = shape.dims.size(), rank = type.rank();
  if (rank < least || (rank > least && !shape.leading))
    return miss_ &&
           fail(called(term), " is ", type.text(), ", expected a rank of ", shape.leading ? "at least " : "", least);
  for (size_t i = 0; i < least; ++i) {
    const DimCondition &wanted = shape.dims[i];
    const Dim &dim = type.dims[rank - least + i];
    if (wanted.kind == DimCondition::Kind::exact && !dim.is(wanted.size))
      return miss_ && fail(called(term), " is ", type.text(), ", expected ", wanted.size, " in place of ", dim.text());
    if (wanted.kind != DimCondition::Kind::named) continue;
    std::optional<Dim> &named = dims_[wanted.name];
    if (!named) {
      named = dim;
      bound_dims_.push_back(wanted.name);
    } else if (!(*named == dim)) {
      return miss_ && fail("size ", pattern_->dims[wanted.name], " is ", named->text(), " in one place and ",
                           dim.text(), " in ", called(term));
    }
  }
  return true;
}

bool Matcher::fits_type(const Term &term, const TensorType &type) {
  const std::vector<DType> &dtypes = term.type.dtypes;
  if (!dtypes.empty() && std::ranges::find(dtypes, type.dtype) == dtypes.end())
    return miss_ && fail(called(term), " is ", type.text(), ", expected ",
                         join(dtypes, " or ", [](DType dtype) { return name_of(dtype); }));
  return !term.type.shape || fits_shape(term, *term.type.shape, type);
}

bool Matcher::fits_capture(const Term &term, ValueId value) {
  if (!is_from(term.source, *node_at(value)))
    return miss_ && fail(called(term), " is '", text_of(graph_, value), "', which is not ",
                         wanted_sources[static_cast<size_t>(term.source)]);
  if (!fits_type(term, graph_.type(value))) return false;
  if (!term.is_number) return true;
  const std::optional<double> number = number_of(graph_, value);
  if (!number)
    return miss_ &&
           fail(called(term), " is '", text_of(graph_, value), "', which is no scalar that the graph itself holds");
  const DType dtype = graph_.type(value).dtype;
  if (!term.number || rounded_to(*number, dtype) == rounded_to(*term.number, dtype)) return true;
  return miss_ && fail(called(term), " is ", *number, ", expected ", *term.number);
}

bool Matcher::fits_node(const Term &term, const Node &node) {
  if (is_gone(node.id)) return miss_ && fail("'", node.name, "' was part of another match");
  if (!node.op || std::ranges::find(term.ops, node.op) == term.ops.end())
    return miss_ && fail(called(term), " is to be ", names_of_ops(term), ", and '", node.name, "' is ",
                         node.op ? node.op->name : "no op's");
  if (node.inputs.size() > term.operands.size())
    return miss_ && fail("'", node.name, "' has ", node.inputs.size(), " operands, expected ", term.operands.size());
  if (is_matched(node.id)) return miss_ && fail("'", node.name, "' would be two nodes of the pattern");
  for (const Operand &output : pattern_->outputs)  // attributes may leave out the last of an op's results
    if (&pattern_->terms[output.term] == &term && output.output >= node.results.size())
      return miss_ && fail("'", node.name, "' has no result ", output.output);
  if (has_effect(node)) return miss_ && fail("'", node.name, "' does more than make its results");
  for (const auto &[name, value] : node.attrs) {
    const auto named = std::ranges::find(term.attrs, name, &AttrCondition::name);
    if (named != term.attrs.end()) {
      if (holds(*named, graph_, node)) continue;
      return miss_ &&
             fail("attribute '", name, "' of '", node.name, "' is ", value.text(), ", expected ", wanted(*named));
    }
    const AttrDef *def = node.op->find_attr(name);
    if (!def || def->required || !(default_of(*def) == value))
      return miss_ && fail("attribute '", name, "' of '", node.name, "' is ", value.text(),
                           ", and the pattern does not name it");
  }
  return fits_type(term, node.results.front());
}

// No result of the pattern's nodes is used elsewhere, but for outputs, and nodes that say that theirs may be.
bool Matcher::used_inside() {
  for (uint32_t i = 0; i < values_.size(); ++i) {
    const Term &term = pattern_->terms[i];
    if (!term.is_node() || term.keeps || states_[i] != State::bound) continue;
    const Node &node = *node_at(values_[i]);
    for (uint32_t output = 0; output < node.results.size(); ++output) {
      if (std::ranges::any_of(pattern_->outputs, [&](const Operand &o) { return o.term == i && o.output == output; }))
        continue;
      const ValueId value{node.id, output};
      uint32_t by_nodes = 0;
      for (const uint32_t user : graph_.users(value)) {
        by_nodes += static_cast<uint32_t>(std::ranges::count(graph_.find(user)->inputs, value));
        if (!is_gone(user) && !is_matched(user))
          return miss_ && fail("'", text_of(graph_, value), "', which is ", called(term), ", is used by '",
                               graph_.find(user)->name, "', too");
      }
      if (graph_.use_count(value) > by_nodes)
        return miss_ &&
               fail("'", text_of(graph_, value), "', which is ", called(term), ", is an output of the graph, too");
    }
  }
  return true;
}

bool Matcher::same_annotations_everywhere() {
  if (pattern_->any_annotations) return true;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!pattern_->terms[i].is_node() || pattern_->terms[i].keeps || states_[i] != State::bound) continue;
    const Node &node = *node_at(values_[i]);
    if (!same_annotations(node.annotations, root_->annotations))
      return miss_ && fail("'", node.name, "' and '", root_->name, "' carry different annotations");
  }
  return true;
}

// What is captured does not depend on an output: where there are several, one may lead to what another is made of.
bool Matcher::is_convex() {
  if (pattern_->outputs.size() < 2) return true;
  std::set<uint32_t> seen;
  std::vector<uint32_t> open;
  for (size_t i = 0; i < values_.size(); ++i)
    if (!pattern_->terms[i].is_node() && values_[i]) open.push_back(values_[i].node);
  while (!open.empty()) {
    const uint32_t id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    if (is_matched(id))
      return miss_ && fail("'", graph_.find(id)->name, "' is of the match, and what it uses depends on it");
    for (const ValueId input : graph_.find(id)->inputs) open.push_back(input.node);
  }
  return true;
}

bool Matcher::finish() { return used_inside() && same_annotations_everywhere() && is_convex(); }

}  // namespace kiln::patterns
