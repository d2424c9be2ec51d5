// Ops and dimensions: names and numbers of a context.
#include <map>

#include "abi/src/convert.h"
#include "runtime/report/describe.h"

using namespace kiln;
using namespace kiln::abi;

namespace kiln::abi {

Result<const Op *> op_numbered(const Context &context, kiln_op op) {
  if (const Op *found = context.ops().at(op)) return found;
  return error(Code::out_of_range, "no op has number ", op, "; there are ", context.ops().count());
}

}  // namespace kiln::abi

kiln_error *kiln_op_find(kiln_context *context, const char *name, uint64_t name_size, kiln_op *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    KILN_ASSIGN(const std::string_view wanted, check.text(name, name_size, "name"));
    KILN_TRY(check.pointer(out, "out"));
    const OpSchema *op = context->ops().find(wanted);
    if (!op) return error(Code::unknown_name, "no op is named '", wanted, "'", context->ops().suggest(wanted));
    *out = ContextOps::number_of(*op);
    return {};
  });
}

kiln_error *kiln_op_name(kiln_context *context, kiln_op op, kiln_text *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    KILN_TRY(check.pointer(out, "out"));
    KILN_ASSIGN(const Op *record, op_numbered(context->context, op));
    *out = text_view(record->name);
    return {};
  });
}

uint64_t kiln_op_count(kiln_context *context) {
  return answer(uint64_t{0},
                [&]() -> uint64_t { return context && context->magic.ok() ? context->context.ops().count() : 0; });
}

kiln_error *kiln_op_at(kiln_context *context, uint64_t index, kiln_op *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    KILN_TRY(check.pointer(out, "out"));
    const uint64_t count = context->context.ops().count();
    if (index >= count) return error(Code::out_of_range, "op ", index, " of ", count);
    *out = static_cast<kiln_op>(index + 1);
    return {};
  });
}

namespace {
kiln_error *describe_op(const char *function, kiln_context *context, kiln_op op, bool with_samples, kiln_report **out) {
  return entry(function, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    KILN_TRY(check.pointer(out, "out"));
    KILN_ASSIGN(const Op *record, op_numbered(context->context, op));
    *out = make_report(describe(*record, with_samples)).release();
    return {};
  });
}
}  // namespace

kiln_error *kiln_op_describe(kiln_context *context, kiln_op op, kiln_report **out) {
  return describe_op(__func__, context, op, true, out);
}

kiln_error *kiln_op_schema(kiln_context *context, kiln_op op, kiln_report **out) {
  return describe_op(__func__, context, op, false, out);
}

kiln_error *kiln_dim_parse(kiln_context *context, const char *text, uint64_t text_size, kiln_dim *out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    KILN_ASSIGN(const std::string_view expression, check.text(text, text_size, "text"));
    KILN_TRY(check.pointer(out, "out"));
    KILN_ASSIGN(const Expr expr, Expr::parse(expression));
    *out = write_dim(context->context, expr);
    return {};
  });
}

kiln_error *kiln_dim_text(kiln_context *context, const kiln_dim *dim, kiln_text *out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    KILN_TRY(check.pointer(dim, "dim"));
    KILN_TRY(check.pointer(out, "out"));
    KILN_ASSIGN(const Expr expr, read_dim(context->context, *dim));
    *out = text_view(context->context.dims().text_of(expr));
    return {};
  });
}

kiln_error *kiln_dim_evaluate(kiln_context *context, const kiln_dim *dim, const kiln_text *symbols,
                              const int64_t *values, uint64_t count, int64_t *out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    KILN_TRY(check.pointer(dim, "dim"));
    KILN_ASSIGN(const std::span<const kiln_text> names, check.array(symbols, count, "symbols"));
    KILN_ASSIGN(const std::span<const int64_t> sizes, check.array(values, count, "values"));
    KILN_TRY(check.pointer(out, "out"));
    KILN_ASSIGN(const Expr expr, read_dim(context->context, *dim));
    std::map<std::string, int64_t, std::less<>> known;
    for (size_t i = 0; i < names.size(); i++) {
      KILN_ASSIGN(const std::string_view name, check.text(names[i], "a symbol"));
      known.insert_or_assign(std::string(name), sizes[i]);
    }
    std::set<std::string> needed;
    expr.collect_symbols(needed);
    for (const std::string &symbol : needed)
      if (!known.contains(symbol))
        return error(Code::unknown_name, "symbol '", symbol, "' of '", expr.text(), "' has no value");
    *out = expr.evaluate([&](const std::string &symbol) { return known.find(symbol)->second; });
    return {};
  });
}
