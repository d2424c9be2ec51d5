// The container of every file that Kiln writes: a header, a table of sections, and the sections, each with its
// checksum. Internal to this folder; what the sections of an artifact hold is artifact_bytes.cpp's.
//
//   offset  0  magic "KILNREC\0"
//           8  u32 format version, u32 section count
//          16  u64 length of the file in bytes
//          24  32 bytes: the key of what the file holds (graph_key or kernel_key; zero when it has none)
//          56  u64 XXH3 of all of the above and the section table
//          64  section table, 32 bytes each: u32 kind, u32 0, u64 offset, u64 size, u64 XXH3 of the section's bytes
//   Sections follow in the order of the table, each at the next multiple of 64; what lies between is zero.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/bytes.h"
#include "jit/base/hash.h"
#include "jit/base/status.h"

namespace kiln {

inline constexpr uint32_t record_format_version = 8;
inline constexpr uint32_t record_max_sections = 16;
inline constexpr size_t record_max_head = 64 + 32 * record_max_sections;  // bytes of the header and the table

enum class SectionKind : uint32_t {
  components = 1,
  plan,
  images,
  kernels,
  constants,
  graph,
  report,
  contracts,
  source,
  entries,
  targets,
  edited,
  answers,
  questions,
  blocks,    // of a record of prepared parameters: the XXH3 of each MiB of what follows, then zero up to a page's end
  prepared,  // ... the parameters; its checksum is that of the blocks', since nobody reads all of it at once
  weights,   // of an artifact that has its parameters: which these are, and where in the two sections above
};
std::string_view name_of(SectionKind kind);

class RecordWriter {
 public:
  void add(SectionKind kind, Bytes bytes) {
    const uint64_t checksum = checksum_of(bytes), size = bytes.size();
    sections_.push_back({kind, std::move(bytes), size, checksum});
  }
  // The last one, whose bytes the writer need not hold: they are to follow those that finish() returns.
  void add_outside(SectionKind kind, uint64_t size, uint64_t checksum) {
    sections_.push_back({kind, {}, size, checksum});
  }
  // Of the next section, in a record of so many more.
  uint64_t next_offset(size_t more) const;
  Bytes finish(const Digest &key) const;

 private:
  struct Section {
    SectionKind kind;
    Bytes bytes;
    uint64_t size, checksum;
  };
  std::vector<Section> sections_;
};

// Views into bytes that must outlive it. Opening checks the header, the table and all bounds; a section's checksum is
// checked when it is asked for, so that one section of a large file can be read alone.
class RecordReader {
 public:
  // code corrupt: damaged, and where. code incompatible: another format version.
  static Result<RecordReader> open(ByteSpan file) { return open(file, file.size()); }
  // The same of the first bytes of a file of `length`: the header and the table at least, where they fit into it. Only
  // the sections that end within `first` may be asked for.
  static Result<RecordReader> open(ByteSpan first, uint64_t length);

  const Digest &key() const { return key_; }
  Result<ByteSpan> section(SectionKind kind) const;
  // Where a section ends in the file, so that all before it can be read alone. 0: there is none.
  uint64_t end_of(SectionKind kind) const;
  uint64_t size_of(SectionKind kind) const;  // likewise
  // "section 'plan' at offset 192", for messages.
  std::string where(SectionKind kind) const;

 private:
  struct Section {
    SectionKind kind;
    uint64_t offset, size, checksum;
  };
  Status read_table(ByteReader &in, uint32_t count);

  ByteSpan file_;        // its first bytes
  uint64_t length_ = 0;  // of all of it
  Digest key_;
  std::vector<Section> sections_;
};

}  // namespace kiln
