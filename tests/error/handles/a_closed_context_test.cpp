// A closed context refuses new work and says so; what was made goes on.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, AClosedContext) {
  const host::Context context = host::make_context();
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  EXPECT_OK(kiln_context_close(context.get()));
  EXPECT_OK(kiln_context_close(context.get()));
  EXPECT_REFUSED(host::compile(context.get(), graph.get()).error, "INVALID_ARGUMENT", "the context is closed");
  kiln_pass pass{};
  pass.struct_size = sizeof pass;
  pass.stage = KILN_STAGE_POST_GRAD;
  pass.name = "late";
  pass.name_size = 4;
  pass.run = [](void *, kiln_pass_call *call) { return kiln_pass_done(call, 0); };
  EXPECT_REFUSED(host::take(kiln_pass_register(context.get(), &pass, nullptr, nullptr)), "INVALID_ARGUMENT",
                 "the context is closed");
  EXPECT_NE(host::write(graph.get(), "text"), "");
}

}  // namespace refused
