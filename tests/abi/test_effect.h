// An op of the host's own with an effect: it notes its attribute "id", or the sum of x where that is -1, and gives x.
#pragma once
#include <functional>
#include <mutex>
#include <vector>

#include "test_op.h"

namespace host {

struct TestEffect {
  static constexpr std::string_view usual_schema = R"({"name": "host.note", "doc": "Notes id.",
      "args": [{"name": "x", "dtypes": ["f32"]}, {"name": "after", "dtypes": ["token"]}],
      "results": ["y", "done"],
      "attrs": [{"name": "id", "kind": "i64", "default": -1}]})";
  kiln_op_def def{};
  std::function<kiln_error *(int64_t id)> on_run = {};

  explicit TestEffect(bool is_identified = false, uint32_t more_flags = 0) {
    def.struct_size = sizeof def;
    def.flags = KILN_OP_EFFECT | more_flags;
    def.schema = usual_schema.data();
    def.schema_size = usual_schema.size();
    def.user = this;
    def.infer = [](void *, kiln_op_call *call) { return as_its_operand(call); };
    def.open = open;
    def.run = run;
    def.close = [](void *, void *state) { delete static_cast<int64_t *>(state); };
    if (is_identified) def.uuid = some_uuid, def.flags |= KILN_OP_UUID_SUFFICES;
  }
  TestEffect(const TestEffect &) = delete;

  void register_in(kiln_context *context) { EXPECT_OK(kiln_op_register(context, &def, nullptr)); }
  // What was noted since this was asked last.
  std::vector<int64_t> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(noted_, {});
  }

 private:
  static kiln_error *open(void *, kiln_op_call *call, void **out_state) {
    kiln_attr attr{};
    if (kiln_error *error = kiln_op_call_attr(call, "id", 2, &attr)) return error;
    *out_state = new int64_t(*static_cast<const int64_t *>(attr.data));
    return nullptr;
  }
  static kiln_error *run(void *user, void *state, const DLTensor *const *arrays, uint64_t count,
                         const kiln_run_options *) {
    auto &self = *static_cast<TestEffect *>(user);
    EXPECT_EQ(count, 4u);
    for (const uint64_t token : {1u, 3u}) {
      EXPECT_EQ(arrays[token]->data, nullptr);
      EXPECT_EQ(arrays[token]->ndim, 0);
      EXPECT_EQ(arrays[token]->dtype.code, kDLOpaqueHandle);
      EXPECT_EQ(arrays[token]->dtype.bits, 0);
    }
    int64_t elements = 1;
    for (int32_t d = 0; d < arrays[0]->ndim; ++d) elements *= arrays[0]->shape[d];
    const float *x = static_cast<const float *>(arrays[0]->data);
    std::copy(x, x + elements, static_cast<float *>(arrays[2]->data));
    int64_t id = *static_cast<int64_t *>(state);
    if (id == -1)
      for (id = 0; elements > 0; --elements) id += static_cast<int64_t>(*x++);
    if (self.on_run)
      if (kiln_error *error = self.on_run(id)) return error;
    const std::lock_guard lock(self.mutex_);
    self.noted_.push_back(id);
    return nullptr;
  }

  std::mutex mutex_;
  std::vector<int64_t> noted_;
};

}  // namespace host
