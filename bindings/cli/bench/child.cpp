#include "child.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "../commands.h"
#include "../json.h"
#include "../profile.h"
#include "../run_arrays.h"
#include "../stats.h"
#include "process.h"
#include "statistics.h"

namespace kiln::cli::bench {
namespace {

double seconds_of(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Timed {
  double real = 0, cpu = 0;  // seconds; of all threads of the process
  int64_t iterations = 1;
};

template <class Function>
Timed timed(const Function &function) {
  const double real = seconds_of(CLOCK_MONOTONIC), cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  function();
  return {seconds_of(CLOCK_MONOTONIC) - real, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu};
}

// The median of runs, which are timed in batches that the clock can resolve, until `seconds` and a few batches are
// over.
Timed steady(kiln_call *call, double seconds) {
  constexpr double least_batch = 20e-6;
  constexpr size_t least_batches = 5;
  const auto run = [&] { check(kiln_call_run(call, nullptr, 0, nullptr)); };
  run();
  const double once = std::max(timed(run).real, 1e-9);
  const auto batch = static_cast<int64_t>(std::clamp(std::ceil(least_batch / once), 1.0, 1000.0));
  std::vector<double> each;
  Timed all = {0, 0, 0};
  while (all.real < seconds || each.size() < least_batches) {
    const Timed now = timed([&] {
      for (int64_t i = 0; i < batch; ++i) run();
    });
    each.push_back(now.real / static_cast<double>(batch));
    all = {all.real + now.real, all.cpu + now.cpu, all.iterations + batch};
  }
  return {quartiles_of(std::move(each)).median, all.cpu / static_cast<double>(all.iterations), all.iterations};
}

std::string json_of(const Timed &value) {
  return JsonObject().add("real", value.real).add("cpu", value.cpu).add("iterations", value.iterations).text();
}

std::string steps_json(const Report &call) {
  std::string text;
  for (const StepTime &step : step_times(call)) {
    JsonObject row;
    row.add("name", step.name);
    row.add("outermost", step.is_outermost);
    row.add("kernel", step.is_kernel);
    row.add("ns", step.ns);
    row.add("bytes", step.bytes);
    row.add("flops", step.flops);
    row.add("runs", step.runs);
    text += (text.empty() ? "" : ", ") + row.text();
  }
  return "[" + text + "]";
}

void write_outputs(const std::string &path, kiln_call *call, const Signature &signature) {
  const std::vector<Array> outputs = outputs_of(call, signature);
  std::vector<kiln_text> names;
  std::vector<const DLTensor *> tensors;
  for (size_t i = 0; i < outputs.size(); ++i) {
    names.push_back({signature.outputs[i].name.data(), signature.outputs[i].name.size()});
    tensors.push_back(outputs[i].tensor());
  }
  check(kiln_tensors_write(path.data(), path.size(), names.data(), tensors.data(), tensors.size()));
}

Signature signature_of(const Subject &subject) {
  return cli::signature_of(subject.graph ? report_of(kiln_graph_describe, subject.graph.get())
                                         : report_of(kiln_executable_describe, subject.executable.get()));
}

void tell_of_subject(JsonObject &told, const Subject &subject) {
  told.add("artifact", !subject.graph);
  std::string names;
  for (const Symbol &symbol : signature_of(subject).symbols)
    names += (names.empty() ? "" : ", ") + json_text(symbol.name);
  told.raw("symbols", "[" + names + "]");
}

void tell_of_runs(JsonObject &told, const Args &args, const Session &session, const Subject &subject,
                  const RunArrays &arrays, const Signature &signature) {
  const Call call = make<Call>(kiln_call_create, subject.executable.get());
  arrays.bind(call.get());
  told.raw("first_run", json_of(timed([&] { check(kiln_call_run(call.get(), nullptr, 0, nullptr)); })));
  if (const auto path = args.get("--outputs")) write_outputs(*path, call.get(), signature);
  told.raw("run", json_of(steady(call.get(), std::stod(*args.get("--seconds")))));
  told.add("peak_bytes", static_cast<int64_t>(peak_bytes()));
  told.raw("steps", steps_json(timed_run(call.get())));
  const std::string backend = report_of(kiln_executable_describe, subject.executable.get()).text("backend");
  told.add("backend", backend);
  if (!args.has("--roof")) return;
  const Roof roof = measure_roof(session, backend);
  told.raw("roof", JsonObject()
                       .add("bytes_per_second", roof.bytes_per_second)
                       .add("flops_per_second", roof.flops_per_second)
                       .text());
}

std::string told_of(const Args &args) {
  JsonObject told;
  const std::string stage = *args.get("--stage"), &path = args.operands()[0];
  const Session session(args);
  Subject subject;
  const Timed opened = timed([&] { subject = load(session, path); });
  if (stage == "describe") {
    tell_of_subject(told, subject);
    return told.text();
  }
  const bool is_warm = stage == "warm";
  const Signature signature = signature_of(subject);
  std::optional<RunArrays> arrays;  // before the compile: all that is wrong with them is told first
  if (is_warm) arrays.emplace(args, session, signature, subject.graph);
  if (subject.graph) {
    const Options options = compile_options(args, session);
    Compiled compiled;
    told.raw("made", json_of(timed([&] { compiled = compile(session, subject.graph, options); })));
    told.add("lookup", compiled.report.text("lookup"));
    told.add("reason", compiled.report.text("reason"));
    const bool looked = compiled.report.has_member("phases", "lookup_ms");
    told.add("lookup_seconds", looked ? compiled.report.f64("phases.lookup_ms") / 1000 : 0);
    subject.executable = std::move(compiled.executable);
  } else {
    refuse_compile_flags(args);
    told.raw("made", json_of(opened));
  }
  told.add("threads", report_of(kiln_context_report, session.context()).i64("threads"));
  if (is_warm)
    tell_of_runs(told, args, session, subject, *arrays, signature);
  else
    told.add("peak_bytes", static_cast<int64_t>(peak_bytes()));
  return told.text();
}

int child_main(const Args &args) {
  const auto failed = [](const char *what, bool usage) {
    print(JsonObject().add("error", what).add("usage", usage).text());
    return usage ? 2 : 1;
  };
  try {
    print(told_of(args));
    return 0;
  } catch (const Usage &usage) {
    return failed(usage.what(), true);
  } catch (const std::bad_alloc &) {
    return failed("out of memory", false);
  } catch (const std::exception &failure) {
    return failed(failure.what(), false);
  }
}

constexpr auto child_flags = with_shared_flags(
    std::array{Flag{"--stage", "STAGE", "describe, cold or warm"}, Flag{"--seconds", "S", "of runs, at least"},
               Flag{"--outputs", "F.safetensors", "write what the first run yields"},
               Flag{"--roof", "", "measure that, too"}, cache_flag});

}  // namespace

const Command child_command{"bench-process", "GRAPH|ARTIFACT", "", 1, 1, child_flags, child_main};

}  // namespace kiln::cli::bench
