#include "abi/src/options.h"

#include <algorithm>
#include <iterator>

#include "abi/src/convert.h"
#include "jit/base/env.h"
#include "jit/base/utf8.h"
#include "runtime/report/describe.h"

namespace kiln::abi {

namespace {

std::string kind_text(const AttrValue &value) { return str_cat(name_of(value.kind()), value.is_list ? "[]" : ""); }

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
      return error(Code::unknown_name, what, " has no option '", name, "'; it has", schema.empty() ? " none" : ": ",
                   join(schema, ", ", [](const auto &option) { return option.first; }));
    if (value.kind() != known->second.kind() || value.is_list != known->second.is_list)
      return error(Code::type_mismatch, "option '", name, "' of ", what, " is of kind ", kind_text(known->second),
                   ", not ", kind_text(value));
    known->second = value;
  }
  return complete;
}

Result<AttrMap> read_option_schema(const Checks &check, Context &context, std::string_view what,
                                   const kiln_attr *options, uint64_t count) {
  KILN_ASSIGN(AttrMap schema, read_attrs(check, context, options, count));
  for (const auto &[name, value] : schema) {
    if (printable(name, SIZE_MAX) != name)
      return check.fail(what, "->options: '", printable(name), "' has control characters");
    const AttrKind kind = value.kind();
    if (kind == AttrKind::dim || kind == AttrKind::graph || kind == AttrKind::tensor)
      return check.fail(what, "->options: '", name, "' is of kind ", name_of(kind),
                        ", which no host can set; options are of kind i64, f64, text, dtype or bool");
  }
  return schema;
}

AttrMap values_of(const kiln_options *options) { return options ? options->values : AttrMap(); }

namespace {

// The defaults, and over them what is given.
template <class Options>
Result<Options> read_options(std::string_view what, std::span<const OptionRow<Options>> rows, const AttrMap &given) {
  Options out;
  AttrMap schema;
  for (const auto &row : rows) schema.emplace(row.name, row.get(out));
  KILN_TRY(check_options(what, schema, given).status());
  for (const auto &row : rows) {
    const auto value = given.find(row.name);
    if (value == given.end()) continue;
    if (Status status = row.set(out, value->second); !status.ok())
      return std::move(status).with_prefix(str_cat("option '", row.name, "' "));
  }
  return out;
}

}  // namespace

Result<ContextOptions> context_options(const kiln_options *options) {
  KILN_ASSIGN(ContextOptions out, read_options("context", context_option_rows(), values_of(options)));
  for (const std::string &file : out.load_symbols)
    if (!file.starts_with('/'))
      return invalid("option 'load_symbols' has '", printable(file), "', which is no absolute path");
  KILN_TRY(check_env());
  if (out.threads == 0) {
    KILN_ASSIGN(const std::optional<uint32_t> threads, env_count(Env::KILN_THREADS));
    out.threads = threads.value_or(0);
  }
  return out;
}

Result<CompileOptions> compile_options(const kiln_options *options) {
  AttrMap given = values_of(options);
  NamedRegionOptions of_regions;
  for (const auto &[name, value] : given) {
    if (!names_a_region(name)) continue;
    KILN_TRY(check_region_option(name, value));
    of_regions.emplace(name, value);
  }
  AttrMap of_backends;  // which each backend knows, and the compile checks
  std::ranges::copy_if(given, std::inserter(of_backends, of_backends.end()),
                       [](const auto &option) { return names_a_backend(option.first); });
  std::erase_if(given,
                [](const auto &option) { return names_a_region(option.first) || names_a_backend(option.first); });
  KILN_ASSIGN(CompileOptions out, read_options("compile", compile_option_rows(), given));
  // A set: neither order nor twice the same makes another key.
  std::ranges::sort(out.split_at);
  out.split_at.erase(std::ranges::unique(out.split_at).begin(), out.split_at.end());
  out.of_regions = std::move(of_regions);
  out.of_backends = std::move(of_backends);
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

kiln_error *kiln_options_describe(kiln_report **out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.pointer(out, "out"));
    *out = make_report(describe_options()).release();
    return {};
  });
}

void kiln_options_destroy(kiln_options *options) {
  if (options && options->magic.ok()) delete options;
}
