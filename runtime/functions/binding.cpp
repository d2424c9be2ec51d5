#include "runtime/functions/binding.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

namespace kiln {
namespace {

using Signature = FunctionSignature;
using Kind = Signature::Argument::Kind;
using Bound = FunctionBinding::Argument;

Expr size_of_array(size_t array, size_t dim) { return Expr::symbol(str_cat(array, ".", dim)); }

class Binder {
 public:
  Binder(const Signature &signature, const Graph &graph, const Node &node)
      : signature_(signature), node_(node), op_(*node.op), written_(node.results.size()) {
    for (const ValueId input : node.inputs) types_.push_back(&graph.type(input));
    for (const TensorType &result : node.results) types_.push_back(&result);
    for (size_t k = 0; k < written_.size(); ++k) written_[k] = node.results[k].dtype == DType::token;  // as it is
    // A symbol is the first dim of an operand that is no more than it.
    for (size_t array = 0; array < node.inputs.size(); ++array)
      for (size_t d = 0; d < types_[array]->rank(); ++d)
        if (const Dim &dim = types_[array]->dims[d]; dim.kind() == Dim::Kind::symbol)
          symbols_.try_emplace(dim.symbol_name(), size_of_array(array, d));
  }

  Result<FunctionBinding> run() {
    for (const Signature::Argument &argument : signature_.arguments)
      if (argument.extents) KILN_TRY(name_sizes(argument));
    for (const Signature::Argument &argument : signature_.arguments) {
      KILN_ASSIGN(Bound bound, bind(argument));
      out_.arguments.push_back(std::move(bound));
    }
    for (size_t k = 0; k < written_.size(); ++k)
      if (!written_[k])
        return error(Code::type_mismatch, "no argument gives it result ", k, ", '", described(node_.inputs.size() + k),
                     "'; data, inout or tensor does");
    return std::move(out_);
  }

 private:
  template <class... Parts>
  static Status fail(size_t at, const Parts &...parts) {
    return error(Code::type_mismatch, "at ", at, ": ", parts...);
  }
  bool is_result(size_t array) const { return array >= node_.inputs.size(); }
  std::string described(size_t array) const {
    if (is_result(array)) return std::string(op_.result_names[array - node_.inputs.size()]);
    const bool is_one = array < op_.args.size() && op_.args[array].arity != Arity::variadic;
    return is_one ? std::string(op_.args[array].name) : str_cat(array);
  }
  std::string arrays() const {
    std::string text;
    for (size_t array = 0; array < types_.size(); ++array)
      str_append(text, str_cat(array == 0 ? "" : ", ", array, " '", described(array), "'"));
    return text;
  }

  Result<uint32_t> find(const Signature::Place &place) const {
    for (uint32_t array = 0; array < types_.size(); ++array)
      if (place.name.empty() ? array == place.number : described(array) == place.name) return array;
    return error(Code::unknown_name, "at ", place.at, ": the node has no operand or result ",
                 place.name.empty() ? str_cat(place.number) : str_cat("'", place.name, "'"), "; it has ", arrays());
  }

  // What brackets say: as many dims, and their sizes' names.
  Status name_sizes(const Signature::Argument &argument) {
    KILN_ASSIGN(const uint32_t array, find(argument.place));
    const Shape &dims = types_[array]->dims;
    if (dims.size() != argument.extents->size())
      return fail(argument.place.at, "'", described(array), "' is ", types_[array]->text(), ", of ", dims.size(),
                  " dims; the signature gives it ", argument.extents->size());
    for (size_t d = 0; d < dims.size(); ++d) {
      const Signature::Extent &extent = (*argument.extents)[d];
      if (extent.is) {
        KILN_TRY(require(extent, {array, d}, dims[d], *extent.is, *extent.is, str_cat(*extent.is)));
      } else if (!extent.name.empty()) {
        const auto [known, is_new] = sizes_.try_emplace(extent.name, array, d);
        const auto [first, dim] = known->second;
        if (!is_new)
          KILN_TRY(require(extent, {array, d}, dims[d], types_[first]->dims[dim], size_of_array(first, dim),
                           str_cat("'", extent.name, "', as dim ", dim, " of '", described(first), "'")));
      }
    }
    return {};
  }
  Status require(const Signature::Extent &extent, std::pair<uint32_t, size_t> of, const Dim &is, const Dim &wanted,
                 Expr wanted_size, const std::string &what) {
    if (is == wanted) return {};
    const std::string place = str_cat("at ", extent.at, ": dim ", of.second, " of '", described(of.first), "' is ");
    if (is.is_integer() && wanted.is_integer())
      return error(Code::type_mismatch, place, is.text(), "; expected ", what,
                   extent.is ? "" : str_cat(", which is ", wanted.text()));
    out_.checks.push_back({size_of_array(of.first, of.second), std::move(wanted_size), str_cat(place, "to be ", what)});
    return {};
  }

  Result<Bound> bind(const Signature::Argument &argument) {
    Bound bound{.kind = argument.kind, .type = argument.type, .by_pointer = argument.by_pointer};
    switch (argument.kind) {
      case Kind::user:
        break;
      case Kind::scratch: {
        KILN_ASSIGN(bound.values.emplace_back(), expression(argument));
        break;
      }
      case Kind::scalar:
        KILN_TRY(bind_scalar(argument, bound));
        break;
      case Kind::inout: {
        KILN_ASSIGN(bound.operand, find(argument.operand));
        if (is_result(bound.operand))
          return fail(argument.operand.at, "'", described(bound.operand), "' is a result, and no operand");
        KILN_TRY(bind_array(argument, bound));
        if (!is_result(bound.array))
          return fail(argument.place.at, "'", described(bound.array), "' is an operand, and no result");
        const TensorType &from = *types_[bound.operand], &to = *types_[bound.array];
        if (!from.same_value_type(to))
          return fail(argument.at, "'", described(bound.array), "' is ", to.text(), ", '", described(bound.operand),
                      "', which it begins as, is ", from.text());
        break;
      }
      case Kind::data:
      case Kind::tensor:
        KILN_TRY(bind_array(argument, bound));
        break;
    }
    return bound;
  }

  Status bind_array(const Signature::Argument &argument, Bound &bound) {
    KILN_ASSIGN(bound.array, find(argument.place));
    const DType type = types_[bound.array]->dtype;
    if (type == DType::token)
      return fail(argument.place.at, "'", described(bound.array), "' is a token, which has no data");
    if (argument.type != DType::none && argument.type != type)
      return fail(argument.at, "'", described(bound.array), "' is ", name_of(type), ", and the signature says ",
                  name_of(argument.type));
    if (is_result(bound.array)) written_[bound.array - node_.inputs.size()] = true;
    return {};
  }

  Status bind_scalar(const Signature::Argument &argument, Bound &bound) const {
    const bool is_float = dtype_info(argument.type).is_float;
    if (argument.name.empty()) {
      if (is_float) {
        bound.numbers = {argument.number};
        return {};
      }
    } else if (!sizes_.contains(argument.name)) {
      if (const auto attr = node_.attrs.find(argument.name); attr != node_.attrs.end())
        return bind_attr(argument, attr->second, bound);
    }
    if (is_float && sizes_.contains(argument.name)) return not_of_type(argument, "a size");
    KILN_ASSIGN(bound.values.emplace_back(), expression(argument));
    return is_float ? not_of_type(argument, "a size") : Status();
  }
  static Status not_of_type(const Signature::Argument &argument, std::string_view what) {
    return fail(argument.at, "'", argument.name, "' is ", what, ", and the signature says ", name_of(argument.type));
  }

  Status bind_attr(const Signature::Argument &argument, const AttrValue &attr, Bound &bound) const {
    const DTypeInfo &type = dtype_info(argument.type);
    const std::string what = str_cat(attr.is_list ? "a list of " : "", name_of(attr.kind()));
    if (attr.is_list && !argument.by_pointer)
      return fail(argument.at, "'", argument.name, "' is ", what, ", which is passed as a pointer: '", type.name, " *",
                  argument.name, "'");
    switch (attr.kind()) {
      case AttrKind::f64:
        if (!type.is_float) break;
        bound.numbers = std::get<std::vector<double>>(attr.items);
        return {};
      case AttrKind::text:
        if (type.size_bytes != 1 || type.is_float || !argument.by_pointer || attr.is_list) break;
        bound.text = attr.text_value();
        return {};
      case AttrKind::i64:
        if (type.is_float) break;
        for (const int64_t value : attr.i64_list()) bound.values.emplace_back(value);
        return {};
      case AttrKind::boolean:
        if (type.is_float) break;
        for (const bool value : std::get<std::vector<bool>>(attr.items)) bound.values.emplace_back(value ? 1 : 0);
        return {};
      case AttrKind::dim:
        if (type.is_float) break;
        for (const Dim &dim : attr.dim_list()) {
          KILN_ASSIGN(bound.values.emplace_back(), over_arrays(dim, argument.at));
        }
        return {};
      case AttrKind::dtype:
      case AttrKind::graph:
      case AttrKind::tensor:
        break;
    }
    return not_of_type(argument, what);
  }

  // With what its references stand for.
  Result<Expr> expression(const Signature::Argument &argument) const {
    Status failed;
    Expr made = argument.value.substitute([&](const Expr &leaf) -> std::optional<Expr> {
      if (leaf.kind() != Expr::Kind::symbol) return std::nullopt;
      Result<Expr> meant = meaning(signature_.references[reference_number(leaf.symbol_name())]);
      if (meant.ok()) return std::move(meant).value();
      if (failed.ok()) failed = meant.take_status();
      return Expr(0);
    });
    KILN_TRY(failed);
    return made;
  }
  Result<Expr> meaning(const Signature::Reference &reference) const {
    if (reference.kind == Signature::Reference::Kind::name) return named(reference);
    KILN_ASSIGN(const uint32_t array, find(reference.place));
    const size_t rank = types_[array]->rank();
    if (reference.dim >= rank)
      return fail(reference.at, "'", described(array), "' is ", types_[array]->text(), ", which has no dim ",
                  reference.dim);
    if (reference.kind == Signature::Reference::Kind::size) return size_of_array(array, reference.dim);
    Expr stride = 1;
    for (size_t d = reference.dim + 1; d < rank; ++d) stride *= size_of_array(array, d);
    return stride;
  }
  // A size that the signature names, an attribute of the op, or a symbol of the graph, in this order.
  Result<Expr> named(const Signature::Reference &reference) const {
    if (const auto size = sizes_.find(reference.name); size != sizes_.end())
      return size_of_array(size->second.first, size->second.second);
    if (const auto attr = node_.attrs.find(reference.name); attr != node_.attrs.end()) {
      const AttrValue &value = attr->second;
      if (!value.is_list && value.kind() == AttrKind::i64) return Expr(value.i64());
      if (!value.is_list && value.kind() == AttrKind::boolean) return Expr(value.boolean() ? 1 : 0);
      if (!value.is_list && value.kind() == AttrKind::dim) return over_arrays(value.dim(), reference.at);
      return fail(reference.at, "'", reference.name, "' is ", value.is_list ? "a list of " : "", name_of(value.kind()),
                  ", with which nothing is computed");
    }
    if (const auto symbol = symbols_.find(reference.name); symbol != symbols_.end()) return symbol->second;
    return error(Code::unknown_name, "at ", reference.at, ": '", reference.name,
                 "' is no size of the signature, no attribute of the op and no symbol of its operands");
  }
  Result<Expr> over_arrays(const Dim &dim, size_t at) const {
    std::set<std::string> used;
    dim.collect_symbols(used);
    for (const std::string &symbol : used)
      if (!symbols_.contains(symbol))
        return error(Code::unknown_name, "at ", at, ": symbol '", symbol, "' is no dim of an operand");
    return dim.substitute([&](const Expr &leaf) -> std::optional<Expr> {
      if (leaf.kind() != Expr::Kind::symbol) return std::nullopt;
      return symbols_.find(leaf.symbol_name())->second;
    });
  }

  const Signature &signature_;
  const Node &node_;
  const OpSchema &op_;
  std::vector<const TensorType *> types_;
  std::map<std::string, Expr> symbols_;
  std::map<std::string, std::pair<uint32_t, size_t>> sizes_;  // array and dim
  std::vector<bool> written_;                                 // by result
  FunctionBinding out_;
};

}  // namespace

Result<FunctionBinding> bind_function(const FunctionSignature &signature, const Graph &graph, const Node &node) {
  return Binder(signature, graph, node).run();
}

int64_t evaluate(const Expr &expression, const std::vector<std::vector<int64_t>> &dims) {
  return expression.evaluate([&](const std::string &symbol) {
    size_t array = 0, dim = 0;
    const char *const end = symbol.data() + symbol.size();
    const char *const dot = std::from_chars(symbol.data(), end, array).ptr;
    std::from_chars(dot + 1, end, dim);
    return dims[array][dim];
  });
}

}  // namespace kiln
