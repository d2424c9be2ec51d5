// Any bytes as a graph: an error or a graph that is written and read back to the same text.
#include <kiln/kiln.h>

#include <cstdlib>
#include <string>

namespace {

kiln_context *context() {
  static kiln_context *const made = [] {
    kiln_options *options = nullptr;
    kiln_context *result = nullptr;
    if (kiln_options_create(&options) || kiln_options_set_text(options, "cache", 5, "off", 3) ||
        kiln_context_create(options, nullptr, &result)) {
      std::abort();
    }
    kiln_options_destroy(options);
    return result;
  }();
  return made;
}

std::string written(const kiln_graph *graph) {
  kiln_blob *blob = nullptr;
  if (kiln_graph_write(graph, "json", 4, &blob)) std::abort();
  uint64_t size = 0;
  const char *data = static_cast<const char *>(kiln_blob_data(blob, &size));
  std::string text(data, size);
  kiln_blob_destroy(blob);
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  kiln_graph *graph = nullptr, *again = nullptr;
  if (kiln_error *error = kiln_graph_parse(context(), data, size, &graph)) {
    kiln_error_destroy(error);
    return 0;
  }
  const std::string text = written(graph);
  if (kiln_graph_parse(context(), text.data(), text.size(), &again)) std::abort();
  if (written(again) != text) std::abort();
  kiln_graph_destroy(again);
  kiln_graph_destroy(graph);
  return 0;
}
