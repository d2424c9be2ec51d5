#include "trial.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>

#include "../compare.h"
#include "../elements.h"

namespace kiln::cli {
namespace {

int32_t ignore(void *, uint32_t, const char *, uint64_t) { return 0; }

Context context_of(std::string_view cache) {
  Options options;
  options.set("cache", cache);
  options.set("threads", int64_t{2});
  kiln_event_sink sink = {};
  sink.struct_size = sizeof sink;
  sink.event = ignore;
  return make<Context>(kiln_context_create, options.get(), &sink);
}

std::vector<std::string> names_of(const Report &report, std::string_view list) {
  std::vector<std::string> names;
  for (size_t i = 0; i < report.count(list); ++i) names.push_back(report.text(path_of(list, i, "name")));
  return names;
}

// The symbols that have no hint, with sizes that differ from one another as far as they may.
std::vector<std::pair<std::string, std::string>> sizes_of(const Report &description,
                                                          const std::vector<Symbol> &symbols) {
  std::vector<std::pair<std::string, std::string>> sizes;
  int64_t next = 3;
  for (const Symbol &symbol : symbols) {
    const std::string at = "symbols." + symbol.name;
    if (description.has(at + ".hint") && description.i64(at + ".hint") > 0) continue;
    const int64_t divisor = std::max<int64_t>(symbol.divisor, 1);
    int64_t size = (std::max(symbol.min, next) + divisor - 1) / divisor * divisor;
    if (symbol.max > 0) size = std::min(size, symbol.max / divisor * divisor);
    sizes.emplace_back(symbol.name, std::to_string(size));
    next += 2;
  }
  return sizes;
}

// Of a member that need not be there.
bool is_true(const Report &report, const std::string &path) {
  uint32_t value = 0;
  kiln_error *error = kiln_report_get_bool(report.get(), path.data(), path.size(), &value);
  kiln_error_destroy(error);
  return !error && value != 0;
}

// Elements as they were drawn for an input, floats in [-1, 1), become some of the range.
void spread(const DLTensor &tensor, const Range &range) {
  const size_t size = tensor.dtype.bits / 8;
  auto *at = static_cast<std::byte *>(tensor.data);
  uint64_t state = 0;
  for (int64_t i = 0, count = static_cast<int64_t>(bytes_of(tensor) / size); i < count; ++i, at += size) {
    state = state * 6364136223846793005 + 1442695040888963407;
    if (is_float(tensor.dtype)) {
      const double part = (load_element(tensor.dtype, at) + 1) / 2;
      store_element(tensor.dtype, at, range.low + part * (range.high - range.low));
    } else if (tensor.dtype.code != kDLBool) {
      const auto width = static_cast<uint64_t>(std::max<int64_t>(range.integer_high - range.integer_low, 1));
      const int64_t value = range.integer_low + static_cast<int64_t>((state >> 33) % width);
      std::memcpy(at, &value, size);
    }
  }
}

}  // namespace

std::optional<double> given_tolerance(const Args &args) {
  const std::string text = args.get(tolerance_flag.name).value_or("");
  if (text.empty()) return std::nullopt;
  char *end = nullptr;
  const double tolerance = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !(tolerance > 0) || !std::isfinite(tolerance))
    throw Usage("--tolerance: '" + text + "' is not a number above 0");
  return tolerance;
}

double tolerance_of(const Args &args, const Registered &registered) {
  return given_tolerance(args).value_or(registered.changes_numerics ? 0.25 : 0);
}

Context plain_context() { return context_of("off"); }

Context context_with(const std::string &plugin, std::string_view cache) {
  Context context = context_of(cache);
  check(kiln_plugin_load(context.get(), plugin.data(), plugin.size(), nullptr));
  return context;
}

Graph parse(const Context &context, std::string_view json) {
  return make<Graph>(kiln_graph_parse, context.get(), json.data(), json.size());
}

std::string digest_of(std::string_view what, std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  char text[32];
  std::snprintf(text, sizeof text, " %016llx", static_cast<unsigned long long>(hash));
  return std::string(what) + text;
}

std::string text_of(const Graph &graph) {
  return std::string(view(make<Blob>(kiln_graph_write, graph.get(), "text", size_t{4})));
}

std::string text_with_constants(const Graph &graph) {
  const Blob json = make<Blob>(kiln_graph_write, graph.get(), "json", size_t{4});
  return text_of(graph) + digest_of("with its constants", view(json));
}

Registered::Registered(const std::string &plugin)
    : report(report_of(kiln_plugin_inspect, plugin.data(), plugin.size())),
      passes(names_of(report, "passes")),
      ops(names_of(report, "ops")),
      backends(names_of(report, "backends")) {
  for (size_t i = 0; i < passes.size(); ++i) {
    has_lower_pass = has_lower_pass || report.text(path_of("passes", i, "stage")) == "lower";
    changes_numerics = changes_numerics || is_true(report, path_of("passes", i, "numerics"));
  }
}

Options interpreted(const Registered &registered) {
  Options options;
  options.set("mode", registered.has_lower_pass ? "all" : "none");
  options.set("fallback", "reference");
  return options;
}

Options passed(const Registered &registered) {
  Options options = interpreted(registered);
  options.set("code", false);
  return options;
}

Compilation compile(const Context &context, const Graph &graph, const Options &options) {
  kiln_executable *executable = nullptr;
  kiln_report *report = nullptr;
  check(kiln_compile(context.get(), graph.get(), options.get(), &executable, &report));
  return {Executable(executable), Report(report)};
}

Graph graph_of(const Context &context, const Executable &executable) {
  const Blob json = make<Blob>(kiln_executable_text, executable.get(), "graph", size_t{5});
  return parse(context, view(json));
}

std::vector<Array> draw(const Context &context, const Graph &graph, uint64_t seed, const std::optional<Range> &range) {
  const Report description = report_of(kiln_graph_describe, graph.get());
  const Signature signature = signature_of(description);
  Sizes sizes(context.get());
  sizes.set(sizes_of(description, signature.symbols), signature.symbols);
  sizes.add_hints(description);
  std::vector<Array> arrays;
  for (const auto *side : {&signature.inputs, &signature.parameters}) {
    for (const Slot &slot : *side) {
      arrays.push_back(Array::random(slot.dtype, sizes.dims(slot), seed, slot.name, side == &signature.parameters));
      if (range) spread(*arrays.back().tensor(), *range);
      if (slot.strides.empty()) continue;
      Array strided = Array::laid_out(*arrays.back().tensor(), sizes.strides(slot), slot.name, false);
      arrays.back() = std::move(strided);
    }
  }
  return arrays;
}

std::vector<Array> run(const Executable &executable, const std::vector<Array> &inputs) {
  const Signature signature = signature_of(report_of(kiln_executable_describe, executable.get()));
  const Call call = make<Call>(kiln_call_create, executable.get());
  std::deque<Array> own;  // a copy_ may write to its input
  for (uint32_t slot = 0; slot < inputs.size(); ++slot) {
    const DLTensor &given = *inputs[slot].tensor();
    std::vector<int64_t> strides;
    if (given.strides) strides.assign(given.strides, given.strides + given.ndim);
    own.push_back(strides.empty() ? Array::copy_of(given, "") : Array::laid_out(given, strides, "", false));
    check(kiln_call_bind(call.get(), slot, own.back().tensor()));
  }
  check(kiln_call_run(call.get(), nullptr, 0, nullptr));
  std::vector<Array> outputs;
  auto slot = static_cast<uint32_t>(inputs.size());
  for (const Slot &output : signature.outputs) {
    const DLTensor *tensor = nullptr;
    check(kiln_call_output(call.get(), slot++, &tensor));
    outputs.push_back(Array::copy_of(*tensor, output.name));
  }
  return outputs;
}

std::string difference(const DLTensor &actual, const DLTensor &expected, double tolerance) {
  const Difference found = difference_of(actual, expected);
  if (tolerance > 0 ? found.relative <= tolerance : !found.is_beyond) return "";
  char numbers[80];
  std::snprintf(numbers, sizeof numbers, "differs by %.3g, relative %.3g, at ", found.absolute, found.relative);
  return numbers + found.where;
}

std::string difference(const Graph &graph, const std::vector<Array> &actual, const std::vector<Array> &expected,
                       double tolerance) {
  const Signature signature = signature_of(report_of(kiln_graph_describe, graph.get()));
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string apart = difference(*actual.at(i).tensor(), *expected[i].tensor(), tolerance);
    if (!apart.empty()) return "output '" + signature.outputs[i].name + "' " + apart;
  }
  return "";
}

std::vector<Array> oracle(const Context &context, const Graph &graph, const std::vector<Array> &inputs) {
  Options options;
  options.set("backend", "reference");
  return run(compile(context, graph, options).executable, inputs);
}

}  // namespace kiln::cli
