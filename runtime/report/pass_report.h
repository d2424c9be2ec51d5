// Passes, as the reports of contexts and plugins tell them.
#pragma once
#include <string>

#include "jit/base/json_writer.h"
#include "runtime/passes/pass.h"

namespace kiln {

std::string text_of(const Uuid &uuid);
// An object: name, plugin, stage, timing, priority, version, uuid, identity, options, option_kinds.
void write_report(const Pass &pass, JsonWriter &json);

}  // namespace kiln
