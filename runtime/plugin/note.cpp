#include "runtime/plugin/note.h"

#include <elf.h>
#include <kiln/plugin.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "jit/base/elf_note.h"
#include "jit/base/utf8.h"

namespace kiln {

static_assert(sizeof(kiln_plugin_note) - offsetof(kiln_plugin_note, magic_low) == KILN_NOTE_PAYLOAD_SIZE);
static_assert(offsetof(kiln_plugin_note, magic_low) == 20, "owner size, payload size, type, then the owner's name");

namespace {

ByteSpan part_of(ByteSpan file, uint64_t offset, uint64_t size) {
  if (offset > file.size()) return {};
  return file.subspan(offset, std::min<uint64_t>(size, file.size() - offset));
}

// "ops, bit 63"
std::string features_text(uint64_t features) {
  std::vector<std::string> names;
  for (uint32_t bit = 0; bit < 64; bit++) {
    const uint64_t feature = features & uint64_t{1} << bit;
    if (feature)
      names.push_back(feature == KILN_FEATURE_OPS         ? "ops"
                      : feature == KILN_FEATURE_BACKENDS  ? "backends"
                      : feature == KILN_FEATURE_FUNCTIONS ? "functions"
                                                          : str_cat("bit ", bit));
  }
  return join(names, ", ", [](const std::string &name) { return name; });
}

Status not_a_plugin(std::string_view why) { return error(Code::incompatible, "not a Kiln plugin: ", why); }

}  // namespace

Result<PluginNote> read_plugin_note(ByteSpan file) {
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return not_a_plugin("no ELF file");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
      header->e_machine != EM_X86_64)
    return not_a_plugin("an ELF file for another machine");
  if (header->e_type != ET_DYN) return not_a_plugin("no shared library");
  if (header->e_phentsize != sizeof(Elf64_Phdr)) return not_a_plugin("a damaged ELF header");
  std::optional<kiln_plugin_note> note;
  for (uint64_t i = 0; i < header->e_phnum && !note; i++) {
    // e_phoff may be anything: a sum that overflows lies outside the file either way.
    if (header->e_phoff > file.size()) break;
    const auto segment = read_at<Elf64_Phdr>(file, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment || segment->p_type != PT_NOTE) continue;
    const ByteSpan notes = part_of(file, segment->p_offset, segment->p_filesz);
    if (const auto found = find_elf_note(notes, segment->p_align, KILN_NOTE_TYPE, "Kiln", KILN_NOTE_PAYLOAD_SIZE))
      note = read_at<kiln_plugin_note>(*found, 0);
  }
  if (!note) return not_a_plugin("a library without the note (KILN_PLUGIN_NOTE of kiln/plugin.h)");
  if ((uint64_t{note->magic_high} << 32 | note->magic_low) != KILN_PLUGIN_MAGIC)
    return not_a_plugin("its note has another magic number");
  return PluginNote{.abi_major = note->abi_major,
                    .host_minor_needed = note->host_minor_needed,
                    .features_needed = uint64_t{note->features_high} << 32 | note->features_low,
                    .name = std::string(note->name, strnlen(note->name, sizeof note->name))};
}

Status check_plugin_note(const PluginNote &note, uint64_t host_features) {
  if (note.abi_major != KILN_ABI_MAJOR)
    return error(Code::incompatible, "made for ABI ", note.abi_major, "; this is ABI ", KILN_ABI_MAJOR);
  if (note.host_minor_needed > KILN_ABI_MINOR)
    return error(Code::incompatible, "needs ABI ", note.abi_major, ".", note.host_minor_needed, "; this is ",
                 KILN_ABI_MAJOR, ".", KILN_ABI_MINOR);
  if (const uint64_t missing = note.features_needed & ~host_features)
    return error(Code::incompatible, "needs features that this host lacks: ", features_text(missing));
  if (note.name.empty()) return error(Code::incompatible, "its note has no name");
  if (printable(note.name) != note.name)
    return error(Code::incompatible, "its name '", printable(note.name), "' is not one line of UTF-8");
  return {};
}

}  // namespace kiln
