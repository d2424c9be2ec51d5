// Graphs that are cut into regions or pieces: what parts share, what one makes that another reads or writes into an
// input, and what runs as a reference kernel.
#include <algorithm>
#include <cmath>
#include <set>

#include "tests/cache/compiling.h"

namespace kiln {
namespace {

// x and the parameter w, of f32[4].
std::string graph_with(std::string_view nodes, std::string_view outputs) {
  std::string json = test::f32_graph("x", "4", nodes, outputs);
  json.insert(json.find("\"nodes\""), R"("parameters":[{"name":"w","type":{"dtype":"f32","shape":[4]}}],)");
  return json;
}
std::string marked(std::string_view name, std::string_view op, std::string_view inputs, std::string_view region) {
  return str_cat(R"({"name":")", name, R"(","op":")", op, R"(","inputs":[)", inputs,
                 R"(],"annotations":{"kiln.region":{"text":")", region, R"("}}})");
}

// Row-major; `dims` must outlive it.
ArrayRef array(std::vector<float> &values, std::span<const int64_t> dims) {
  return {values.data(), DType::f32, static_cast<uint32_t>(dims.size()), dims.data(), nullptr};
}

class Regions : public test::Compiling {
 protected:
  std::unique_ptr<Call> call_of(const Compiled &compiled) {
    Result<std::unique_ptr<Call>> call = Call::create(compiled.executable);
    EXPECT_TRUE(call.ok()) << call.status().message();
    return call.ok() ? std::move(*call) : nullptr;
  }
  // Of x of 1, 2, 3, 4 and w of 5, 6, 7, 8; by a call that runs twice.
  std::vector<std::vector<float>> outputs_of(const Compiled &compiled) {
    std::vector<float> x = {1, 2, 3, 4}, w = {5, 6, 7, 8};
    const int64_t dims[] = {4};
    const std::unique_ptr<Call> call = call_of(compiled);
    if (!call) return {};
    EXPECT_TRUE(call->bind(1, array(w, dims), nullptr).ok());
    std::vector<std::vector<float>> outputs(compiled.executable->artifact().plan.outputs.size(), std::vector<float>(4));
    std::vector<ArrayRef> args = {array(x, dims)};
    for (std::vector<float> &output : outputs) args.push_back(array(output, dims));
    for (int run = 0; run < 2; ++run) EXPECT_TRUE(call->run(args).ok());
    return outputs;
  }
  const CompileOptions marked_{.mode = Mode::marked};
};

TEST_F(Regions, WhatFollowsFromParametersIsMadeOnceABindingThoughAnotherRegionReadsIt) {
  const std::string graph =
      graph_with(str_cat(marked("p", "exp", R"("w")", "a"), ",", marked("q", "sin", R"("p")", "b"), ",",
                         marked("y", "add", R"("x","q")", "b")),
                 "y");
  for (const Outcome outcome : {Outcome::miss, Outcome::hit}) {
    Result<Compiled> compiled = compile(graph, marked_);
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    EXPECT_EQ(report_.lookup, outcome);
    EXPECT_EQ(report_.partition->parts.size(), 2u);
    const Plan &plan = compiled->executable->artifact().plan;
    EXPECT_EQ(plan.prepare.size(), 2u) << "exp, then sin";
    EXPECT_EQ(plan.steps.size(), 1u) << "the sum";
    const std::vector<float> y = outputs_of(*compiled)[0];
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], double(i + 1) + std::sin(std::exp(double(i + 5))), 2e-4);
  }
}

TEST_F(Regions, WhatIsPreparedAndAnOutputIsCopiedThereByEachCall) {
  const std::string graph =
      graph_with(str_cat(marked("p", "exp", R"("w")", "a"), ",", marked("y", "add", R"("x","p")", "b")), "y p");
  Result<Compiled> compiled = compile(graph, marked_);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  const std::vector<std::vector<float>> outputs = outputs_of(*compiled);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(outputs[1][i] / std::exp(double(i + 5)), 1, 1e-6);
    EXPECT_EQ(outputs[0][i], float(i + 1) + outputs[1][i]);
  }
}

TEST_F(Regions, WhatAReferenceKernelMakesOfParametersIsReadAsEachCallMakesIt) {
  CompileOptions options = marked_;
  options.fallback = Fallback::reference;
  const std::string graph =
      graph_with(str_cat(R"({"name":"p","op":"exp","inputs":["w"]},)", marked("q", "sqrt", R"("p")", "a"), ",",
                         marked("y", "add", R"("x","q")", "b")),
                 "y");
  Result<Compiled> compiled = compile(graph, options);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  EXPECT_TRUE(compiled->executable->artifact().plan.prepare.empty());
  const std::vector<float> y = outputs_of(*compiled)[0];
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], double(i + 1) + std::exp(double(i + 5) / 2), 2e-5);
}

TEST_F(Regions, ANodeThatIsKeptWholeIsRunByItsReferenceKernelAndTheOthersKeepTheirKernels) {
  const auto graph = [](std::string_view mark) {
    return graph_with(str_cat(R"({"name":"a","op":"sin","inputs":["x"]},{"name":"b","op":"softmax","inputs":["a"],
        "attrs":{"dim":0},"annotations":{)",
                              mark, R"(}},{"name":"c","op":"add","inputs":["b","w"]})"),
                      "c");
  };
  const auto keys = [](const Compiled &compiled) {
    std::set<Digest> found;
    for (const Image &image : compiled.executable->artifact().images) found.insert(image.kernel_key);
    return found;
  };
  CompileOptions options;
  options.mode = Mode::none;
  Result<Compiled> before = compile(graph(""), options);
  ASSERT_TRUE(before.ok()) << before.status().message();
  const std::string kept = graph(R"("kiln.decompose":{"text":"keep"})");
  for (const Outcome outcome : {Outcome::miss, Outcome::hit}) {
    Result<Compiled> compiled = compile(kept, options);
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    EXPECT_EQ(report_.lookup, outcome);
    const std::set<Digest> all = keys(*before), left = keys(*compiled);
    EXPECT_EQ(left.size(), 2u);
    EXPECT_TRUE(std::ranges::includes(all, left));
    const std::vector<float> y = outputs_of(*compiled)[0];
    double sum = 0;
    for (int i = 1; i <= 4; ++i) sum += std::exp(std::sin(double(i)));
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], std::exp(std::sin(double(i + 1))) / sum + double(i + 5), 1e-6);
  }
}

TEST_F(Regions, AFallbackThatIsAlwaysDecomposedIsRunByTheKernelsOfWhatItIsMadeOf) {
  const auto graph = [](std::string_view when) {
    return graph_with(
        str_cat(R"({"name":"b","op":"silu","inputs":["x"],"annotations":{"kiln.decompose":{"text":")", when, R"("}}})"),
        "b");
  };
  CompileOptions options;
  options.mode = Mode::none;
  options.fallback = Fallback::reference;
  const auto ops_run = [&](std::string_view when) {
    Result<Compiled> compiled = compile(graph(when), options);
    EXPECT_TRUE(compiled.ok()) << compiled.status().message();
    if (!compiled.ok()) return std::string();
    const std::vector<float> y = outputs_of(*compiled)[0];
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], double(i + 1) / (1 + std::exp(-double(i + 1))), 1e-6);
    const std::vector<std::string> &graphs = compiled->executable->artifact().graphs;
    EXPECT_EQ(graphs.size(), 1u);
    return join(test::graph_of(graphs[0])->nodes(), " ",
                [](const Node &node) { return node.op ? node.op->name : "-"; });
  };
  EXPECT_EQ(ops_run("backend"), "- silu");
  EXPECT_EQ(ops_run("always").find("silu"), std::string::npos);
}

TEST_F(Regions, WhatAnotherPieceMakesIsWrittenIntoAnInputThoughItsStepsShareMemory) {
  const std::string graph = R"({"kiln":1,"inputs":[{"name":"a","type":{"dtype":"f32","shape":[4,8]}},
      {"name":"b","type":{"dtype":"f32","shape":[4,8]}}],"nodes":[
      {"name":"v","op":"softmax","inputs":["b"],"attrs":{"dim":0},"annotations":{"kiln.cut":{"bool":true}}},
      {"name":"y","op":"softmax","inputs":["a"],"attrs":{"dim":0}},{"name":"c","op":"copy_","inputs":["a","v"]}],
      "outputs":[{"name":"o","value":"y"}]})";
  for (const Mode mode : {Mode::all, Mode::none}) {
    Result<Compiled> compiled = compile(graph, {.mode = mode});
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    std::vector<float> a(32), b(32), y(32);
    for (size_t k = 0; k < 32; ++k) a[k] = float(k % 7) / 2, b[k] = float(k % 5) - 1;
    const std::vector<float> before[] = {a, b};
    const int64_t dims[] = {4, 8};
    const std::unique_ptr<Call> call = call_of(*compiled);
    ASSERT_TRUE(call);
    const ArrayRef args[] = {array(a, dims), array(b, dims), array(y, dims)};
    ASSERT_TRUE(call->run(args).ok());
    const auto softmax_of = [](const std::vector<float> &x, size_t k) {
      double sum = 0;
      for (size_t row = 0; row < 4; ++row) sum += std::exp(double(x[row * 8 + k % 8]));
      return std::exp(double(x[k])) / sum;
    };
    for (size_t k = 0; k < 32; ++k) {
      EXPECT_NEAR(y[k], softmax_of(before[0], k), 1e-6) << k;
      EXPECT_NEAR(a[k], softmax_of(before[1], k), 1e-6) << k;
    }
  }
}

TEST_F(Regions, WhatAnotherRegionOrPieceMakesIsWrittenIntoAnInputWithoutACopy) {
  const std::string graph = R"({"kiln":1,"inputs":[{"name":"cache","type":{"dtype":"f32","shape":[8,4]}},
      {"name":"x","type":{"dtype":"f32","shape":[1,4]}}],"nodes":[
      {"name":"new","op":"slice_scatter","inputs":["cache","x"],"attrs":{"dim":0,"start":3,"end":4},
       "annotations":{"kiln.region":{"text":"a"},"kiln.cut":{"bool":true}}},
      {"name":"y","op":"neg","inputs":["new"],"annotations":{"kiln.region":{"text":"b"}}},
      {"name":"w","op":"copy_","inputs":["cache","new"],"annotations":{"kiln.region":{"text":"b"}}}],
      "outputs":[{"name":"y","value":"y"}]})";
  for (const Mode mode : {Mode::all, Mode::marked, Mode::except_fallback}) {
    Result<Compiled> compiled = compile(graph, {.mode = mode});
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    const Plan &plan = compiled->executable->artifact().plan;
    EXPECT_EQ(plan.steps.size(), 2u) << print(plan);
    for (const Plan::Step &step : plan.steps) EXPECT_EQ(step.kind, Plan::Step::Kind::launch);
    std::vector<float> cache(32, 1), x = {-1, -2, -3, -4}, y(32);
    const int64_t dims[] = {8, 4}, one[] = {1, 4};
    const std::unique_ptr<Call> call = call_of(*compiled);
    ASSERT_TRUE(call);
    const ArrayRef args[] = {array(cache, dims), array(x, one), array(y, dims)};
    ASSERT_TRUE(call->run(args).ok());
    for (size_t k = 0; k < 32; ++k) {
      EXPECT_EQ(cache[k], k / 4 == 3 ? x[k % 4] : 1) << k;
      EXPECT_EQ(y[k], -cache[k]) << k;
    }
  }
}

// Two caches, each with what reads it; behind them what has to do with neither, marked for another region or for none,
// in control flow or not.
constexpr std::string_view two_caches = R"({"kiln":1,"inputs":[
      {"name":"k","type":{"dtype":"f32","shape":[4096,4]}},{"name":"v","type":{"dtype":"f32","shape":[4096,4]}},
      {"name":"x","type":{"dtype":"f32","shape":[1,4]}},{"name":"p","type":{"dtype":"bool","shape":[]}}],
      "graphs":{"f":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":[4]}}],
                     "nodes":[{"name":"fy","op":"neg","inputs":["u"]}],"outputs":[{"name":"fy","value":"fy"}]}},
      "nodes":[
      {"name":"nk","op":"slice_scatter","inputs":["k","x"],"attrs":{"dim":0,"start":3,"end":4},
       "annotations":{"kiln.region":{"text":"a"}}},
      {"name":"yk","op":"sum","inputs":["nk"],"attrs":{"dims":[0]},"annotations":{"kiln.region":{"text":"a"}}},
      {"name":"wk","op":"copy_","inputs":["k","nk"],"annotations":{"kiln.region":{"text":"a"}}},
      {"name":"z","op":"neg","inputs":["yk"]},
      {"name":"zs","op":"reshape","inputs":["z"],"attrs":{"shape":[1,4]}},
      {"name":"nv","op":"slice_scatter","inputs":["v","zs"],"attrs":{"dim":0,"start":5,"end":6},
       "annotations":{"kiln.region":{"text":"b"}}},
      {"name":"yv","op":"sum","inputs":["nv"],"attrs":{"dims":[0]},"annotations":{"kiln.region":{"text":"b"}}},
      {"name":"wv","op":"copy_","inputs":["v","nv"],"annotations":{"kiln.region":{"text":"b"}}},
      {"name":"c","op":"cond","inputs":["p","yv"],"attrs":{"then_graph":"f","else_graph":"f"}}],
      "outputs":[{"name":"c","value":"c"}]})";

// A step that makes all of an input anew has it among what it reads and among what it writes.
void expect_some_elements_written(const Plan &plan) {
  for (const Plan::Step &step : plan.steps) {
    std::vector<uint32_t> slots = step.slots;
    std::ranges::sort(slots);
    EXPECT_EQ(std::ranges::adjacent_find(slots), slots.end()) << print(plan);
    EXPECT_NE(step.kind, Plan::Step::Kind::copy) << print(plan);
  }
  for (const Plan &nested : plan.nested) expect_some_elements_written(nested);
}

TEST_F(Regions, ACacheIsWrittenInPlaceWhateverComesBehindItsRegion) {
  for (const Mode mode : {Mode::all, Mode::marked, Mode::except_fallback}) {
    Result<Compiled> compiled = compile(std::string(two_caches), {.mode = mode});
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    if (mode == Mode::marked) {
      ASSERT_EQ(report_.partition->parts.size(), 2u);
      EXPECT_EQ(report_.partition->parts[0].nodes, (std::vector<std::string>{"nk", "yk", "wk"}));
      EXPECT_TRUE(report_.partition->splits.empty());
    }
    expect_some_elements_written(compiled->executable->artifact().plan);
    std::vector<float> k(4096 * 4, 1), v(4096 * 4, 1), x = {1, 2, 3, 4}, y(4);
    const int64_t dims[] = {4096, 4}, one[] = {1, 4}, four[] = {4};
    uint8_t yes = 1;
    const std::unique_ptr<Call> call = call_of(*compiled);
    ASSERT_TRUE(call);
    const ArrayRef args[] = {
        array(k, dims), array(v, dims), array(x, one), {&yes, DType::boolean, 0, nullptr, nullptr}, array(y, four)};
    ASSERT_TRUE(call->run(args).ok());
    for (size_t i = 0; i < 4; ++i) {
      const float sum = 4095 + x[i];
      EXPECT_EQ(k[3 * 4 + i], x[i]);
      EXPECT_EQ(k[i], 1);
      EXPECT_EQ(v[5 * 4 + i], -sum);
      EXPECT_EQ(y[i], -(4095 - sum));
    }
  }
}

TEST_F(Regions, AParameterIsWrittenIntoAnInputOfAnyStridesInEveryMode) {
  const std::string graph = R"({"kiln":1,
      "inputs":[{"name":"x","type":{"dtype":"f32","shape":[2,3],"strides":[4,1]}}],
      "parameters":[{"name":"w","type":{"dtype":"f32","shape":[2,3]}}],
      "nodes":[{"name":"c","op":"copy_","inputs":["x","w"]}]})";
  for (const Mode mode : {Mode::all, Mode::none}) {
    Result<Compiled> compiled = compile(graph, {.mode = mode});
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    std::vector<float> x(7, -1), w = {1, 2, 3, 4, 5, 6};
    const int64_t dims[] = {2, 3}, strides[] = {4, 1};
    const std::unique_ptr<Call> call = call_of(*compiled);
    ASSERT_TRUE(call);
    ASSERT_TRUE(call->bind(1, array(w, dims), nullptr).ok());
    const ArrayRef args[] = {{x.data(), DType::f32, 2, dims, strides}};
    ASSERT_TRUE(call->run(args).ok());
    EXPECT_EQ(x, (std::vector<float>{1, 2, 3, -1, 4, 5, 6}));
  }
}

TEST_F(Regions, AReferenceKernelThatFailsEndsTheRunAndNoOutputCanBeTaken) {
  CompileOptions options{.mode = Mode::none};
  options.fallback = Fallback::reference;
  const std::string graph = R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":[4]}},
      {"name":"i","type":{"dtype":"i64","shape":[1]}}],"nodes":[
      {"name":"p","op":"index_select","inputs":["x","i"],"attrs":{"dim":0}},{"name":"q","op":"exp","inputs":["p"]}],
      "outputs":[{"name":"q","value":"q"}]})";
  Result<Compiled> compiled = compile(graph, options);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  std::vector<float> x = {1, 2, 3, 4};
  int64_t i = 4;
  const int64_t four[] = {4}, one[] = {1};
  const std::unique_ptr<Call> call = call_of(*compiled);
  ASSERT_TRUE(call);
  const ArrayRef args[] = {array(x, four), {&i, DType::i64, 1, one, nullptr}};
  EXPECT_EQ(call->run(args).code(), Code::out_of_range);
  EXPECT_FALSE(call->take(2).ok());
  i = 1;
  ASSERT_TRUE(call->run(args).ok());
  const Result<Call::Taken> taken = call->take(2);
  ASSERT_TRUE(taken.ok()) << taken.status().message();
  EXPECT_NEAR(static_cast<const float *>(taken->data)[0], std::exp(2.0), 1e-5);
}

TEST_F(Regions, AnErrorInOneOfEqualPartsNamesItsOwnNode) {
  std::string inputs;
  for (const char name : {'a', 'b', 'c'})
    str_append(inputs, str_cat(inputs.empty() ? "" : ",", R"({"name":")", std::string(1, name),
                               R"(","type":{"dtype":"i32","shape":[2]}})"));
  const std::string graph = str_cat(R"({"kiln":1,"inputs":[)", inputs, R"(],"nodes":[
      {"name":"first","op":"div","inputs":["a","b"]},{"name":"second","op":"div","inputs":["first","c"]}],
      "outputs":[{"name":"y","value":"second"}]})");
  Result<Compiled> compiled = compile(graph, {.mode = Mode::none});
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  EXPECT_EQ(compiled->executable->artifact().images.size(), 1u);
  std::vector<int32_t> a = {1, 1}, b = {1, 1}, c = {1, 0}, y(2);
  const int64_t dims = 2;
  std::vector<ArrayRef> args;
  for (std::vector<int32_t> *values : {&a, &b, &c, &y}) args.push_back({values->data(), DType::i32, 1, &dims, nullptr});
  const std::unique_ptr<Call> call = call_of(*compiled);
  ASSERT_TRUE(call);
  const Status status = call->run(args);
  EXPECT_EQ(status.message(), "an integer is divided by zero in node 'second' [div] (first in step 1, kernel 0)");
  EXPECT_EQ(status.info()->node, "second");
}

}  // namespace
}  // namespace kiln
