// Computes products of f32 in bf16: matmul and linear get operands that are converted, and their result is converted
// back. What is no product stays f32. It changes numerics: a product of K elements has bf16's relative error, 2^-8.
#include <kiln/pass.hpp>

KILN_PLUGIN_NOTE(0, 0, "bf16_matmul");

namespace {

using kiln::pass::Attr;
using kiln::pass::result_of;
using kiln::pass::Rewriter;

// What the result has as the node had it.
std::vector<Attr> attrs_of(const Rewriter &graph, kiln_node node) {
  std::vector<Attr> attrs;
  for (const char *name : {"transpose_a", "transpose_b"})
    if (const auto value = graph.truth(node, name)) attrs.emplace_back(name, *value != 0);
  return attrs;
}

bool is_product_of_f32(const Rewriter &graph, kiln_node node) {
  const bool is_product =
      graph.is(node, graph.op("matmul"), {"transpose_a", "transpose_b"}) || graph.is(node, graph.op("linear"));
  if (!is_product) return false;
  for (kiln_value operand : graph.operands(node))
    if (graph.dtype(operand) != KILN_F32) return false;
  return true;
}

uint64_t rewrite(Rewriter &graph) {
  const kiln_op convert = graph.op("convert");
  const auto converted = [&](kiln_value value, kiln_dtype dtype) {
    return graph.add(convert, {value}, {{"dtype", dtype}});
  };
  uint64_t rewrites = 0;
  for (kiln_node node : graph.nodes()) {
    if (!is_product_of_f32(graph, node)) continue;
    std::vector<kiln_value> operands = graph.operands(node);
    for (kiln_value &operand : operands) operand = converted(operand, KILN_BF16);
    const kiln_value product = graph.add(graph.op_of(node), operands, attrs_of(graph, node));
    graph.replace(result_of(node), converted(product, KILN_F32));
    rewrites++;
  }
  return rewrites;
}

constexpr kiln::pass::Definition definition = {
    .name = "bf16_matmul",
    .version = "1",
    .uuid = {0xa3, 0x0d, 0x5f, 0x71, 0xc8, 0x24, 0x4b, 0xe6, 0x9b, 0x37, 0x61, 0xf2, 0x0a, 0xdd, 0x58, 0x94},
    .stage = KILN_STAGE_POST_GRAD,
    .rewrite = rewrite,
    .flags = KILN_PASS_NUMERICS};

}  // namespace

const kiln_plugin *kiln_plugin_entry_v1(void) { return kiln::pass::plugin<definition>(); }
