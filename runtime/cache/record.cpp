#include "runtime/cache/record.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace kiln {
namespace {

constexpr std::array<uint8_t, 8> magic = {'K', 'I', 'L', 'N', 'R', 'E', 'C', 0};
constexpr size_t checksum_offset = 56, header_size = 64, entry_size = 32, section_alignment = 64;
static_assert(record_max_head == header_size + entry_size * record_max_sections);

uint64_t aligned(uint64_t offset) { return (offset + section_alignment - 1) / section_alignment * section_alignment; }

// Of the header and the table, leaving out the checksum itself.
uint64_t header_checksum(ByteSpan head) {
  Bytes covered(head.begin(), head.begin() + checksum_offset);
  covered.insert(covered.end(), head.begin() + header_size, head.end());
  return checksum_of(covered);
}

bool all_zero(ByteSpan bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t b) { return b == 0; });
}

}  // namespace

std::string_view name_of(SectionKind kind) {
  switch (kind) {
    case SectionKind::components:
      return "components";
    case SectionKind::plan:
      return "plan";
    case SectionKind::images:
      return "images";
    case SectionKind::kernels:
      return "kernels";
    case SectionKind::constants:
      return "constants";
    case SectionKind::graph:
      return "graph";
    case SectionKind::report:
      return "report";
    case SectionKind::targets:
      return "targets";
    case SectionKind::contracts:
      return "contracts";
    case SectionKind::source:
      return "source";
    case SectionKind::edited:
      return "edited";
    case SectionKind::entries:
      return "entries";
    case SectionKind::answers:
      return "answers";
    case SectionKind::questions:
      return "questions";
    case SectionKind::blocks:
      return "blocks";
    case SectionKind::prepared:
      return "prepared";
    case SectionKind::weights:
      return "weights";
  }
  return "unknown";
}

uint64_t RecordWriter::next_offset(size_t more) const {
  uint64_t end = header_size + (sections_.size() + more) * entry_size;
  for (const Section &s : sections_) end = aligned(end) + s.size;
  return aligned(end);
}

Bytes RecordWriter::finish(const Digest &key) const {
  ByteWriter table;
  uint64_t end = header_size + sections_.size() * entry_size;
  for (const Section &s : sections_) {
    const uint64_t offset = aligned(end);
    table.put(static_cast<uint32_t>(s.kind));
    table.put<uint32_t>(0);
    table.put<uint64_t>(offset);
    table.put<uint64_t>(s.size);
    table.put<uint64_t>(s.checksum);
    end = offset + s.size;
  }

  ByteWriter out;
  out.raw(magic);
  out.put(record_format_version);
  out.put(static_cast<uint32_t>(sections_.size()));
  out.put<uint64_t>(end);
  out.raw(key.bytes);
  out.put<uint64_t>(0);  // the checksum's place
  out.raw(table.bytes());
  const uint64_t checksum = header_checksum(out.bytes());
  for (const Section &s : sections_) {
    out.align(section_alignment);
    out.raw(s.bytes);
  }
  Bytes file = out.take();
  std::memcpy(file.data() + checksum_offset, &checksum, sizeof checksum);
  return file;
}

Result<RecordReader> RecordReader::open(ByteSpan first, uint64_t length) {
  RecordReader record;
  record.file_ = first;
  record.length_ = length;
  ByteReader in(first);
  if (!std::ranges::equal(in.raw(magic.size()), magic))
    return error(Code::corrupt, "header at offset 0: not a file of Kiln's");
  const auto version = in.get<uint32_t>();
  if (in.ok() && version != record_format_version)
    return error(Code::incompatible, "header at offset 8: format version ", version, ", expected ",
                 record_format_version);
  const auto count = in.get<uint32_t>();
  const auto expected_length = in.get<uint64_t>();
  const ByteSpan key = in.raw(record.key_.bytes.size());
  const auto checksum = in.get<uint64_t>();
  if (!in.ok() || expected_length != length)
    return error(Code::corrupt, "header at offset 16: ", length, " bytes, expected ",
                 in.ok() ? expected_length : uint64_t{header_size});
  if (count > record_max_sections || header_size + count * entry_size > first.size())
    return error(Code::corrupt, "header at offset 12: ", count, " sections, expected at most ", record_max_sections,
                 ", within the file");
  if (checksum != header_checksum(first.first(header_size + count * entry_size)))
    return error(Code::corrupt, "header at offset ", checksum_offset, ": wrong checksum");
  std::ranges::copy(key, record.key_.bytes.begin());
  KILN_TRY(record.read_table(in, count));
  return record;
}

Status RecordReader::read_table(ByteReader &in, uint32_t count) {
  uint64_t end = header_size + count * entry_size;
  for (uint32_t i = 0; i < count; ++i) {
    Section s{};
    s.kind = static_cast<SectionKind>(in.get<uint32_t>());
    const auto reserved = in.get<uint32_t>();
    s.offset = in.get<uint64_t>();
    s.size = in.get<uint64_t>();
    s.checksum = in.get<uint64_t>();
    const auto same_kind = [&](const Section &other) { return other.kind == s.kind; };
    if (reserved != 0 || std::ranges::any_of(sections_, same_kind) || s.offset != aligned(end) || s.offset > length_ ||
        s.size > length_ - s.offset)
      return error(Code::corrupt, "section table at offset ", header_size + i * entry_size, ": section '",
                   name_of(s.kind), "' of ", s.size, " bytes at offset ", s.offset,
                   " is there twice, overlaps or is out of bounds");
    if (!all_zero(
            file_.first(std::min<uint64_t>(s.offset, file_.size())).subspan(std::min<uint64_t>(end, file_.size()))))
      return error(Code::corrupt, "the bytes from offset ", end, " to section '", name_of(s.kind), "' at offset ",
                   s.offset, " are not zero");
    sections_.push_back(s);
    end = s.offset + s.size;
  }
  if (end != length_)
    return error(Code::corrupt, length_ - end, " bytes follow the last section, which ends at offset ", end);
  return {};
}

Result<ByteSpan> RecordReader::section(SectionKind kind) const {
  for (const Section &s : sections_) {
    if (s.kind != kind) continue;
    assert(s.offset + s.size <= file_.size());
    const ByteSpan bytes = file_.subspan(s.offset, s.size);
    if (checksum_of(bytes) != s.checksum) return error(Code::corrupt, where(kind), ": wrong checksum");
    return bytes;
  }
  return error(Code::corrupt, "section '", name_of(kind), "' is missing");
}

uint64_t RecordReader::end_of(SectionKind kind) const {
  for (const Section &s : sections_)
    if (s.kind == kind) return s.offset + s.size;
  return 0;
}

uint64_t RecordReader::size_of(SectionKind kind) const {
  for (const Section &s : sections_)
    if (s.kind == kind) return s.size;
  return 0;
}

std::string RecordReader::where(SectionKind kind) const {
  for (const Section &s : sections_)
    if (s.kind == kind) return str_cat("section '", name_of(kind), "' at offset ", s.offset);
  return str_cat("section '", name_of(kind), "'");
}

}  // namespace kiln
