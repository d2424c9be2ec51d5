// Replaces the composed RMS norm by the op rms_norm:
//
//   normed = (x * rsqrt(mean(x * x, last dim, keepdim) + eps)) * weight     ->     rms_norm(x, weight; eps)
//
// The operands of each mul and of the add may stand in any order. A place is left as it is when an intermediate value
// has other uses, when a node carries an attribute that the pattern does not name, or when the nodes' annotations
// differ.
#include <kiln/pass.hpp>

KILN_PLUGIN_NOTE(0, KILN_FEATURE_PATTERNS, "fuse_rms_norm");

namespace {

constexpr const char *rms_norm = R"({"kiln": 1, "pattern": "rms_norm",
  "captures": [{"name": "x", "shape": ["...", "d"]},
               {"name": "weight", "shape": ["d"]},
               {"name": "eps", "number": "any"}],
  "nodes": [{"name": "square", "op": "mul", "inputs": ["x", "x"]},
            {"name": "mean", "op": "mean", "inputs": ["square"], "attrs": {"dims": {"axes": [-1]}, "keepdim": true}},
            {"name": "shifted", "op": "add", "inputs": ["mean", "eps"]},
            {"name": "inverse", "op": "rsqrt", "inputs": ["shifted"]},
            {"name": "scaled", "op": "mul", "inputs": ["x", "inverse"]},
            {"name": "normed", "op": "mul", "inputs": ["scaled", "weight"]}],
  "outputs": ["normed"],
  "replacement": {
    "nodes": [{"name": "fused", "op": "rms_norm", "inputs": ["x", "weight"], "attrs": {"eps": {"number": "eps"}}}],
    "outputs": ["fused"]}})";

std::vector<kiln::pass::Pattern> patterns() { return {{rms_norm}}; }

constexpr kiln::pass::Definition definition = kiln::pass::of_patterns(
    "fuse_rms_norm", "2",
    {0x6d, 0x1f, 0x8a, 0x52, 0x0c, 0x3b, 0x4e, 0x97, 0xa4, 0x21, 0x5e, 0xd7, 0x90, 0x4b, 0xc8, 0x13},
    KILN_STAGE_POST_GRAD, patterns);

}  // namespace

const kiln_plugin *kiln_plugin_entry_v1(void) { return kiln::pass::plugin<definition>(); }
