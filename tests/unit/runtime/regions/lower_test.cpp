#include "runtime/regions/lower.h"

#include "tests/unit/runtime/graphs.h"

namespace kiln {
namespace {

using test::f32_graph;
using test::graph_of;

Lowered lowered(std::string_view json) {
  Result<Lowered> result = lower(*graph_of(json));
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? std::move(result).value() : Lowered{};
}

TEST(Lower, EachOpIsOneComputeOverItsOperands) {
  const Lowered l = lowered(f32_graph("xy", "4, 8", R"({"name":"a","op":"add","inputs":["x","y"]},
      {"name":"b","op":"mul","inputs":["a","a"]})",
                                      "b"));
  ASSERT_EQ(l.program.defs.size(), 2u);
  EXPECT_EQ(l.program.defs[0].operands, (std::vector<uint32_t>{l.inputs[0], l.inputs[1]}));
  EXPECT_EQ(l.program.defs[1].operands, (std::vector<uint32_t>(2, l.program.defs[0].results[0])));
  EXPECT_EQ(l.outputs, std::vector<uint32_t>{l.program.defs[1].results[0]});
  EXPECT_TRUE(l.program.tensors[l.outputs[0]].is_output);
  EXPECT_FALSE(l.program.tensors[l.program.defs[0].results[0]].is_output);
}

TEST(Lower, AViewIsOneLoadAtTheMappedIndex) {
  const Lowered l =
      lowered(f32_graph("x", "4, 8", R"({"name":"t","op":"permute","inputs":["x"],"attrs":{"dims":[1,0]}})", "t"));
  ASSERT_EQ(l.program.defs.size(), 1u);
  const kernel::Compute &compute = l.program.defs[0].compute;
  EXPECT_TRUE(compute.view);
  ASSERT_EQ(compute.body.values.size(), 1u);
  EXPECT_EQ(compute.body.values[0].access.index, (std::vector<Expr>{Expr::axis(1, 4), Expr::axis(0, 8)}));
}

TEST(Lower, AConstantOfOneElementIsPartOfTheComputes) {
  const Lowered l = lowered(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"i64","shape":[2]}}],
      "constants":[{"name":"c","type":{"dtype":"i64","shape":[1]},"data":["9007199254740993"]}],
      "nodes":[{"name":"y","op":"add","inputs":["x","c"]}],"outputs":[{"name":"y","value":"y"}]})");
  EXPECT_TRUE(l.constants.empty());
  ASSERT_EQ(l.program.defs.size(), 2u);
  EXPECT_EQ(l.program.defs[0].compute.body.values[0].immediate, 9007199254740993u);  // exact, not through a double
}

TEST(Lower, ParametersAndConstantsArePreparedInputsAreNot) {
  const Lowered l = lowered(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":["n"]}}],
      "parameters":[{"name":"w","type":{"dtype":"f32","shape":[1]}},{"name":"sized","type":{"dtype":"f32","shape":["n"]}}],
      "constants":[{"name":"c","type":{"dtype":"f32","shape":[2,1]},"data":[1,2]}],
      "nodes":[{"name":"a","op":"add","inputs":["x","w"]},{"name":"b","op":"add","inputs":["a","sized"]},
               {"name":"y","op":"add","inputs":["b","c"]}],"outputs":[{"name":"y","value":"y"}]})");
  EXPECT_FALSE(l.program.tensors[l.inputs[0]].prepared);
  EXPECT_TRUE(l.program.tensors[l.parameters[0]].prepared);
  EXPECT_FALSE(l.program.tensors[l.parameters[1]].prepared) << "its size changes from call to call";
  EXPECT_TRUE(l.program.tensors[l.constants[0].tensor].prepared);
}

TEST(Lower, StridedInputsKeepTheirStrides) {
  const Lowered l = lowered(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":[4,8],"strides":[1,4]}}],
      "nodes":[{"name":"y","op":"exp","inputs":["x"]}],"outputs":[{"name":"y","value":"y"},{"name":"same","value":"x"}]})");
  EXPECT_EQ(l.program.tensors[l.inputs[0]].strides, (Shape{1, 4}));
  EXPECT_NE(l.outputs[1], l.inputs[0]) << "an output is dense";
}

TEST(Lower, WritesBackAnArgumentAsItLies) {
  const Lowered l = lowered(f32_graph("xy", "8", R"({"name":"a","op":"copy_","inputs":["x","y"]})", "y"));
  ASSERT_EQ(l.write_backs.size(), 1u);
  EXPECT_EQ(l.write_backs[0].input, 0u);
  EXPECT_EQ(l.write_backs[0].source, l.inputs[1]);
  EXPECT_TRUE(l.program.tensors[l.write_backs[0].source].is_output);
}

TEST(Lower, WritesBackByTheStridesOfTheInput) {
  const Lowered l = lowered(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":[4,8],"strides":[1,4]}},
      {"name":"y","type":{"dtype":"f32","shape":[4,1]}}],
      "nodes":[{"name":"new","op":"slice_scatter","inputs":["x","y"],"attrs":{"dim":1,"start":2,"end":3}},
               {"name":"w","op":"copy_","inputs":["x","new"]}],"outputs":[]})");
  ASSERT_EQ(l.write_backs.size(), 1u);
  EXPECT_EQ(l.program.tensors[l.write_backs[0].source].strides, (Shape{1, 4}));
  EXPECT_EQ(l.program.defs.size(), 1u) << "what is but for some elements lies as it does";
}

TEST(Lower, WritesBackWhatAnOpMakes) {
  const Lowered l = lowered(f32_graph("x", "8", R"({"name":"e","op":"exp","inputs":["x"]},
      {"name":"a","op":"copy_","inputs":["x","e"]})",
                                      "e"));
  ASSERT_EQ(l.write_backs.size(), 1u);
  EXPECT_EQ(l.write_backs[0].source, l.outputs[0]) << "no other tensor";
  EXPECT_EQ(l.program.defs.size(), 1u);
}

// It is a map elsewhere, which readers compute for themselves.
TEST(Lower, ASliceThatIsWrittenIntoAnInputIsAScatter) {
  const char *nodes = R"({"name":"s","op":"slice_scatter","inputs":["x","y"],"attrs":{"dim":0,"start":0,"end":8}},
      {"name":"a","op":"copy_","inputs":["x","s"]})";
  EXPECT_TRUE(lowered(f32_graph("xy", "8", nodes, "")).program.defs[0].compute.scatter);
  std::string other = nodes;
  other.replace(other.find(R"(["x","s"])"), 9, R"(["y","s"])");
  EXPECT_FALSE(lowered(f32_graph("xy", "8", other, "")).program.defs[0].compute.scatter);
}

TEST(Lower, NamesOpAndNodeThatCannotBeLowered) {
  Result<Lowered> l = lower(*graph_of(f32_graph("x", "4, 8", R"({"name":"a","op":"softmax","inputs":["x"]})", "a")));
  ASSERT_FALSE(l.ok());
  EXPECT_NE(l.status().message().find("'a'"), std::string::npos) << l.status().message();
  EXPECT_NE(l.status().message().find("[softmax]"), std::string::npos) << l.status().message();
}

}  // namespace
}  // namespace kiln
