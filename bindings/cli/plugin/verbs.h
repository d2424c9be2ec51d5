// The verbs of kiln plugin, one file each; command.cpp lists them.
#pragma once
#include "../args.h"

namespace kiln::cli {

extern const Command plugin_inspect_command, plugin_new_command, plugin_test_command, plugin_check_command,
    plugin_uuid_command;

}  // namespace kiln::cli
