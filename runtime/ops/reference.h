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
// Called with each op node of the graph (not of nested ones) that is no view, when its results are computed and before
// anything reads them. It may change them.
using OnResults = std::function<void(const Node &, const ReferenceContext &)>;
// Inputs, then parameters, in order of the signature (shapes are checked against the types, symbols bound from them).
// Returns the outputs; for each copy_ epilogue the new value of its input is in `*copied` (by input position), if
// given.
Result<std::vector<RefTensor>> run_reference(const Graph &graph, std::span<const RefTensor *const> inputs,
                                             std::map<size_t, RefTensor> *copied = nullptr,
                                             const OnResults &on_results = {});

}  // namespace kiln
