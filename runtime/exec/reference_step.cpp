#include "runtime/exec/reference_step.h"

#include <cstring>
#include <exception>
#include <map>

#include "jit/base/stack.h"
#include "runtime/ops/reference.h"

namespace kiln {
namespace {

// Calls visit(offset in elements, by strides; offset in the dense array) for each element, in row-major order.
template <class Visit>
void for_each_element(const ResolvedArgument &a, Visit visit) {
  std::vector<int64_t> index(a.dims.size());
  int64_t offset = 0;
  for (int64_t dense = 0; dense < a.elements; ++dense) {
    visit(offset, dense);
    for (size_t d = a.dims.size(); d-- > 0;) {
      offset += a.strides[d];
      if (++index[d] < a.dims[d]) break;
      offset -= a.dims[d] * a.strides[d];
      index[d] = 0;
    }
  }
}

RefTensor read_argument(const ResolvedArgument &a, const void *data) {
  TensorData dense;
  dense.dtype = a.dtype;
  dense.shape = a.dims;
  const size_t size = size_of(a.dtype);
  dense.bytes.resize(static_cast<size_t>(a.elements) * size);
  const auto *from = static_cast<const uint8_t *>(data) + a.below_bytes;
  for_each_element(a, [&](int64_t offset, int64_t at) {
    std::memcpy(dense.bytes.data() + static_cast<size_t>(at) * size, from + offset * static_cast<int64_t>(size), size);
  });
  return to_reference(dense);
}

Status write_argument(const RefTensor &value, const ResolvedArgument &a, std::string_view what, void *data) {
  const TensorData dense = from_reference(value);
  const size_t size = size_of(a.dtype);
  if (dense.dtype != a.dtype || dense.shape != a.dims)
    return error(Code::internal, "the reference's ", what, " is not of the type that the plan says");
  auto *to = static_cast<uint8_t *>(data) + a.below_bytes;
  for_each_element(a, [&](int64_t offset, int64_t at) {
    std::memcpy(to + offset * static_cast<int64_t>(size), dense.bytes.data() + static_cast<size_t>(at) * size, size);
  });
  return {};
}

// Kernels compute in double; what is of f32 is rounded where its node ends, as on every backend.
void round_results(const Graph &, const Node &, const ReferenceContext &context) {
  for (RefTensor &result : context.results)
    if (result.dtype == DType::f32)
      for (double &x : result.f) x = static_cast<float>(x);
}

}  // namespace

Status run_reference_step(const Graph &graph, const Plan &plan, const Signature &signature, ResolvedSizes &sizes,
                          std::span<void *const> data, LoopWatch &watch) {
  std::vector<RefTensor> operands;
  for (uint32_t slot = 0; slot < signature.outputs().begin; ++slot)
    operands.push_back(read_argument(sizes.argument(slot), data[slot]));
  std::vector<const RefTensor *> pointers;
  for (const RefTensor &operand : operands) pointers.push_back(&operand);

  std::map<size_t, RefTensor> copied;
  std::map<std::string, int64_t> symbols;
  Result<std::vector<RefTensor>> ran = error(Code::out_of_memory, "no stack for the reference, and no thread with one");
  std::exception_ptr thrown;
  (void)on_deep_stack([&] {
    try {
      ran = run_reference(graph, pointers, &copied, round_results, &symbols,
                          [&](std::string_view node, int64_t turns) { return watch.turned(node, turns); });
    } catch (...) {
      thrown = std::current_exception();
    }
  });
  if (thrown) std::rethrow_exception(thrown);
  KILN_ASSIGN(const std::vector<RefTensor> results, std::move(ran));
  const std::vector<Plan::Symbol> &declared = plan.symbols;
  for (uint32_t i = 0; i < declared.size(); ++i)
    if (declared[i].resolved) KILN_TRY(sizes.set(i, symbols.at(declared[i].name)));
  for (uint32_t i = 0; i < results.size(); ++i) {
    const uint32_t slot = signature.outputs().begin + i;
    KILN_TRY(write_argument(results[i], sizes.argument(slot), signature.describe(slot), data[slot]));
  }
  for (uint32_t input : plan.written_inputs)
    if (const auto value = copied.find(input); value != copied.end())
      KILN_TRY(write_argument(value->second, sizes.argument(input), signature.describe(input), data[input]));
  return {};
}

}  // namespace kiln
