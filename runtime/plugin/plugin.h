// Loading plugins: the file is read once, its note is checked, then the library is opened (loaded_libraries.h), its
// table is checked, and its setup runs once in each context. A library stays mapped until the process ends.
#pragma once
#include <kiln/plugin.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "jit/base/hash.h"
#include "jit/base/linked_libraries.h"
#include "jit/base/status.h"

namespace kiln {

// An open library whose table is one that this host can serve.
struct PluginLibrary {
  std::string path;  // absolute
  std::string name;
  Digest digest;                     // of what runs
  std::vector<LinkedLibrary> links;  // which run with it
  uint32_t host_minor_needed = 0;
  const kiln_plugin *table = nullptr;
  struct File {
    std::string path;
    Digest digest;
  };
  std::vector<File> files = {};  // that its setup says it uses, too

  // Of digest, links and files, wherever these lie; the digest where there are no others.
  Digest identity() const;
};
// codes io, out_of_memory, incompatible, plugin_failed; every message starts with the path.
Result<PluginLibrary> open_plugin(const std::string &path, uint64_t host_features);

// A plugin in one context: between setup and teardown. What it registered holds a share of it.
class Plugin {
 public:
  // Runs setup with `context`, which must stay valid until teardown. `call_back` makes a Status of what it does.
  using CallBack = Status (*)(const std::function<kiln_error *()> &callback);
  static Result<std::shared_ptr<Plugin>> set_up(PluginLibrary library, const kiln_host &host, kiln_context *context,
                                                CallBack call_back);
  explicit Plugin(PluginLibrary library) : library_(std::move(library)) {}
  Plugin(const Plugin &) = delete;
  Plugin &operator=(const Plugin &) = delete;
  ~Plugin() { (void)tear_down(); }
  // Once, if setup succeeded. code plugin_failed: it threw.
  Status tear_down();
  const PluginLibrary &library() const { return library_; }

 private:
  PluginLibrary library_;
  void *state_ = nullptr;
  bool is_set_up_ = false;
};

}  // namespace kiln
