#include "runtime/plugin/plugin.h"

#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include "jit/base/file.h"
#include "jit/base/float_environment.h"
#include "jit/base/utf8.h"
#include "runtime/plugin/loaded_libraries.h"
#include "runtime/plugin/note.h"

namespace kiln {

namespace {

using EntryFn = decltype(&kiln_plugin_entry_v1);
constexpr uint32_t max_table_bytes = 4096;  // no table of any version comes near it: a larger size is garbage
constexpr const char *entry_name = "kiln_plugin_entry_v1";

Status failed(std::string_view path, Code code, std::string_view what) { return error(code, path, ": ", what); }

Result<const kiln_plugin *> table_of(const std::string &path, const DynamicLibrary &library) {
  const Result<EntryFn> found = library.symbol<EntryFn>(entry_name);
  if (!found.ok()) return failed(path, Code::incompatible, str_cat("exports no ", entry_name));
  const EntryFn entry = *found;
  try {
    if (const kiln_plugin *table = entry()) return table;
  } catch (...) {
    return failed(path, Code::plugin_failed, str_cat(entry_name, " threw an exception"));
  }
  return failed(path, Code::plugin_failed, str_cat(entry_name, " returned NULL"));
}

// The table is what runs, the note what was promised: both must say the same.
Status check_table(const kiln_plugin &table, const PluginNote &note) {
  if (table.magic != KILN_PLUGIN_MAGIC) return error(Code::incompatible, "its table has another magic number");
  if (table.struct_size < offsetof(kiln_plugin, teardown) + sizeof table.teardown)
    return error(Code::incompatible, "its table has ", table.struct_size, " bytes, the least is ", sizeof(kiln_plugin));
  const auto differ = [](std::string_view field) {
    return error(Code::incompatible, "its table and its note differ in ", field);
  };
  if (table.abi_major != note.abi_major) return differ("abi_major");
  if (table.host_minor_needed != note.host_minor_needed) return differ("host_minor_needed");
  if (table.features_needed != note.features_needed) return differ("features_needed");
  if (!table.name || std::string_view(table.name, table.name_size) != note.name) return differ("name");
  if (table.reserved0) return error(Code::incompatible, "its table's reserved0 is not 0");
  const auto *bytes = reinterpret_cast<const unsigned char *>(&table);
  if (table.struct_size > max_table_bytes)
    return error(Code::incompatible, "its table's struct_size is ", table.struct_size, "; set it to ",
                 sizeof(kiln_plugin), ", the struct's size");
  for (size_t i = sizeof(kiln_plugin); i < table.struct_size; i++)
    if (bytes[i])
      return error(Code::incompatible, "its table sets a field that this version does not know (byte ", i, " of ",
                   table.struct_size, ")");
  if (!table.setup) return error(Code::incompatible, "its table has no setup");
  return {};
}

}  // namespace

Result<PluginLibrary> open_plugin(const std::string &path, uint64_t host_features) {
  std::error_code no_path;
  const std::string absolute = std::filesystem::canonical(path, no_path).string();  // dlopen searches for bare names
  if (no_path) return failed(path, errno_code(no_path.value()), str_cat("cannot open: ", no_path.message()));
  KILN_ASSIGN(FileDescriptor file, open_file(absolute));
  KILN_ASSIGN(const Bytes bytes, read_file(file, absolute));  // once: note, digest and code are of the same bytes
  const Result<PluginNote> note = read_plugin_note(bytes);
  if (!note.ok()) return failed(path, note.status().code(), note.status().message());
  if (Status status = check_plugin_note(*note, host_features); !status.ok())
    return failed(path, status.code(), status.message());
  const Digest digest = digest_of(bytes);
  KILN_ASSIGN(LoadedLibraries::Open open, LoadedLibraries::of_process().open(absolute, std::move(file), bytes, digest));
  KILN_ASSIGN(const kiln_plugin *table, table_of(absolute, open.library));
  if (Status status = check_table(*table, *note); !status.ok()) return failed(path, status.code(), status.message());
  return PluginLibrary{absolute, note->name, digest, std::move(open.links), note->host_minor_needed, table};
}

Digest PluginLibrary::identity() const {
  const Digest code = identity_of(digest, links);
  if (files.empty()) return code;
  std::string all = code.hex();
  for (const File &file : files)
    str_append(all, str_cat("\n", std::filesystem::path(file.path).filename().string(), " ", file.digest.hex()));
  return digest_of(all);
}

Result<std::shared_ptr<Plugin>> Plugin::set_up(PluginLibrary library, const kiln_host &host, kiln_context *context,
                                               CallBack call_back) {
  auto plugin = std::make_shared<Plugin>(std::move(library));
  const Status status = call_back([&] { return plugin->library_.table->setup(&host, context, &plugin->state_); });
  if (!status.ok()) {
    auto info = std::make_shared<ErrorInfo>();
    info->code = status.code() == Code::out_of_memory ? Code::out_of_memory : Code::plugin_failed;
    info->message = str_cat(plugin->library_.path, ": setup failed: ", status.message());
    info->plugin = plugin->library_.name;
    info->cause = status.info();
    return Status(std::move(info));
  }
  plugin->is_set_up_ = true;
  return plugin;
}

Status Plugin::tear_down() {
  if (!std::exchange(is_set_up_, false) || !library_.table->teardown) return {};
  try {
    const HostFloats floats;
    library_.table->teardown(state_);
  } catch (const std::exception &exception) {
    return error(Code::plugin_failed, "teardown of plugin '", library_.name,
                 "' threw an exception: ", printable(exception.what()));
  } catch (...) {
    return error(Code::plugin_failed, "teardown of plugin '", library_.name, "' threw an exception");
  }
  return {};
}

}  // namespace kiln
