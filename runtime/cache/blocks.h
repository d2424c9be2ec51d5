// Large data at a record's end, which is mapped and not read: before it stands the sum of each MiB, so that it can be
// verified later, a block at a time. Internal to this folder, but for PlacedBytes and SummedBytes.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "jit/base/bytes.h"
#include "jit/base/status.h"
#include "runtime/cache/record.h"

namespace kiln {

// Some of the data, in order; what lies between them is zero.
struct PlacedBytes {
  uint64_t offset = 0;
  ByteSpan bytes;
};
// Calls `visit` with each block of `size` bytes; stops where that answers false. Pieces are not copied, but for blocks
// in which several meet.
bool for_each_block(std::span<const PlacedBytes> pieces, uint64_t size, const std::function<bool(ByteSpan)> &visit);

// Ends the record by the data's sums, and by where they begin: at a page. The data is to follow what finish() returns.
void add_blocks(RecordWriter &record, std::span<const PlacedBytes> pieces, uint64_t size);

// What a record tells of them.
struct BlocksHead {
  uint64_t begin = 0, size = 0;  // of the data, in the file
  std::vector<uint64_t> sums;
};
Result<BlocksHead> read_blocks_head(const RecordReader &record);  // code corrupt

// The data, in memory that somebody keeps. Threads: any.
class SummedBytes {
 public:
  SummedBytes(ByteSpan bytes, std::vector<uint64_t> sums) : bytes_(bytes), sums_(std::move(sums)) {}
  SummedBytes(const SummedBytes &) = delete;
  SummedBytes &operator=(const SummedBytes &) = delete;
  ByteSpan bytes() const { return bytes_; }  // begin at a page
  // Reads all of it. code corrupt; cancelled, as soon as `stop` is set.
  Status verify(const std::atomic<bool> &stop) const;
  bool is_verified() const { return is_verified_; }  // by anybody, and it was right

 private:
  const ByteSpan bytes_;
  const std::vector<uint64_t> sums_;
  mutable std::atomic<bool> is_verified_ = false;
};

}  // namespace kiln
