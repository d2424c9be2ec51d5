#include "jit/base/mapped_library.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <span>

#include "jit/base/memory_file.h"

namespace kiln {
namespace {

using Segment = ElfW(Phdr);

struct Mapped {
  uintptr_t base = 0;
  std::string_view name;
  std::span<const Segment> segments = {};
};

int find_segments(dl_phdr_info *info, size_t, void *wanted) {
  Mapped &mapped = *static_cast<Mapped *>(wanted);
  if (info->dlpi_addr != mapped.base || info->dlpi_name != mapped.name) return 0;
  mapped.segments = {info->dlpi_phdr, info->dlpi_phnum};
  return 1;
}

std::optional<Mapped> find_mapped(void *handle) {
  link_map *map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return std::nullopt;
  Mapped mapped{.base = map->l_addr, .name = map->l_name};
  dl_iterate_phdr(find_segments, &mapped);
  return mapped;
}

int protection_of(const Segment &segment) {
  return (segment.p_flags & PF_R ? PROT_READ : 0) | (segment.p_flags & PF_W ? PROT_WRITE : 0) |
         (segment.p_flags & PF_X ? PROT_EXEC : 0);
}

size_t page_size() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
uintptr_t rounded_down(uintptr_t address) { return address / page_size() * page_size(); }

// The pages that hold what a segment has of its file.
struct Pages {
  uintptr_t begin;
  size_t size;
  Pages(uintptr_t start, size_t bytes)
      : begin(rounded_down(start)), size(rounded_down(start + bytes + page_size() - 1) - begin) {}
  void *address() const { return reinterpret_cast<void *>(begin); }
};

// Into the place of a segment that nobody writes, the same bytes of a file that nobody can change.
bool map_over(const Pages &pages, const Segment &segment, int file) {
  const auto offset = static_cast<off_t>(rounded_down(segment.p_offset));
  return mmap(pages.address(), pages.size, protection_of(segment), MAP_PRIVATE | MAP_FIXED, file, offset) != MAP_FAILED;
}

// Into the place of a segment that is written, its present content in memory of no file. (Only a thread that the
// library started when it was loaded could write there meanwhile.)
__attribute__((no_sanitize("address", "thread"))) bool copy_over(const Pages &pages, const Segment &segment) {
  void *copy = mmap(nullptr, pages.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return false;
  const auto *from = static_cast<const uint64_t *>(pages.address());
  for (size_t i = 0; i < pages.size / sizeof *from; ++i) static_cast<uint64_t *>(copy)[i] = from[i];
  if (mprotect(copy, pages.size, protection_of(segment)) == 0 &&
      mremap(copy, pages.size, pages.size, MREMAP_MAYMOVE | MREMAP_FIXED, pages.address()) != MAP_FAILED)
    return true;
  munmap(copy, pages.size);
  return false;
}

// The bytes lie between those that a sanitizer of the library's own guards.
__attribute__((no_sanitize("address", "thread"))) bool equal(const uint8_t *memory, ByteSpan bytes) {
  uint8_t difference = 0;
  for (size_t i = 0; i < bytes.size(); ++i) difference |= static_cast<uint8_t>(memory[i] ^ bytes[i]);
  return difference == 0;
}

bool same_segments(const Mapped &mapped, ByteSpan file) {
  const auto header = read_at<ElfW(Ehdr)>(file, 0);
  const size_t size = mapped.segments.size_bytes();
  return header && header->e_phnum == mapped.segments.size() && header->e_phoff <= file.size() &&
         size <= file.size() - header->e_phoff &&
         std::memcmp(mapped.segments.data(), file.data() + header->e_phoff, size) == 0;
}

bool own_segment(const Mapped &mapped, const Segment &segment, ByteSpan file, int copy) {
  if (segment.p_offset > file.size() || segment.p_filesz > file.size() - segment.p_offset) return false;
  const uintptr_t start = mapped.base + segment.p_vaddr;
  const Pages pages(start, segment.p_filesz);
  if (pages.size == 0) return true;
  if (segment.p_flags & PF_W) return copy_over(pages, segment);
  const ByteSpan expected = file.subspan(segment.p_offset, segment.p_filesz);
  return equal(reinterpret_cast<const uint8_t *>(start), expected) && map_over(pages, segment, copy);
}

// Inside a segment that is written lies what the loader made read-only once it was relocated.
bool protect_relocated(const Mapped &mapped, const Segment &segment) {
  const uintptr_t start = mapped.base + segment.p_vaddr, begin = rounded_down(start);
  const size_t size = rounded_down(start + segment.p_memsz) - begin;
  return size == 0 || mprotect(reinterpret_cast<void *>(begin), size, PROT_READ) == 0;
}

}  // namespace

bool own_pages(const DynamicLibrary &library, ByteSpan file) {
  const std::optional<Mapped> mapped = find_mapped(library.handle());
  if (!mapped || mapped->segments.empty() || !same_segments(*mapped, file)) return false;
  const FileDescriptor copy = sealed_memory_file(library.path(), {&file, 1});
  bool owned = copy.get() >= 0;
  for (const Segment &segment : mapped->segments)
    if (owned && segment.p_type == PT_LOAD) owned = own_segment(*mapped, segment, file, copy.get());
  for (const Segment &segment : mapped->segments)
    if (segment.p_type == PT_GNU_RELRO) owned = protect_relocated(*mapped, segment) && owned;
  return owned;
}

}  // namespace kiln
