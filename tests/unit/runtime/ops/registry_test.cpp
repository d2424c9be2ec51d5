#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/ops/families.h"
#include "runtime/ops/op.h"
#include "runtime/ops/sample_forms.h"

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
  EXPECT_EQ(builtin_ops().suggest("mull"), "; did you mean 'mul'?") << "and not 'full'";
  EXPECT_EQ(builtin_ops().suggest("transpose"), "; did you mean 'permute'?") << "as others call it";
  EXPECT_EQ(builtin_ops().suggest(std::string(1 << 20, 'a')), "");
  EXPECT_EQ(builtin_ops().suggest("fourier_transform"), "");
}

TEST(Record, SaysExactlyOneThingThatTheOpDoes) {
  for (const Op *op : all_ops()) {
    const int meanings = (op->view != nullptr) + (op->lower != nullptr) + (op->decompose != nullptr);
    const bool is_inlined = op->name == "call" || op->name == "custom_function", is_order = op->name == "token";
    EXPECT_EQ(meanings, is_inlined || is_order || op->flags & op_flags::control ? 0 : 1) << op->name;
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

// Those that elements are made of may be; that of others says nothing that was meant.
TEST(Record, RefusesNanInItsAttributesByName) {
  const std::map<std::string_view, std::string_view> elements = {
      {"full", "value"}, {"pad", "value"}, {"threshold", "value"}, {"nan_to_num", "nan"}};
  for (const Op *op : all_ops()) {
    SampleSink samples;
    op->samples(samples);
    for (const AttrDef &attr : op->attrs) {
      const auto made_of = elements.find(op->name);
      if (attr.kind != AttrKind::f64 || attr.is_list || (made_of != elements.end() && made_of->second == attr.name))
        continue;
      AttrMap attrs = samples[0].attrs;
      attrs.insert_or_assign(std::string(attr.name), AttrValue(std::nan("")));
      ASSERT_TRUE(complete_attrs(*op, attrs).ok()) << op->name;
      const std::string message = infer(*op, samples[0].inputs, attrs).status().message();
      const bool named = message.starts_with(str_cat("[", op->name, "] ")) &&
                         (message.find(str_cat(attr.name, " is nan")) != message.npos ||
                          message.find(str_cat(attr.name, " is NaN")) != message.npos ||
                          message.find(str_cat(attr.name, " nan")) != message.npos);
      EXPECT_TRUE(named) << op->name << " " << attr.name << ": " << message;
    }
  }
}

TEST(Record, HasSamplesWithSymbolsAndDistinctNames) {
  for (const Op *op : all_ops()) {
    SampleSink samples;
    ASSERT_NE(op->samples, nullptr) << op->name;
    op->samples(samples);
    if (op->name == "token") continue;  // which no call could be given
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

// Whether one of the op's samples, in one of its types, has a result of floats.
bool gives_floats(const Op &op) {
  const auto of_sample = [&](const Sample &sample) {
    AttrMap attrs = sample.attrs;
    if (!complete_attrs(op, attrs).ok()) return false;
    if (op.flags & op_flags::resolves) attrs.insert_or_assign("symbol", "k");  // else a graph makes one
    const Result<Inferred> inferred = infer(op, sample.inputs, attrs);
    return inferred.ok() &&
           std::ranges::any_of(inferred->results, [](const TensorType &y) { return dtype_info(y.dtype).is_float; });
  };
  SampleSink samples;
  op.samples(samples);
  return std::ranges::any_of(samples, [&](const Sample &sample) {
    return of_sample(sample) || std::ranges::any_of(other_types_of(op, sample),
                                                    [&](DType type) { return of_sample(*retyped(op, sample, type)); });
  });
}

// What associative_scan relies on (ops/nesting.h: takes_elements_apart): their attributes name no dims or sizes, so
// that operands with more dims in front give results with more dims in front.
TEST(Record, OfThePointwiseFamilyTakesEachElementByItself) {
  int count = 0;
  for (const Op *op : all_ops()) {
    if (family_of(*op) != "pointwise") continue;
    ++count;
    for (const AttrDef &attr : op->attrs)
      EXPECT_TRUE(attr.kind == AttrKind::f64 || attr.kind == AttrKind::text || attr.kind == AttrKind::boolean)
          << op->name << ", " << attr.name;
    Edit edit;
    std::vector<ValueId> operands;
    for (const ArgDef &arg : op->args) {
      const DType type = arg.dtypes & dtypes(DType::f32)   ? DType::f32
                         : arg.dtypes & dtypes(DType::i64) ? DType::i64
                                                           : DType::boolean;
      operands.push_back(*edit.input(str_cat("x", operands.size()), make_type(type, {2, 3, 1, 5})));
    }
    const Result<uint32_t> node = edit.add(op, operands);
    ASSERT_TRUE(node.ok()) << op->name << ": " << node.status().message();
    EXPECT_EQ(edit.view().find(*node)->results[0].dims, (Shape{2, 3, 1, 5})) << op->name;
  }
  EXPECT_GE(count, 70);
}

TEST(Record, DeclaresItsGradient) {
  constexpr DTypes floats = dtypes(DType::f64, DType::f32, DType::f16, DType::bf16);
  using enum Gradient::Kind;
  for (const Op *op : all_ops()) {
    const Gradient &gradient = op->gradient;
    ASSERT_NE(gradient.kind, undeclared) << op->name;
    const bool has_one = gradient.kind == rule || gradient.kind == decomposition;
    EXPECT_EQ(gradient.why.empty(), has_one && gradient.given.empty()) << op->name;
    if (!gradient.given.empty()) {
      const AttrDef *attr = op->find_attr(gradient.given);
      EXPECT_TRUE(gradient.kind == rule && attr && !attr->required) << op->name;
    }
    EXPECT_TRUE(gradient.kind != decomposition || op->decompose != nullptr) << op->name;
    EXPECT_TRUE(gradient.kind != rule || !gradient.operands.empty()) << op->name;
    EXPECT_TRUE(has_one || (gradient.operands.empty() && gradient.ties == Ties::none)) << op->name;
    EXPECT_EQ(differentiable_operands(*op).empty(), !has_one) << op->name;
    for (std::string_view name : differentiable_operands(*op)) {
      const auto arg = std::ranges::find(op->args, name, &ArgDef::name);
      ASSERT_NE(arg, op->args.end()) << op->name << " has no argument '" << name << "'";
      EXPECT_TRUE(arg->dtypes & floats) << op->name << "'s " << name;
    }
    EXPECT_TRUE(gradient.kind == none || gives_floats(*op)) << op->name;
  }
}

// Of a few ops of each kind, so that a change is seen.
TEST(Record, SaysWhatGradientsFlowBackTo) {
  const auto operands = [](const char *name) { return differentiable_operands(*find_op(name)); };
  using Names = std::vector<std::string_view>;
  EXPECT_EQ(operands("where"), (Names{"a", "b"}));
  EXPECT_EQ(operands("conv2d"), (Names{"x", "weight", "bias"}));
  EXPECT_EQ(operands("cross_entropy"), (Names{"x", "weight"}));  // the target holds indices
  EXPECT_EQ(operands("floor"), Names{});
  EXPECT_EQ(find_op("max")->gradient.ties, Ties::even);
  EXPECT_EQ(find_op("max_pool2d")->gradient.ties, Ties::first);
  EXPECT_EQ(find_op("scatter")->gradient.ties, Ties::last);
  for (const char *name : {"minimum", "scatter_min", "scatter_max", "norm"})
    EXPECT_EQ(find_op(name)->gradient.ties, Ties::even) << name;
  for (const char *name : {"scatter_add", "scatter_mul", "scatter_reduce", "index_reduce"})
    EXPECT_EQ(find_op(name)->gradient.ties, Ties::none) << name;
  EXPECT_EQ(operands("attention"), (Names{"q", "k", "v"}));
  EXPECT_EQ(find_op("cond")->gradient.kind, Gradient::Kind::rule);
  EXPECT_EQ(operands("while"), Names{"args"});
  EXPECT_EQ(find_op("while")->gradient.given, "max_turns");
  EXPECT_NE(find_op("while")->gradient.why.find("nothing bounds its turns"), std::string_view::npos);
}

TEST(Registry, OpsThatCommuteAreThoseOfWhichTheOrderSaysNothing) {
  std::string names;
  for (const Op *op : all_ops())
    if (op->flags & op_flags::commutes) names += str_cat(names.empty() ? "" : " ", op->name);
  EXPECT_EQ(names, "add and bit_and bit_or bit_xor eq maximum minimum mul ne or xor");
}

}  // namespace
}  // namespace kiln
