#include "runtime/ops/reference_loops.h"

#include <exception>
#include <mutex>

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

namespace ops {

Status out_of_range(int64_t index, int64_t size) {
  return error(Code::out_of_range, "index ", index, " is out of range: expected 0 <= index < ", size);
}

int64_t count_of(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t dim : shape) count *= dim;
  return count;
}

std::vector<int64_t> dense_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0; step *= shape[d]) strides[d] = step;
  return strides;
}

std::vector<int64_t> broadcast_strides(std::span<const int64_t> from, std::span<const int64_t> to) {
  std::vector<int64_t> dense = dense_strides(from), strides(to.size(), 0);
  const size_t added = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d)
    if (from[d] != 1) strides[added + d] = dense[d];
  return strides;
}

Status copy_walked(const ReferenceContext &c, std::span<const int64_t> shape, const RefTensor &x, const Walk &from,
                   RefTensor &y, const Walk &to) {
  return dispatch(y, [&](auto zero) {
    const ReadElements<decltype(zero)> in(x);
    const WriteElements<decltype(zero)> out(y);
    return walk_in_ranges<2>(c, shape, {from.strides, to.strides}, [&](size_t, auto at) {
      out.set(static_cast<size_t>(to.begin + at[1]), in[static_cast<size_t>(from.begin + at[0])]);
    });
  });
}

Status copy_broadcast(const ReferenceContext &c, const RefTensor &x) {
  RefTensor &y = c.results[0];
  return copy_walked(c, y.shape, x, {0, broadcast_strides(x.shape, y.shape)}, y, {0, dense_strides(y.shape)});
}

Status require_in_range(const ReferenceContext &c, const RefTensor &index, int64_t size) {
  const ReadElements<int64_t> indices(index);
  return c.for_ranges(index.size(), 1, [&](int64_t begin, int64_t end) -> Status {
    for (int64_t k = begin; k < end; ++k)
      if (const int64_t i = indices[static_cast<size_t>(k)]; i < 0 || i >= size) return out_of_range(i, size);
    return {};
  });
}

}  // namespace ops
}  // namespace kiln
