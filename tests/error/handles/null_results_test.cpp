// NULL where the result is to be written: nothing is made, so that nothing is lost.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, NullResults) {
  const host::Context context = host::make_context();
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  const host::Compiled compiled = host::compile(context.get(), graph.get());
  const std::string_view json = host::small_graph;
  const auto refused = [](kiln_error *error, const char *message) {
    EXPECT_REFUSED(host::take(error), "INVALID_ARGUMENT", message);
  };
  refused(kiln_context_create(nullptr, nullptr, nullptr), "kiln_context_create: out is NULL");
  refused(kiln_options_create(nullptr), "kiln_options_create: out is NULL");
  refused(kiln_options_describe(nullptr), "kiln_options_describe: out is NULL");
  refused(kiln_context_report(context.get(), nullptr), "kiln_context_report: out is NULL");
  refused(kiln_graph_parse(context.get(), json.data(), json.size(), nullptr), "kiln_graph_parse: out is NULL");
  refused(kiln_graph_nodes(graph.get(), nullptr, 0, nullptr), "kiln_graph_nodes: out_count is NULL");
  refused(kiln_graph_write(graph.get(), "json", 4, nullptr), "kiln_graph_write: out is NULL");
  refused(kiln_op_find(context.get(), "add", 3, nullptr), "kiln_op_find: out is NULL");
  refused(kiln_edit_begin(context.get(), nullptr, nullptr), "kiln_edit_begin: out is NULL");
  refused(kiln_compile(context.get(), graph.get(), nullptr, nullptr, nullptr), "kiln_compile: out is NULL");
  refused(kiln_call_create(compiled.executable.get(), nullptr), "kiln_call_create: out is NULL");
  refused(kiln_call_open(compiled.executable.get(), nullptr, nullptr), "kiln_call_open: out is NULL");
  refused(kiln_tensors_open("f.npy", 5, nullptr), "kiln_tensors_open: out is NULL");
  refused(kiln_report_json(compiled.report.get(), nullptr), "kiln_report_json: out is NULL");
  EXPECT_EQ(host::i64(host::context_report(context.get()), "handles.live"), 2) << "the graph and the executable";
}

}  // namespace refused
