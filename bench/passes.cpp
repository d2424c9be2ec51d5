// What passes cost a compile of 10,000 nodes: those that change nothing, and the checks after one that does.
#include <algorithm>

#include "figure.h"
#include "host_pass.h"
#include "machine.h"

namespace kiln::bench {
namespace {

using namespace cli;

// A chain over x [n, 64].
std::string chain(int nodes) {
  constexpr const char *ops[] = {"neg", "sqrt", "sigmoid", "tanh", "exp"};
  std::string text = "{\"kiln\": 1, \"inputs\": [" + f32_json("x", "[\"n\", 64]") + "], \"nodes\": [", last = "x";
  for (int i = 0; i < nodes; ++i) {
    const std::string name = "n" + std::to_string(i);
    text += (i ? ",\n" : "") + ("{\"name\": \"" + name) + "\", \"op\": \"" + ops[i % 5] + "\", \"inputs\": [\"" + last +
            "\"]}";
    last = name;
  }
  return text + "], \"outputs\": [{\"name\": \"y\", \"value\": \"" + last + "\"}]}";
}

// Passes of the host's: the last one puts an abs before the output, if `changes`; the others change nothing.
struct HostPass {
  std::string name;
  bool changes = false;

  static kiln_error *run(void *user, kiln_pass_call *call) {
    const bool changes = static_cast<HostPass *>(user)->changes;
    if (changes) {
      kiln_edit *edit = kiln_pass_edit(call);
      kiln_op abs = 0;
      kiln_value y = 0;
      kiln_node node = 0;
      uint64_t count = 0;
      kiln_error *error = kiln_op_find(kiln_pass_context(call), "abs", 3, &abs);
      if (!error) error = kiln_graph_signature(kiln_edit_view(edit), KILN_SIDE_OUTPUTS, &y, 1, &count);
      if (!error) error = kiln_edit_add(edit, abs, nullptr, 0, &y, 1, nullptr, 0, &node);
      y = kiln_value{node} << 32;
      if (!error) error = kiln_edit_outputs(edit, &y, nullptr, 1);
      if (error) return error;
    }
    return kiln_pass_done(call, changes);
  }
  void add_to(kiln_context *context) {
    const kiln_pass pass = host_pass(name, run, this);
    check(kiln_pass_register(context, &pass, nullptr, nullptr));
  }
};

struct Cost {
  double compile_ms = 1e30, passes_ms = 1e30, last_ms = 1e30;  // of the host's passes together, and of the last one
};

// Kernels aside; the fastest of several each.
Cost cost_of(int nodes, std::vector<HostPass> passes) {
  Options settings, options;
  settings.set("cache", "off");
  settings.set("threads", int64_t{1});
  options.set("code", false);
  const auto context = make<Context>(kiln_context_create, settings.get(), nullptr);
  for (HostPass &pass : passes) pass.add_to(context.get());
  const std::string json = chain(nodes);
  const auto graph = make<Graph>(kiln_graph_parse, context.get(), json.data(), json.size());
  Cost cost;
  for (int round = 0; round < effort().rounds(7); ++round) {
    Report told;
    cost.compile_ms =
        std::min(cost.compile_ms, 1e3 * fastest(1, [&] {
                                    kiln_executable *executable = nullptr;
                                    kiln_report *made = nullptr;
                                    check(kiln_compile(context.get(), graph.get(), options.get(), &executable, &made));
                                    const Executable owned(executable);
                                    told = Report(made);
                                  }));
    double all = 0;
    for (uint64_t i = 0; i < told.count("passes"); ++i) {
      const std::string at = "passes." + std::to_string(i);
      for (const HostPass &pass : passes)
        if (told.text(at + ".name") == pass.name) all += told.f64(at + ".ms");
      if (!passes.empty() && told.text(at + ".name") == passes.back().name)
        cost.last_ms = std::min(cost.last_ms, told.f64(at + ".ms"));
    }
    cost.passes_ms = std::min(cost.passes_ms, all);
  }
  return cost;
}

std::vector<HostPass> idle_passes(int count) {
  std::vector<HostPass> passes;
  for (int i = 0; i < count; ++i) passes.push_back({"idle" + std::to_string(i)});
  return passes;
}

void idle_passes_20_on_10k_nodes_ms(benchmark::State &state) {
  for (auto _ : state)
    report(state, cost_of(effort().size(10000, 200), idle_passes(20)).passes_ms, "ms", 5, Better::lower);
}
// Copy, change and checks, beside the compile with it.
void changing_pass_on_10k_nodes_of_planning(benchmark::State &state) {
  for (auto _ : state) {
    const Cost cost = cost_of(effort().size(10000, 200), {{"changes", true}});
    report(state, cost.last_ms / cost.compile_ms, "of planning", 0.2, Better::lower);
  }
}
void planning_10k_nodes_ms(benchmark::State &state) {
  for (auto _ : state) report(state, cost_of(effort().size(10000, 200), {}).compile_ms, "ms", 500, Better::lower);
}

KILN_FIGURE(idle_passes_20_on_10k_nodes_ms)
KILN_FIGURE(changing_pass_on_10k_nodes_of_planning)
KILN_FIGURE(planning_10k_nodes_ms)

}  // namespace
}  // namespace kiln::bench
