// Functions of the host: a kiln_function as a Function, and what runs around its calls.
#include <algorithm>

#include "abi/src/convert.h"
#include "abi/src/identity.h"
#include "abi/src/pass.h"
#include "jit/base/utf8.h"
#include "runtime/ops/nested.h"
#include "runtime/ops/registered.h"
#include "runtime/plugin/function_library.h"

namespace kiln::abi {
namespace {

class Owner final : public FunctionOwner {
 public:
  Owner(const kiln_function &function, std::string name, std::weak_ptr<Context> context,
        std::shared_ptr<PluginInContext> plugin)
      : user_(function.user),
        destroy_(function.destroy),
        name_(std::move(name)),
        context_(std::move(context)),
        plugin_(std::move(plugin)) {}
  ~Owner() override {
    if (!owned || !destroy_) return;
    std::string thrown = thrown_by([&] { destroy_(user_); }, str_cat("destroy of function '", name_, "'"));
    if (const auto context = context_.lock(); context && !thrown.empty()) context->add_end_failure(std::move(thrown));
  }
  Status run(const std::function<void *()> &call) const override {
    return call_back([&call] { return static_cast<kiln_error *>(call()); });
  }

  mutable bool owned = false;  // once it is registered

 private:
  void *const user_;
  const kiln_destroy_fn destroy_;
  const std::string name_;
  const std::weak_ptr<Context> context_;
  const std::shared_ptr<PluginInContext> plugin_;  // whose code runs; null: the host's
};

GivenIdentity given_identity(const kiln_function &in) {
  return {"function", "KILN_FUNCTION_UUID_SUFFICES", in.uuid, (in.flags & KILN_FUNCTION_UUID_SUFFICES) != 0};
}

Status check_struct(const Checks &check, const kiln_function &in, bool of_plugin) {
  if (in.flags & ~(KILN_FUNCTION_UUID_SUFFICES | KILN_FUNCTION_ANY_THREAD))
    return check.fail("function->flags has unknown bits: ", in.flags);
  KILN_TRY(check_identity(check, given_identity(in), of_plugin || !in.pointer));
  if (in.pointer && (in.library_size || in.symbol_size))
    return check.fail("function->pointer is given, and function->library or symbol, too");
  return {};
}

Result<std::string> name_of_function(const Checks &check, const kiln_function &in) {
  KILN_ASSIGN(const std::string_view name, check.text(in.name, in.name_size, "function->name"));
  if (const std::string wrong = wrong_with_name(name); !wrong.empty()) return check.fail("function->name ", wrong);
  constexpr std::string_view others[] = {"kernel", "reference", "function", "steps"};  // that reports tell in its place
  if (std::ranges::find(others, name) != std::end(others))
    return check.fail("function->name '", name, "' is taken: reports call so what is no function of the host's");
  return std::string(name);
}

// Where it is, and what its library is, if it is of one.
struct Found {
  void (*pointer)();
  std::string library = {};
  std::optional<Digest> identity = {};
};
Result<Found> find_code(const Checks &check, const Context &context, const kiln_function &in,
                        const PluginInContext *plugin) {
  if (in.pointer && plugin) return Found{in.pointer, {}, plugin->library.identity()};
  if (in.pointer) return Found{in.pointer};
  if (!in.library_size) return check.fail("function->pointer is NULL, and function->library is not given");
  KILN_ASSIGN(std::string library, check.path(in.library, in.library_size, "function->library"));
  KILN_ASSIGN(const std::string_view symbol, check.text(in.symbol, in.symbol_size, "function->symbol"));
  if (symbol.empty()) return check.fail("function->symbol is empty");
  if (library[0] != '/') return check.fail("function->library '", printable(library), "' is no absolute path");
  if (!context.lets_load(library))
    return check.fail("function->library '", printable(library),
                      "' is not among the files that the context's option 'load_symbols' lists");
  KILN_ASSIGN(const LibraryFunction found, open_function(library, std::string(symbol)));
  return Found{found.pointer, std::move(library), found.identity};
}

std::string identity_of(const Function &function, const kiln_function &in, const Found &found) {
  return str_cat("version '", function.version, "'",
                 function.plugin.empty() ? "" : str_cat(" of plugin ", function.plugin), ", signature '",
                 function.signature.text, "'", identity_text(given_identity(in), found.identity));
}

Result<std::shared_ptr<Function>> make_function(const Checks &check, Context &context, const kiln_function *given,
                                                std::shared_ptr<PluginInContext> plugin, const Owner *&out_owner) {
  KILN_ASSIGN(const kiln_function in, check.request(given, "function"));
  KILN_TRY(check_struct(check, in, plugin != nullptr));
  KILN_ASSIGN(std::string name, name_of_function(check, in));
  KILN_ASSIGN(const std::string_view version, check.line(in.version, in.version_size, "function->version"));
  KILN_ASSIGN(const std::string_view text, check.line(in.signature, in.signature_size, "function->signature"));
  Result<FunctionSignature> signature = parse_function_signature(text);
  if (!signature.ok())
    return signature.take_status().with_prefix(str_cat(check.function(), ": function->signature '", text, "': "));
  KILN_ASSIGN(NativeCall native, NativeCall::of(*signature));
  KILN_ASSIGN(Found found, find_code(check, context, in, plugin.get()));
  std::string plugin_name = plugin ? plugin->library.name : "";
  auto owner = std::make_unique<Owner>(in, name, context.weak_from_this(), std::move(plugin));
  out_owner = owner.get();
  auto function = std::make_shared<Function>(Function{.name = std::move(name),
                                                      .version = std::string(version),
                                                      .identity = {},
                                                      .has_uuid = in.uuid != nullptr,
                                                      .any_thread = (in.flags & KILN_FUNCTION_ANY_THREAD) != 0,
                                                      .plugin = std::move(plugin_name),
                                                      .library = found.library,
                                                      .signature = std::move(signature).value(),
                                                      .native = std::move(native),
                                                      .pointer = found.pointer,
                                                      .user = in.user,
                                                      .owner = std::move(owner)});
  function->identity = identity_of(*function, in, found);
  return function;
}

}  // namespace

kiln_error *add_function(kiln_context *context, const kiln_function *function) {
  return entry("add_function", [&](const Checks &check) -> Status {
    KILN_ASSIGN(PluginInContext * plugin, plugin_in_setup(check, context, "functions"));
    const Owner *owner = nullptr;
    KILN_ASSIGN(std::shared_ptr<Function> made,
                make_function(check, context->context, function, plugin->shared_from_this(), owner));
    plugin->functions.push_back(std::move(made));
    owner->owned = true;
    return {};
  });
}

}  // namespace kiln::abi

using namespace kiln;
using namespace kiln::abi;

kiln_error *kiln_function_register(kiln_context *context, const kiln_function *function, uint64_t *out_id) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    const Owner *owner = nullptr;
    KILN_ASSIGN(std::shared_ptr<Function> made, make_function(check, context->context, function, nullptr, owner));
    owner->owned = true;  // before another thread may find it
    const Result<uint64_t> id = context->context.add_function(made);
    owner->owned = id.ok();
    KILN_TRY(id.status());
    if (out_id) *out_id = *id;
    return {};
  });
}

kiln_error *kiln_function_unregister(kiln_context *context, uint64_t id) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    return context->context.remove_function(id);
  });
}

kiln_error *kiln_fallback_register(kiln_context *context, kiln_op op, const char *function, uint64_t function_size,
                                   uint64_t *out_id) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    KILN_ASSIGN(const std::string_view name, check.text(function, function_size, "function"));
    KILN_ASSIGN(const Op *record, op_numbered(context->context, op));
    if (record->flags & (op_flags::control | op_flags::mutates) || is_call(*record))
      return check.fail("nodes of op '", record->name, "' are not single steps, which functions run");
    const bool only_orders =
        !record->args.empty() && !(record->flags & op_flags::effect) &&
        std::ranges::all_of(record->args, [](const ArgDef &arg) { return arg.dtypes == dtypes(DType::token); });
    if (only_orders) return check.fail("nodes of op '", record->name, "' order others, and are run by nothing");
    KILN_ASSIGN(const uint64_t id, context->context.add_fallback(record->name, name));
    if (out_id) *out_id = id;
    return {};
  });
}

kiln_error *kiln_fallback_unregister(kiln_context *context, uint64_t id) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    return context->context.remove_fallback(id);
  });
}
