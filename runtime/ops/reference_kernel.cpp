// Calling a reference kernel: on storage of the kind that it takes, and by ranges on several threads.
#include <algorithm>
#include <exception>
#include <limits>
#include <mutex>

#include "runtime/ops/reference.h"

namespace kiln {

Status ReferenceContext::for_ranges(int64_t count, int64_t work,
                                    const std::function<Status(int64_t begin, int64_t end)> &body) const {
  const int64_t step = std::max<int64_t>(threads.least_work / std::max<int64_t>(work, 1), 1);
  const int64_t tasks = (count + step - 1) / step;
  if (tasks < 1) return {};
  if (!threads.run || tasks == 1) return body(0, count);
  std::mutex mutex;
  int64_t failing = std::numeric_limits<int64_t>::max();  // the first task that has failed
  Status failed;
  std::exception_ptr thrown;
  const auto note = [&](int64_t task, Status status, std::exception_ptr exception) {
    const std::lock_guard lock(mutex);
    if (task >= failing) return;
    failing = task;
    failed = std::move(status);
    thrown = std::move(exception);
  };
  threads.run(tasks, [&](int64_t task) {
    {
      const std::lock_guard lock(mutex);
      if (task > failing) return;
    }
    try {
      Status status = body(task * step, std::min(count, (task + 1) * step));
      if (!status.ok()) note(task, std::move(status), nullptr);
    } catch (...) {
      note(task, {}, std::current_exception());
    }
  });
  if (thrown) std::rethrow_exception(thrown);
  return failed;
}

Status ReferenceKernel::operator()(ReferenceContext &context) const {
  const bool is_native =
      std::ranges::any_of(context.results, [](const RefTensor &result) { return result.native.has_value(); });
  if (native_) {
    NativeContext native{context};
    KILN_TRY(native_(native));
    for (RefTensor &result : context.results)  // that a graph of the node gave
      if (is_native && !result.native) result = narrowed(result);
    return {};
  }
  if (!is_native) return wide_(context);
  std::vector<RefTensor> operands, results;
  for (const RefTensor *operand : context.inputs) operands.push_back(widened(*operand));
  for (const RefTensor &result : context.results) {
    results.push_back({result.dtype, result.shape, {}, {}});
    results.back().allocate();
  }
  std::vector<const RefTensor *> inputs;
  for (const RefTensor &operand : operands) inputs.push_back(&operand);
  ReferenceContext wide = {context.op, inputs, results, context.attrs, {}, context.on_turn, context.threads};
  wide.run_graph = [&](const Graph &graph,
                       std::span<const RefTensor *const> arguments) -> Result<std::vector<RefTensor>> {
    KILN_ASSIGN(std::vector<RefTensor> outputs, context.run_graph(graph, arguments));
    for (RefTensor &output : outputs) output = widened(output);
    return outputs;
  };
  KILN_TRY(wide_(wide));
  for (size_t k = 0; k < results.size(); ++k) context.results[k] = narrowed(results[k]);
  return {};
}

}  // namespace kiln
