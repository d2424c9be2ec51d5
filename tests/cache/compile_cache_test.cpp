// compile() with a fresh cache folder each: outcomes and their reasons, what runs on a miss and what on a hit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "tests/cache/compiling.h"

namespace kiln {
namespace {

using test::f32_graph;
using test::graph_of;
using test::run;

// A pass that only counts how often it runs.
std::shared_ptr<Pass> counting_pass(std::string name, std::optional<Uuid> uuid, std::shared_ptr<int> runs) {
  auto pass = std::make_shared<Pass>();
  pass->name = std::move(name);
  pass->plugin = "test.so";
  pass->version = "1";
  pass->uuid = uuid;
  pass->run = [runs](PassContext &context) {
    ++*runs;
    context.rewrites = 3;
    context.done = true;
    return Status();
  };
  return pass;
}

class CompileCache : public test::Compiling {};

const std::string chain_graph = f32_graph("xy", R"("n")", R"({"name":"a","op":"add","inputs":["x","y"]},
    {"name":"b","op":"tanh","inputs":["a"]},{"name":"c","op":"mul","inputs":["b","x"]})",
                                          "c");

TEST_F(CompileCache, ASecondCompileHitsAndRunsNothing) {
  auto runs = std::make_shared<int>(0);
  ASSERT_TRUE(passes_.add(counting_pass("counts", Uuid{1}, runs)).ok());
  expect(Outcome::miss, "", chain_graph);
  EXPECT_EQ(*runs, 1);
  EXPECT_TRUE(ran("counts") && ran("cse"));
  EXPECT_EQ(report_.kernels_compiled, 1u);
  EXPECT_EQ(report_.launches, 1u);
  const Digest key = report_.key;

  expect(Outcome::hit, "hit", chain_graph);
  EXPECT_EQ(*runs, 1);
  EXPECT_TRUE(report_.passes.empty());
  EXPECT_EQ(report_.kernels_compiled, 0u);
  EXPECT_EQ(report_.kernels_from_cache, 0u);
  EXPECT_EQ(report_.kernels_distinct, 1u);
  EXPECT_EQ(report_.key, key);
}

TEST_F(CompileCache, ColdAndWarmExecutablesGiveTheSameBits) {
  std::vector<float> x(1000), y(1000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.01f * float(i) - 5, y[i] = 1 / (1 + float(i));
  Result<Compiled> cold = compile(chain_graph), warm = compile(chain_graph);
  ASSERT_TRUE(cold.ok()) << cold.status().message();
  ASSERT_TRUE(warm.ok()) << warm.status().message();
  EXPECT_EQ(report_.lookup, Outcome::hit) << report_.reason;
  const std::vector<float> a = run(*cold, {x, y}), b = run(*warm, {x, y});
  EXPECT_EQ(a, b);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], std::tanh(double(x[i]) + y[i]) * x[i], 1e-5);
}

// Two calls of a graph, marked, around nodes of which one is marked and one falls back.
const std::string marked_graph = [] {
  std::string json = f32_graph("xy", R"("n")", R"(
      {"name":"a","op":"call","inputs":["x"],"attrs":{"graph":"f"},"annotations":{"kiln.region":{"text":"first"}}},
      {"name":"b","op":"add","inputs":["a","y"]},
      {"name":"c","op":"tanh","inputs":["b"],"annotations":{"kiln.region":{"text":"m"}}},
      {"name":"d","op":"mul","inputs":["c","c"],"annotations":{"kiln.region":{"text":"m"}}},
      {"name":"e","op":"call","inputs":["d"],"attrs":{"graph":"f"},"annotations":{"kiln.region":{"text":"second"}}},
      {"name":"g","op":"exp","inputs":["e"],"annotations":{"kiln.fallback":{"bool":true}}})",
                               "g");
  json.insert(json.rfind('}'), R"(,"graphs":{"f":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k"]}}],
      "nodes":[{"name":"p","op":"sin","inputs":["u"]},{"name":"q","op":"softmax","inputs":["p"],"attrs":{"dim":0}}],
      "outputs":[{"name":"q","value":"q"}]}})");
  return json;
}();

TEST_F(CompileCache, EveryModeGivesTheBitsOfTheWholeColdAndWarm) {
  std::vector<float> x(37), y(37);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.1f * float(i) - 2, y[i] = 1 / (1 + float(i));
  const Result<Compiled> whole = compile(marked_graph);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(report_.made.find("partition"), std::string::npos);
  const std::vector<float> expected = run(*whole, {x, y});
  for (const Mode mode : {Mode::marked, Mode::except_fallback, Mode::none}) {
    for (const Fallback fallback : {Fallback::kernel, Fallback::reference}) {
      SCOPED_TRACE(str_cat(name_of(mode), fallback == Fallback::kernel ? "" : ", by the reference"));
      CompileOptions options;
      options.mode = mode;
      options.fallback = fallback;
      std::string made;
      for (const Outcome outcome : {Outcome::miss, Outcome::hit}) {
        const Result<Compiled> compiled = compile(marked_graph, options);
        ASSERT_TRUE(compiled.ok()) << compiled.status().message();
        EXPECT_EQ(report_.lookup, outcome) << report_.reason;
        EXPECT_TRUE(outcome == Outcome::miss || report_.kernels_compiled == 0) << report_.kernels_compiled;
        const std::vector<float> got = run(*compiled, {x, y});
        EXPECT_TRUE(fallback == Fallback::reference || got == expected);
        for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5);
        EXPECT_NE(report_.made.find(R"("partition")"), std::string::npos);
        if (outcome == Outcome::miss) made = report_.made;
        EXPECT_EQ(report_.made, made);
      }
    }
  }
}

TEST_F(CompileCache, EqualRegionsCompileOnce) {
  CompileOptions options;
  options.mode = Mode::marked;
  ASSERT_TRUE(compile(marked_graph, options).ok());
  // Six kernels of the calls' graph (two of its sum: groups, and what they come to), one of the region between them,
  // the sum and what falls back.
  EXPECT_EQ(report_.kernels_compiled, 6u + 3);
  EXPECT_EQ(report_.launches, 2u * 6 + 3);
  EXPECT_NE(report_.made.find(R"("same_as":0)"), std::string::npos) << report_.made;
}

TEST_F(CompileCache, TheReferenceRunsWhatFallsBackToItWithoutAKernel) {
  CompileOptions options;
  options.mode = Mode::none;
  options.fallback = Fallback::reference;
  const Result<Compiled> compiled = compile(marked_graph, options);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  EXPECT_EQ(report_.launches, 0u);
  EXPECT_EQ(compiled->executable->artifact().graphs.size(), 6u);  // of equal nodes, one
}

TEST_F(CompileCache, MarkedCallsWhoseGraphTellsASizeEachTellTheirOwn) {
  const auto call = [](std::string_view name, std::string_view operand) {
    return str_cat(R"({"name":")", name, R"(","op":"call","inputs":[")", operand,
                   R"("],"attrs":{"graph":"f"},"annotations":{"kiln.region":{"text":"m"}}})");
  };
  std::string json =
      f32_graph("xy", R"("n")",
                str_cat(call("a", "x"), ",", call("b", "y"), R"(,{"name":"s","op":"add","inputs":["a","b"]})"), "s");
  // Adds the numbers of the elements that are not zero: of x 0 + 1 + 2, of y 2.
  json.insert(json.rfind('}'), R"(,"graphs":{"f":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k"]}}],
      "nodes":[{"name":"nz","op":"nonzero","inputs":["u"]},
               {"name":"c","op":"convert","inputs":["nz:0"],"attrs":{"dtype":"f32"}},
               {"name":"t","op":"sum","inputs":["c"]},{"name":"r","op":"add","inputs":["u","t"]}],
      "outputs":[{"name":"r","value":"r"}]}})");
  const std::vector<float> x = {1, 2, 3}, y = {0, 0, 4};
  for (const Mode mode : {Mode::all, Mode::marked, Mode::except_fallback}) {
    CompileOptions options;
    options.mode = mode;
    const Result<Compiled> compiled = compile(json, options);
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    EXPECT_EQ(run(*compiled, {x, y}), (std::vector<float>{1 + 3 + 2, 2 + 3 + 2, 3 + 3 + 4 + 2})) << name_of(mode);
  }
}

TEST_F(CompileCache, NodesOfEqualRegionsKeepTheirNames) {
  std::string json = R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"i64","shape":["n"]}},
      {"name":"y","type":{"dtype":"i64","shape":["n"]}}],"nodes":[
      {"name":"a","op":"call","inputs":["x","y"],"attrs":{"graph":"f"},"annotations":{"kiln.region":{"text":"m"}}},
      {"name":"b","op":"call","inputs":["a","y"],"attrs":{"graph":"f"},"annotations":{"kiln.region":{"text":"m"}}}],
      "outputs":[{"name":"z","value":"b"}],"graphs":{"f":{
      "inputs":[{"name":"u","type":{"dtype":"i64","shape":["k"]}},{"name":"v","type":{"dtype":"i64","shape":["k"]}}],
      "nodes":[{"name":"q","op":"floor_divide","inputs":["u","v"]}],"outputs":[{"name":"q","value":"q"}]}}})";
  CompileOptions options;
  options.mode = Mode::marked;
  const Result<Compiled> compiled = compile(json, options);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  std::vector<std::string> risks;
  for (const Plan::Risk &risk : compiled->executable->plan().risks) risks.push_back(risk.text());
  EXPECT_EQ(risks, (std::vector<std::string>{"node 'a.q' [floor_divide]", "node 'b.q' [floor_divide]"}));
}

TEST_F(CompileCache, OneCompilationServesEverySize) {
  Result<Compiled> compiled = compile(chain_graph);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  for (size_t size : {0, 1, 3, 17, 4096}) {
    const std::vector<float> x(size, 0.5f), y(size, 0.25f), out = run(*compiled, {x, y});
    for (float v : out) EXPECT_NEAR(v, std::tanh(0.75) * 0.5, 1e-6);
  }
}

TEST_F(CompileCache, AMissNamesWhatDiffers) {
  auto runs = std::make_shared<int>(0);
  const PassList built_in = passes_;
  const auto with = [&](const std::function<void(Pass &)> &change) {
    passes_ = built_in;
    std::shared_ptr<Pass> pass = counting_pass("counts", Uuid{1}, runs);
    change(*pass);
    ASSERT_TRUE(passes_.add(pass).ok());
  };
  with([](Pass &) {});
  expect(Outcome::miss, "", chain_graph);
  expect(Outcome::hit, "", chain_graph);

  with([](Pass &p) { p.uuid = Uuid{2}; });
  expect(Outcome::miss, "pass counts", chain_graph);
  with([](Pass &p) { p.version = "2"; });
  expect(Outcome::miss, "pass counts", chain_graph);
  with([](Pass &p) { p.options["level"] = AttrValue(2); });
  expect(Outcome::miss, "pass counts", chain_graph);
  with([](Pass &p) { p.file = digest_of("another build of the plugin"); });
  expect(Outcome::miss, "pass counts", chain_graph);
  with([](Pass &p) { p.fingerprint = [](Fingerprint &out) { return out.key.text("state"), Status(); }; });
  expect(Outcome::miss, "pass counts", chain_graph);
  with([](Pass &) {});
  expect(Outcome::miss, "options", chain_graph, {.fuse = false});
  expect(Outcome::miss, "target", chain_graph, {.cpu = "x86-64"});
  expect(Outcome::miss, "graph",
         f32_graph("xy", R"("n")", R"({"name":"a","op":"add","inputs":["x","y"]},
      {"name":"b","op":"tanh","inputs":["a"]},{"name":"c","op":"mul","inputs":["b","y"]})",
                   "c"));
  expect(Outcome::hit, "", chain_graph);  // what was published in between is not in the way
}

TEST_F(CompileCache, ADisabledPassIsAnotherKey) {
  expect(Outcome::miss, "", chain_graph);
  expect(Outcome::miss, "pass cse", chain_graph, {.disable_passes = {"cse"}});
  EXPECT_FALSE(ran("cse"));
}

TEST_F(CompileCache, KernelsAreFoundAgainWhenOnlyTheGraphDiffers) {
  expect(Outcome::miss, "", chain_graph);
  // The same kernel in a graph that also returns an input.
  expect(Outcome::miss, "graph",
         f32_graph("xy", R"("n")", R"({"name":"a","op":"add","inputs":["x","y"]},
      {"name":"b","op":"tanh","inputs":["a"]},{"name":"c","op":"mul","inputs":["b","x"]})",
                   "c x"));
  EXPECT_EQ(report_.kernels_compiled, 0u);
  EXPECT_EQ(report_.kernels_from_cache, 1u);
}

// Layers of a linear, each with weights of its own.
std::string layers(int count) {
  std::string nodes, parameters;
  for (int i = 0; i < count; ++i) {
    const std::string from = i == 0 ? "x" : str_cat("y", i - 1);
    const std::string_view comma = i ? "," : "";
    parameters += str_cat(comma, R"({"name":"w)", i, R"(","type":{"dtype":"f32","shape":[64,64]}})");
    nodes += str_cat(comma, R"({"name":"y)", i, R"(","op":"linear","inputs":[")", from, R"(","w)", i, R"("]})");
  }
  return str_cat(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["n",64]}}],"parameters":[)",
                 parameters, R"(],"nodes":[)", nodes, R"(],"outputs":[{"name":"y","value":"y)", count - 1, R"("}]})");
}

TEST_F(CompileCache, IdenticalLayersCompileOnce) {
  expect(Outcome::miss, "", layers(1));
  const uint32_t distinct = report_.kernels_distinct, launches = report_.launches;
  expect(Outcome::miss, "", layers(6));
  EXPECT_EQ(report_.kernels_distinct, distinct);
  EXPECT_EQ(report_.kernels_from_cache, distinct);
  EXPECT_EQ(report_.launches, 6 * launches);
}

TEST_F(CompileCache, APassWithoutIdentityBypassesWithItsName) {
  auto runs = std::make_shared<int>(0);
  ASSERT_TRUE(passes_.add(counting_pass("nameless", std::nullopt, runs)).ok());
  for (int i = 1; i <= 2; ++i) {
    expect(Outcome::bypass, "nameless", chain_graph);
    EXPECT_EQ(*runs, i);
    EXPECT_EQ(report_.key, Digest{});
  }
  EXPECT_EQ(report_.kernels_from_cache, 1u);  // kernels are looked up all the same
}

TEST_F(CompileCache, StrictModeRefusesAPassWithoutIdentity) {
  auto runs = std::make_shared<int>(0);
  ASSERT_TRUE(passes_.add(counting_pass("nameless", std::nullopt, runs)).ok());
  Result<Compiled> compiled = compile(chain_graph, {.strict = true});
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.status().code(), Code::invalid_argument);
  EXPECT_NE(compiled.status().message().find("'nameless' of test.so"), std::string::npos)
      << compiled.status().message();
  EXPECT_EQ(*runs, 0);
}

TEST_F(CompileCache, AnEarlyPassNeedsNoIdentityAndRunsAlways) {
  auto runs = std::make_shared<int>(0);
  std::shared_ptr<Pass> pass = counting_pass("eager", std::nullopt, runs);
  pass->stage = Stage::pre_grad;
  ASSERT_TRUE(passes_.add(pass).ok());
  expect(Outcome::miss, "", chain_graph);
  expect(Outcome::hit, "", chain_graph);
  EXPECT_EQ(*runs, 2);
}

TEST_F(CompileCache, ARequiredHitThatIsNoneIsAnErrorWithTheReport) {
  Result<Compiled> compiled = compile(chain_graph, {.require_hit = true});
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.status().code(), Code::not_cached);
  EXPECT_NE(compiled.status().info()->report.find(R"("lookup":"MISS")"), std::string::npos);
  expect(Outcome::miss, "", chain_graph);
  expect(Outcome::hit, "", chain_graph, {.require_hit = true});
}

TEST_F(CompileCache, WithTheCacheOffEveryPassRuns) {
  cache_on_ = false;
  for (int i = 0; i < 2; ++i) {
    expect(Outcome::bypass, "cache off", chain_graph);
    EXPECT_TRUE(ran("cse"));
    EXPECT_EQ(report_.kernels_compiled, 1u);
  }
}

TEST_F(CompileCache, ADamagedRecordIsRejectedAndCompiledAgain) {
  expect(Outcome::miss, "", chain_graph);
  for (const auto &entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
    if (entry.path().extension() == ".kiln") std::filesystem::resize_file(entry.path(), entry.file_size() / 2);
  }
  expect(Outcome::reject, "damaged", chain_graph);
  EXPECT_TRUE(ran("cse"));
  expect(Outcome::hit, "", chain_graph);
}

TEST_F(CompileCache, TheOracleRunsNoPassAndCompilesNoKernel) {
  auto runs = std::make_shared<int>(0);
  ASSERT_TRUE(passes_.add(counting_pass("nameless", std::nullopt, runs)).ok());
  expect(Outcome::miss, "", chain_graph, {.backend = "reference"});
  EXPECT_EQ(*runs, 0);
  EXPECT_TRUE(report_.passes.empty());
  EXPECT_EQ(report_.kernels_compiled, 0u);
  Result<Compiled> warm = compile(chain_graph, {.backend = "reference"});
  ASSERT_TRUE(warm.ok()) << warm.status().message();
  EXPECT_EQ(report_.lookup, Outcome::hit);
  EXPECT_NEAR(run(*warm, {{0.5f}, {0.25f}}).at(0), std::tanh(0.75) * 0.5, 1e-7);
}

// q = x / y, then r = q / y in a graph that is called, then s = r + z for a z of another symbol; "#" ends each name.
std::string divisions(std::string_view suffix) {
  const std::string type = R"("type": {"dtype": "i64", "shape": ["n"]}})";
  std::string json = str_cat(R"({"kiln": 1, "inputs": [{"name": "x", )", type, R"(, {"name": "y", )", type,
                             R"(, {"name": "z", "type": {"dtype": "i64", "shape": ["m"]}}],
    "graphs": {"g": {"inputs": [{"name": "a", )",
                             type, R"(, {"name": "b", )", type, R"(],
      "nodes": [{"name": "r#", "op": "div", "inputs": ["a", "b"]}], "outputs": [{"name": "o", "value": "r#"}]}},
    "nodes": [{"name": "q#", "op": "div", "inputs": ["x", "y"]},
              {"name": "c#", "op": "call", "inputs": ["q#", "y"], "attrs": {"graph": "g"}},
              {"name": "s#", "op": "add", "inputs": ["c#", "z"]}],
    "outputs": [{"name": "s", "value": "s#"}]})");
  for (size_t at = 0; (at = json.find('#')) != json.npos;) json.replace(at, 1, suffix);
  return json;
}

std::string error_of_run(const Compiled &compiled, int64_t divisor, int64_t m) {
  Result<std::unique_ptr<Call>> call = Call::create(compiled.executable);
  const int64_t n = 2;
  std::vector<int64_t> x(2, 6), y(2, divisor), z(8), s(2);
  const std::vector<ArrayRef> args = {{x.data(), DType::i64, 1, &n, nullptr},
                                      {y.data(), DType::i64, 1, &n, nullptr},
                                      {z.data(), DType::i64, 1, &m, nullptr},
                                      {s.data(), DType::i64, 1, &n, nullptr}};
  return (*call)->run(args).message();
}

TEST_F(CompileCache, ErrorsNameTheNodesOfTheGraphAtHand) {
  for (const char *backend : {"cpu", "reference"}) {
    std::string errors[2][2], saved[2];
    for (const int i : {0, 1}) {
      const std::string suffix = i ? "_of_the_second" : "_of_the_first";
      Result<Compiled> compiled = compile(divisions(suffix), {.backend = backend});
      ASSERT_TRUE(compiled.ok()) << compiled.status().message();
      EXPECT_EQ(report_.lookup, i ? Outcome::hit : Outcome::miss) << report_.reason;
      errors[i][0] = error_of_run(*compiled, 0, 2);
      errors[i][1] = error_of_run(*compiled, 1, 8);
      const Bytes bytes = write_artifact(compiled->executable->artifact());
      saved[i].assign(bytes.begin(), bytes.end());
      for (const std::string &text : {errors[i][0], errors[i][1], saved[i]}) {
        EXPECT_NE(text.find(suffix), std::string::npos) << (&text == &saved[i] ? "the artifact" : text);
        EXPECT_EQ(text.find(i ? "_of_the_first" : "_of_the_second"), std::string::npos);
      }
    }
    if (backend != std::string("cpu")) continue;
    EXPECT_EQ(errors[1][0],
              "an integer is divided by zero in one of node 'q_of_the_second' [div], node "
              "'c_of_the_second.r_of_the_second' [div] (first in step 0, kernel 0)");
    EXPECT_NE(errors[1][1].find("node 's_of_the_second': [add] "), std::string::npos) << errors[1][1];
  }
}

TEST_F(CompileCache, TextsOfKernelsAreDeliveredWithoutAskingTheCache) {
  expect(Outcome::miss, "", chain_graph);
  Result<Compiled> compiled = compile(chain_graph, {.want_asm = true});
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  EXPECT_EQ(report_.lookup, Outcome::bypass);
  ASSERT_EQ(compiled->kernel_texts.size(), 1u);
  EXPECT_NE(compiled->kernel_texts[0].find("ret"), std::string::npos);
}

TEST_F(CompileCache, RefusesAnUnknownBackendAndAnUnknownCpu) {
  EXPECT_EQ(compile(chain_graph, {.backend = "tpu"}).status().code(), Code::unknown_name);
  EXPECT_FALSE(compile(chain_graph, {.cpu = "z80"}).ok());
  EXPECT_EQ(compile(chain_graph, {.passes = std::vector<std::string>{"no_such_pass"}}).status().code(),
            Code::unknown_name);
}

TEST_F(CompileCache, TheHostCanCancelBetweenPhases) {
  CompileEnvironment env{.ops = builtin_ops(),
                         .passes = passes_,
                         .cache = nullptr,
                         .pool = std::make_shared<ThreadPool>(1),
                         .progress = [](std::string_view what) { return what == "fuse"; }};
  Result<Compiled> compiled = kiln::compile(env, graph_of(chain_graph), {}, report_);
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.status().code(), Code::cancelled);
}

TEST_F(CompileCache, NoKernelOfAWideConcatReadsMoreThanAPartOfItsOperands) {
  const Result<Compiled> compiled = compile(test::concat_of(200));
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  const std::vector<Plan::Step> &steps = compiled->executable->artifact().plan.steps;
  size_t most = 0;
  for (const Plan::Step &step : steps) most = std::max(most, step.slots.size());
  EXPECT_LE(most, 33u) << "32 operands and the result";
  EXPECT_EQ(steps.size(), 8u) << "7 parts and what joins them";
}

TEST_F(CompileCache, TheReportHasWhatStatsShow) {
  expect(Outcome::miss, "", chain_graph);
  const std::string json = to_json(report_);
  for (const char *name : {"lookup", "reason", "key", "passes_run", "kernels_compiled", "kernels_from_cache",
                           "kernels_distinct", "launches", "llvm_loaded", "phases", "total_ms", "backend", "target"}) {
    EXPECT_NE(json.find(str_cat("\"", name, "\":")), std::string::npos) << name;
  }
  EXPECT_NE(json.find(R"("passes_run":{"cse":0,)"), std::string::npos) << json;
  EXPECT_TRUE(report_.llvm_loaded);
}

}  // namespace
}  // namespace kiln
