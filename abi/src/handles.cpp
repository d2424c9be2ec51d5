#include "abi/src/handles.h"

#include <cjson/cJSON.h>

#include <new>

#include "runtime/graph/json_scan.h"

namespace kiln::abi {

namespace {

// The tree holds lists as chains: to read a long one by index, element after element, would cost the square of its
// length.
void index_long_lists(const cJSON *node, kiln_report &report) {
  if (cJSON_IsArray(node) && cJSON_GetArraySize(node) >= 64) {
    std::vector<const cJSON *> &elements = report.elements[node];
    for (const cJSON *child = node->child; child; child = child->next) elements.push_back(child);
  }
  for (const cJSON *child = node->child; child; child = child->next) {
    if (child->child) index_long_lists(child, report);
  }
}

}  // namespace

std::unique_ptr<kiln_report> make_report(std::string_view json) {
  std::unique_ptr<cJSON, void (*)(cJSON *)> root(cJSON_ParseWithLength(json.data(), json.size()), cJSON_Delete);
  if (!root && !scan_json(json).ok()) root.reset(cJSON_CreateObject());
  if (!root) throw std::bad_alloc();
  std::unique_ptr<kiln_report> report(new kiln_report{{}, {}, std::move(root)});
  index_long_lists(report->root.get(), *report);
  return report;
}

kiln_blob *make_blob(std::string bytes) { return new kiln_blob{{}, {}, std::move(bytes)}; }

kiln_graph *make_graph(const std::shared_ptr<Context> &context, GraphPtr graph) {
  auto made = std::make_unique<kiln_graph>(context, std::move(graph));
  made->live = std::make_unique<Live>(context, &LiveCounts::graphs);
  return made.release();
}

}  // namespace kiln::abi
