// compile() with entries: what is made, found again and run, with a fresh cache folder each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <numeric>

#include "runtime/cache/artifact_bytes.h"
#include "tests/cache/compiling.h"

namespace kiln {
namespace {

struct Array {
  std::vector<int64_t> shape, strides;  // strides empty: row-major
  std::vector<float> values;
  ArrayRef ref() {
    return {values.data(), DType::f32, static_cast<uint32_t>(shape.size()), shape.data(),
            strides.empty() ? nullptr : strides.data()};
  }
};
Array drawn(std::vector<int64_t> shape, std::vector<int64_t> strides = {}, size_t elements = 0) {
  Array array{std::move(shape), std::move(strides), {}};
  if (elements == 0)
    elements =
        static_cast<size_t>(std::accumulate(array.shape.begin(), array.shape.end(), int64_t{1}, std::multiplies<>()));
  for (size_t i = 0; i < elements; ++i) array.values.push_back(std::sin(0.37f * static_cast<float>(i) + 0.1f));
  return array;
}

class Specialized : public test::Compiling {
 protected:
  Result<Compiled> specialized(std::string_view json, const std::vector<std::string> &sizes,
                               CompileOptions options = {}) {
    options.specialize = sizes;
    return compile(std::string(json), options);
  }
  Compiled made(std::string_view json, const std::vector<std::string> &specialize, CompileOptions options = {}) {
    Result<Compiled> compiled = specialized(json, specialize, std::move(options));
    EXPECT_TRUE(compiled.ok()) << compiled.status().message();
    return compiled.ok() ? std::move(compiled).value() : Compiled();
  }
  // The outputs' bytes, and which program ran.
  struct Ran {
    std::string entry;
    std::vector<std::vector<uint8_t>> outputs;
    bool operator==(const Ran &) const = default;
  };
  static std::unique_ptr<Call> call_of(const Compiled &compiled) {
    Result<std::unique_ptr<Call>> call = Call::create(compiled.executable);
    EXPECT_TRUE(call.ok()) << call.status().message();
    return call.ok() ? std::move(call).value() : nullptr;
  }
  static Ran run(Call &call, std::vector<Array> arrays) {
    std::vector<ArrayRef> args;
    for (Array &array : arrays) args.push_back(array.ref());
    const Status status = call.run(args);
    EXPECT_TRUE(status.ok()) << status.message();
    Ran ran{std::string(call.ran()), {}};
    const Plan &plan = call.executable().plan();
    for (uint32_t slot = 0; status.ok() && slot < plan.outputs.size(); ++slot) {
      Result<Call::Taken> taken = call.take(static_cast<uint32_t>(plan.inputs.size() + plan.parameters.size()) + slot);
      EXPECT_TRUE(taken.ok()) << taken.status().message();
      if (!taken.ok()) continue;
      const auto *bytes = static_cast<const uint8_t *>(taken->data);
      ran.outputs.emplace_back(bytes, bytes + dense_bytes(taken->dtype, taken->shape).value());
    }
    return ran;
  }
  static Ran run(const Compiled &compiled, std::vector<Array> arrays) {
    return run(*call_of(compiled), std::move(arrays));
  }
  // An entry for `sizes` gives the bits of the program for all sizes, cold and from the cache.
  void expect_equal_bits(std::string_view json, const std::string &sizes, const std::vector<Array> &arrays,
                         const CompileOptions &options = {}) {
    const Ran general = run(made(json, {}, options), arrays);
    EXPECT_EQ(general.entry, "general");
    for (const Outcome outcome : {Outcome::miss, Outcome::hit}) {
      const Compiled compiled = made(json, {sizes}, options);
      EXPECT_EQ(report_.lookup, Outcome::hit);
      ASSERT_EQ(report_.entries.size(), 1u);
      EXPECT_EQ(report_.entries[0].made->lookup, outcome) << report_.entries[0].made->reason;
      const Ran entry = run(compiled, arrays);
      EXPECT_EQ(entry.entry, sizes);
      EXPECT_TRUE(entry.outputs == general.outputs) << json << " at " << sizes;
    }
  }
};

constexpr std::string_view product = R"({"kiln":1,"symbols":{"n":{"min":1,"max":512},"k":{"min":1,"divisor":4}},
  "inputs":[{"name":"x","type":{"dtype":"f32","shape":["n","k"]}},{"name":"w","type":{"dtype":"f32","shape":["k",24]}}],
  "nodes":[{"name":"h","op":"matmul","inputs":["x","w"]},{"name":"s","op":"softmax","inputs":["h"],"attrs":{"dim":-1}},
           {"name":"g","op":"gelu","inputs":["s"]},{"name":"m","op":"sum","inputs":["g"],"attrs":{"dims":[0]}}],
  "outputs":[{"name":"g","value":"g"},{"name":"m","value":"m"}]})";

TEST_F(Specialized, AnEntryGivesTheBitsOfTheProgramForAllSizes) {
  expect_equal_bits(product, "k=8,n=5", {drawn({5, 8}), drawn({8, 24})});
  expect_equal_bits(product, "k=64", {drawn({33, 64}), drawn({64, 24})});
  expect_equal_bits(product, "n=129", {drawn({129, 20}), drawn({20, 24})});
  expect_equal_bits(product, "k=256,n=1", {drawn({1, 256}), drawn({256, 24})});
}

TEST_F(Specialized, SumsOfAllKindsHaveOneOrderWhetherASizeIsKnown) {
  for (const char *node :
       {R"("op":"sum","inputs":["x"],"attrs":{"dims":[1]})", R"("op":"sum","inputs":["x"])",
        R"("op":"mean","inputs":["x"],"attrs":{"dims":[0]})", R"("op":"var","inputs":["x"],"attrs":{"dims":[1]})",
        R"("op":"logsumexp","inputs":["x"],"attrs":{"dims":[1]})", R"("op":"cumsum","inputs":["x"],"attrs":{"dim":1})",
        R"("op":"softmax","inputs":["x"],"attrs":{"dim":0})", R"("op":"prod","inputs":["x"],"attrs":{"dims":[1]})"}) {
    const std::string json =
        str_cat(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["n","m"]}}],"nodes":[{"name":"y",)",
                node, R"(}],"outputs":[{"name":"y","value":"y"}]})");
    for (const auto &[n, m] : {std::pair<int64_t, int64_t>(1, 1), {3, 7}, {2, 1000}, {300, 16}})
      expect_equal_bits(json, str_cat("m=", m, ",n=", n), {drawn({n, m})});
  }
}

TEST_F(Specialized, RunsNoPassForAnEntryOfAHit) {
  (void)made(product, {});
  EXPECT_FALSE(report_.passes.empty());
  // Another process: the program for all sizes is found, the entry is made of the graph that its record keeps.
  (void)made(product, {"k=8,n=5"});
  EXPECT_EQ(report_.lookup, Outcome::hit);
  EXPECT_TRUE(report_.passes.empty());
  ASSERT_EQ(report_.entries.size(), 1u);
  const CompileReport &entry = *report_.entries[0].made;
  EXPECT_EQ(entry.lookup, Outcome::miss);
  EXPECT_NE(entry.reason.find("'sizes'"), std::string::npos) << entry.reason;
  EXPECT_TRUE(entry.passes.empty());
  EXPECT_GT(entry.kernels_compiled, 0u);
  EXPECT_NE(entry.key, report_.key);
  const Digest key = entry.key;
  // And one in which nothing is compiled, nor the graph read.
  (void)made(product, {"n=5,k=8"});
  EXPECT_EQ(report_.entries[0].name, "k=8,n=5");
  EXPECT_EQ(report_.entries[0].made->lookup, Outcome::hit);
  EXPECT_EQ(report_.entries[0].made->kernels_compiled, 0u);
  EXPECT_EQ(report_.entries[0].made->key, key);
  EXPECT_TRUE(
      std::ranges::none_of(report_.entries[0].made->phase_ms, [](const auto &p) { return p.first == "graph"; }));
}

TEST_F(Specialized, WhatIsAskedForIsNotInTheKeyOfTheProgramForAllSizes) {
  (void)made(product, {"n=5"});
  EXPECT_EQ(report_.lookup, Outcome::miss);
  const Digest key = report_.key;
  (void)made(product, {"k=8"}, {.specialize_when = SpecializeWhen::lazy});
  EXPECT_EQ(report_.lookup, Outcome::hit);
  EXPECT_EQ(report_.key, key);
}

TEST_F(Specialized, ACallPicksByTheShapesOfEachRun) {
  const std::unique_ptr<Call> call = call_of(made(product, {"n=5", "k=8,n=5", "k=8"}));
  const auto ran = [&](int64_t n, int64_t k) { return run(*call, {drawn({n, k}), drawn({k, 24})}).entry; };
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(ran(5, 8), "k=8,n=5");  // the one that knows most
    EXPECT_EQ(ran(5, 12), "n=5");
    EXPECT_EQ(ran(6, 8), "k=8");
    EXPECT_EQ(ran(6, 12), "general");
    EXPECT_EQ(ran(5, 16), "n=5");
  }
}

TEST_F(Specialized, ErrorsNameTheSymbolsAsWithoutEntries) {
  const std::unique_ptr<Call> call = call_of(made(product, {"k=8,n=5"})), general = call_of(made(product, {}));
  std::vector<Array> arrays = {drawn({5, 8}), drawn({12, 24})};  // w has another k
  std::vector<ArrayRef> args = {arrays[0].ref(), arrays[1].ref()};
  const Status expected = general->run(args), status = call->run(args);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.message(), expected.message());
  EXPECT_NE(status.message().find("symbol 'k'"), std::string::npos) << status.message();
  EXPECT_EQ(run(*call, {drawn({5, 8}), drawn({8, 24})}).entry, "k=8,n=5");  // and goes on
}

TEST_F(Specialized, WhatAGraphRequiresIsCheckedWhereADimOfOneWouldBroadcast) {
  constexpr std::string_view json = R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["n"]}},
      {"name":"y","type":{"dtype":"f32","shape":["m"]}}],"nodes":[{"name":"s","op":"add","inputs":["x","y"]}],
      "outputs":[{"name":"s","value":"s"}]})";
  const std::unique_ptr<Call> call = call_of(made(json, {"n=1"})), general = call_of(made(json, {}));
  std::vector<Array> arrays = {drawn({1}), drawn({3})};
  std::vector<ArrayRef> args = {arrays[0].ref(), arrays[1].ref()};
  EXPECT_EQ(call->run(args).message(), general->run(args).message());
  EXPECT_EQ(call->run(args).code(), Code::type_mismatch);
  EXPECT_EQ(run(*call, {drawn({1}), drawn({1})}).entry, "n=1");
}

TEST_F(Specialized, StridesThatSpeakOfSymbolsHaveTheirSizes) {
  constexpr std::string_view json = R"({"kiln":1,
    "inputs":[{"name":"x","type":{"dtype":"f32","shape":["n","m"],"strides":[1,"n"]}}],
    "nodes":[{"name":"y","op":"tanh","inputs":["x"]},{"name":"s","op":"sum","inputs":["y"],"attrs":{"dims":[1]}}],
    "outputs":[{"name":"y","value":"y"},{"name":"s","value":"s"}]})";
  expect_equal_bits(json, "n=6", {drawn({6, 9}, {1, 6})});
  expect_equal_bits(json, "m=9,n=6", {drawn({6, 9}, {1, 6})});
}

TEST_F(Specialized, ControlFlowIsSpecializedWithItsGraphs) {
  constexpr std::string_view branch = R"({"kiln":1,
    "inputs":[{"name":"x","type":{"dtype":"f32","shape":["n"]}}],
    "nodes":[{"name":"t","op":"sum","inputs":["x"]},{"name":"p","op":"gt","inputs":["t","zero"]},
             {"name":"y","op":"cond","inputs":["p","x"],"attrs":{"then_graph":"f","else_graph":"g"}}],
    "constants":[{"name":"zero","type":{"dtype":"f32","shape":[]},"data":[0]}],
    "outputs":[{"name":"y","value":"y"}],
    "graphs":{"f":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k"]}}],
                   "nodes":[{"name":"v","op":"softmax","inputs":["u"],"attrs":{"dim":0}}],"outputs":[{"name":"v","value":"v"}]},
              "g":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k"]}}],
                   "nodes":[{"name":"v","op":"neg","inputs":["u"]}],"outputs":[{"name":"v","value":"v"}]}}})";
  expect_equal_bits(branch, "n=37", {drawn({37})});
  const Compiled fixed = made(branch, {"n=37"});
  for (const Plan &nested : fixed.executable->entries()[0].executable()->plan().nested)
    EXPECT_TRUE(nested.symbols.empty()) << nested.symbols[0].name;

  constexpr std::string_view loop = R"({"kiln":1,
    "inputs":[{"name":"x","type":{"dtype":"f32","shape":["n"]}}],
    "nodes":[{"name":"y","op":"while","inputs":["x"],"attrs":{"cond_graph":"c","body_graph":"b","max_turns":5}}],
    "outputs":[{"name":"y","value":"y"}],
    "graphs":{"c":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k"]}}],
                   "constants":[{"name":"most","type":{"dtype":"f32","shape":[]},"data":[100]}],
                   "nodes":[{"name":"s","op":"sum","inputs":["u"]},{"name":"v","op":"lt","inputs":["s","most"]}],
                   "outputs":[{"name":"v","value":"v"}]},
              "b":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k"]}}],
                   "nodes":[{"name":"v","op":"exp","inputs":["u"]}],"outputs":[{"name":"v","value":"v"}]}}})";
  expect_equal_bits(loop, "n=9", {drawn({9})});
}

TEST_F(Specialized, ScansAreSpecialized) {
  constexpr std::string_view json = R"({"kiln":1,
    "inputs":[{"name":"s","type":{"dtype":"f32","shape":["n"]}},{"name":"xs","type":{"dtype":"f32","shape":["t","n"]}}],
    "nodes":[{"name":"y","op":"scan","inputs":["s","xs"],"attrs":{"body_graph":"f","carried":1}}],
    "outputs":[{"name":"end","value":"y:0"},{"name":"all","value":"y:1"}],
    "graphs":{"f":{"inputs":[{"name":"c","type":{"dtype":"f32","shape":["k"]}},{"name":"x","type":{"dtype":"f32","shape":["k"]}}],
      "nodes":[{"name":"p","op":"mul","inputs":["c","x"]},{"name":"z","op":"tanh","inputs":["p"]},
               {"name":"q","op":"softmax","inputs":["z"],"attrs":{"dim":0}}],
      "outputs":[{"name":"c","value":"z"},{"name":"e","value":"q"}]}}})";
  expect_equal_bits(json, "n=10", {drawn({10}), drawn({6, 10})});
  expect_equal_bits(json, "t=6", {drawn({10}), drawn({6, 10})});
  expect_equal_bits(json, "n=10,t=6", {drawn({10}), drawn({6, 10})});
}

TEST_F(Specialized, GraphsThatAreCutAreSpecializedPartByPart) {
  constexpr std::string_view json = R"({"kiln":1,
    "inputs":[{"name":"x","type":{"dtype":"f32","shape":["n"]}}],
    "nodes":[{"name":"a","op":"call","inputs":["x"],"attrs":{"graph":"f"},"annotations":{"kiln.region":{"text":"one"}}},
             {"name":"b","op":"exp","inputs":["a"]},
             {"name":"c","op":"call","inputs":["b"],"attrs":{"graph":"f"},"annotations":{"kiln.region":{"text":"two"}}}],
    "outputs":[{"name":"c","value":"c"}],
    "graphs":{"f":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":["k"]}}],
      "nodes":[{"name":"p","op":"sin","inputs":["u"]},{"name":"q","op":"softmax","inputs":["p"],"attrs":{"dim":0}}],
      "outputs":[{"name":"q","value":"q"}]}}})";
  for (const Fallback fallback : {Fallback::kernel, Fallback::reference}) {
    CompileOptions options;
    options.mode = Mode::marked;
    options.fallback = fallback;
    (void)made(json, {}, options);
    expect_equal_bits(json, "n=19", {drawn({19})}, options);
    EXPECT_NE(report_.entries[0].made->made.find(R"("same_as":0)"), std::string::npos);
  }
}

TEST_F(Specialized, GraphsThatAreCutIntoPiecesAreSpecializedPieceByPiece) {
  CompileOptions options;
  options.split_at = {"matmul", "softmax"};
  (void)made(product, {}, options);
  EXPECT_EQ(report_.pieces.size(), 3u);
  expect_equal_bits(product, "k=8,n=5", {drawn({5, 8}), drawn({8, 24})}, options);
  expect_equal_bits(product, "n=5", {drawn({5, 8}), drawn({8, 24})}, options);
}

TEST_F(Specialized, NamesInMessagesAreThoseOfTheGraphAtHand) {
  const auto json = [](std::string_view name) {
    return str_cat(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"i64","shape":["n"]}},
        {"name":"y","type":{"dtype":"i64","shape":["n"]}}],"nodes":[{"name":")",
                   name, R"(","op":"floor_divide","inputs":["x","y"]}],"outputs":[{"name":"q","value":")", name,
                   R"("}]})");
  };
  (void)made(json("first"), {});
  const Compiled other = made(json("second"), {"n=2"});  // made of what the first one's record keeps
  EXPECT_EQ(report_.lookup, Outcome::hit);
  EXPECT_EQ(report_.entries[0].made->lookup, Outcome::miss);
  const Plan &plan = other.executable->entries()[0].executable()->plan();
  ASSERT_EQ(plan.risks.size(), 1u);
  EXPECT_EQ(plan.risks[0].text(), "node 'second' [floor_divide]");
}

TEST_F(Specialized, LargeConstantsAreKeptOnce) {
  std::string data;
  for (int i = 0; i < 1000; ++i) data += str_cat(i ? "," : "", i);
  const std::string json = str_cat(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["n",1000]}}],
      "constants":[{"name":"c","type":{"dtype":"f32","shape":[1000]},"data":[)",
                                   data, R"(]}],"nodes":[{"name":"y","op":"mul","inputs":["x","c"]}],
      "outputs":[{"name":"y","value":"y"}]})");
  const Compiled compiled = made(json, {});
  const Artifact &artifact = compiled.executable->artifact();
  EXPECT_EQ(artifact.constants.size(), 1u);
  EXPECT_TRUE(artifact.source.constants.empty());
  EXPECT_LT(artifact.source.json.size(), 1000u);
  expect_equal_bits(json, "n=3", {drawn({3, 1000})});
}

TEST_F(Specialized, EntriesAreMadeLaterByWhoeverTheCompileGivesThemTo) {
  std::vector<LaterEntry> later;
  later_ = [&](LaterEntry entry) { later.push_back(std::move(entry)); };
  for (const SpecializeWhen when : {SpecializeWhen::background, SpecializeWhen::lazy}) {
    later.clear();
    const Compiled compiled = made(product, {"k=8,n=5"}, {.specialize_when = when});
    EXPECT_EQ(report_.entries[0].made, nullptr);
    EXPECT_EQ(later.size(), when == SpecializeWhen::background ? 1u : 0u);
    const std::unique_ptr<Call> call = call_of(compiled);
    EXPECT_EQ(run(*call, {drawn({5, 12}), drawn({12, 24})}).entry, "general");
    EXPECT_EQ(later.size(), when == SpecializeWhen::background ? 1u : 0u);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(run(*call, {drawn({5, 8}), drawn({8, 24})}).entry, "general");
    EXPECT_EQ(later.size(), 1u);  // asked for once
    // Given up, as in a forked child, it is asked for again.
    later.clear();
    EXPECT_EQ(compiled.executable->entries()[0].state(), Entries::State::unmade);
    EXPECT_EQ(run(*call, {drawn({6, 8}), drawn({8, 24})}).entry, "general");
    EXPECT_EQ(run(*call, {drawn({5, 8}), drawn({8, 24})}).entry, "general");
    EXPECT_EQ(later.size(), 1u);
  }
}

TEST_F(Specialized, EntriesAreSavedAndLoadedWithTheirProgram) {
  const Compiled compiled = made(product, {"k=8,n=5", "n=7"});
  const Bytes bytes = write_artifact(compiled.executable->artifact(), compiled.executable->made_entries());
  Result<Artifact> read = read_artifact(bytes);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->entries.size(), 2u);
  EXPECT_EQ(write_artifact(*read), bytes);
  Result<std::shared_ptr<const Executable>> loaded =
      Executable::load(std::make_shared<const Artifact>(std::move(read).value()), builtin_ops(),
                       std::make_shared<ThreadPool>(1), build_id());
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const std::vector<Array> arrays = {drawn({5, 8}), drawn({8, 24})};
  EXPECT_EQ(run(Compiled{*loaded, {}}, arrays), run(compiled, arrays));
  EXPECT_EQ(run(Compiled{*loaded, {}}, {drawn({7, 8}), drawn({8, 24})}).entry, "n=7");
}

TEST_F(Specialized, EntriesOfAFileMustBeOfItsProgram) {
  const Compiled compiled = made(product, {"k=8,n=5"}), other = made(product, {"k=8,n=6"});
  const auto message_of = [&](std::string sizes, const Compiled &of) {
    Artifact::Entry entry = of.executable->made_entries()[0];
    entry.sizes = std::move(sizes);
    Artifact artifact = compiled.executable->artifact();
    artifact.entries = {entry};
    return Executable::load(std::make_shared<const Artifact>(artifact), builtin_ops(), std::make_shared<ThreadPool>(1),
                            build_id())
        .status();
  };
  EXPECT_TRUE(message_of("k=8,n=5", compiled).ok());
  for (const auto &[sizes, message] : std::map<std::string, std::string>{
           {"k=8,n=5", "entry 'k=8,n=5' has another signature than the program for all sizes"},
           {"j=8", "entry 'j=8': no input tells 'j'"},
           {"j", "entry 'j': 'j' is not SYMBOL=SIZE"}}) {
    EXPECT_EQ(message_of(sizes, other).message(), message);
    EXPECT_EQ(message_of(sizes, other).code(), Code::corrupt);
  }
  Artifact nested = compiled.executable->artifact();
  nested.entries = {{"k=8,n=5", std::make_shared<const Artifact>(nested)}};
  Artifact twice = compiled.executable->artifact();
  twice.entries = {{"k=8,n=5", std::make_shared<const Artifact>(nested)}};
  const Status deep = read_artifact(write_artifact(twice)).status();
  EXPECT_EQ(deep.code(), Code::corrupt);
  EXPECT_NE(deep.message().find("section 'entries' at offset "), std::string::npos) << deep.message();
  EXPECT_NE(deep.message().find("entry 0: it has entries of its own"), std::string::npos) << deep.message();
}

TEST_F(Specialized, ClonesPrepareEachProgramOnce) {
  constexpr std::string_view json = R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["n",16]}}],
    "parameters":[{"name":"w","type":{"dtype":"f32","shape":[24,16]}},{"name":"b","type":{"dtype":"f32","shape":[24]}}],
    "nodes":[{"name":"y","op":"linear","inputs":["x","w","b"]}],"outputs":[{"name":"y","value":"y"}]})";
  const Compiled compiled = made(json, {"n=4"});
  const std::unique_ptr<Call> call = call_of(compiled);
  Array w = drawn({24, 16}), b = drawn({24}), other = drawn({24});
  for (float &value : other.values) value += 1;
  ASSERT_TRUE(call->bind(1, w.ref(), nullptr).ok());
  ASSERT_TRUE(call->bind(2, b.ref(), nullptr).ok());
  const Ran entry = run(*call, {drawn({4, 16})}), general = run(*call, {drawn({5, 16})});
  EXPECT_EQ(entry.entry, "n=4");
  EXPECT_EQ(general.entry, "general");
  Result<std::unique_ptr<Call>> clone = call->clone();
  ASSERT_TRUE(clone.ok());
  EXPECT_EQ(run(**clone, {drawn({4, 16})}), entry);
  EXPECT_EQ(run(**clone, {drawn({5, 16})}), general);
  // A parameter that is bound again is prepared again, for whichever program runs.
  ASSERT_TRUE(call->bind(2, other.ref(), nullptr).ok());
  EXPECT_NE(run(*call, {drawn({4, 16})}), entry);
  EXPECT_NE(run(*call, {drawn({5, 16})}), general);
  EXPECT_EQ(run(**clone, {drawn({4, 16})}), entry);
}

TEST_F(Specialized, ASizeThatTheGraphCannotHaveIsAnErrorThatNamesTheEntry) {
  constexpr std::string_view json = R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["n"]}},
      {"name":"y","type":{"dtype":"f32","shape":["m"]}}],"nodes":[{"name":"s","op":"add","inputs":["x","y"]}],
      "outputs":[{"name":"s","value":"s"}]})";
  const Status status = specialized(json, {"m=2,n=3"}).status();
  EXPECT_EQ(status.code(), Code::type_mismatch);
  EXPECT_EQ(status.message().find("entry 'm=2,n=3': node 's': [add] "), 0u) << status.message();
}

}  // namespace
}  // namespace kiln
