// Passes and plugins of a context, as the ABI makes them.
#pragma once
#include <memory>
#include <vector>

#include "abi/src/entry.h"
#include "runtime/plugin/plugin.h"

namespace kiln::abi {

// A plugin in one context. What it registered holds a share; the last one to go runs teardown.
struct PluginInContext : std::enable_shared_from_this<PluginInContext> {
  PluginLibrary library;
  kiln_context view;                               // what setup gets; valid until teardown has run
  const AttrMap &options;                          // PASS.OPTION; while setup runs
  std::vector<std::shared_ptr<Pass>> registered;   // while setup runs
  std::vector<std::unique_ptr<RegisteredOp>> ops;  // likewise
  std::vector<FunctionPtr> functions;              // likewise
  std::vector<BackendPtr> backends;                // likewise
  std::shared_ptr<Plugin> plugin;                  // the last member: teardown comes first at the end

  PluginInContext(PluginLibrary of, Context &context, const AttrMap &given)
      : library(std::move(of)), view(context), options(given) {}
  PluginInContext(const PluginInContext &) = delete;
  PluginInContext &operator=(const PluginInContext &) = delete;
  ~PluginInContext() {
    if (!plugin) return;
    if (const Status status = plugin->tear_down(); !status.ok()) view.context.add_end_failure(status.message());
  }
};

// The plugin whose setup this is called in; outside of one nothing of a plugin's, `what`, is added.
Result<PluginInContext *> plugin_in_setup(const Checks &check, kiln_context *context, std::string_view what);

// `options` over the defaults that the pass declares. `plugin` null: a pass of the host's. Its `user` stays the
// caller's until own_user().
Result<std::shared_ptr<Pass>> make_pass(const Checks &check, Context &context, const kiln_pass *given,
                                        const AttrMap &options, std::shared_ptr<PluginInContext> plugin);
void own_user(const Pass &pass);

// The patterns of a pass that is registered, read; none: null. `calls` gets what they call. `plugin` may be null.
Result<std::shared_ptr<const PassPatterns>> read_patterns(const Checks &check, const Context &context,
                                                          const PluginInContext *plugin, const kiln_pass &pass,
                                                          PatternCalls &calls);
// Rewrites the graph of a running pass by its patterns; how often.
Result<uint64_t> apply_patterns(kiln_pass_call &call);

// The tables that plugins receive.
extern const kiln_host host_table;

}  // namespace kiln::abi
