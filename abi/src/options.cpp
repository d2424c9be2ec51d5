#include "abi/src/options.h"

#include <limits>

#include "abi/src/convert.h"
#include "jit/base/env.h"

namespace kiln::abi {

namespace {

AttrValue no_texts() { return AttrValue(std::vector<std::string>()); }

const AttrMap &context_schema() {
  static const AttrMap schema = {{"threads", 0}, {"cache", ""}, {"cache_max_bytes", 0}};
  return schema;
}

const AttrMap &compile_schema() {
  static const AttrMap schema = {
      {"backend", "cpu"},     {"cpu", "native"},      {"arch", "native"},
      {"code", true},         {"cache", true},        {"strict", false},
      {"require_hit", false}, {"passes", no_texts()}, {"disable_passes", no_texts()},
      {"fuse", true},         {"rounding", "strict"}, {"compile_threads", 0},
  };
  return schema;
}

std::string kind_text(const AttrValue &value) { return str_cat(name_of(value.kind()), value.is_list ? "[]" : ""); }

template <class T>
Result<T> in_range(const AttrMap &options, std::string_view name) {
  const int64_t value = options.find(name)->second.i64();
  if (!std::in_range<T>(value)) return invalid("option '", name, "' is ", value, ", out of its range");
  return static_cast<T>(value);
}

std::vector<std::string> texts(const AttrMap &options, std::string_view name) {
  return std::get<std::vector<std::string>>(options.find(name)->second.items);
}

Status set(kiln_options *options, const Checks &check, const char *name, uint64_t name_size, AttrValue value) {
  KILN_TRY(check.handle(options, "options"));
  KILN_ASSIGN(const std::string_view key, check.text(name, name_size, "name"));
  options->values.insert_or_assign(std::string(key), std::move(value));
  return {};
}

}  // namespace

Result<AttrMap> check_options(std::string_view what, const AttrMap &schema, const AttrMap &given) {
  AttrMap complete = schema;
  for (const auto &[name, value] : given) {
    const auto known = complete.find(name);
    if (known == complete.end())
      return error(Code::unknown_name, what, " has no option '", name,
                   "'; it has: ", join(schema, ", ", [](const auto &option) { return option.first; }));
    if (value.kind() != known->second.kind() || value.is_list != known->second.is_list)
      return error(Code::type_mismatch, "option '", name, "' of ", what, " is of kind ", kind_text(known->second),
                   ", not ", kind_text(value));
    known->second = value;
  }
  return complete;
}

AttrMap values_of(const kiln_options *options) { return options ? options->values : AttrMap(); }

Result<ContextOptions> context_options(const kiln_options *options) {
  KILN_ASSIGN(const AttrMap values, check_options("context", context_schema(), values_of(options)));
  KILN_TRY(check_env());
  ContextOptions out;
  KILN_ASSIGN(out.threads, in_range<uint32_t>(values, "threads"));
  if (out.threads == 0) {
    KILN_ASSIGN(const std::optional<uint32_t> threads, env_count(Env::KILN_THREADS));
    out.threads = threads.value_or(0);
  }
  KILN_ASSIGN(out.cache_max_bytes, in_range<uint64_t>(values, "cache_max_bytes"));
  out.cache = values.find("cache")->second.text_value();
  return out;
}

Result<CompileOptions> compile_options(const kiln_options *options) {
  KILN_ASSIGN(const AttrMap values, check_options("compile", compile_schema(), values_of(options)));
  auto truth = [&](std::string_view name) { return values.find(name)->second.boolean(); };
  CompileOptions out;
  out.backend = values.find("backend")->second.text_value();
  out.cpu = values.find("cpu")->second.text_value();
  out.arch = values.find("arch")->second.text_value();
  out.code = truth("code");
  out.use_cache = truth("cache");
  out.strict = truth("strict");
  out.require_hit = truth("require_hit");
  out.passes = texts(values, "passes");
  out.disable_passes = texts(values, "disable_passes");
  out.fuse = truth("fuse");
  const std::string &rounding = values.find("rounding")->second.text_value();
  if (rounding != "strict" && rounding != "relaxed")
    return invalid("option 'rounding' is '", rounding, "', expected 'strict' or 'relaxed'");
  out.rounding = rounding == "strict" ? Rounding::strict : Rounding::relaxed;
  KILN_ASSIGN(out.compile_threads, in_range<uint32_t>(values, "compile_threads"));
  return out;
}

Status no_options(std::string_view what, const kiln_options *options) {
  Result<AttrMap> checked = check_options(what, {}, values_of(options));
  return checked.take_status();
}

}  // namespace kiln::abi

using namespace kiln;
using namespace kiln::abi;

kiln_error *kiln_options_create(kiln_options **out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.pointer(out, "out"));
    *out = new kiln_options();
    return {};
  });
}

kiln_error *kiln_options_set(kiln_options *options, const kiln_attr *value) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(options, "options"));
    KILN_TRY(check.pointer(value, "value"));
    const uint32_t kind = value->kind & ~KILN_ATTR_LIST;
    if (kind != KILN_ATTR_I64 && kind != KILN_ATTR_F64 && kind != KILN_ATTR_TEXT && kind != KILN_ATTR_DTYPE &&
        kind != KILN_ATTR_BOOL)
      return check.fail("an option's kind is i64, f64, text, dtype or bool, not number ", kind);
    KILN_ASSIGN(NamedAttr attr, read_attr(check, nullptr, *value));
    options->values.insert_or_assign(std::string(attr.name), std::move(attr.value));
    return {};
  });
}

kiln_error *kiln_options_set_i64(kiln_options *options, const char *name, uint64_t name_size, int64_t value) {
  return entry(__func__, [&](const Checks &check) { return set(options, check, name, name_size, value); });
}

kiln_error *kiln_options_set_bool(kiln_options *options, const char *name, uint64_t name_size, uint32_t value) {
  return entry(__func__, [&](const Checks &check) -> Status {
    if (value > 1) return check.fail("value is ", value, "; a boolean is 0 or 1");
    return set(options, check, name, name_size, value == 1);
  });
}

kiln_error *kiln_options_set_text(kiln_options *options, const char *name, uint64_t name_size, const char *value,
                                  uint64_t value_size) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const std::string_view text, check.text(value, value_size, "value"));
    return set(options, check, name, name_size, std::string(text));
  });
}

void kiln_options_destroy(kiln_options *options) {
  if (options && options->magic.ok()) delete options;
}
