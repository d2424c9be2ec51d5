// The backend of plugins/onednn_backend, loaded as a host loads it.
#pragma once
#include <gtest/gtest.h>
#include <kiln/kiln.h>

#include <filesystem>

#include "abi/src/handles.h"
#include "tests/backend/backends.h"
#include "tests/paths.h"
#include "tests/soak.h"

namespace kiln::testing {

inline std::string onednn_plugin() { return test::plugin_dir + "/onednn_backend.so"; }
// "": its tests can run.
inline std::string no_onednn() {
  if (test::threads_only()) return "threads of OpenMP's are none that the thread sanitizer sees";
  return std::filesystem::exists(onednn_plugin()) ? ""
                                                  : "onednn_backend was left out of the build: there is no libdnnl-dev";
}

inline std::shared_ptr<const BackendTable> table_with_onednn() {
  static const std::shared_ptr<const BackendTable> table = [] {
    kiln_context *handle = nullptr;
    EXPECT_EQ(kiln_context_create(nullptr, nullptr, &handle), nullptr);  // as long as the process
    const std::string plugin = onednn_plugin();
    kiln_error *error = kiln_plugin_load(handle, plugin.data(), plugin.size(), nullptr);
    EXPECT_EQ(error, nullptr) << (error ? error->info->message : "");
    return handle->context.backends();
  }();
  return table;
}

enum class NotFinite { kept, lost };

inline Result<Compiled> compile_on_onednn(const GraphPtr &graph, NotFinite not_finite) {
  CompileOptions options;
  options.backend = "onednn";
  options.of_backends = {{"backend.onednn.take", std::string("all")},
                         {"backend.onednn.not_finite", std::string(not_finite == NotFinite::kept ? "kept" : "lost")}};
  static const auto pool = std::make_shared<ThreadPool>(2);
  const CompileEnvironment environment{.ops = builtin_ops(),
                                       .passes = built_in_passes(),
                                       .cache = nullptr,
                                       .pool = pool,
                                       .modules = modules(),
                                       .backends = table_with_onednn()};
  CompileReport report;
  return compile(environment, graph, options, report);
}

}  // namespace kiln::testing
