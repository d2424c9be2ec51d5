// A pass to run or to leave out that there is not, and one to unregister.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, PassesThatAreNotThere) {
  const host::Context context = host::make_context();
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  for (const char *option : {"passes", "disable_passes"}) {
    const host::Error error = host::compile(context.get(), graph.get(), [&](kiln_options *options) {
                                const kiln_text name{"ces", 3};
                                const kiln_attr passes = host::attr(option, KILN_ATTR_TEXT | KILN_ATTR_LIST, 1, &name);
                                EXPECT_OK(kiln_options_set(options, &passes));
                              }).error;
    EXPECT_REFUSED(
        error, "UNKNOWN_NAME",
        "no pass is named 'ces'; there are: cse, canonicalize, algebra, fold_constants, remove_no_ops, merge_views");
  }
  EXPECT_REFUSED(host::take(kiln_pass_unregister(context.get(), 12345)), "UNKNOWN_NAME",
                 "no pass is registered under id 12345");
}

}  // namespace refused
