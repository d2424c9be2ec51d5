// Folds a batch norm into the convolution before it:
//
//   batch_norm(conv2d(x, w, b), scale, bias, mean, variance; eps)   ->   conv2d(x, w * factor, bias - (mean - b) *
//   factor)
//
// with factor = scale * rsqrt(variance + eps), one number for each output channel. The new weight and bias depend on
// parameters alone, so that Kiln computes them once for each binding of the parameters, not at each call. A place is
// left as it is when something else uses the convolution's result, when a weight or statistic is no parameter or
// constant, when a node carries an attribute that is not named here, or when the two nodes' annotations differ.
#include <kiln/pass.hpp>

KILN_PLUGIN_NOTE(0, KILN_FEATURE_PATTERNS, "fold_batch_norm");

namespace {

constexpr const char *conv_norm = R"({"kiln": 1, "pattern": "conv_norm",
  "captures": [{"name": "x"},
               {"name": "w", "from": "fixed"},
               {"name": "b", "from": "fixed", "optional": true},
               {"name": "scale", "from": "fixed", "shape": ["channels"]},
               {"name": "bias", "from": "fixed"},
               {"name": "mean", "from": "fixed"},
               {"name": "variance", "from": "fixed"}],
  "nodes": [{"name": "conv", "op": "conv2d", "inputs": ["x", "w", "b"],
             "attrs": {"stride": "any", "padding": "any", "dilation": "any", "groups": "any"}},
            {"name": "norm", "op": "batch_norm", "inputs": ["conv", "scale", "bias", "mean", "variance"],
             "attrs": {"eps": "any"}}],
  "outputs": ["norm"],
  "replacement": {
    "nodes": [{"name": "eps", "op": "full",
               "attrs": {"value": {"attr": "norm.eps"}, "dtype": {"dtype": "scale"}, "shape": []}},
              {"name": "shifted", "op": "add", "inputs": ["variance", "eps"]},
              {"name": "inverse", "op": "rsqrt", "inputs": ["shifted"]},
              {"name": "factor", "op": "mul", "inputs": ["scale", "inverse"]},
              {"name": "by_kernel", "op": "reshape", "inputs": ["factor"], "attrs": {"shape": ["channels", 1, 1, 1]}},
              {"name": "centre", "op": "sub", "inputs": ["mean", "b"], "when": "b"},
              {"name": "weight", "op": "mul", "inputs": ["w", "by_kernel"]},
              {"name": "moved", "op": "mul", "inputs": ["centre", "factor"]},
              {"name": "offset", "op": "sub", "inputs": ["bias", "moved"]},
              {"name": "folded", "op": "conv2d", "inputs": ["x", "weight", "offset"],
               "attrs": {"stride": {"attr": "conv.stride"}, "padding": {"attr": "conv.padding"},
                         "dilation": {"attr": "conv.dilation"}, "groups": {"attr": "conv.groups"}}}],
    "outputs": ["folded"]}})";

std::vector<kiln::pass::Pattern> patterns() { return {{conv_norm}}; }

constexpr kiln::pass::Definition definition = kiln::pass::of_patterns(
    "fold_batch_norm", "2",
    {0xb3, 0x70, 0x2e, 0x16, 0x48, 0xd9, 0x4f, 0x05, 0x8c, 0x5a, 0xe2, 0x31, 0x7f, 0x96, 0x0d, 0xba},
    KILN_STAGE_POST_GRAD, patterns);

}  // namespace

const kiln_plugin *kiln_plugin_entry_v1(void) { return kiln::pass::plugin<definition>(); }
