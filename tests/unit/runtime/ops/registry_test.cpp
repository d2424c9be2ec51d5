#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/ops/op.h"

namespace kiln {
namespace {

TEST(Registry, IsSortedAndHasNoNameTwice) {
  for (size_t k = 1; k < all_ops().size(); ++k) EXPECT_LT(all_ops()[k - 1]->name, all_ops()[k]->name);
}

TEST(Registry, FindsEveryOpByName) {
  for (const Op *op : all_ops()) {
    EXPECT_EQ(find_op(op->name), op);
    EXPECT_EQ(builtin_ops().find(op->name), op);
  }
  EXPECT_EQ(find_op("no_such_op"), nullptr);
  EXPECT_EQ(find_op(""), nullptr);
}

TEST(Registry, HasTheOpsOfTheFormat) {
  for (const char *name :
       {"full",    "iota",      "convert", "clone",      "copy_",      "neg",        "abs",        "reciprocal",
        "sqrt",    "rsqrt",     "exp",     "log",        "tanh",       "erf",        "sin",        "cos",
        "sigmoid", "floor",     "round",   "not",        "silu",       "relu",       "gelu",       "add",
        "sub",     "mul",       "div",     "pow",        "maximum",    "minimum",    "remainder",  "eq",
        "ne",      "lt",        "le",      "gt",         "ge",         "and",        "or",         "where",
        "sum",     "mean",      "max",     "min",        "prod",       "argmax",     "reshape",    "permute",
        "expand",  "slice",     "squeeze", "unsqueeze",  "concat",     "pad",        "gather",     "embedding",
        "matmul",  "linear",    "conv2d",  "max_pool2d", "avg_pool2d", "batch_norm", "layer_norm", "rms_norm",
        "softmax", "attention", "rope",    "dequantize", "call"})
    EXPECT_NE(find_op(name), nullptr) << name;
}

TEST(Registry, SuggestsTheNearestNameOfAMisspelling) {
  EXPECT_EQ(builtin_ops().suggest("sofmax"), "; did you mean 'softmax'?");
  EXPECT_EQ(builtin_ops().suggest("reshpae"), "; did you mean 'reshape'?");
  EXPECT_EQ(builtin_ops().suggest("layernorm"), "; did you mean 'layer_norm'?");
  EXPECT_EQ(builtin_ops().suggest("fourier_transform"), "");
}

TEST(Record, SaysExactlyOneThingThatTheOpDoes) {
  for (const Op *op : all_ops()) {
    const int meanings = (op->view != nullptr) + (op->lower != nullptr) + (op->decompose != nullptr);
    EXPECT_EQ(meanings, op->name == "call" || op->flags & op_flags::control ? 0 : 1) << op->name;
    EXPECT_EQ(op->view != nullptr, (op->flags & op_flags::view) != 0) << op->name;
    EXPECT_EQ(op->reference == nullptr, op->view != nullptr) << op->name;
  }
}

TEST(Record, IsDocumented) {
  for (const Op *op : all_ops()) {
    EXPECT_TRUE(op->doc.ends_with('.')) << op->name;
    EXPECT_GE(op->version, 1) << op->name;
    for (const ArgDef &arg : op->args) EXPECT_FALSE(arg.name.empty() || arg.doc.empty()) << op->name;
    for (const AttrDef &attr : op->attrs) EXPECT_FALSE(attr.name.empty() || attr.doc.empty()) << op->name;
  }
}

TEST(Record, HasSamplesWithSymbolsAndDistinctNames) {
  for (const Op *op : all_ops()) {
    SampleSink samples;
    ASSERT_NE(op->samples, nullptr) << op->name;
    op->samples(samples);
    EXPECT_GE(samples.size(), 2u) << op->name;
    const bool takes_scalars_alone = (op->flags & op_flags::resolves) != 0;
    EXPECT_TRUE(takes_scalars_alone || std::ranges::any_of(samples, [](const Sample &s) { return !s.sizes.empty(); }))
        << op->name;
    std::vector<std::string> names;
    for (const Sample &sample : samples) names.push_back(sample.name);
    std::ranges::sort(names);
    EXPECT_EQ(std::ranges::adjacent_find(names), names.end()) << op->name;
  }
}

}  // namespace
}  // namespace kiln
