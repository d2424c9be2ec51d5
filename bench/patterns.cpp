// Rewriting by patterns: how long many of them take on a large graph.
#include <algorithm>

#include "figure.h"
#include "machine.h"

namespace kiln::bench {
namespace {

constexpr const char *unary[] = {"neg", "abs", "sqrt", "sigmoid", "tanh", "exp", "relu", "silu", "square", "sin"};
constexpr size_t ops = std::size(unary);

// Pattern `number` is of four nodes: OP(OP(mul(OP(x), y))), of which all differ.
std::string pattern(size_t number) {
  const auto op = [&](size_t divisor) { return std::string(unary[number / divisor % ops]); };
  return "{\"kiln\": 1, \"pattern\": \"p" + std::to_string(number) +
         "\", \"captures\": [{\"name\": \"x\"}, {\"name\": " + "\"y\", \"shape\": [" + std::to_string(number + 1) +
         "]}], \"nodes\": [{\"name\": \"a\", \"op\": \"" + op(1) +
         "\", \"inputs\": [\"x\"]}, {\"name\": \"b\", \"op\": \"mul\", \"inputs\": [\"a\", \"y\"]}, {\"name\": "
         "\"c\", " +
         "\"op\": \"" + op(10) + "\", \"inputs\": [\"b\"]}, {\"name\": \"d\", \"op\": \"" + op(100) +
         "\", \"inputs\": [\"c\"]}], \"outputs\": [\"d\"], \"replacement\": {\"outputs\": [\"x\"]}}";
}

std::string graph(size_t nodes) {
  std::string text = "{\"kiln\": 1, \"inputs\": [" + f32_json("x", "[\"n\", 64]") + "], \"nodes\": [", last = "x";
  for (size_t i = 0; i < nodes; ++i) {
    const std::string name = "n" + std::to_string(i);
    const bool product = i % 4 == 1;
    text += (i ? ",\n" : "") + ("{\"name\": \"" + name) + "\", \"op\": \"" +
            (product ? "mul" : unary[(i * 7 + i / 11) % ops]) + "\", \"inputs\": [\"" + last + "\"" +
            (product ? ", \"x\"" : "") + "]}";
    last = name;
  }
  return text + "], \"outputs\": [{\"name\": \"y\", \"value\": \"" + last + "\"}]}";
}

// The pass alone, as the compile's report tells it. None of the patterns is there: all are looked for at every node.
void patterns_2k_on_10k_nodes(benchmark::State &state) {
  const size_t count = effort().size<size_t>(2000, 50), nodes = effort().size<size_t>(10000, 200);
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) texts.push_back(pattern(i));
  std::vector<kiln_pattern> patterns(count);
  std::vector<const kiln_pattern *> row;
  for (size_t i = 0; i < count; ++i) {
    patterns[i].struct_size = sizeof patterns[i];
    patterns[i].json = texts[i].data();
    patterns[i].json_size = texts[i].size();
    row.push_back(&patterns[i]);
  }
  kiln_pass pass{};
  pass.struct_size = sizeof pass;
  pass.stage = KILN_STAGE_PRE_GRAD;
  pass.name = "patterns";
  pass.name_size = 8;
  pass.patterns = row.data();
  pass.pattern_count = row.size();
  cli::Options settings, options;
  settings.set("cache", "off");
  options.set("code", false);
  const auto context = cli::make<cli::Context>(kiln_context_create, settings.get(), nullptr);
  cli::check(kiln_pass_register(context.get(), &pass, nullptr, nullptr));
  const std::string json = graph(nodes);
  const auto parsed = cli::make<cli::Graph>(kiln_graph_parse, context.get(), json.data(), json.size());
  for (auto _ : state) {
    double ms = 1e30;
    for (int round = 0; round < effort().rounds(5); ++round) {
      kiln_executable *executable = nullptr;
      kiln_report *made = nullptr;
      cli::check(kiln_compile(context.get(), parsed.get(), options.get(), &executable, &made));
      const cli::Executable owned(executable);
      const cli::Report told(made);
      if (told.i64("passes_run.patterns") != 0) throw cli::Failure("a pattern was found that is not there");
      ms = std::min(ms, told.f64("passes.0.ms"));
    }
    report(state, ms, "ms", 50, Better::lower);
  }
}

KILN_FIGURE(patterns_2k_on_10k_nodes)

}  // namespace
}  // namespace kiln::bench
