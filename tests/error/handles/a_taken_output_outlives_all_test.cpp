// An output that was taken lives on when everything that made it is gone.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, ATakenOutputOutlivesAll) {
  host::Context context = host::make_context();
  host::Graph graph = host::parse(context.get(), host::small_graph);
  host::Compiled compiled = host::compile(context.get(), graph.get());
  kiln_call *made = nullptr;
  ASSERT_OK(kiln_call_create(compiled.executable.get(), &made));
  host::Call call(made);
  const host::Array x({1, 2}, {1, 2}), w({2}, {10, 20});
  ASSERT_OK(kiln_call_bind(made, 1, &w.tensor));
  const DLTensor *args[] = {&x.tensor};
  ASSERT_OK(kiln_call_run(made, args, 1, nullptr));
  DLManagedTensorVersioned *taken = nullptr;
  ASSERT_OK(kiln_call_take(made, 2, &taken));
  context.reset();
  compiled.executable.reset();
  call.reset();
  graph.reset();
  EXPECT_EQ(static_cast<const float *>(taken->dl_tensor.data)[1], 22.0f);
  taken->deleter(taken);
}

}  // namespace refused
