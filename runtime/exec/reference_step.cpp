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

RefTensor bind_argument(const ResolvedArgument &a, const void *data) {
  return view_of(a.dtype, a.dims, a.strides, static_cast<const uint8_t *>(data) + a.below_bytes);
}

// What no node has made, but is the memory of an argument, may be written before it is read: it is copied.
void own(RefTensor &value) {
  if (!value.native || !value.native->owner) value = narrowed(value);
}

Status write_argument(const RefTensor &value, const ResolvedArgument &a, std::string_view what, void *data) {
  const size_t size = size_of(a.dtype);
  if (value.dtype != a.dtype || value.shape != a.dims)
    return error(Code::internal, "the reference's ", what, " is not of the type that the plan says");
  auto *to = static_cast<uint8_t *>(data) + a.below_bytes;
  const uint8_t *from = value.native->first;  // which is dense
  if (a.row_major) {
    if (a.elements > 0 && size > 0) std::memcpy(to, from, static_cast<size_t>(a.elements) * size);
    return {};
  }
  for_each_element(a, [&](int64_t offset, int64_t at) {
    std::memcpy(to + offset * static_cast<int64_t>(size), from + static_cast<size_t>(at) * size, size);
  });
  return {};
}

// On the pool's threads, of which this is one.
ReferenceThreads threads_of(ThreadPool &pool) {
  return {.run = [&pool](int64_t tasks, const std::function<void(int64_t)> &task) {
    const auto run_range = [](void *user, uint32_t, int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) (*static_cast<const std::function<void(int64_t)> *>(user))(k);
    };
    pool.run(tasks, run_range, const_cast<std::function<void(int64_t)> *>(&task));
  }};
}

}  // namespace

Status run_reference_step(const Graph &graph, const Plan &plan, const Signature &signature, ResolvedSizes &sizes,
                          std::span<void *const> data, LoopWatch &watch, ThreadPool &pool, bool is_of_a_node) {
  std::vector<RefTensor> operands;
  for (uint32_t slot = 0; slot < signature.outputs().begin; ++slot)
    operands.push_back(bind_argument(sizes.argument(slot), data[slot]));
  std::vector<const RefTensor *> pointers;
  for (const RefTensor &operand : operands) pointers.push_back(&operand);

  std::map<size_t, RefTensor> copied;
  std::map<std::string, int64_t> symbols;
  const ReferenceExecution how{.native = true, .threads = threads_of(pool), .is_of_a_node = is_of_a_node};
  Result<std::vector<RefTensor>> ran = error(Code::out_of_memory, "no stack for the reference, and no thread with one");
  std::exception_ptr thrown;
  (void)on_deep_stack([&] {
    try {
      ran = run_reference(
          graph, pointers, &copied, {}, &symbols,
          [&](std::string_view node, int64_t turns) { return watch.turned(node, turns); }, how);
    } catch (...) {
      thrown = std::current_exception();
    }
  });
  if (thrown) std::rethrow_exception(thrown);
  KILN_ASSIGN(std::vector<RefTensor> results, std::move(ran));
  for (RefTensor &result : results) own(result);
  for (auto &[input, value] : copied) own(value);
  const std::vector<Plan::Symbol> &declared = plan.symbols;
  for (uint32_t i = 0; i < declared.size(); ++i)
    if (declared[i].resolved) KILN_TRY(sizes.set(i, symbols.at(declared[i].name)));
  for (uint32_t i = 0; i < results.size(); ++i) {
    const uint32_t slot = signature.outputs().begin + i;
    if (!sizes.argument(slot).made) continue;
    KILN_TRY(write_argument(results[i], sizes.argument(slot), signature.describe(slot), data[slot]));
  }
  for (uint32_t input : plan.written_inputs)
    if (const auto value = copied.find(input); value != copied.end())
      KILN_TRY(write_argument(value->second, sizes.argument(input), signature.describe(input), data[input]));
  return {};
}

}  // namespace kiln
