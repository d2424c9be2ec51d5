// kiln plugin: what its verbs are.
#include "../commands.h"
#include "verbs.h"

namespace kiln::cli {
namespace {

constexpr const Command *plugin_verbs[] = {&plugin_inspect_command, &plugin_new_command, &plugin_test_command,
                                           &plugin_check_command, &plugin_uuid_command};

}  // namespace

const Command plugin_command{"plugin",
                             "inspect|new|test|check|uuid …",
                             "Begins a plugin, tests one, or shows what one registers.",
                             0,
                             0,
                             {},
                             nullptr,
                             plugin_verbs};

}  // namespace kiln::cli
