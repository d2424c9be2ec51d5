// Functions of the host's own, and graphs that they run nodes of.
#pragma once
#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "test_pass.h"

namespace host {

// One that was registered; counts its calls and its end. `on_call` is run by what has "user" in its signature.
struct TestFunction {
  std::string name, version, signature;
  std::atomic<int> called = 0, destroyed = 0;
  std::function<kiln_error *()> on_call = {};
  kiln_function function{};

  template <class Pointer>
  TestFunction(std::string_view called_so, std::string_view of_signature, Pointer pointer, bool identified = false,
               std::string_view of_version = "1")
      : name(called_so), version(of_version), signature(of_signature) {
    function.struct_size = sizeof function;
    function.name = name.data(), function.name_size = name.size();
    function.version = version.data(), function.version_size = version.size();
    function.signature = signature.data(), function.signature_size = signature.size();
    function.pointer = reinterpret_cast<void (*)()>(pointer);
    function.user = this;
    function.destroy = [](void *user) { static_cast<TestFunction *>(user)->destroyed++; };
    if (identified) function.uuid = some_uuid, function.flags = KILN_FUNCTION_UUID_SUFFICES;
  }
  TestFunction(const TestFunction &) = delete;

  uint64_t register_in(kiln_context *context) {
    uint64_t id = 0;
    EXPECT_OK(kiln_function_register(context, &function, &id));
    return id;
  }
};

// y = 3 x, of any shape, by "error (f32 data x, f32 data y, i64 SIZE, user)".
inline kiln_error *triple(const float *x, float *y, int64_t size, void *user) {
  TestFunction &self = *static_cast<TestFunction *>(user);
  self.called++;
  if (self.on_call) return self.on_call();
  for (int64_t i = 0; i < size; ++i) y[i] = 3 * x[i];
  return nullptr;
}
inline constexpr std::string_view triple_signature = "error (f32 data x[n], f32 data y[n], i64 n, user)";

// y = |neg(neg x)|, where the second neg, of node "b", has the annotations. Other nodes are marked for region r.
inline std::string chain(const std::string &annotations, const std::string &op = "neg",
                         const std::string &shape = R"("n")", const std::string &dtype = "f32") {
  const std::string marked = R"("annotations": {"kiln.region": {"text": "r"}})";
  return R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": ")" + dtype + R"(", "shape": [)" + shape +
         R"(]}}], "nodes": [{"name": "a", "op": "neg", "inputs": ["x"], )" + marked + R"(}, {"name": "b", "op": ")" +
         op + R"(", "inputs": ["a"])" + (annotations.empty() ? "" : R"(, "annotations": {)" + annotations + "}") +
         R"(}, {"name": "c", "op": "abs", "inputs": ["b"], )" + marked +
         R"(}], "outputs": [{"name": "y", "value": "c"}]})";
}
inline std::string by(std::string_view function) {
  return R"("kiln.fallback.function": {"text": ")" + std::string(function) + R"("})";
}

inline Compiled compile(kiln_context *context, const std::string &json, const std::string &mode = "all",
                        const std::string &backend = "cpu", bool strict = false) {
  const Graph graph = parse(context, json);
  return compile(context, graph.get(), [&](kiln_options *options) {
    EXPECT_OK(kiln_options_set_text(options, "backend", 7, backend.data(), backend.size()));
    EXPECT_OK(kiln_options_set_text(options, "mode", 4, mode.data(), mode.size()));
    EXPECT_OK(kiln_options_set_bool(options, "strict", 6, strict));
  });
}

inline Call make_call(const Executable &executable) {
  kiln_call *call = nullptr;
  EXPECT_OK(kiln_call_create(executable.get(), &call));
  return Call(call);
}
// Of arrays: inputs, then outputs.
inline kiln_error *run(kiln_call *call, std::initializer_list<const Array *> arrays) {
  std::vector<const DLTensor *> args;
  for (const Array *array : arrays) args.push_back(&array->tensor);
  return kiln_call_run(call, args.data(), args.size(), nullptr);
}
// Of a chain, in which -x became |`factor` times that|.
inline void expect_chain(const Compiled &compiled, float factor) {
  ASSERT_EQ(compiled.error, Error());
  const Call call = make_call(compiled.executable);
  for (const int64_t n : {3, 5}) {
    const auto count = static_cast<size_t>(n);
    const Array x({n}, std::vector<float>(count, -1.5f)), y({n}, std::vector<float>(count));
    ASSERT_OK(run(call.get(), {&x, &y}));
    EXPECT_EQ(y.values, std::vector<float>(count, 1.5f * factor));
  }
}

}  // namespace host
