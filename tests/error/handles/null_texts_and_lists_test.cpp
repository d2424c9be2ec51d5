// NULL with a size or a count that is not 0.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, NullTextsAndLists) {
  const host::Context context = host::make_context();
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  kiln_op op = 0;
  uint64_t count = 0;
  kiln_graph *parsed = nullptr;
  EXPECT_REFUSED(host::take(kiln_op_find(context.get(), nullptr, 3, &op)), "INVALID_ARGUMENT",
                 "kiln_op_find: name is NULL, its size is 3");
  EXPECT_REFUSED(host::take(kiln_graph_nodes(graph.get(), nullptr, 5, &count)), "INVALID_ARGUMENT",
                 "kiln_graph_nodes: buffer is NULL");
  EXPECT_REFUSED(host::take(kiln_graph_parse(context.get(), nullptr, 12, &parsed)), "INVALID_ARGUMENT",
                 "kiln_graph_parse: json is NULL, its count is 12");
  EXPECT_REFUSED(host::take(kiln_tensors_write("f.safetensors", 13, nullptr, nullptr, 2)), "INVALID_ARGUMENT",
                 "kiln_tensors_write: tensors is NULL, its count is 2");
}

}  // namespace refused
