// A view of an edit or of a pass: destroying, closing or compiling it is refused or does nothing.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, ViewsAreNotTheHoldersToDestroy) {
  const host::Context context = host::make_context();
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  kiln_edit *made = nullptr;
  ASSERT_OK(kiln_edit_begin(context.get(), graph.get(), &made));
  const host::Edit edit(made);
  auto *view = const_cast<kiln_graph *>(kiln_edit_view(edit.get()));
  kiln_graph_destroy(view);
  EXPECT_NE(kiln_node_kind(view, 1), 0u) << "it is the edit's";
  EXPECT_REFUSED(host::compile(context.get(), view).error, "INVALID_ARGUMENT",
                 "kiln_compile: graph is the view of an edit; finish that edit first");
}

}  // namespace refused
