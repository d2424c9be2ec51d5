// A backend of the host's own: takes neg of f32, of known sizes, and computes 10 times that, so that one sees who ran.
// Counts what is called.
#pragma once
#include <atomic>
#include <functional>
#include <string>

#include "test_function.h"

namespace host {

struct TestBackend {
  std::string name;
  std::atomic<int> targets = 0, asked = 0, compiled = 0, loaded = 0, unloaded = 0, prepared = 0, released = 0,
                   opened = 0, closed = 0, ran = 0, destroyed = 0;
  std::string takes_op = "neg", told = "here";
  bool prepares_nothing = false;  // *out_prepared stays NULL
  bool takes_all_but = false;     // takes_op is what it does not take
  std::function<kiln_error *(std::string_view where)> fails = [](std::string_view) { return nullptr; };
  kiln_backend backend{};

  explicit TestBackend(std::string_view called_so = "ten", bool identified = true) : name(called_so) {
    backend.struct_size = sizeof backend;
    backend.name = name.data(), backend.name_size = name.size();
    backend.version = "1", backend.version_size = 1;
    backend.device_type = kDLCPU;
    backend.user = this;
    backend.target = target, backend.takes = takes, backend.compile = compile, backend.load = load;
    backend.prepare = prepare, backend.open = open, backend.run = run;
    backend.close = [](void *user, void *) { of(user).closed++; };
    backend.release = [](void *user, void *) { of(user).released++; };
    backend.unload = [](void *user, void *) {
      EXPECT_EQ(of(user).destroyed, 0);
      of(user).unloaded++;
    };
    backend.destroy = [](void *user) { of(user).destroyed++; };
    if (identified) backend.uuid = some_uuid, backend.flags = KILN_BACKEND_UUID_SUFFICES;
  }
  TestBackend(const TestBackend &) = delete;

  uint64_t register_in(kiln_context *context) {
    uint64_t id = 0;
    EXPECT_OK(kiln_backend_register(context, &backend, &id));
    return id;
  }

 private:
  static TestBackend &of(void *user) { return *static_cast<TestBackend *>(user); }
  static kiln_error *target(void *user, kiln_backend_call *call) {
    of(user).targets++;
    if (kiln_error *error = of(user).fails("target")) return error;
    return kiln_backend_key(call, of(user).told.data(), of(user).told.size());
  }
  static kiln_error *takes(void *user, kiln_backend_call *call, const kiln_graph *graph, kiln_node node,
                           uint32_t *out) {
    of(user).asked++;
    if (kiln_error *error = of(user).fails("takes")) return error;
    kiln_op op = 0;
    const std::string &wanted = of(user).takes_op;
    if (kiln_error *error = kiln_op_find(kiln_backend_context(call), wanted.data(), wanted.size(), &op)) return error;
    *out = (kiln_node_op(graph, node) == op) != of(user).takes_all_but;
    return nullptr;
  }
  static kiln_error *compile(void *user, kiln_backend_call *call, const kiln_graph *region) {
    of(user).compiled++;
    if (kiln_error *error = of(user).fails("compile")) return error;
    uint64_t count = 0;
    if (kiln_error *error = kiln_graph_nodes(region, nullptr, 0, &count)) return error;
    return kiln_backend_blob(call, "neg", 3);
  }
  static kiln_error *load(void *user, const void *blob, uint64_t size, void **out_program) {
    of(user).loaded++;
    if (kiln_error *error = of(user).fails("load")) return error;
    EXPECT_EQ(std::string(static_cast<const char *>(blob), size), "neg");
    *out_program = user;
    return nullptr;
  }
  static kiln_error *prepare(void *user, void *, const DLTensor *const *, uint64_t, void **out_prepared) {
    of(user).prepared++;
    if (kiln_error *error = of(user).fails("prepare")) return error;
    if (!of(user).prepares_nothing) *out_prepared = user;
    return nullptr;
  }
  static kiln_error *open(void *user, void *, void **out_state) {
    of(user).opened++;
    if (kiln_error *error = of(user).fails("open")) return error;
    *out_state = user;
    return nullptr;
  }
  // Of one operand, and as many results: each 10 times what neg makes.
  static kiln_error *run(void *user, void *program, void *, void *state, const DLTensor *const *args, uint64_t count,
                         const kiln_run_options *) {
    EXPECT_EQ(program, user);
    EXPECT_EQ(state, user);
    of(user).ran++;
    if (kiln_error *error = of(user).fails("run")) return error;
    const DLTensor &x = *args[0], &y = *args[count - 1];
    int64_t elements = 1;
    for (int32_t d = 0; d < x.ndim; ++d) elements *= x.shape[d];
    for (int64_t i = 0; i < elements; ++i) static_cast<float *>(y.data)[i] = -10 * static_cast<float *>(x.data)[i];
    return nullptr;
  }
};

}  // namespace host
