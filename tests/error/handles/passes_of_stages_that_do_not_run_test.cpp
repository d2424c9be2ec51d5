// A pass of a stage that passes do not run in yet: it would be registered and never run.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, PassesOfStagesThatDoNotRun) {
  const host::Context context = host::make_context();
  kiln_pass pass{};
  pass.struct_size = sizeof pass;
  pass.name = "waiting";
  pass.name_size = 7;
  pass.run = [](void *, kiln_pass_call *call) { return kiln_pass_done(call, 0); };
  pass.stage = KILN_STAGE_JOINT;
  EXPECT_REFUSED(host::take(kiln_pass_register(context.get(), &pass, nullptr, nullptr)), "UNIMPLEMENTED",
                 "pass->stage: passes of stage joint do not run yet; those of pre_grad, post_grad and lower do");
}

}  // namespace refused
