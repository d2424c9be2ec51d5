// Passes, as the reports of contexts and plugins tell them.
#pragma once
#include <string>

#include "jit/base/json_writer.h"
#include "runtime/passes/pass.h"

namespace kiln {

std::string text_of(const Uuid &uuid);
// An object: name, plugin, stage, timing, priority, version, uuid, identity, options, option_kinds; `in_full` also its
// patterns, as they were declared, where it has some.
void write_report(const Pass &pass, JsonWriter &json, bool in_full = false);

}  // namespace kiln
