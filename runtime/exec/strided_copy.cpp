#include "runtime/exec/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace kiln {
namespace {

constexpr int64_t block = 64;                                  // elements along each side where dims are turned round
constexpr int64_t block_elements = 16384;                      // and in all where they are not
constexpr int64_t least_parallel_bytes = int64_t{256} * 1024;  // fewer are not worth waking threads

struct Dimension {
  int64_t extent = 1, from = 0, to = 0;  // strides in elements
};

struct StridedCopy {
  const uint8_t *from;
  uint8_t *to;
  std::vector<Dimension> outer;
  Dimension rows, columns;  // of a block; columns are the last dim, in which `from` is dense
  int64_t block_rows, block_columns;
  bool turned;  // `to` is closer along rows

  int64_t row_blocks() const { return (rows.extent + block_rows - 1) / block_rows; }
  int64_t column_blocks() const { return (columns.extent + block_columns - 1) / block_columns; }
  int64_t blocks() const {
    int64_t count = row_blocks() * column_blocks();
    for (const Dimension &d : outer) count *= d.extent;
    return count;
  }
};

// Dims of more than one element, those that are one dim on both sides joined.
std::vector<Dimension> joined(std::span<const int64_t> dims, std::span<const int64_t> strides) {
  std::vector<Dimension> out;  // the last dim first
  int64_t from = 1;
  for (size_t d = dims.size(); d-- > 0; from *= dims[d]) {
    if (dims[d] == 1) continue;
    if (!out.empty() && strides[d] == out.back().to * out.back().extent)
      out.back().extent *= dims[d];
    else
      out.push_back({dims[d], from, strides[d]});
  }
  return out;
}

StridedCopy copy_of(std::vector<Dimension> dims, const void *from, void *to) {
  StridedCopy copy{.from = static_cast<const uint8_t *>(from),
                   .to = static_cast<uint8_t *>(to),
                   .outer = {},
                   .rows = {},
                   .columns = {},
                   .block_rows = 1,
                   .block_columns = 1,
                   .turned = false};
  if (!dims.empty()) {
    copy.columns = dims.front();
    dims.erase(dims.begin());
  }
  const auto step = [](const Dimension &d) { return std::abs(d.to); };
  const auto closest = std::ranges::min_element(dims, {}, step);
  copy.turned = closest != dims.end() && step(*closest) < step(copy.columns);
  if (const auto rows = copy.turned ? closest : dims.begin(); rows != dims.end()) {
    copy.rows = *rows;
    dims.erase(rows);
  }
  copy.outer = std::move(dims);
  copy.block_columns = std::min(copy.columns.extent, copy.turned ? block : block_elements);
  copy.block_rows = copy.turned ? block : std::max<int64_t>(block_elements / copy.block_columns, 1);
  return copy;
}

template <size_t bytes>
void copy_block(const StridedCopy &copy, int64_t number) {
  const int64_t column = number % copy.column_blocks() * copy.block_columns;
  number /= copy.column_blocks();
  const int64_t row = number % copy.row_blocks() * copy.block_rows;
  number /= copy.row_blocks();
  int64_t from_at = row * copy.rows.from + column * copy.columns.from;
  int64_t to_at = row * copy.rows.to + column * copy.columns.to;
  for (const Dimension &d : copy.outer) {
    from_at += number % d.extent * d.from;
    to_at += number % d.extent * d.to;
    number /= d.extent;
  }
  const int64_t rows = std::min(copy.block_rows, copy.rows.extent - row);
  const int64_t columns = std::min(copy.block_columns, copy.columns.extent - column);
  constexpr auto size = static_cast<int64_t>(bytes);
  const uint8_t *const from = copy.from + from_at * size;
  uint8_t *const to = copy.to + to_at * size;
  const auto one = [&](int64_t r, int64_t c) {
    std::memcpy(to + (r * copy.rows.to + c * copy.columns.to) * size,
                from + (r * copy.rows.from + c * copy.columns.from) * size, bytes);
  };
  if (copy.turned) {
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t r = 0; r < rows; ++r) one(r, c);
  } else if (copy.columns.to == 1 && copy.columns.from == 1) {
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(to + r * copy.rows.to * size, from + r * copy.rows.from * size, static_cast<size_t>(columns * size));
  } else {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) one(r, c);
  }
}

template <size_t bytes>
void copy_blocks(void *user, uint32_t, int64_t begin, int64_t end) {
  for (int64_t number = begin; number < end; ++number)
    copy_block<bytes>(*static_cast<const StridedCopy *>(user), number);
}

}  // namespace

void copy_to_strides(ThreadPool &pool, uint32_t element_bytes, std::span<const int64_t> dims, const void *from,
                     std::span<const int64_t> strides, void *to) {
  int64_t bytes = element_bytes;
  for (const int64_t extent : dims) bytes *= extent;
  if (bytes == 0) return;
  StridedCopy copy = copy_of(joined(dims, strides), from, to);
  const ThreadPool::Fn fn = element_bytes == 1   ? copy_blocks<1>
                            : element_bytes == 2 ? copy_blocks<2>
                            : element_bytes == 4 ? copy_blocks<4>
                                                 : copy_blocks<8>;
  if (bytes < least_parallel_bytes)
    fn(&copy, 0, 0, copy.blocks());
  else
    pool.run(copy.blocks(), fn, &copy);
}

}  // namespace kiln
