#include "runtime/plugin/note.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <kiln/plugin.h>

#include <cstring>

namespace kiln {
namespace {

// The least ELF library with one PT_NOTE segment: header, program header, a note of another owner, Kiln's.
struct Library {
  Elf64_Ehdr header{};
  Elf64_Phdr segment{};
  struct {
    uint32_t owner_size = 4, payload_size = 5, type = 3;
    char owner[4] = "GNU", payload[8] = "build";  // padded to four bytes
  } other;
  kiln_plugin_note note{};

  Library() {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_DYN;
    header.e_machine = EM_X86_64;
    header.e_phoff = offsetof(Library, segment);
    header.e_phentsize = sizeof segment;
    header.e_phnum = 1;
    segment.p_type = PT_NOTE;
    segment.p_offset = offsetof(Library, other);
    segment.p_filesz = sizeof other + sizeof note;
    note.owner_size = 5;
    note.payload_size = KILN_NOTE_PAYLOAD_SIZE;
    note.type = KILN_NOTE_TYPE;
    std::memcpy(note.owner, "Kiln", 5);
    note.magic_low = static_cast<uint32_t>(KILN_PLUGIN_MAGIC);
    note.magic_high = static_cast<uint32_t>(KILN_PLUGIN_MAGIC >> 32);
    note.abi_major = KILN_ABI_MAJOR;
    note.host_minor_needed = 3;
    note.features_high = 1;
    std::memcpy(note.name, "example", 7);
  }
  Result<PluginNote> read() const { return read_plugin_note({reinterpret_cast<const uint8_t *>(this), sizeof *this}); }
  std::string refused() const {
    const Result<PluginNote> result = read();
    return result.ok() ? "accepted" : result.status().message();
  }
};

TEST(PluginNote, IsFoundBehindOtherNotes) {
  const Result<PluginNote> note = Library().read();
  ASSERT_TRUE(note.ok()) << note.status().message();
  EXPECT_EQ(note->name, "example");
  EXPECT_EQ(note->host_minor_needed, 3u);
  EXPECT_EQ(note->features_needed, uint64_t{1} << 32);
}

TEST(PluginNote, EveryPrefixOfAFileIsRefused) {
  const Library library;
  for (size_t size = 0; size < offsetof(Library, note) + sizeof library.note; size++)  // padding may follow
    EXPECT_FALSE(read_plugin_note({reinterpret_cast<const uint8_t *>(&library), size}).ok()) << size;
}

TEST(PluginNote, SaysWhatAFileIsNot) {
  Library library;
  library.header.e_machine = EM_AARCH64;
  EXPECT_EQ(library.refused(), "not a Kiln plugin: an ELF file for another machine");
  library = Library();
  library.header.e_type = ET_EXEC;
  EXPECT_EQ(library.refused(), "not a Kiln plugin: no shared library");
  library = Library();
  library.note.magic_low = 0;
  EXPECT_EQ(library.refused(), "not a Kiln plugin: its note has another magic number");
}

TEST(PluginNote, OffsetsThatOverflowAreRefused) {
  for (uint64_t offset : {UINT64_MAX, UINT64_MAX - 64, uint64_t{1} << 63}) {
    Library library;
    library.segment.p_offset = offset;
    EXPECT_NE(library.refused().find("without the note"), std::string::npos);
    library = Library();
    library.header.e_phoff = offset;
    EXPECT_NE(library.refused().find("without the note"), std::string::npos);
  }
  Library library;
  library.other.payload_size = UINT32_MAX;
  EXPECT_NE(library.refused().find("without the note"), std::string::npos);
}

TEST(PluginNote, ANameWithoutItsEndIsCut) {
  Library library;
  std::memset(library.note.name, 'a', sizeof library.note.name);
  EXPECT_EQ(library.read()->name, std::string(64, 'a'));
}

TEST(PluginNote, NeedsAreCheckedOneByOne) {
  const PluginNote good{.abi_major = KILN_ABI_MAJOR, .name = "p"};
  EXPECT_TRUE(check_plugin_note(good, 0).ok());
  PluginNote wrong = good;
  wrong.features_needed = 4;
  EXPECT_FALSE(check_plugin_note(wrong, 3).ok());
  EXPECT_TRUE(check_plugin_note(wrong, 4).ok());
  wrong = good;
  wrong.name.clear();
  EXPECT_FALSE(check_plugin_note(wrong, 0).ok());
}

}  // namespace
}  // namespace kiln
