// An op of the host's own: y = x * factor, of any rank, in f32, by a function, a decomposition or both. Counts what is
// called.
#pragma once
#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>

#include "test_pass.h"

namespace host {

// Result 0 is f32, of the dims of operand 0.
inline kiln_error *as_its_operand(kiln_op_call *call) {
  kiln_dim dims[8];
  uint64_t rank = 0;
  if (kiln_error *error = kiln_op_call_dims(call, 0, dims, 8, &rank)) return error;
  kiln_type type{};
  type.struct_size = sizeof type;
  type.dtype = KILN_F32;
  type.rank = static_cast<uint32_t>(rank);
  type.dims = dims;
  return kiln_op_call_result(call, 0, &type);
}

struct TestOp {
  enum Has : uint32_t { runs = 1, decomposes = 2, keeps_state = 4, is_identified = 8 };
  std::string schema;
  std::atomic<int> inferred = 0, decomposed = 0, opened = 0, closed = 0, ran = 0, destroyed = 0;
  std::function<kiln_error *(kiln_op_call *)> on_infer = {};
  std::function<kiln_error *(kiln_op_call *)> on_decompose = {};
  std::function<kiln_error *()> on_run = {};
  std::function<void()> on_close = {};
  kiln_op_def def{};

  explicit TestOp(uint32_t has, std::string_view name = "host.scale", int version = 1)
      : schema(R"({"name": ")" + std::string(name) + R"(", "doc": "x times factor.", "version": )" +
               std::to_string(version) + R"(,
          "args": [{"name": "x", "doc": "what is scaled", "dtypes": ["f32"]}], "results": ["y"],
          "attrs": [{"name": "factor", "doc": "by which", "kind": "f64", "default": 2}],
          "samples": [{"name": "rows", "inputs": [{"dtype": "f32", "shape": [3, 5]}], "attrs": {"factor": 3}}]})") {
    def.struct_size = sizeof def;
    def.schema = schema.data();
    def.schema_size = schema.size();
    def.user = this;
    def.infer = infer;
    def.destroy = [](void *user) { of(user).destroyed++; };
    if (has & decomposes) def.decompose = decompose;
    if (has & runs) def.run = run;
    if (has & keeps_state) def.open = open, def.close = close;
    if (has & is_identified) def.uuid = some_uuid, def.flags = KILN_OP_UUID_SUFFICES;
  }
  TestOp(const TestOp &) = delete;

  kiln_op register_in(kiln_context *context) {
    kiln_op op = 0;
    EXPECT_OK(kiln_op_register(context, &def, &op));
    return op;
  }

 private:
  static TestOp &of(void *user) { return *static_cast<TestOp *>(user); }
  static kiln_error *factor(kiln_op_call *call, double &out) {
    kiln_attr attr{};
    if (kiln_error *error = kiln_op_call_attr(call, "factor", 6, &attr)) return error;
    out = *static_cast<const double *>(attr.data);
    return nullptr;
  }
  static kiln_error *infer(void *user, kiln_op_call *call) {
    of(user).inferred++;
    if (of(user).on_infer) return of(user).on_infer(call);
    return as_its_operand(call);
  }
  static kiln_error *decompose(void *user, kiln_op_call *call) {
    of(user).decomposed++;
    if (of(user).on_decompose) return of(user).on_decompose(call);
    kiln_edit *edit = kiln_op_call_edit(call);
    double by = 0;
    if (kiln_error *error = factor(call, by)) return error;
    const float value = static_cast<float>(by);
    DLTensor tensor{};
    tensor.data = const_cast<float *>(&value);
    tensor.device = {kDLCPU, 0};
    tensor.dtype = {kDLFloat, 32, 1};
    kiln_value constant = 0;
    kiln_node product = 0;
    kiln_op mul = 0;
    if (kiln_error *error = kiln_edit_constant(edit, nullptr, 0, &tensor, &constant)) return error;
    if (kiln_error *error = kiln_op_find(kiln_op_call_context(call), "mul", 3, &mul)) return error;
    const kiln_value inputs[] = {kiln_op_call_operand(call, 0), constant};
    if (kiln_error *error = kiln_edit_add(edit, mul, nullptr, 0, inputs, 2, nullptr, 0, &product)) return error;
    return kiln_op_call_yield(call, 0, product << 32);
  }
  static kiln_error *open(void *user, kiln_op_call *call, void **out_state) {
    of(user).opened++;
    auto by = std::make_unique<double>(0);
    if (kiln_error *error = factor(call, *by)) return error;
    *out_state = by.release();
    return nullptr;
  }
  static void close(void *user, void *state) {
    of(user).closed++;
    delete static_cast<double *>(state);
    if (of(user).on_close) of(user).on_close();
  }
  static kiln_error *run(void *user, void *state, const DLTensor *const *arrays, uint64_t count,
                         const kiln_run_options *) {
    of(user).ran++;
    if (of(user).on_run) return of(user).on_run();
    const double by = state ? *static_cast<double *>(state) : 2;
    int64_t elements = count == 2 ? 1 : 0;
    for (int32_t d = 0; d < arrays[0]->ndim; ++d) elements *= arrays[0]->shape[d];
    for (int64_t k = 0; k < elements; ++k)
      static_cast<float *>(arrays[1]->data)[k] = static_cast<float>(static_cast<float *>(arrays[0]->data)[k] * by);
    return nullptr;
  }
};

}  // namespace host
