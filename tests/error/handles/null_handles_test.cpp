// NULL where a handle is due: each function names itself and the argument.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, NullHandles) {
  kiln_report *report = nullptr;
  kiln_graph *graph = nullptr;
  kiln_edit *edit = nullptr;
  kiln_executable *executable = nullptr;
  kiln_call *call = nullptr;
  kiln_blob *blob = nullptr;
  uint64_t count = 0;
  const auto refused = [](kiln_error *error, const char *message) {
    EXPECT_REFUSED(host::take(error), "INVALID_ARGUMENT", message);
  };
  refused(kiln_context_close(nullptr), "kiln_context_close: context is NULL");
  refused(kiln_context_report(nullptr, &report), "kiln_context_report: context is NULL");
  refused(kiln_op_at(nullptr, 0, nullptr), "kiln_op_at: context is NULL");
  refused(kiln_dim_parse(nullptr, "n", 1, nullptr), "kiln_dim_parse: context is NULL");
  refused(kiln_plugin_load(nullptr, "p", 1, nullptr), "kiln_plugin_load: context is NULL");
  refused(kiln_pass_register(nullptr, nullptr, nullptr, nullptr), "kiln_pass_register: context is NULL");
  refused(kiln_graph_parse(nullptr, "", 0, &graph), "kiln_graph_parse: context is NULL");
  refused(kiln_graph_extract(nullptr, nullptr, "a", 1, "b", 1, &graph, &report), "kiln_graph_extract: context is NULL");
  refused(kiln_parts_plan(1, nullptr, nullptr, nullptr, nullptr, nullptr), "kiln_parts_plan: colors is NULL, its count is 1");
  refused(kiln_graph_write(nullptr, "json", 4, &blob), "kiln_graph_write: graph is NULL");
  refused(kiln_graph_nodes(nullptr, nullptr, 0, &count), "kiln_graph_nodes: graph is NULL");
  refused(kiln_value_dims(nullptr, 1, nullptr, 0, &count), "kiln_value_dims: graph is NULL");
  refused(kiln_edit_begin(nullptr, nullptr, &edit), "kiln_edit_begin: context is NULL");
  refused(kiln_edit_replace(nullptr, 1, 2), "kiln_edit_replace: edit is NULL");
  refused(kiln_edit_finish(nullptr, &graph), "kiln_edit_finish: edit is NULL");
  refused(kiln_pass_done(nullptr, 0), "kiln_pass_done: call is NULL");
  refused(kiln_options_set_i64(nullptr, "threads", 7, 1), "kiln_options_set_i64: options is NULL");
  refused(kiln_compile(nullptr, nullptr, nullptr, &executable, nullptr), "kiln_compile: context is NULL");
  refused(kiln_executable_save(nullptr, "f", 1, nullptr), "kiln_executable_save: executable is NULL");
  refused(kiln_executable_bytes(nullptr, nullptr, &blob), "kiln_executable_bytes: executable is NULL");
  refused(kiln_executable_open_bytes(nullptr, "f", 1, nullptr, &executable),
          "kiln_executable_open_bytes: context is NULL");
  refused(kiln_executable_open(nullptr, "f", 1, nullptr, &executable), "kiln_executable_open: context is NULL");
  refused(kiln_call_create(nullptr, &call), "kiln_call_create: executable is NULL");
  refused(kiln_call_open(nullptr, nullptr, &call), "kiln_call_open: executable is NULL");
  refused(kiln_call_wait(nullptr), "kiln_call_wait: call is NULL");
  refused(kiln_call_cancel(nullptr), "kiln_call_cancel: call is NULL");
  refused(kiln_call_poll(nullptr, nullptr), "kiln_call_poll: call is NULL");
  refused(kiln_call_clone(nullptr, &call), "kiln_call_clone: call is NULL");
  refused(kiln_call_bind(nullptr, 0, nullptr), "kiln_call_bind: call is NULL");
  refused(kiln_call_run(nullptr, nullptr, 0, nullptr), "kiln_call_run: call is NULL");
  refused(kiln_call_run_data(nullptr, nullptr, 0, nullptr), "kiln_call_run_data: call is NULL");
  refused(kiln_cache_command(nullptr, "ls", 2, nullptr, &report), "kiln_cache_command: context is NULL");
  refused(kiln_report_json(nullptr, &blob), "kiln_report_json: report is NULL");
  refused(kiln_report_get_i64(nullptr, "x", 1, nullptr), "kiln_report_get_i64: report is NULL");
  refused(kiln_tensors_at(nullptr, 0, nullptr, nullptr), "kiln_tensors_at: tensors is NULL");
}

}  // namespace refused
