// The built-in passes, each in the .cpp of its name. pipeline.cpp lists in which order the pipeline's ones run.
#pragma once
#include <functional>

#include "runtime/passes/pass.h"

namespace kiln {

// post_grad: nodes that compute the same become one: equal op, inputs, attributes and annotations (debug.* aside), and
// constants of equal bytes. Ops that are random, have an effect or mutate stay as they are.
Pass cse_pass();
// The same for a region after its decompositions, which have much in common (each layer's tables of rope, say).
Result<GraphPtr> merge_equal_nodes(GraphPtr graph);

// These run after others' passes, at priorities from 1000 on, and all but `algebra` change no value by a bit. They
// leave alone what marks hold (replacing.h), and no output comes to share storage by them.

// Of ops that commute, and of comparisons, a constant operand comes second. x / 2^k becomes x * 2^-k.
Pass canonicalize_pass();
// On request (option `algebra`): fewer and cheaper operations of f32 and f64 with numbers that are finite, which round
// otherwise. x / c becomes x * (1 / c); (x * a) * b x * (a * b); (x + a) + b x + (a + b) and x * a + x * b x * (a + b),
// both where a and b have one sign.
Pass algebra_pass();
// Nodes whose operands are constants, or are all one number, become such, computed by the reference kernels: of ops
// whose results every backend gives to the bit, up to 4,096 elements a constant. What would be an error, or NaN, stays.
Pass fold_constants_pass();
// Nodes that give an operand again: x + 0, x * 1, conversions to the dtype that is there, views that move nothing, and
// what undoes or repeats the node before it.
Pass remove_no_ops_pass();
// A view of a view of the same kind becomes one view.
Pass merge_views_pass();

// Not passes of the pipeline but steps of lowering, in this order.

// Every `call` node becomes the nodes of the graph that it calls, however deeply nested. The nested graph's symbols
// become the caller's dimensions; its nodes inherit the call's annotations (their own win). One that `stays`, asked
// with what it inherits, is kept as it is.
Result<GraphPtr> inline_calls(GraphPtr graph, const OpTable &ops,
                              const std::function<bool(const Node &call)> &stays = {});

// Small floats (16 bits and fewer) are computed with in f32: each op that does arithmetic on them gets its operands
// converted, and its results converted back. So each value of the graph is rounded once, where its op ends, whatever
// it is then decomposed into, fused with or cut from. Not `round_all`: an op takes what another one computed as it is,
// in f32, and only what outputs, views and other readers see is rounded.
Result<GraphPtr> widen(GraphPtr graph, const OpTable &ops, bool round_all = true);

// Replaces every node whose op has a decomposition, until none is left. All that is added for a node has its
// annotations, and a name behind the node's: "y.gather". By it errors find the node that the host gave.
Result<GraphPtr> decompose(GraphPtr graph, const OpTable &ops);

// Convolutions with windows of 3 by 3 that are large enough become matrix products of tiles (runtime/ops/winograd.cpp),
// where the weights follow from parameters: fewer operations, which round otherwise.
Result<GraphPtr> winograd(GraphPtr graph, const OpTable &ops);

// A conversion that follows a reshape goes before it: so what rounds a composite op's result to 16 bits is in step with
// what makes that, and ends its kernel.
Result<GraphPtr> convert_early(GraphPtr graph);

// A concat of very many operands becomes a tree of concats, so that time and code grow with the number of operands and
// not with its square.
Result<GraphPtr> split_concats(GraphPtr graph);

}  // namespace kiln
