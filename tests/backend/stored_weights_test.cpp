// Weights stored in fewer bits than they are multiplied in: right results, and no memory that holds them unpacked.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/backend/backends.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln::testing {
namespace {

// How the weight "w" of a graph is stored: tensors, and the node that makes floats of them.
struct Form {
  const char *name, *type, *scales_type, *zeros_type, *attrs;  // scales_type null: converted
  bool nibbles = false, groups = false;
};
constexpr Form forms[] = {
    {"f16", "f16", nullptr, nullptr, ""},
    {"bf16", "bf16", nullptr, nullptr, ""},
    {"i8 per channel", "i8", "f32", nullptr, ""},
    {"i8 per channel with zeros", "i8", "f16", "i8", ""},
    {"u8 in groups with zeros", "u8", "f32", "u8", "", false, true},
    {"i4 per channel", "u8", "f32", nullptr, R"("bits": 4,)", true},
    {"i4 in groups", "u8", "f16", nullptr, R"("bits": 4,)", true, true},
    {"u4 in groups with zeros", "u8", "bf16", "u8", R"("bits": 4, "signed": false,)", true, true},
};

// What multiplies by w, or looks up in it.
struct Reader {
  const char *name, *x_shape, *nodes;
  std::vector<int64_t> weight;
  int64_t group;
  bool packed;  // its weights are packed in advance where they are parameters
  int steps = 1;
};
const Reader readers[] = {
    {"matmul",
     "7, 64",
     R"({"name": "y", "op": "matmul", "inputs": ["x", "w"], "attrs": {"transpose_b": true}})",
     {40, 64},
     32,
     true},
    {"matmul of many rows", "n, 64", R"({"name": "y", "op": "linear", "inputs": ["x", "w"]})", {40, 64}, 32, true},
    {"linear",
     "2, 1, 64",
     R"({"name": "l", "op": "linear", "inputs": ["x", "w", "bias"]},
                              {"name": "y", "op": "gelu", "inputs": ["l"]})",
     {40, 64},
     32,
     true},
    {"conv2d",
     "2, 4, 7, 9",
     R"({"name": "y", "op": "conv2d", "inputs": ["x", "w", "bias"],
                                 "attrs": {"padding": [1, 0]}})",
     {40, 4, 3, 2},
     2,
     true},
    {"conv2d of groups",
     "2, 8, 7, 9",
     R"({"name": "y", "op": "conv2d", "inputs": ["x", "w"],
                                           "attrs": {"groups": 2}})",
     {40, 4, 3, 2},
     2,
     false},
    {"embedding", "3", R"({"name": "y", "op": "embedding", "inputs": ["w", "indices"]})", {40, 64}, 32, false},
    {"embedding that is the last layer, too",
     "3",
     R"({"name": "e", "op": "embedding", "inputs": ["w", "indices"]},
      {"name": "s", "op": "tanh", "inputs": ["e"]}, {"name": "y", "op": "linear", "inputs": ["s", "w"]})",
     {40, 64},
     32,
     true,
     2},
};

int64_t elements_of(const std::vector<int64_t> &shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::string shape_json(const std::vector<int64_t> &shape) {
  return join(shape, ", ", [](int64_t dim) { return str_cat(dim); });
}
std::string tensor_json(std::string_view name, std::string_view dtype, std::string_view shape) {
  return str_cat(R"({"name": ")", name, R"(", "type": {"dtype": ")", dtype, R"(", "shape": [)", shape, "]}}");
}

GraphPtr weights_graph(const Reader &reader, const Form &form, std::string_view activations, bool parameters) {
  std::vector<int64_t> stored = reader.weight, scales = {reader.weight[0]};
  if (form.nibbles) stored.back() /= 2;
  if (form.groups) {
    scales = reader.weight;
    scales[1] /= reader.group;
  }
  std::string weights = tensor_json("stored", form.type, shape_json(stored)), node;
  if (form.scales_type) {
    str_append(weights, str_cat(",", tensor_json("scales", form.scales_type, shape_json(scales))));
    if (form.zeros_type) str_append(weights, str_cat(",", tensor_json("zeros", form.zeros_type, shape_json(scales))));
    node = str_cat(R"({"name": "w", "op": "dequantize", "inputs": ["stored", "scales")",
                   form.zeros_type ? R"(, "zeros")" : "", R"(], "attrs": {)", form.attrs,
                   form.groups ? str_cat(R"("axis": 1, "group": )", reader.group, ",") : "", R"("dtype": ")",
                   activations, R"("}})");
  } else {
    node =
        str_cat(R"({"name": "w", "op": "convert", "inputs": ["stored"], "attrs": {"dtype": ")", activations, R"("}})");
  }
  const bool indices = std::string_view(reader.nodes).find("indices") != std::string_view::npos;
  const bool bias = std::string_view(reader.nodes).find("bias") != std::string_view::npos;
  std::string inputs =
      indices
          ? tensor_json("indices", "i64", reader.x_shape)
          : tensor_json("x", activations,
                        str_cat(reader.x_shape[0] == 'n' ? R"("n")" : "", reader.x_shape + (reader.x_shape[0] == 'n')));
  if (bias) str_append(inputs, str_cat(",", tensor_json("bias", activations, "40")));
  if (!parameters) str_append(inputs, str_cat(",", std::exchange(weights, "")));
  return test::graph_of(str_cat(R"({"kiln": 1, "inputs": [)", inputs, R"(], "parameters": [)", weights,
                                R"(], "nodes": [)", node, ", ", reader.nodes,
                                R"(], "outputs": [{"name": "y", "value": "y"}]})"));
}

Case weights_case(const GraphPtr &graph, double tolerance) {
  Case made{"", graph, {}, {tolerance}, {}};
  std::mt19937_64 random(7);
  if (!graph->symbols().empty()) made.sizes = {{"n", 70}};
  const auto add = [&](uint32_t id) {
    const Node &node = *graph->find(id);
    const TensorType &type = node.results[0];
    Sample range{.low = -1, .high = 1, .int_low = 0, .int_high = type.dtype == DType::i64 ? 40 : 256};
    if (type.dtype == DType::i8) range.int_low = -128, range.int_high = 128;
    made.arguments.push_back(random_tensor(type.dtype, shape_at(type.dims, made.sizes), range, random));
  };
  for (uint32_t input : graph->inputs()) add(input);
  for (uint32_t parameter : graph->parameters()) add(parameter);
  return made;
}

// Calls body(reader, form, activations, parameters, what) for all that there are.
template <class Body>
void for_all(Body body) {
  for (const Reader &reader : readers)
    for (const Form &form : forms)
      for (const char *activations : {"f32", "f16", "bf16"})
        for (bool parameters : {true, false}) {
          if (!form.scales_type && activations != std::string_view("f32")) continue;
          SCOPED_TRACE(str_cat(reader.name, ", ", form.name, " beside ", activations, parameters ? "" : ", an input"));
          body(reader, form, activations, parameters);
        }
}

TEST(StoredWeights, AreUnpackedWhereTheyAreReadAndNowhereElse) {
  for_all([](const Reader &reader, const Form &form, const char *activations, bool parameters) {
    const GraphPtr graph = weights_graph(reader, form, activations, parameters);
    for (const char *backend : {"cpu", "cuda"}) {
      const bool panels = backend == std::string_view("cpu") && parameters && reader.packed;
      const Result<Compiled> made = compile_alone(
          graph, {.backend = backend, .arch = backend == std::string_view("cuda") ? "sm_90" : "native", .code = false});
      ASSERT_TRUE(made.ok()) << made.status().message();
      const Plan &plan = made->executable->plan();
      EXPECT_EQ(plan.steps.size(), static_cast<size_t>(reader.steps)) << backend << "\n" << print(plan);
      EXPECT_EQ(plan.prepare.size(), panels ? 1u : 0u) << backend << "\n" << print(plan);
      ASSERT_EQ(plan.prepared.size(), panels ? 1u : 0u) << backend << "\n" << print(plan);
      // At most 64 columns more than there are, of 4 bytes.
      if (panels) {
        EXPECT_LE(plan.prepared[0].size_bytes.integer(),
                  4 * elements_of(reader.weight) / reader.weight[0] * (reader.weight[0] + 64));
      }
      for (const Plan::Storage &storage : plan.arena)
        EXPECT_LE(storage.size_bytes.integer(), 3 * 64 * 4) << "what is between two steps: three rows";
      EXPECT_EQ(plan.arena.size(), static_cast<size_t>(reader.steps - 1)) << backend << "\n" << print(plan);
    }
  });
}

TEST(StoredWeights, GiveWhatTheirFloatsGive) {
  const std::vector<Backend> all = backends();
  const Backend native = compiled("cpu", "native", true);
  for_all([&](const Reader &reader, const Form &form, const char *activations, bool parameters) {
    const bool thorough = form.groups && form.zeros_type;
    const DType dtype = *dtype_from_name(activations);
    if (!thorough && (!parameters || dtype != DType::f32)) return;
    Sample by_dtype;
    if (dtype == DType::f32) by_dtype.tolerance = 5e-5;  // sums of up to 64 numbers of up to 256
    const Case made = weights_case(weights_graph(reader, form, activations, parameters), tolerance_of(by_dtype, dtype));
    for (const Backend &backend : thorough &&dtype == DType::f32 ? all : std::vector{native})
      EXPECT_EQ(check(backend, made), "");
  });
}

}  // namespace
}  // namespace kiln::testing
