// What a pattern asks of types and attributes.
#include <algorithm>
#include <limits>

#include "jit/base/expr.h"
#include "runtime/graph/json_values.h"
#include "runtime/patterns/read.h"

namespace kiln::patterns {
namespace {

Result<AttrCondition> read_predicate(const View &v, const AttrDef &def) {
  AttrCondition condition{.name = std::string(def.name)};
  if (!v.is_object()) {
    if (v.is_text() && v.text() == "any" && def.kind != AttrKind::text) return condition;
    KILN_ASSIGN(AttrValue value, json::read_attr(v, def.kind, def.is_list));
    condition.kind = AttrCondition::Kind::among;
    condition.values.push_back(std::move(value));
    return condition;
  }
  KILN_TRY(v.allow_members({"any", "among", "axes", "least", "most"}));
  KILN_ASSIGN(const std::vector<View> members, v.as_object());
  const bool is_number = (def.kind == AttrKind::i64 || def.kind == AttrKind::f64) && !def.is_list;
  if (v.member("least") || v.member("most")) {
    if (v.member("any") || v.member("among") || v.member("axes"))
      return v.fail("'least' and 'most' stand with each other alone");
    if (!is_number) return v.fail("'least' and 'most' are of one number, and '", def.name, "' is none");
    condition.kind = AttrCondition::Kind::between;
    condition.least = -std::numeric_limits<double>::infinity();
    condition.most = std::numeric_limits<double>::infinity();
    for (const View &member : members) {
      KILN_ASSIGN(const AttrValue value, json::read_attr(member, AttrKind::f64, false));
      (member.key() == "least" ? condition.least : condition.most) = value.f64();
    }
    return condition;
  }
  if (members.size() != 1) return v.fail("expected one of any, among and axes, or least and most");
  const View &only = members.front();
  if (only.key() == "any") {
    if (!only.is_boolean() || !only.boolean()) return only.expected("true");
    return condition;
  }
  if (only.key() == "axes") {
    if (def.kind != AttrKind::i64) return only.fail("'", def.name, "' is no axis, and no list of them");
    KILN_ASSIGN(AttrValue axes, json::read_attr(only, AttrKind::i64, true));
    condition.kind = AttrCondition::Kind::axes;
    condition.values.push_back(std::move(axes));
    return condition;
  }
  KILN_ASSIGN(const std::vector<View> elements, only.as_list());
  if (elements.empty()) return only.fail("the list is empty, which nothing is among");
  condition.kind = AttrCondition::Kind::among;
  for (const View &element : elements) {
    KILN_ASSIGN(AttrValue value, json::read_attr(element, def.kind, def.is_list));
    condition.values.push_back(std::move(value));
  }
  return condition;
}

}  // namespace

Result<ShapeCondition> Reader::read_shape(const View &v) {
  KILN_ASSIGN(const std::vector<View> elements, v.as_list());
  ShapeCondition shape;
  for (size_t i = 0; i < elements.size(); ++i) {
    const View &element = elements[i];
    DimCondition dim;
    if (element.is_text() && element.text() == "...") {
      if (i) return element.fail("'...' stands first: it is any number of sizes before those that follow");
      shape.leading = true;
      continue;
    }
    if (element.is_text() && element.text() != "?") {
      const Result<Expr> parsed = Expr::parse(element.text());
      if (!parsed.ok() || parsed->kind() != Expr::Kind::symbol)
        return element.expected("a size, a name for one, '?' or '...'");
      const std::string &name = parsed->symbol_name();
      const auto known = std::ranges::find(pattern_.dims, name);
      dim = {.kind = DimCondition::Kind::named, .name = static_cast<uint32_t>(known - pattern_.dims.begin())};
      if (known == pattern_.dims.end()) pattern_.dims.push_back(name);
    } else if (!element.is_text()) {
      KILN_ASSIGN(dim.size, element.as_integer());
      if (dim.size < 0) return element.expected("a size, a name for one, '?' or '...'");
      dim.kind = DimCondition::Kind::exact;
    }
    shape.dims.push_back(dim);
  }
  if (shape.dims.size() > max_rank) return v.fail("a shape has ", max_rank, " sizes at most");
  return shape;
}

Status Reader::read_type(const View &v, TypeCondition &out) {
  if (const std::optional<View> dtype = v.member("dtype")) {
    std::vector<View> names{*dtype};
    if (dtype->is_list()) {
      KILN_ASSIGN(names, dtype->as_list());
    }
    if (names.empty()) return dtype->fail("the list of dtypes is empty");
    for (const View &name : names) {
      KILN_ASSIGN(const DType read, json::read_dtype(name));
      out.dtypes.push_back(read);
    }
  }
  if (const std::optional<View> shape = v.member("shape")) {
    KILN_ASSIGN(out.shape, read_shape(*shape));
  }
  return {};
}

Status Reader::read_attrs(const View &v, Term &node) const {
  KILN_ASSIGN(const std::vector<View> members, v.as_object());
  for (const View &member : members) {
    KILN_ASSIGN(const AttrDef *def, find_attr(member, *node.ops.front()));
    for (const OpSchema *op : node.ops) {
      KILN_ASSIGN(const AttrDef *other, find_attr(member, *op));
      if (other->kind != def->kind || other->is_list != def->is_list)
        return member.fail("'", def->name, "' is of another kind in '", op->name, "'");
    }
    KILN_ASSIGN(AttrCondition condition, read_predicate(member.of_op(node.ops.front()->name), *def));
    node.attrs.push_back(std::move(condition));
  }
  return {};
}

}  // namespace kiln::patterns
