// Every sample of every op on the backend of plugins/onednn_backend, against the reference kernels: what it says that
// it runs, it runs as Kiln means it, and of what it leaves to `cpu` the reason is here.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "runtime/graph/edit.h"
#include "tests/backend/backends.h"
#include "tests/backend/onednn_backend.h"
#include "tests/child.h"
#include "tests/soak.h"

namespace kiln::testing {
namespace {

bool is_taken(const Compiled &compiled) { return !compiled.executable->artifact().programs.empty(); }

// With what follows the first operand of each node as parameters, where their sizes are known: weights are prepared.
Result<Case> with_parameters(const Case &made) {
  std::set<uint32_t> first;
  for (const Node &node : made.graph->nodes())
    if (node.kind == Node::Kind::op && !node.inputs.empty()) first.insert(node.inputs[0].node);
  Edit edit;
  for (const auto &[name, info] : made.graph->symbols()) KILN_TRY(edit.declare_symbol(name, info));
  std::map<ValueId, ValueId> values;
  std::vector<TensorData> inputs, parameters;
  for (size_t k = 0; k < made.arguments.size(); ++k) {
    const Node &node = *made.graph->find(made.graph->inputs()[k]);
    const bool is_parameter = !first.contains(node.id) && made.sizes.empty();
    (is_parameter ? parameters : inputs).push_back(made.arguments[k]);
    KILN_ASSIGN(values[(ValueId{node.id, 0})],
                is_parameter ? edit.parameter(node.name, node.results[0]) : edit.input(node.name, node.results[0]));
  }
  for (const Node &node : made.graph->nodes()) {
    if (node.kind != Node::Kind::op) continue;
    std::vector<ValueId> operands;
    for (const ValueId input : node.inputs) operands.push_back(values.at(input));
    KILN_ASSIGN(const uint32_t id, edit.add(node.op, operands, node.attrs, node.name, node.annotations));
    for (uint32_t k = 0; k < node.results.size(); ++k) values[{node.id, k}] = {id, k};
  }
  std::vector<GraphOutput> outputs;
  for (const GraphOutput &output : made.graph->outputs()) outputs.push_back({output.name, values.at(output.value)});
  KILN_TRY(edit.set_outputs(std::move(outputs)));
  Case out = made;
  out.name += ", parameters";
  KILN_ASSIGN(out.graph, edit.finish());
  out.arguments = std::move(inputs);
  std::ranges::move(parameters, std::back_inserter(out.arguments));
  return out;
}

// With NaN, infinities and zeros among the elements of f32.
Case with_extremes(Case made) {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float extremes[] = {nan, inf, -inf, 0, -0.0f};
  size_t next = 0;
  for (TensorData &data : made.arguments) {
    if (data.dtype != DType::f32) continue;
    auto *elements = reinterpret_cast<float *>(data.bytes.data());
    for (int64_t k = 0; k < data.element_count(); k += 7) elements[k] = extremes[next++ % std::size(extremes)];
  }
  made.name += ", extremes";
  return made;
}

Result<std::vector<TensorData>> run_on_onednn(const Case &made, const Compiled &compiled) {
  const GraphCall call{made.sizes, made.arguments};
  std::vector<Results> both;
  for (const auto place : {GuardedBytes::Place::end, GuardedBytes::Place::begin}) {
    KILN_ASSIGN(std::vector<Results> all, make_calls(compiled.executable, *made.graph, {&call, 1}, place));
    both.push_back(std::move(all[0]));
  }
  if (both[0] != both[1]) return invalid("other places in memory give results that are not the same bits");
  return std::move(both[0]);
}

// What is not finite by the reference is not compared, for it was chosen to be lost.
std::vector<TensorData> but_for_what_is_lost(std::vector<TensorData> got, const Case &made) {
  const Result<std::vector<TensorData>> expected = run_on_reference(*made.graph, made.arguments);
  for (size_t k = 0; expected.ok() && k < got.size(); ++k) {
    RefTensor mine = to_reference(got[k]);
    const RefTensor theirs = to_reference((*expected)[k]);
    for (size_t i = 0; i < mine.f.size() && i < theirs.f.size(); ++i)
      if (!std::isfinite(theirs.f[i])) mine.f[i] = theirs.f[i];
    got[k] = from_reference(mine);
  }
  return got;
}

// Ops of which none is taken, though oneDNN has a primitive for what they do, or for most of it.
const std::map<std::string, std::string, std::less<>> excluded = {
    {"softplus", "oneDNN's has no threshold"},
    {"prelu", "oneDNN's slopes broadcast otherwise"},
    {"rsqrt", "oneDNN's pow makes +inf of -0"},
    {"pow", "oneDNN's has one exponent for all elements"},
    {"layer_norm", "`cpu` fuses it with what stands around it"},
    {"group_norm", "`cpu` fuses it with what stands around it"},
    {"sum", "`cpu` fuses it with what stands around it"},
    {"mean", "`cpu` fuses it with what stands around it"},
    {"max", "`cpu` fuses it with what stands around it"},
    {"min", "`cpu` fuses it with what stands around it"},
    {"prod", "`cpu` fuses it with what stands around it"},
    {"concat", "`cpu` fuses it with what stands around it"},
    {"logsigmoid", "left to `cpu`: nothing asked for it yet"},
    {"log_softmax", "left to `cpu`: nothing asked for it yet"},
    {"hardsigmoid", "left to `cpu`: nothing asked for it yet"},
    {"conv_transpose1d", "left to `cpu`: nothing asked for it yet"},
    {"conv_transpose2d", "left to `cpu`: nothing asked for it yet"},
    {"conv_transpose3d", "left to `cpu`: nothing asked for it yet"},
    {"resize_nearest", "left to `cpu`: nothing asked for it yet"},
    {"resize_linear", "left to `cpu`: nothing asked for it yet"},
    {"rnn", "its turns are a loop of Kiln's"},
    {"lstm", "its turns are a loop of Kiln's"},
    {"gru", "its turns are a loop of Kiln's"},
};

// What the plugin's README says that it takes.
constexpr std::string_view known[] = {
    "linear",     "matmul",     "conv1d",     "conv2d",     "conv3d",     "relu",    "leaky_relu", "elu",
    "tanh",       "sigmoid",    "exp",        "abs",        "sqrt",       "square",  "log",        "gelu",
    "silu",       "mish",       "hardswish",  "round",      "neg",        "relu6",   "clamp",      "add",
    "sub",        "mul",        "div",        "maximum",    "minimum",    "softmax", "max_pool1d", "max_pool2d",
    "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm", "reshape"};

bool is_known(const Op *op) { return std::ranges::find(known, op->name) != std::end(known); }

// Of the first `most` cases, each with operands as inputs and as parameters.
int check_what_is_taken(const Op &op, size_t most) {
  Result<std::vector<Case>> cases = all_cases_of(op);
  EXPECT_TRUE(cases.ok()) << cases.status().message();
  if (!cases.ok()) return 0;
  const size_t count = std::min(most, cases->size());
  cases->erase(cases->begin() + static_cast<std::ptrdiff_t>(count), cases->end());
  for (size_t k = 0; k < count; ++k) {
    Result<Case> bound = with_parameters((*cases)[k]);
    EXPECT_TRUE(bound.ok()) << bound.status().message();
    if (bound.ok()) cases->push_back(std::move(*bound));
  }
  int taken = 0;
  for (const NotFinite not_finite : {NotFinite::lost, NotFinite::kept}) {
    for (const Case &made : *cases) {
      const Result<Compiled> compiled = compile_on_onednn(made.graph, not_finite);
      EXPECT_TRUE(compiled.ok()) << made.name << ": " << compiled.status().message();
      if (!compiled.ok() || !is_taken(*compiled)) continue;
      ++taken;
      const Backend onednn{"onednn",
                           [&](const Case &c) -> Result<std::vector<TensorData>> {
                             KILN_ASSIGN(std::vector<TensorData> got, run_on_onednn(c, *compiled));
                             return not_finite == NotFinite::kept ? got : but_for_what_is_lost(std::move(got), c);
                           },
                           {}};
      EXPECT_EQ(check(onednn, made), "") << made.name;
      if (not_finite == NotFinite::kept) {
        const Case extreme = with_extremes(made);
        EXPECT_EQ(check(onednn, extreme), "") << extreme.name;
      }
    }
  }
  std::printf("%s: %d of %d cases taken\n", std::string(op.name).c_str(), taken, static_cast<int>(2 * cases->size()));
  return taken;
}

class Onednn : public ::testing::TestWithParam<const Op *> {};

TEST_P(Onednn, AgreesWithTheReferenceOnWhatItTakes) {
  if (const std::string reason = no_onednn(); !reason.empty()) GTEST_SKIP() << reason;
  EXPECT_GT(check_what_is_taken(*GetParam(), SIZE_MAX), 0);
}

// Of ops that it does not take itself it may take what they are made of.
TEST(OnednnParts, OfOtherOpsAgreeWithTheReference) {
  if (const std::string reason = no_onednn(); !reason.empty()) GTEST_SKIP() << reason;
  for (const Op *op : all_ops()) {
    if (is_known(op)) continue;
    const int taken = check_what_is_taken(*op, test::soak() ? SIZE_MAX : 1);
    const auto why = excluded.find(op->name);
    if (why == excluded.end()) continue;
    std::printf("%s is not run on onednn: %s\n", std::string(op->name).c_str(), why->second.c_str());
    EXPECT_EQ(taken, 0);
  }
}

TEST(OnednnFork, AChildOfAProcessThatHasRunItIsToldAndDoesNotWait) {
  if (const std::string reason = no_onednn(); !reason.empty()) GTEST_SKIP() << reason;
  SKIP_WHERE_CHILDREN_HAVE_NO_THREADS();
  const Result<std::vector<Case>> cases = all_cases_of(**std::ranges::find(all_ops(), "matmul", &Op::name));
  ASSERT_TRUE(cases.ok()) << cases.status().message();
  const Case &made = cases->front();
  const Result<Compiled> compiled = compile_on_onednn(made.graph, NotFinite::kept);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  ASSERT_TRUE(is_taken(*compiled));
  ASSERT_TRUE(run_on_onednn(made, *compiled).ok());
  test::in_child([&] {
    const Result<std::vector<TensorData>> run = run_on_onednn(made, *compiled);
    EXPECT_EQ(run.status().code(), Code::unimplemented) << run.status().message();
  });
  EXPECT_TRUE(run_on_onednn(made, *compiled).ok()) << "the parent goes on";
}

TEST(OnednnExclusions, AreOfOpsThatThereAre) {
  for (const auto &[name, why] : excluded) EXPECT_NE(builtin_ops().find(name), nullptr) << name;
}

std::vector<const Op *> known_ops() {
  std::vector<const Op *> ops;
  std::ranges::copy_if(all_ops(), std::back_inserter(ops), is_known);
  return ops;
}

INSTANTIATE_TEST_SUITE_P(Ops, Onednn, ::testing::ValuesIn(known_ops()),
                         [](const auto &instance) { return std::string(instance.param->name); });

}  // namespace
}  // namespace kiln::testing
