#include "abi/src/handles.h"

#include <cjson/cJSON.h>

#include <new>

namespace kiln::abi {

std::unique_ptr<kiln_report> make_report(std::string_view json) {
  std::unique_ptr<cJSON, void (*)(cJSON *)> root(cJSON_ParseWithLength(json.data(), json.size()), cJSON_Delete);
  if (!root) root.reset(cJSON_CreateObject());
  if (!root) throw std::bad_alloc();
  return std::unique_ptr<kiln_report>(new kiln_report{.magic = {}, .root = std::move(root)});
}

kiln_blob *make_blob(std::string bytes) { return new kiln_blob{.magic = {}, .bytes = std::move(bytes)}; }

kiln_graph *make_graph(const std::shared_ptr<Context> &context, GraphPtr graph) {
  auto made = std::make_unique<kiln_graph>(context, std::move(graph));
  made->live = std::make_unique<Live>(context, &LiveCounts::graphs);
  return made.release();
}

}  // namespace kiln::abi
