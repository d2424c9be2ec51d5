// A host for the tests of this folder: handles that destroy themselves, errors as values. Over kiln.h alone.
#pragma once
#include <gtest/gtest.h>
#include <kiln/kiln.h>

#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace host {

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T *handle) const {
    destroy(handle);
  }
};
using Context = std::unique_ptr<kiln_context, Destroy<kiln_context_destroy>>;
using Options = std::unique_ptr<kiln_options, Destroy<kiln_options_destroy>>;
using Graph = std::unique_ptr<kiln_graph, Destroy<kiln_graph_destroy>>;
using Edit = std::unique_ptr<kiln_edit, Destroy<kiln_edit_destroy>>;
using Executable = std::unique_ptr<kiln_executable, Destroy<kiln_executable_destroy>>;
using Call = std::unique_ptr<kiln_call, Destroy<kiln_call_destroy>>;
using Report = std::unique_ptr<kiln_report, Destroy<kiln_report_destroy>>;
using Tensors = std::unique_ptr<kiln_tensors, Destroy<kiln_tensors_destroy>>;
using Blob = std::unique_ptr<kiln_blob, Destroy<kiln_blob_destroy>>;

inline std::string text_of(kiln_text text) { return {text.data, static_cast<size_t>(text.size)}; }

// What a call returned; KILN_OK when it was NULL. Of the report, the lookup and its reason, if there is one.
struct Error {
  uint32_t code = KILN_OK;
  std::string message, node, plugin, cause, lookup, reason;
  bool operator==(const Error &) const = default;
};
inline std::ostream &operator<<(std::ostream &out, const Error &error) {
  return out << "code " << error.code << ": " << error.message;
}
inline Error take(kiln_error *error) {
  if (!error) return {};
  Error taken;
  kiln_text text{};
  taken.code = kiln_error_code(error);
  kiln_error_message(error, &text);
  taken.message = text_of(text);
  kiln_error_node(error, &text);
  taken.node = text_of(text);
  kiln_error_plugin(error, &text);
  taken.plugin = text_of(text);
  if (const kiln_error *cause = kiln_error_cause(error)) {
    kiln_error_message(cause, &text);
    taken.cause = text_of(text);
  }
  if (const kiln_report *report = kiln_error_report(error)) {
    const auto read = [&](std::string_view name, std::string &into) {
      kiln_error *missing = kiln_report_get_text(report, name.data(), name.size(), &text);
      if (!missing) into = text_of(text);
      kiln_error_destroy(missing);
    };
    read("lookup", taken.lookup);
    read("reason", taken.reason);
  }
  kiln_error_destroy(error);
  return taken;
}

#define EXPECT_OK(call)                                                 \
  do {                                                                  \
    const host::Error taken_ = host::take(call);                        \
    EXPECT_EQ(taken_.code, KILN_OK) << #call << ": " << taken_.message; \
  } while (0)
#define ASSERT_OK(call)                                                 \
  do {                                                                  \
    const host::Error taken_ = host::take(call);                        \
    ASSERT_EQ(taken_.code, KILN_OK) << #call << ": " << taken_.message; \
  } while (0)
// Fails with this code, and says these words.
#define EXPECT_FAILS(call, expected_code, words)                                \
  do {                                                                          \
    const host::Error taken_ = host::take(call);                                \
    EXPECT_EQ(taken_.code, expected_code) << #call << ": " << taken_.message;   \
    EXPECT_NE(taken_.message.find(words), std::string::npos) << taken_.message; \
  } while (0)

inline kiln_attr attr(std::string_view name, uint32_t kind, uint64_t count, const void *data) {
  kiln_attr made{};
  made.name = name.data();
  made.name_size = name.size();
  made.kind = kind;
  made.count = count;
  made.data = data;
  return made;
}

// A sink that adds the text of each warning; `texts` outlives the context that it is given to.
inline kiln_event_sink warnings_into(std::vector<std::string> &texts) {
  kiln_event_sink sink{};
  sink.struct_size = sizeof sink;
  sink.kinds = 1u << KILN_EVENT_WARNING;
  sink.user = &texts;
  sink.event = [](void *user, uint32_t, const char *text, uint64_t size) -> int32_t {
    static_cast<std::vector<std::string> *>(user)->emplace_back(text, size);
    return 0;
  };
  return sink;
}

// What a sink was told; one of them it answers with another number than 0.
struct Told {
  std::vector<std::string> texts;
  size_t ends_at = 0;  // which, counted from 1; 0: none
};
inline kiln_event_sink told_into(Told &told, uint32_t kind) {
  kiln_event_sink sink{};
  sink.struct_size = sizeof sink;
  sink.kinds = 1u << kind;
  sink.user = &told;
  sink.event = [](void *user, uint32_t, const char *text, uint64_t size) -> int32_t {
    Told &to = *static_cast<Told *>(user);
    to.texts.emplace_back(text, size);
    return to.texts.size() == to.ends_at;
  };
  return sink;
}

// A context with its own settings; the cache is off unless a folder is given.
inline Context make_context(std::string_view cache = "off", const kiln_event_sink *sink = nullptr,
                            int64_t threads = 1) {
  kiln_options *options = nullptr;
  EXPECT_OK(kiln_options_create(&options));
  const Options owned(options);
  EXPECT_OK(kiln_options_set_text(options, "cache", 5, cache.data(), cache.size()));
  EXPECT_OK(kiln_options_set_i64(options, "threads", 7, threads));
  kiln_context *context = nullptr;
  EXPECT_OK(kiln_context_create(options, sink, &context));
  return Context(context);
}

inline Graph parse(kiln_context *context, std::string_view json) {
  kiln_graph *graph = nullptr;
  EXPECT_OK(kiln_graph_parse(context, json.data(), json.size(), &graph));
  return Graph(graph);
}

inline std::string bytes_of(kiln_blob *blob) {
  const Blob owned(blob);
  uint64_t size = 0;
  const void *data = kiln_blob_data(blob, &size);
  return {static_cast<const char *>(data), static_cast<size_t>(size)};
}
inline std::string write(const kiln_graph *graph, std::string_view format) {
  kiln_blob *blob = nullptr;
  EXPECT_OK(kiln_graph_write(graph, format.data(), format.size(), &blob));
  return blob ? bytes_of(blob) : "";
}

inline int64_t i64(const Report &report, std::string_view path) {
  int64_t value = INT64_MIN;
  EXPECT_OK(kiln_report_get_i64(report.get(), path.data(), path.size(), &value));
  return value;
}
inline std::string text(const Report &report, std::string_view path) {
  kiln_text value{};
  EXPECT_OK(kiln_report_get_text(report.get(), path.data(), path.size(), &value));
  return text_of(value);
}

inline Report context_report(kiln_context *context) {
  kiln_report *report = nullptr;
  EXPECT_OK(kiln_context_report(context, &report));
  return Report(report);
}

inline Report describe(const kiln_executable *executable) {
  kiln_report *report = nullptr;
  EXPECT_OK(kiln_executable_describe(executable, &report));
  return Report(report);
}

// A row-major f32 array of the host's own.
struct Array {
  std::vector<int64_t> shape;
  std::vector<float> values;
  DLTensor tensor{};

  Array(std::vector<int64_t> of, std::vector<float> with) : shape(std::move(of)), values(std::move(with)) {
    tensor.data = values.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.dtype = {kDLFloat, 32, 1};
    tensor.shape = shape.data();
  }
  Array(const Array &) = delete;
};

// y = -(-x) + w, over a symbolic batch.
inline constexpr std::string_view small_graph = R"({"kiln": 1,
  "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
  "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
  "nodes": [{"name": "once", "op": "neg", "inputs": ["x"]},
            {"name": "twice", "op": "neg", "inputs": ["once"]},
            {"name": "sum", "op": "add", "inputs": ["twice", "w"]}],
  "outputs": [{"name": "y", "value": "sum"}]})";

// While x <= 1, x doubled: for ever from 0 on.
inline constexpr std::string_view doubles = R"({"kiln": 1,
  "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": []}}],
  "nodes": [{"name": "w", "op": "while", "inputs": ["x"], "attrs": {"cond_graph": "small", "body_graph": "doubled"}}],
  "outputs": [{"name": "y", "value": "w"}],
  "graphs": {
    "small": {"inputs": [{"name": "x", "type": {"dtype": "f32", "shape": []}}],
              "constants": [{"name": "one", "type": {"dtype": "f32", "shape": []}, "data": [1]}],
              "nodes": [{"name": "s", "op": "le", "inputs": ["x", "one"]}], "outputs": [{"name": "s", "value": "s"}]},
    "doubled": {"inputs": [{"name": "x", "type": {"dtype": "f32", "shape": []}}],
                "nodes": [{"name": "d", "op": "add", "inputs": ["x", "x"]}], "outputs": [{"name": "d", "value": "d"}]}}})";

// y = x * factor: a graph for each factor.
inline std::string scaled(int factor) {
  return R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
    "constants": [{"name": "c", "type": {"dtype": "f32", "shape": []}, "data": [)" +
         std::to_string(factor) + R"(]}],
    "nodes": [{"name": "y", "op": "mul", "inputs": ["x", "c"]}], "outputs": [{"name": "y", "value": "y"}]})";
}

struct Compiled {
  Executable executable;
  Report report;
  Error error;
};
// Options as set by `set`.
template <class Set>
Compiled compile(kiln_context *context, const kiln_graph *graph, Set set) {
  kiln_options *options = nullptr;
  EXPECT_OK(kiln_options_create(&options));
  const Options owned(options);
  set(options);
  kiln_executable *executable = nullptr;
  kiln_report *report = nullptr;
  Compiled compiled;
  compiled.error = take(kiln_compile(context, graph, options, &executable, &report));
  compiled.executable.reset(executable);
  compiled.report.reset(report);
  return compiled;
}
inline Compiled compile(kiln_context *context, const kiln_graph *graph) {
  return compile(context, graph, [](kiln_options *) {});
}

// An artifact as bytes, and what becomes of them in a context.
inline std::string bytes_of(const Executable &executable) {
  kiln_blob *blob = nullptr;
  EXPECT_OK(kiln_executable_bytes(executable.get(), nullptr, &blob));
  return blob ? bytes_of(blob) : "";
}
inline Error open_bytes(kiln_context *context, std::string_view bytes, Executable &out) {
  kiln_executable *made = nullptr;
  Error error = take(kiln_executable_open_bytes(context, bytes.data(), bytes.size(), nullptr, &made));
  out.reset(made);
  return error;
}

// A predicate, as a call takes it.
struct Bool {
  uint8_t value;
  DLTensor tensor{&value, {kDLCPU, 0}, 0, {kDLBool, 8, 1}, nullptr, nullptr, 0};
};

// Runs what scaled(factor) became, a few times, on so many elements that all threads of its context take part.
inline void expect_scaled(kiln_executable *executable, int factor) {
  constexpr int64_t n = 1 << 18;
  kiln_call *made = nullptr;
  ASSERT_OK(kiln_call_create(executable, &made));
  const Call call(made);
  const Array x({n}, std::vector<float>(n, 3)), y({n}, std::vector<float>(n));
  const DLTensor *args[] = {&x.tensor, &y.tensor};
  for (int i = 0; i < 3; i++) EXPECT_OK(kiln_call_run(call.get(), args, 2, nullptr));
  EXPECT_EQ(y.values, std::vector<float>(n, static_cast<float>(3 * factor)));
}

}  // namespace host
