#include "jit/kernel/verify_body.h"

#include <algorithm>

namespace kiln::kernel {
namespace {

// Values that are part of an address are i64, as the address is.
Status verify_integers(const Expr &e, std::span<const Value> values) {
  Status status;
  if (!e.depends_on_value()) return status;
  e.substitute([&](const Expr &leaf) -> std::optional<Expr> {
    if (leaf.kind() == Expr::Kind::value && values[leaf.id()].type != DType::i64)
      status = broken("index uses v", leaf.id(), " of type ", name_of(values[leaf.id()].type), ", expected i64");
    return {};
  });
  return status;
}

class BodyVerifier {
 public:
  BodyVerifier(const Scope &scope, const LeafTypes &leaves, const Body &body)
      : scope_(scope), leaves_(leaves), body_(body) {}

  Status run() const {
    for (size_t i = 0; i < body_.values.size(); ++i) {
      KILN_TRY(structure(i));
      KILN_TRY(leaf(i));
      KILN_TRY(types(i));
    }
    for (int32_t y : body_.yields) {
      if (y < 0 || static_cast<size_t>(y) >= body_.values.size())
        return broken("yield of v", y, " of ", body_.values.size());
    }
    return {};
  }

 private:
  Status structure(size_t i) const {
    const Value &v = body_.values[i];
    if (static_cast<size_t>(v.op) >= core_count) return broken("unknown core op");
    if (!is_type(v.type)) return broken("v", i, " has no type");
    for (int a = 0; a < core_info(v.op).operands; ++a) {
      const int32_t arg = v.args[static_cast<size_t>(a)];
      if (arg < 0 || static_cast<size_t>(arg) >= i)
        return broken(core_info(v.op).name, " v", i, " uses a value that is not before it");
    }
    return {};
  }

  Status leaf(size_t i) const {
    const Value &v = body_.values[i];
    const auto is_of = [&](DType type) {
      return v.type == type ? Status() : wrong_type(i, str_cat("expected ", name_of(type)));
    };
    switch (v.op) {
      case Core::load:
        if (!leaves_.memory) return broken("v", i, " reads memory in a combine body");
        KILN_TRY(verify_access(scope_, v.access, std::span(body_.values).first(i)));
        return is_of(scope_.kernel.buffers[v.access.buffer].type);
      case Core::search:
        return search(i);
      case Core::index:
        KILN_TRY(verify_expr(scope_, v.expr, i));
        KILN_TRY(verify_integers(v.expr, body_.values));
        return is_of(DType::i64);
      case Core::carrier:
        if (v.immediate >= leaves_.carriers.size())
          return broken("carrier ", v.immediate, " of ", leaves_.carriers.size());
        return is_of(leaves_.carriers[v.immediate]);
      case Core::accumulator:
        if (leaves_.accumulator == DType::none) return broken("accumulator outside an epilogue");
        return is_of(leaves_.accumulator);
      default:
        return {};
    }
  }

  Status search(size_t i) const {
    const Value &v = body_.values[i];
    if (!leaves_.memory) return broken("v", i, " reads memory in a combine body");
    const std::span<const Value> before = std::span(body_.values).first(i);
    if (v.access.index.size() != 2)
      return broken("a search has a first element and a step in a kernel, not ", v.access.index.size(), " indices");
    Access first = v.access;
    const Expr step = first.index.back();
    first.index.pop_back();
    KILN_TRY(verify_access(scope_, first, before));
    for (const Expr *e : {&step, &v.expr}) {
      KILN_TRY(verify_expr(scope_, *e, i));
      KILN_TRY(verify_integers(*e, body_.values));
    }
    if (v.immediate > (search_upper | search_descending)) return broken("search v", i, " has unknown flags");
    const DType type = scope_.kernel.buffers[v.access.buffer].type,
                key = body_.values[static_cast<size_t>(v.args[0])].type;
    if (type != key) return wrong_type(i, str_cat("operand 0 is ", name_of(key), ", the buffer holds ", name_of(type)));
    return v.type == DType::i64 ? Status() : wrong_type(i, "expected i64");
  }

  Status types(size_t i) const {
    const Value &v = body_.values[i];
    const auto operand = [&](size_t a) { return body_.values[static_cast<size_t>(v.args[a])].type; };
    const auto operands_are = [&](DType type, size_t first = 0) {
      const auto count = static_cast<size_t>(core_info(v.op).operands);
      for (size_t a = first; a < count; ++a)
        if (operand(a) != type)
          return wrong_type(i, str_cat("operand ", a, " is ", name_of(operand(a)), ", expected ", name_of(type)));
      return Status();
    };
    const auto is_boolean = [&] { return v.type == DType::boolean ? Status() : wrong_type(i, "expected bool"); };
    switch (core_info(v.op).group) {
      case CoreGroup::leaf:
      case CoreGroup::convert:
      case CoreGroup::search:  // whose leaf() has looked at it
        return {};
      case CoreGroup::number:
        return operands_are(v.type);
      case CoreGroup::real:
        if (!dtype_info(v.type).is_float) return wrong_type(i, "expected a float");
        return operands_are(v.type);
      case CoreGroup::integer:
        if (!dtype_info(v.type).is_integer) return wrong_type(i, "expected an integer");
        return operands_are(v.type);
      case CoreGroup::compare:
        KILN_TRY(is_boolean());
        return operands_are(operand(0));
      case CoreGroup::logical:
        KILN_TRY(is_boolean());
        return operands_are(DType::boolean);
      case CoreGroup::select:
        if (operand(0) != DType::boolean)
          return wrong_type(i, str_cat("operand 0 is ", name_of(operand(0)), ", expected bool"));
        return operands_are(v.type, 1);
      case CoreGroup::in_range:
        KILN_TRY(is_boolean());
        return operands_are(DType::i64);
    }
    return {};
  }

  Status wrong_type(size_t i, std::string_view why) const {
    const Value &v = body_.values[i];
    return broken(core_info(v.op).name, " v", i, " of type ", name_of(v.type), ": ", why);
  }

  const Scope &scope_;
  const LeafTypes &leaves_;
  const Body &body_;
};

}  // namespace

bool is_type(DType type) { return type != DType::none && static_cast<int>(type) <= dtype_count; }

Status verify_expr(const Scope &scope, const Expr &e, size_t values) {
  if (!e.is_readable()) return broken("an index of ", e.nodes(), " nodes is longer or deeper than what is read back");
  Status status;
  e.substitute([&](const Expr &leaf) -> std::optional<Expr> {
    if (leaf.kind() == Expr::Kind::axis) {
      const bool there =
          leaf.id() < scope.axes.size() && std::ranges::find(scope.hidden, leaf.id()) == scope.hidden.end();
      if (!there)
        status = broken("axis i", leaf.id(), " is not in scope");
      else if (leaf.extent() != scope.axes[leaf.id()].extent)
        status = broken("axis i", leaf.id(), " < ", leaf.extent().text(), " is in scope with extent ",
                        scope.axes[leaf.id()].extent.text());
    }
    if (leaf.kind() == Expr::Kind::value && leaf.id() >= values)
      status = broken("index uses value v", leaf.id(), " before it is made");
    if (leaf.kind() == Expr::Kind::symbol &&
        std::ranges::find(scope.kernel.symbols, leaf.symbol_name()) == scope.kernel.symbols.end())
      status = broken("unknown symbol ", leaf.symbol_name());
    return {};
  });
  return status;
}

Status verify_access(const Scope &scope, const Access &access, std::span<const Value> before) {
  const std::vector<Buffer> &buffers = scope.kernel.buffers;
  if (access.buffer >= buffers.size()) return broken("access to buffer ", access.buffer, " of ", buffers.size());
  if (access.index.size() != 1) return broken("an access has one index in a kernel, not ", access.index.size());
  if (access.valid < -1 || access.valid >= static_cast<int32_t>(before.size()))
    return broken("an access is guarded by v", access.valid, ", which is not before it");
  if (access.valid >= 0 && before[static_cast<size_t>(access.valid)].type != DType::boolean)
    return broken("an access is guarded by v", access.valid, ", which is no bool");
  const Expr &index = access.index[0];
  KILN_TRY(verify_expr(scope, index, before.size()));
  KILN_TRY(verify_integers(index, before));
  const bool runs = std::ranges::none_of(scope.axes, [](const Axis &axis) { return axis.extent.is(0); });
  if (runs && access.valid < 0 && index.upper_bound().value_or(0) < 0)
    return broken("an access to buffer ", access.buffer, " is always below 0: ", index.text());
  return {};
}

Status verify_body(const Scope &scope, const LeafTypes &leaves, const Body &body) {
  return BodyVerifier(scope, leaves, body).run();
}

}  // namespace kiln::kernel
