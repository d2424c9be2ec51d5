// Loading plugins into contexts.
#include "abi/src/options.h"
#include "abi/src/pass.h"
#include "jit/base/file.h"
#include "jit/base/json_writer.h"
#include "runtime/report/pass_report.h"

namespace kiln::abi {

namespace {

// The options of one pass: those that begin with its name and a dot, without both.
AttrMap options_of(const AttrMap &all, std::string_view pass) {
  AttrMap own;
  for (const auto &[name, value] : all)
    if (name.size() > pass.size() && name.starts_with(pass) && name[pass.size()] == '.')
      own.emplace(name.substr(pass.size() + 1), value);
  return own;
}

// Every option must be PASS.OPTION of a pass that there is; the pass has checked the OPTION.
Status check_pass_names(std::string_view plugin, const AttrMap &options,
                        const std::vector<std::shared_ptr<Pass>> &passes) {
  for (const auto &[name, value] : options) {
    auto owns = [&](const auto &pass) { return name.starts_with(str_cat(pass->name, ".")); };
    if (std::any_of(passes.begin(), passes.end(), owns)) continue;
    return error(
        Code::unknown_name, "plugin '", plugin, "' has no pass for option '", name,
        "'; options are PASS.OPTION, its passes: ", join(passes, ", ", [](const auto &pass) { return pass->name; }));
  }
  return {};
}

// The error with the plugin's name on it, unless a name is on it already.
Status blame(const Status &status, const std::string &plugin) {
  auto info = std::make_shared<ErrorInfo>(*status.info());
  if (info->plugin.empty()) info->plugin = plugin;
  return Status(std::move(info));
}

Result<std::shared_ptr<PluginInContext>> load(Context &context, const std::string &path, const AttrMap &options) {
  KILN_ASSIGN(PluginLibrary library, open_plugin(path, host_table.features));
  auto loading = std::make_shared<PluginInContext>(library, context, options);
  loading->view.setting_up = loading.get();
  Result<std::shared_ptr<Plugin>> plugin = Plugin::set_up(std::move(library), host_table, &loading->view, call_back);
  loading->view.setting_up = nullptr;
  // The passes hold the plugin: they must not stay in it, or neither would ever go.
  const std::vector<std::shared_ptr<Pass>> registered = std::move(loading->registered);
  std::vector<std::unique_ptr<RegisteredOp>> ops = std::move(loading->ops);
  const std::vector<FunctionPtr> functions = std::move(loading->functions);
  const std::vector<BackendPtr> backends = std::move(loading->backends);
  if (!plugin.ok()) return plugin.take_status();
  loading->plugin = std::move(plugin).value();
  const PluginLibrary &opened = loading->library;
  Status status = check_pass_names(opened.name, options, registered);
  if (status.ok())
    status = context.add_plugin({opened.path, opened.name, opened.digest, loading}, registered, std::move(ops),
                                functions, backends);
  if (!status.ok()) return blame(status, opened.name);
  return loading;
}

}  // namespace

Result<PluginInContext *> plugin_in_setup(const Checks &check, kiln_context *context, std::string_view what) {
  KILN_TRY(check.handle(context, "context"));
  if (context->setting_up) return context->setting_up;
  return check.fail("only a plugin's setup adds ", what);
}

kiln_error *add_pass(kiln_context *context, const kiln_pass *pass) {
  return deep_entry("add_pass", [&](const Checks &check) -> Status {
    KILN_ASSIGN(PluginInContext * plugin, plugin_in_setup(check, context, "passes"));
    KILN_ASSIGN(const kiln_pass in, check.request(pass, "pass"));
    KILN_ASSIGN(const std::string_view name, check.line(in.name, in.name_size, "pass->name"));
    KILN_ASSIGN(std::shared_ptr<Pass> made, make_pass(check, context->context, pass, options_of(plugin->options, name),
                                                      plugin->shared_from_this()));
    plugin->registered.push_back(made);
    own_user(*made);
    return {};
  });
}

kiln_error *add_file(kiln_context *context, const char *path, uint64_t path_size) {
  return entry("add_file", [&](const Checks &check) -> Status {
    KILN_ASSIGN(PluginInContext * plugin, plugin_in_setup(check, context, "files"));
    KILN_ASSIGN(std::string file, check.path(path, path_size, "path"));
    KILN_ASSIGN(const Bytes bytes, read_file(file));
    plugin->library.files.push_back({std::move(file), digest_of(bytes)});
    return {};
  });
}

}  // namespace kiln::abi

using namespace kiln;
using namespace kiln::abi;

kiln_error *kiln_plugin_load(kiln_context *context, const char *path, uint64_t path_size, const kiln_options *options) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    KILN_ASSIGN(const std::string file, check.path(path, path_size, "path"));
    KILN_TRY(check.optional_handle(options, "options"));
    const AttrMap values = values_of(options);
    return load(*share(context), file, values).take_status();
  });
}

kiln_error *kiln_plugin_inspect(const char *path, uint64_t path_size, kiln_report **out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const std::string file, check.path(path, path_size, "path"));
    KILN_TRY(check.pointer(out, "out"));
    const AttrMap no_values;
    const auto context = std::make_shared<Context>(ContextOptions{.threads = 1, .cache = "off"}, std::nullopt);
    KILN_ASSIGN(const std::shared_ptr<PluginInContext> loaded, load(*context, file, no_values));
    const PluginLibrary &library = loaded->library;
    JsonWriter json;
    json.begin_object().member("path", library.path).member("name", library.name);
    json.member("abi_major", library.table->abi_major).member("host_minor_needed", library.host_minor_needed);
    json.member("digest", library.digest.hex()).member("identity", library.identity().hex());
    json.key("links").begin_list();
    for (const LinkedLibrary &link : library.links)
      json.begin_object()
          .member("name", link.name)
          .member("path", link.path)
          .member("identity", link.identity)
          .end_object();
    json.end_list().key("files").begin_list();
    for (const PluginLibrary::File &used : library.files)
      json.begin_object().member("path", used.path).member("digest", used.digest.hex()).end_object();
    json.end_list().key("passes").begin_list();
    const PassList passes = context->passes();
    for (const auto &pass : passes.all())
      if (!pass->built_in()) write_report(*pass, json, true);
    json.end_list().key("ops");
    context->ops().write_report(json);
    context->functions()->write_report(json);
    context->backends()->write_report(json);
    json.end_object();
    *out = make_report(json.text()).release();
    return {};
  });
}
