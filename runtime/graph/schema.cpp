#include "runtime/graph/schema.h"

#include <algorithm>

#include "runtime/graph/graph.h"

namespace kiln {
namespace {

template <class... Parts>
Status op_error(const OpSchema &op, Code code, const Parts &...parts) {
  return error(code, "[", op.name, "] ", parts...);
}

// "expected f32", "expected one of f32, i64"
std::string expected(DTypes set) {
  std::vector<std::string_view> names;
  for (int number = 1; number <= last_dtype; ++number) {
    auto dtype = static_cast<DType>(number);
    if (set & dtypes(dtype)) names.push_back(name_of(dtype));
  }
  return str_cat(names.size() == 1 ? "expected " : "expected one of ",
                 join(names, ", ", [](std::string_view name) { return name; }));
}

std::string counted(const OpSchema &op) {
  size_t least = 0;
  bool variadic = false;
  for (const ArgDef &arg : op.args) {
    least += arg.arity == Arity::one;
    variadic |= arg.arity == Arity::variadic;
  }
  if (variadic) return str_cat("at least ", least);
  return least == op.args.size() ? str_cat(least) : str_cat(least, " to ", op.args.size());
}

// The value with another kind, where that loses nothing; false when the schema's kind cannot take it.
bool coerce(AttrValue &value, AttrKind kind) {
  if (value.kind() == kind) return true;
  if (value.is_list && value.size() == 0) {
    switch (kind) {
      case AttrKind::i64:
        value.items = std::vector<int64_t>();
        return true;
      case AttrKind::f64:
        value.items = std::vector<double>();
        return true;
      case AttrKind::text:
        value.items = std::vector<std::string>();
        return true;
      case AttrKind::dtype:
        value.items = std::vector<DType>();
        return true;
      case AttrKind::dim:
        value.items = std::vector<Dim>();
        return true;
      case AttrKind::graph:
        value.items = std::vector<GraphPtr>();
        return true;
      case AttrKind::tensor:
        value.items = std::vector<TensorPtr>();
        return true;
      case AttrKind::boolean:
        value.items = std::vector<bool>();
        return true;
    }
  }
  if (value.kind() != AttrKind::i64) return false;
  std::vector<int64_t> integers = value.i64_list();
  if (kind == AttrKind::f64) {
    constexpr int64_t exact = int64_t{1} << 53;
    if (!std::ranges::all_of(integers, [](int64_t v) { return v >= -exact && v <= exact; })) return false;
    value.items = std::vector<double>(integers.begin(), integers.end());
    return true;
  }
  if (kind == AttrKind::dim) {
    value.items = std::vector<Dim>(integers.begin(), integers.end());
    return true;
  }
  return false;
}

std::string described(AttrKind kind, bool is_list) {
  return is_list ? str_cat("a list of ", name_of(kind)) : std::string(name_of(kind));
}

// " by size": the attributes that may tell dims of a result, for errors; "" without any.
std::string by_sizes(const OpSchema &op) {
  std::string names;
  for (const AttrDef &attr : op.attrs)
    if (attr.kind == AttrKind::dim) str_append(names, str_cat(names.empty() ? " by " : ", ", attr.name));
  return names;
}

}  // namespace

AttrValue default_of(const AttrDef &attr) {
  AttrValue value = attr.fallback;
  if (attr.kind == AttrKind::graph && value.size() == 0) value.items = std::vector<GraphPtr>();  // none
  value.is_list = attr.is_list;
  coerce(value, attr.kind);  // the schema's author may write 0 for a dim
  return value;
}

const AttrDef *OpSchema::find_attr(std::string_view wanted) const {
  auto found = std::ranges::find(attrs, wanted, &AttrDef::name);
  return found == attrs.end() ? nullptr : &*found;
}

bool OpSchema::takes(size_t operands) const {
  const auto least = static_cast<size_t>(std::ranges::count(args, Arity::one, &ArgDef::arity));
  const bool variadic = !args.empty() && args.back().arity == Arity::variadic;
  return operands >= least && (operands <= args.size() || variadic);
}

Status check_operands(const OpSchema &op, std::span<const TensorType> inputs) {
  if (!op.takes(inputs.size()))
    return op_error(op, Code::type_mismatch, "takes ", counted(op), " operands, ", inputs.size(), " are given");
  const TensorType *first = nullptr;
  std::string_view first_name;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ArgDef &arg = op.args[std::min(i, op.args.size() - 1)];
    DType dtype = inputs[i].dtype;
    if (!(arg.dtypes & dtypes(dtype)))
      return op_error(op, Code::type_mismatch, arg.name, " is ", inputs[i].text(), "; ", expected(arg.dtypes));
    if (!arg.same_dtype) continue;
    if (!first) {
      first = &inputs[i];
      first_name = arg.name;
    } else if (first->dtype != dtype) {
      return op_error(op, Code::type_mismatch, first_name, " is ", name_of(first->dtype), ", ", arg.name, " is ",
                      name_of(dtype), "; use convert to make them the same");
    }
  }
  return {};
}

Status complete_attrs(const OpSchema &op, AttrMap &attrs) {
  for (auto &[name, value] : attrs) {
    const AttrDef *def = op.find_attr(name);
    if (!def) {
      std::string known = join(op.attrs, ", ", [](const AttrDef &a) { return a.name; });
      return op_error(op, Code::unknown_name, "has no attribute '", name, "'; it has ", known.empty() ? "none" : known);
    }
    const bool is_none = !value.is_list && value.size() == 0;
    std::string given = is_none ? "none" : described(value.kind(), value.is_list);
    const bool may_be_none = def->kind == AttrKind::graph && !def->required;
    const size_t least = may_be_none ? 0 : 1;
    if (def->is_list != value.is_list || !coerce(value, def->kind) ||
        (!value.is_list && (value.size() < least || value.size() > 1)))
      return op_error(op, Code::type_mismatch, "attribute '", name, "' is ", given, "; expected ",
                      described(def->kind, def->is_list));
  }
  for (const AttrDef &def : op.attrs) {
    if (attrs.contains(def.name)) continue;
    if (def.required) return op_error(op, Code::invalid_argument, "attribute '", def.name, "' is missing");
    attrs.emplace(def.name, default_of(def));
  }
  return {};
}

namespace {

// What other ops make of the graphs that they carry says nothing of how often a node of these runs.
Status check_effects(const OpSchema &op, const AttrMap &attrs) {
  if (op.flags & op_flags::carries_effects) return {};
  for (const auto &[name, value] : attrs) {
    const auto *graphs = std::get_if<std::vector<GraphPtr>>(&value.items);
    if (graphs && std::ranges::any_of(*graphs, [](const GraphPtr &graph) { return graph && graph->has_effects(); }))
      return op_error(op, Code::type_mismatch, "a node of its ", name,
                      " has an effect, which nodes may have in graphs of call, cond, while and scan alone");
  }
  return {};
}

}  // namespace

Result<Inferred> infer(const OpSchema &op, std::span<const TensorType> inputs, const AttrMap &attrs) {
  KILN_TRY(check_effects(op, attrs));
  InferContext context{.op = op, .inputs = inputs, .attrs = attrs, .results = {}, .equalities = {}};
  KILN_TRY(op.infer(context));
  const size_t named = op.result_names.size(), made = context.results.size();
  const bool some = (op.flags & op_flags::fewer_results) && made > 0 && made < named;
  if (named > 0 && made != named && !some)
    return op_error(op, Code::internal, "inference gives ", made, " results; the schema names ", named);
  for (TensorType &type : context.results) {
    type = make_type(type.dtype, std::move(type.dims));  // an operand's layout and alias are not the result's
    if (Status status = check_type(type); !status.ok())
      return std::move(status).with_prefix(str_cat("[", op.name, "] result", by_sizes(op), ": "));
  }
  return Inferred{std::move(context.results), std::move(context.equalities), std::move(context.symbols)};
}

std::string InferContext::arg_name(size_t input) const {
  if (op.args.empty()) return str_cat("input ", input);
  const ArgDef &arg = op.args[std::min(input, op.args.size() - 1)];
  if (arg.arity != Arity::variadic) return std::string(arg.name);
  return str_cat(arg.name, " ", input - (op.args.size() - 1));
}

std::string_view InferContext::op_name() const { return op.name; }

Status InferContext::require_equal(const Dim &a, const Dim &b, std::string_view what) {
  if (a == b) return {};
  Dim difference = a - b;
  if (difference.lower_bound().value_or(0) > 0 || difference.upper_bound().value_or(0) < 0)
    return fail(what, " must be equal; they are ", a.text(), " and ", b.text());
  const auto &[left, right] = std::minmax(a, b);
  const bool known =
      std::ranges::any_of(equalities, [&](const Equality &e) { return e.left == left && e.right == right; });
  if (!known) equalities.push_back({left, right, str_cat(what, " must be equal")});
  return {};
}

Result<Shape> InferContext::broadcast(std::span<const Dim> a, std::span<const Dim> b) {
  if (a.size() < b.size()) std::swap(a, b);
  Shape result(a.begin(), a.end());
  size_t offset = a.size() - b.size();
  for (size_t d = 0; d < b.size(); ++d) {
    Dim &dim = result[offset + d];
    if (b[d].is(1) || dim == b[d]) continue;
    if (dim.is(1)) {
      dim = b[d];
      continue;
    }
    KILN_TRY(require_equal(dim, b[d],
                           str_cat("shapes ", text_of(a), " and ", text_of(b), " do not broadcast: dims at ",
                                   static_cast<int64_t>(d) - static_cast<int64_t>(b.size()))));
    if (b[d].is_integer()) dim = b[d];  // the one that is known
  }
  return result;
}

Result<int64_t> InferContext::axis(int64_t given, size_t rank, std::string_view attr_name) const {
  auto n = static_cast<int64_t>(rank);
  if (n == 0) return error(Code::out_of_range, "[", op.name, "] ", attr_name, " is ", given, "; there are no dims");
  if (given < -n || given >= n)
    return error(Code::out_of_range, "[", op.name, "] ", attr_name, " is ", given, "; expected ", -n, " to ", n - 1,
                 " for rank ", n);
  return given < 0 ? given + n : given;
}

std::string OpTable::identity(std::string_view name) const {
  const OpSchema *op = find(name);
  return op ? str_cat("version ", op->version) : "";
}

}  // namespace kiln
