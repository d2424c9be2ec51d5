// Notes of ELF files, in a file or where it is mapped.
#pragma once
#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "jit/base/bytes.h"

namespace kiln {

// In the notes of one segment, the first of this type and owner with so many bytes of content at least: as a whole,
// from its header on. `align`: the segment's, 4 or 8.
inline std::optional<ByteSpan> find_elf_note(ByteSpan notes, uint64_t align, uint32_t type, std::string_view owner,
                                             uint32_t least_size) {
  const auto padded = [align](uint64_t size) { return align == 8 ? (size + 7) / 8 * 8 : (size + 3) / 4 * 4; };
  while (const std::optional<Elf64_Nhdr> header = read_at<Elf64_Nhdr>(notes, 0)) {
    const uint64_t content = padded(sizeof *header + header->n_namesz), size = padded(content + header->n_descsz);
    if (content + header->n_descsz > notes.size()) return std::nullopt;
    const bool is_owners = header->n_namesz == owner.size() + 1 &&
                           std::memcmp(notes.data() + sizeof *header, owner.data(), owner.size()) == 0;
    if (is_owners && header->n_type == type && header->n_descsz >= least_size)
      return notes.first(content + header->n_descsz);
    notes = notes.subspan(std::min<uint64_t>(size, notes.size()));
  }
  return std::nullopt;
}

}  // namespace kiln
