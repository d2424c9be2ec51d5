#include "profile.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "arrays.h"
#include "json.h"

namespace kiln::cli {
namespace {

// "plan 1.0 step 3, 4711 ns: kernel 2(x)"; what it does not have is 0.
int64_t number_behind(std::string_view text, std::string_view word) {
  const size_t at = text.find(word);
  return at == text.npos ? 0 : std::strtoll(std::string(text.substr(at + word.size(), 20)).c_str(), nullptr, 10);
}

size_t depth_of(std::string_view plan) {
  return plan.empty() ? 0 : 1 + static_cast<size_t>(std::ranges::count(plan, '.'));
}

// Seconds that the kernels of a graph take in the best of some runs, with their bytes and flops.
struct Best {
  double seconds = 0, bytes = 0, flops = 0;
};
Best best_of(const Session &session, const std::string &backend, std::string_view json) {
  const Graph graph = make<Graph>(kiln_graph_parse, session.context(), json.data(), json.size());
  Options options;
  options.set("backend", backend);
  const Compiled compiled = compile(session, graph, options);
  const Call call = make<Call>(kiln_call_create, compiled.executable.get());
  const Report described = report_of(kiln_graph_describe, graph.get());
  std::vector<Array> arrays;
  for (size_t i = 0; i < described.count("inputs"); ++i) {
    const std::string shape = path_of("inputs", i, "shape");
    std::vector<int64_t> dims;
    for (size_t d = 0; d < described.count(shape); ++d) dims.push_back(described.i64(path_of(shape, d)));
    arrays.push_back(Array::random("f32", dims, 1, path_of("x", i), false));
  }
  for (uint32_t i = 0; i < arrays.size(); ++i) check(kiln_call_bind(call.get(), i, arrays[i].tensor()));
  Best best;
  for (int run = 0; run < 5; ++run) {
    const Report report = timed_run(call.get());
    Best now;
    for (size_t i = 0; i < report.count("steps"); ++i) {
      if (!report.has(path_of("steps", i, "kernel"))) continue;
      now.seconds += static_cast<double>(report.i64(path_of("steps", i, "ns"))) * 1e-9;
      now.bytes += static_cast<double>(report.i64(path_of("steps", i, "bytes")));
      now.flops += static_cast<double>(report.i64(path_of("steps", i, "flops")));
    }
    if (best.seconds == 0 || now.seconds < best.seconds) best = now;
  }
  return best;
}

// More than caches hold; and a product that is large enough to show what the processor can do.
constexpr std::string_view negation = R"({"kiln": 1,
  "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [33554432]}}],
  "nodes": [{"name": "y", "op": "neg", "inputs": ["x"]}], "outputs": [{"name": "y", "value": "y"}]})";
constexpr std::string_view product = R"({"kiln": 1,
  "inputs": [{"name": "a", "type": {"dtype": "f32", "shape": [1024, 1024]}},
             {"name": "b", "type": {"dtype": "f32", "shape": [1024, 1024]}}],
  "nodes": [{"name": "y", "op": "matmul", "inputs": ["a", "b"]}], "outputs": [{"name": "y", "value": "y"}]})";

std::string name_of(const Report &call, const std::string &step) {
  const std::string nodes = call.has(step + ".nodes") ? nodes_text(call, step + ".nodes") : "";
  if (!call.has(step + ".kernel")) return call.text(step + ".what");
  return "kernel " + std::to_string(call.i64(step + ".kernel")) + (nodes.empty() ? "" : " of " + nodes);
}

}  // namespace

Report timed_run(kiln_call *call) {
  kiln_run_options options{};
  options.struct_size = sizeof options;
  options.flags = KILN_RUN_STEPS;
  check(kiln_call_run(call, nullptr, 0, &options));
  return report_of(kiln_call_report, call);
}

void StepSpans::ended(std::string_view event) {
  try {
    const double now = std::chrono::duration<double, std::micro>(Clock::now() - begin_).count();
    Span span;
    if (event.starts_with("plan ")) span.plan = event.substr(5, event.find(' ', 5) - 5);
    span.step = number_behind(event, "step ");
    span.end_us = now;
    span.begin_us = std::max(0.0, now - static_cast<double>(number_behind(event, ", ")) / 1000);
    // It began before what it ran, and after what came before it: the two clocks are read at different moments.
    for (auto before = spans_.rbegin(); before != spans_.rend(); ++before) {
      if (depth_of(before->plan) <= depth_of(span.plan)) {
        span.begin_us = std::max(span.begin_us, before->end_us);
        break;
      }
      span.begin_us = std::min(span.begin_us, before->begin_us);
    }
    spans_.push_back(std::move(span));
  } catch (const std::exception &) {  // no memory: the trace lacks a span
  }
}

double Roof::share(double bytes, double flops, double seconds) const {
  if (bytes_per_second <= 0 || flops_per_second <= 0 || seconds <= 0) return 0;
  return std::max(bytes / bytes_per_second, flops / flops_per_second) / seconds;
}

Roof measure_roof(const Session &session, const std::string &backend) {
  if (backend != "cpu" && backend != "cuda") return {};
  const Best moved = best_of(session, backend, negation), multiplied = best_of(session, backend, product);
  if (moved.seconds <= 0 || multiplied.seconds <= 0) return {};
  return {moved.bytes / moved.seconds, multiplied.flops / multiplied.seconds};
}

std::string nodes_text(const Report &report, const std::string &list) {
  constexpr size_t most = 4;
  std::string text;
  const size_t count = report.count(list);
  for (size_t i = 0; i < std::min(most, count); ++i) {
    const std::string at = path_of(list, i), name = report.text(at + ".node");
    text += (i ? ", " : "") + (name.empty() ? "a pass's" : "'" + name + "'") + " [" + report.text(at + ".op") + "]";
    if (report.has(at + ".debug")) text += " (" + report.text(at + ".debug") + ")";
  }
  return count > most ? text + " and " + std::to_string(count - most) + " more" : text;
}

std::vector<StepTime> step_times(const Report &call) {
  std::vector<StepTime> steps(call.count("steps"));
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string at = path_of("steps", i);
    StepTime &step = steps[i];
    step.name = name_of(call, at);
    step.is_outermost = call.text(at + ".plan").empty();
    step.is_kernel = call.has(at + ".kernel");
    step.ns = static_cast<double>(call.i64(at + ".ns"));
    step.runs = call.i64(at + ".runs");
    if (!step.is_kernel) continue;
    step.bytes = static_cast<double>(call.i64(at + ".bytes"));
    step.flops = static_cast<double>(call.i64(at + ".flops"));
  }
  return steps;
}

std::string profile_table(std::vector<StepTime> steps, const Roof &roof, size_t most) {
  double all = 0;  // what nested plans take is in it
  for (const StepTime &step : steps)
    if (step.is_outermost) all += step.ns;
  std::ranges::stable_sort(steps, std::greater<>(), &StepTime::ns);
  const size_t left_out = steps.size() - std::min(most, steps.size());
  steps.resize(steps.size() - left_out);
  std::string table = "        us   of all   runs     GB/s   GFLOP/s    roof  step\n";
  for (const StepTime &step : steps) {
    char text[160];
    std::snprintf(text, sizeof text, "%10.1f %6.1f %% %6lld ", step.ns / 1000, all > 0 ? 100 * step.ns / all : 0,
                  static_cast<long long>(step.runs));
    table += text;
    if (step.is_kernel && step.ns > 0) {
      std::snprintf(text, sizeof text, "%8.2f %9.2f ", step.bytes / step.ns, step.flops / step.ns);
      table += text;
      std::snprintf(text, sizeof text, "%5.0f %%  ", 100 * roof.share(step.bytes, step.flops, step.ns * 1e-9));
      table += roof.bytes_per_second > 0 ? text : "      -  ";
    } else {
      table += "       -         -       -  ";
    }
    table += step.name + "\n";
  }
  if (left_out) table += "and " + std::to_string(left_out) + (left_out == 1 ? " shorter step\n" : " shorter steps\n");
  if (roof.bytes_per_second <= 0) return table;
  char measured[120];
  std::snprintf(measured, sizeof measured, "roof, as measured: %.1f GB/s, %.1f GFLOP/s\n", roof.bytes_per_second * 1e-9,
                roof.flops_per_second * 1e-9);
  return table + measured;
}

std::string trace_json(const Report &call, const StepSpans &spans, const Report &compile) {
  std::map<std::pair<std::string, int64_t>, std::string> rows;  // of the report, by plan and step
  for (size_t i = 0; i < call.count("steps"); ++i) {
    const std::string at = path_of("steps", i);
    rows[{call.text(at + ".plan"), call.i64(at + ".step")}] = at;
  }
  std::string text = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
  const auto thread = [&](int number, std::string_view name) {
    text += "{\"ph\": \"M\", \"pid\": 1, \"tid\": " + std::to_string(number) +
            ", \"name\": \"thread_name\", \"args\": {\"name\": " + json_text(name) + "}},\n";
  };
  const auto span = [&](int number, std::string_view name, double begin, double end, const std::string &args) {
    text += "{\"ph\": \"X\", \"pid\": 1, \"tid\": " + std::to_string(number) + ", \"name\": " + json_text(name) +
            ", \"ts\": " + json_number(begin) + ", \"dur\": " + json_number(end - begin) + ", \"args\": {" + args +
            "}},\n";
  };
  double at = 0;  // us; the compile, then the run
  if (compile) {
    thread(1, "compile: " + compile.text("lookup"));
    for (size_t i = 0; i < compile.count("phases"); ++i) {
      const std::string name = compile.key("phases", i);
      const double end = at + compile.f64("phases." + name) * 1000;
      span(1, name.substr(0, name.size() - 3), at, end, "");  // without "_ms"
      at = end;
    }
  }
  thread(2, "run");
  for (const StepSpans::Span &each : spans.spans()) {
    const auto row = rows.find({each.plan, each.step});
    if (row == rows.end()) continue;
    const std::string &step = row->second;
    std::string args = "\"plan\": " + json_text(each.plan) + ", \"step\": " + std::to_string(each.step) +
                       ", \"what\": " + json_text(call.text(step + ".what"));
    if (call.has(step + ".kernel")) {
      args += ", \"kernel\": " + std::to_string(call.i64(step + ".kernel"));
      const int64_t runs = std::max<int64_t>(call.i64(step + ".runs"), 1);
      for (const char *member : {"bytes", "flops"})
        args += ", \"" + std::string(member) + "\": " + std::to_string(call.i64(step + "." + member) / runs);
      args += ", \"nodes\": " + json_text(nodes_text(call, step + ".nodes"));
    }
    span(2, name_of(call, step), at + each.begin_us, at + each.end_us, args);
  }
  text += "{\"ph\": \"M\", \"pid\": 1, \"tid\": 0, \"name\": \"process_name\", \"args\": {\"name\": \"kiln\"}}\n]}\n";
  return text;
}

}  // namespace kiln::cli
