#include "runtime/cache/blocks.h"

#include <algorithm>
#include <cstring>

namespace kiln {
namespace {

constexpr uint64_t block_bytes = 1 << 20, page_bytes = 4096;

uint64_t end_of(const PlacedBytes &piece) { return piece.offset + piece.bytes.size(); }

}  // namespace

bool for_each_block(std::span<const PlacedBytes> pieces, uint64_t size, const std::function<bool(ByteSpan)> &visit) {
  Bytes meeting;
  size_t first = 0;  // the first piece that ends behind the block's begin
  for (uint64_t begin = 0; begin < size; begin += block_bytes) {
    const uint64_t end = std::min(begin + block_bytes, size);
    while (first < pieces.size() && end_of(pieces[first]) <= begin) ++first;
    if (first < pieces.size() && pieces[first].offset <= begin && end_of(pieces[first]) >= end) {
      if (!visit(pieces[first].bytes.subspan(begin - pieces[first].offset, end - begin))) return false;
      continue;
    }
    meeting.assign(end - begin, 0);
    for (size_t i = first; i < pieces.size() && pieces[i].offset < end; ++i) {
      const uint64_t from = std::max(begin, pieces[i].offset), to = std::min(end, end_of(pieces[i]));
      if (from < to) std::memcpy(&meeting[from - begin], &pieces[i].bytes[from - pieces[i].offset], to - from);
    }
    if (!visit(meeting)) return false;
  }
  return true;
}

void add_blocks(RecordWriter &record, std::span<const PlacedBytes> pieces, uint64_t size) {
  ByteWriter sums;
  for_each_block(pieces, size, [&](ByteSpan block) {
    sums.put(checksum_of(block));
    return true;
  });
  Bytes blocks = sums.take();
  const uint64_t begin = record.next_offset(2);
  blocks.resize((begin + blocks.size() + page_bytes - 1) / page_bytes * page_bytes - begin);
  const uint64_t checksum = checksum_of(blocks);
  record.add(SectionKind::blocks, std::move(blocks));
  record.add_outside(SectionKind::prepared, size, checksum);
}

Result<BlocksHead> read_blocks_head(const RecordReader &record) {
  KILN_ASSIGN(const ByteSpan blocks, record.section(SectionKind::blocks));
  BlocksHead head{.size = record.size_of(SectionKind::prepared), .sums = {}};
  head.begin = record.end_of(SectionKind::prepared) - head.size;
  const uint64_t count = (head.size + block_bytes - 1) / block_bytes;
  if (head.size == 0 || head.begin % page_bytes != 0 || blocks.size() / sizeof(uint64_t) < count)
    return error(Code::corrupt, "it has no section of prepared parameters, or not their checksums");
  head.sums.resize(count);
  std::memcpy(head.sums.data(), blocks.data(), count * sizeof(uint64_t));
  return head;
}

Status SummedBytes::verify(const std::atomic<bool> &stop) const {
  size_t number = 0;
  Status status;
  const PlacedBytes all{0, bytes_};
  for_each_block({&all, 1}, bytes_.size(), [&](ByteSpan block) {
    if (stop)
      status = error(Code::cancelled, "the context is closed");
    else if (checksum_of(block) != sums_[number])
      status = error(Code::corrupt, "block ", number, " has a wrong checksum");
    ++number;
    return status.ok();
  });
  if (status.ok()) is_verified_ = true;
  return status;
}

}  // namespace kiln
