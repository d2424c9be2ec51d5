// Runs a graph on the reference kernels: the oracle of every other test.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/ops/op.h"

namespace kiln {

RefTensor to_reference(const TensorData &data);  // dense bytes of any dtype -> double / int64
// Rounds once, to the tensor's dtype. Dense bytes.
TensorData from_reference(const RefTensor &tensor);
// Elements that lie elsewhere, and outlive it: nothing is copied.
RefTensor view_of(DType dtype, std::vector<int64_t> shape, std::vector<int64_t> strides, const void *first);
// The same values in other storage. Native: each is rounded once, to the dtype.
RefTensor widened(const RefTensor &tensor);
RefTensor narrowed(const RefTensor &tensor);
// With the values that the symbols have in a call, so that all dims are integers; a symbol that has none is 0.
TensorType evaluate(const TensorType &type, const std::map<std::string, int64_t> &sizes);
AttrMap evaluate(AttrMap attrs, const std::map<std::string, int64_t> &sizes);

// Called with each op node that is no view, of the graph or of one nested in it, when its results are computed and
// before anything reads them. It may change them.
using OnResults = std::function<void(const Graph &, const Node &, const ReferenceContext &)>;
// Called after each turn of a loop; nodes of nested graphs are named by their path ("c.then_graph.w"). An error ends
// the run.
using OnTurn = std::function<Status(std::string_view node, int64_t turn)>;
// How a graph is run. The oracle of tests keeps all values wide, and f32 is not rounded; an execution keeps each as its
// dtype has it, rounded where its node ends, and has threads.
struct ReferenceExecution {
  bool native = false;
  ReferenceThreads threads = {};
  bool is_of_a_node = false;  // the graph, which stands for one: who runs that tells its name, and errors do not
};
// Inputs, then parameters, in order of the signature (shapes are checked against the types, symbols bound from them).
// Returns the outputs; for each copy_ epilogue the new value of its input is in `*copied` (by input position), if
// given; what the graph's symbols are is in `*sizes`, if given.
Result<std::vector<RefTensor>> run_reference(const Graph &graph, std::span<const RefTensor *const> inputs,
                                             std::map<size_t, RefTensor> *copied = nullptr,
                                             const OnResults &on_results = {},
                                             std::map<std::string, int64_t> *sizes = nullptr,
                                             const OnTurn &on_turn = {}, const ReferenceExecution &how = {});
// The message for a size that a node resolves and that is out of range.
std::string resolved_size_error(std::string_view symbol, int64_t size, int64_t min, int64_t max, int64_t divisor);

}  // namespace kiln
