// A handle of another type: it is told, not followed, and not destroyed either.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, HandlesOfAnotherType) {
  const host::Context context = host::make_context();
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  kiln_options *made = nullptr;
  ASSERT_OK(kiln_options_create(&made));
  const host::Options options(made);
  const host::Report report = host::context_report(context.get());
  void *others[] = {context.get(), graph.get(), options.get(), report.get()};
  kiln_report *out = nullptr;
  kiln_blob *blob = nullptr;
  uint64_t count = 0;
  const auto told = [](kiln_error *error, const char *name) {
    EXPECT_REFUSED(host::take(error), "INVALID_ARGUMENT",
                   std::string(name) + " is a handle of another type, or was destroyed");
  };
  for (void *other : others) {
    if (other != context.get())
      told(kiln_context_report(static_cast<kiln_context *>(other), &out), "kiln_context_report: context");
    if (other != graph.get())
      told(kiln_graph_nodes(static_cast<kiln_graph *>(other), nullptr, 0, &count), "kiln_graph_nodes: graph");
    if (other != options.get())
      told(kiln_options_set_i64(static_cast<kiln_options *>(other), "a", 1, 1), "kiln_options_set_i64: options");
    if (other != report.get())
      told(kiln_report_json(static_cast<kiln_report *>(other), &blob), "kiln_report_json: report");
    told(kiln_call_run(static_cast<kiln_call *>(other), nullptr, 0, nullptr), "kiln_call_run: call");
    told(kiln_edit_replace(static_cast<kiln_edit *>(other), 1, 2), "kiln_edit_replace: edit");
    told(kiln_executable_describe(static_cast<kiln_executable *>(other), &out), "kiln_executable_describe: executable");
    told(kiln_tensors_at(static_cast<kiln_tensors *>(other), 0, nullptr, nullptr), "kiln_tensors_at: tensors");
    EXPECT_EQ(kiln_error_code(static_cast<kiln_error *>(other)), KILN_INTERNAL);
    EXPECT_EQ(kiln_blob_data(static_cast<kiln_blob *>(other), &count), nullptr);
    kiln_call_destroy(static_cast<kiln_call *>(other));
    kiln_edit_destroy(static_cast<kiln_edit *>(other));
    kiln_executable_destroy(static_cast<kiln_executable *>(other));
    kiln_tensors_destroy(static_cast<kiln_tensors *>(other));
    kiln_blob_destroy(static_cast<kiln_blob *>(other));
    kiln_error_destroy(static_cast<kiln_error *>(other));
  }
  EXPECT_EQ(host::i64(host::context_report(context.get()), "handles.live"), 1) << "all of them live on";
}

}  // namespace refused
