// What a lookup costs more for passes: when they asked of their surroundings (hits in one context, of a graph whose
// pass asked ten questions, beside the same graph whose pass asked none), and when there are twenty of them.
#include <cstdlib>

#include "figure.h"
#include "host_pass.h"
#include "tests/temporary_folder.h"

namespace kiln::bench {
namespace {

using namespace cli;

// A pass of the host's that changes nothing, and asks these.
struct Asker {
  std::string name;
  uint8_t uuid[16] = {};
  std::vector<std::string> questions;
  int runs = 0;

  static kiln_error *run(void *user, kiln_pass_call *call) {
    auto &self = *static_cast<Asker *>(user);
    self.runs++;
    for (const std::string &question : self.questions) {
      kiln_attr answer = {};
      if (kiln_error *error = kiln_pass_query(call, question.data(), question.size(), &answer)) return error;
    }
    return kiln_pass_done(call, 0);
  }
  void add_to(kiln_context *context) {
    kiln_pass pass = host_pass(name, run, this);
    pass.flags = KILN_PASS_UUID_SUFFICES;
    pass.uuid = uuid;
    check(kiln_pass_register(context, &pass, nullptr, nullptr));
  }
};

Context context_of(const std::string &cache, std::vector<Asker> &askers) {
  Options options;
  options.set("cache", cache);
  options.set("threads", int64_t{1});
  Context context = make<Context>(kiln_context_create, options.get(), nullptr);
  for (const char *fact : {"host.rank", "host.world", "host.node"}) {
    const int64_t value = 3;
    kiln_attr attr = {};
    attr.name = fact;
    attr.name_size = std::string_view(fact).size();
    attr.kind = KILN_ATTR_I64;
    attr.count = 1;
    attr.data = &value;
    check(kiln_fact_set(context.get(), &attr));
  }
  for (Asker &asker : askers) asker.add_to(context.get());
  return context;
}

void compile(kiln_context *context, const Graph &graph, const char *expected) {
  kiln_report *report = nullptr;
  const Executable executable = [&] {
    kiln_executable *made = nullptr;
    check(kiln_compile(context, graph.get(), nullptr, &made, &report));
    return Executable(made);
  }();
  const Report told(report);
  if (told.text("lookup") != expected) throw Failure(told.text("lookup") + " for " + expected);
}

// Compiles once, then times hits of another context.
class Hits {
 public:
  Hits(const std::string &cache, std::vector<Asker> askers) : askers_(std::move(askers)) {
    const std::string json = "{\"kiln\": 1, \"inputs\": [" + f32_json("x", "[\"n\"]") +
                             "], \"nodes\": [{\"name\": \"y\", \"op\": \"neg\", \"inputs\": [\"x\"]}], "
                             "\"outputs\": [{\"name\": \"y\", \"value\": \"y\"}]}";
    for (const char *expected : {"MISS", "HIT"}) {
      graph_ = nullptr;
      context_ = context_of(cache, askers_);
      graph_ = make<Graph>(kiln_graph_parse, context_.get(), json.data(), json.size());
      compile(context_.get(), graph_, expected);
      if (*expected == 'M') check(kiln_context_close(context_.get()));
    }
    check_runs();
  }
  Hits(const Hits &) = delete;
  ~Hits() {
    graph_ = nullptr;
    context_ = nullptr;  // before the pass, which it owns
  }
  // Without reports, which the program would read as JSON: a miss would run passes.
  void run(int times) {
    for (int i = 0; i < times; ++i) {
      kiln_executable *made = nullptr;
      check(kiln_compile(context_.get(), graph_.get(), nullptr, &made, nullptr));
      kiln_executable_destroy(made);
    }
    check_runs();
  }

 private:
  void check_runs() const {
    for (const Asker &asker : askers_)
      if (asker.runs != 1) throw Failure("a pass ran on a hit");
  }
  std::vector<Asker> askers_;
  Context context_;
  Graph graph_;
};

// By how much a hit takes longer than another one.
double extra_us(Hits &without, Hits &with) {
  const int hits = effort().size(200, 5);
  double less = 1e30, more = 1e30;
  for (int i = 0; i < effort().rounds(10); ++i) {  // in turn
    less = std::min(less, fastest(3, [&] { without.run(hits); }));
    more = std::min(more, fastest(3, [&] { with.run(hits); }));
  }
  return (more - less) / hits * 1e6;
}

void lookup_of_ten_questions_us(benchmark::State &state) {
  const test::TemporaryFolder cache;
  Hits none(cache.path(), {{.name = "asks_nothing", .uuid = {1}, .questions = {}}});
  Hits ten(cache.path(), {{.name = "asks",
                           .uuid = {2},
                           .questions = {"env.PATH", "env.HOME", "env.KILN_BENCH_A", "env.KILN_BENCH_B", "host.rank",
                                         "host.world", "host.node", "file.KILN_no_such_file",
                                         "file." KILN_MODELS_DIR "/chars/graph.json", "device.cores"}}});
  for (auto _ : state) report(state, extra_us(none, ten), "us", 30, Better::lower);
}

// Passes that ask nothing, but are keyed.
void lookup_of_20_passes_us(benchmark::State &state) {
  const test::TemporaryFolder cache;
  std::vector<Asker> passes;
  for (uint8_t i = 1; i <= 20; ++i)
    passes.push_back({.name = "pass" + std::to_string(i), .uuid = {i}, .questions = {}});
  Hits none(cache.path(), {}), all(cache.path(), passes);
  for (auto _ : state) report(state, extra_us(none, all), "us", 50, Better::lower);
}

KILN_FIGURE(lookup_of_ten_questions_us)
KILN_FIGURE(lookup_of_20_passes_us)

}  // namespace
}  // namespace kiln::bench
