// A flag that would change nothing: one that is reserved, one whose subject is missing, one for events of no kind.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, FlagsWithoutEffect) {
  const host::Context context = host::make_context();
  kiln_pass pass{};
  pass.struct_size = sizeof pass;
  pass.stage = KILN_STAGE_POST_GRAD;
  pass.name = "waiting";
  pass.name_size = 7;
  pass.run = [](void *, kiln_pass_call *call) { return kiln_pass_done(call, 0); };
  pass.flags = KILN_PASS_ANY_THREAD;
  EXPECT_REFUSED(host::take(kiln_pass_register(context.get(), &pass, nullptr, nullptr)), "UNIMPLEMENTED",
                 "pass->flags: KILN_PASS_ANY_THREAD has no effect yet; passes run on the thread that called compile");
  pass.flags = KILN_PASS_UUID_SUFFICES;
  EXPECT_REFUSED(host::take(kiln_pass_register(context.get(), &pass, nullptr, nullptr)), "INVALID_ARGUMENT",
                 "kiln_pass_register: pass->flags: KILN_PASS_UUID_SUFFICES has no effect without pass->uuid");

  kiln_op_def op{};
  op.struct_size = sizeof op;
  op.flags = KILN_OP_ANY_THREAD;
  op.infer = op.decompose = [](void *, kiln_op_call *) -> kiln_error * { return nullptr; };
  EXPECT_REFUSED(host::take(kiln_op_register(context.get(), &op, nullptr)), "INVALID_ARGUMENT",
                 "kiln_op_register: op->flags: KILN_OP_ANY_THREAD has no effect without op->run");

  kiln_event_sink sink{};
  sink.struct_size = sizeof sink;
  sink.kinds = 1u << KILN_EVENT_WARNING | 1u << 9;
  sink.event = [](void *, uint32_t, const char *, uint64_t) { return 0; };
  kiln_context *none = nullptr;
  EXPECT_REFUSED(host::take(kiln_context_create(nullptr, &sink, &none)), "INVALID_ARGUMENT",
                 "kiln_context_create: sink->kinds has bits of no kind of event: 516");
  EXPECT_EQ(none, nullptr);
}

}  // namespace refused
