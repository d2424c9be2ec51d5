// What a lookup costs more when passes asked of their surroundings: hits in one context, of a graph whose pass asked
// ten questions, beside the same graph whose pass asked none.
#include <cstdlib>

#include "figure.h"
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
    kiln_pass pass = {};
    pass.struct_size = sizeof pass;
    pass.stage = KILN_STAGE_POST_GRAD;
    pass.flags = KILN_PASS_UUID_SUFFICES;
    pass.name = name.data();
    pass.name_size = name.size();
    pass.uuid = uuid;
    pass.user = this;
    pass.run = run;
    check(kiln_pass_register(context, &pass, nullptr, nullptr));
  }
};

Context context_of(const std::string &cache, Asker &asker) {
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
  asker.add_to(context.get());
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
  Hits(const std::string &cache, Asker asker) : asker_(std::move(asker)) {
    const std::string json = "{\"kiln\": 1, \"inputs\": [" + f32_json("x", "[\"n\"]") +
                             "], \"nodes\": [{\"name\": \"y\", \"op\": \"neg\", \"inputs\": [\"x\"]}], "
                             "\"outputs\": [{\"name\": \"y\", \"value\": \"y\"}]}";
    for (const char *expected : {"MISS", "HIT"}) {
      graph_ = nullptr;
      context_ = context_of(cache, asker_);
      graph_ = make<Graph>(kiln_graph_parse, context_.get(), json.data(), json.size());
      compile(context_.get(), graph_, expected);
      if (*expected == 'M') check(kiln_context_close(context_.get()));
    }
    if (asker_.runs != 1) throw Failure("the pass ran on a hit");
  }
  Hits(const Hits &) = delete;
  ~Hits() {
    graph_ = nullptr;
    context_ = nullptr;  // before the pass, which it owns
  }
  void run(int times) {
    for (int i = 0; i < times; ++i) compile(context_.get(), graph_, "HIT");
  }

 private:
  Asker asker_;
  Context context_;
  Graph graph_;
};

void lookup_of_ten_questions_us(benchmark::State &state) {
  const test::TemporaryFolder cache;
  Hits none(cache.path(), {.name = "asks_nothing", .uuid = {1}, .questions = {}});
  Hits ten(cache.path(), {.name = "asks",
                          .uuid = {2},
                          .questions = {"env.PATH", "env.HOME", "env.KILN_BENCH_A", "env.KILN_BENCH_B", "host.rank",
                                        "host.world", "host.node", "file.KILN_no_such_file",
                                        "file." KILN_MODELS_DIR "/chars/graph.json", "device.cores"}});
  const int hits = effort().size(200, 5);
  for (auto _ : state) {
    double without = 1e30, with = 1e30;
    for (int i = 0; i < effort().rounds(10); ++i) {  // in turn
      without = std::min(without, fastest(3, [&] { none.run(hits); }));
      with = std::min(with, fastest(3, [&] { ten.run(hits); }));
    }
    report(state, (with - without) / hits * 1e6, "us", 30, Better::lower);
  }
}

KILN_FIGURE(lookup_of_ten_questions_us)

}  // namespace
}  // namespace kiln::bench
