// The ELF note that a plugin carries (KILN_PLUGIN_NOTE of kiln/plugin.h): what it needs of its host, read from the file
// before any of its code is mapped.
#pragma once
#include <cstdint>
#include <string>

#include "jit/base/bytes.h"
#include "jit/base/status.h"

namespace kiln {

struct PluginNote {
  uint32_t abi_major = 0, host_minor_needed = 0;
  uint64_t features_needed = 0;
  std::string name;
};

// Takes any bytes. code incompatible: not an ELF library of this machine, no note, or a note of another form; the
// message says which, without the file's name.
Result<PluginNote> read_plugin_note(ByteSpan file);

// Whether this host can serve such a plugin; the error (incompatible) says what is missing.
Status check_plugin_note(const PluginNote &note, uint64_t host_features);

}  // namespace kiln
