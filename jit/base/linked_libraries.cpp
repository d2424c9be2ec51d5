#include "jit/base/linked_libraries.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <map>
#include <new>
#include <optional>
#include <string_view>

#include "jit/base/elf_note.h"
#include "jit/base/file.h"
#include "jit/base/hash.h"
#include "jit/base/hex.h"

namespace kiln {
namespace {

using Segment = ElfW(Phdr);

// A library or program of this process, as the loader has it.
struct Object {
  std::string path, soname;
  std::vector<std::string> needed;
  uintptr_t base = 0;
  std::vector<Segment> segments;

  bool answers_to(std::string_view name) const {
    return name == soname || name == path || name == std::string_view(path).substr(path.rfind('/') + 1);
  }
  ByteSpan memory(const Segment &segment, uint64_t size) const {
    return {reinterpret_cast<const uint8_t *>(base + segment.p_vaddr), size};
  }
};

void read_names(Object &object, const Segment &dynamic) {
  const auto *entries = reinterpret_cast<const ElfW(Dyn) *>(object.base + dynamic.p_vaddr);
  uintptr_t strings = 0;
  for (const auto *entry = entries; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_STRTAB) strings = entry->d_un.d_ptr;
  if (strings < object.base) strings += object.base;  // the loader left it as the file has it
  for (const auto *entry = entries; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag != DT_NEEDED && entry->d_tag != DT_SONAME) continue;
    const char *name = reinterpret_cast<const char *>(strings + entry->d_un.d_val);
    if (entry->d_tag == DT_SONAME) object.soname = name;
    if (entry->d_tag == DT_NEEDED) object.needed.emplace_back(name);
  }
}

// Everything is copied: what other libraries hold may go when the loader's lock is given up.
int add_object(dl_phdr_info *info, size_t, void *objects) try {
  Object &object = static_cast<std::vector<Object> *>(objects)->emplace_back();
  object.path = info->dlpi_name;
  object.base = info->dlpi_addr;
  object.segments.assign(info->dlpi_phdr, info->dlpi_phdr + info->dlpi_phnum);
  for (const Segment &segment : object.segments)
    if (segment.p_type == PT_DYNAMIC) read_names(object, segment);
  return 0;
} catch (const std::bad_alloc &) {
  return 1;
}

std::vector<Object> all_objects() {
  std::vector<Object> objects;
  if (dl_iterate_phdr(add_object, &objects) != 0) throw std::bad_alloc();
  return objects;
}

// Parts of the C library are libraries of their own on older systems.
bool is_of_system(std::string_view name) {
  constexpr std::array<std::string_view, 8> stems = {"libc",  "libm",  "libstdc++", "libgcc_s", "ld-linux-x86-64",
                                                     "libdl", "librt", "libpthread"};
  return std::ranges::find(stems, name.substr(0, name.find(".so"))) != stems.end();
}

std::optional<std::string> build_id_of(const Object &object) {
  for (const Segment &segment : object.segments) {
    if (segment.p_type != PT_NOTE) continue;
    const auto note =
        find_elf_note(object.memory(segment, segment.p_memsz), segment.p_align, NT_GNU_BUILD_ID, "GNU", 1);
    if (note) return hex_of(note->subspan(sizeof(ElfW(Nhdr)) + sizeof "GNU"));
  }
  return std::nullopt;
}

// The bytes lie between those that a sanitizer of the library's own guards. (Over volatile ones, or the compiler would
// call memcpy, which the sanitizer looks at.)
__attribute__((no_sanitize("address", "thread"))) Bytes copy_of(ByteSpan memory) {
  Bytes copy(memory.size());
  const volatile uint8_t *from = memory.data();
  for (size_t i = 0; i < copy.size(); ++i) copy[i] = from[i];
  return copy;
}

// What is mapped may be older than the file, and of the data that is written only the file has the beginnings.
std::string digest_of_code(const Object &object) {
  ByteWriter digests;
  for (const Segment &segment : object.segments)
    if (segment.p_type == PT_LOAD && !(segment.p_flags & PF_W))
      digests.raw(digest_of(copy_of(object.memory(segment, segment.p_filesz))).bytes);
  if (const Result<Bytes> file = read_file(object.path); file.ok()) digests.raw(digest_of(*file).bytes);
  return digest_of(digests.bytes()).hex();
}

}  // namespace

std::vector<LinkedLibrary> linked_with(const DynamicLibrary &library) {
  link_map *map = nullptr;
  if (dlinfo(library.handle(), RTLD_DI_LINKMAP, &map) != 0) return {};
  const std::vector<Object> objects = all_objects();
  const auto self = std::ranges::find_if(
      objects, [&](const Object &object) { return object.base == map->l_addr && object.path == map->l_name; });
  if (self == objects.end()) return {};

  std::map<std::string, const Object *> found;
  std::vector<const Object *> open = {&*self};
  while (!open.empty()) {
    const Object &object = *open.back();
    open.pop_back();
    for (const std::string &name : object.needed) {
      if (is_of_system(name) || found.contains(name)) continue;
      const auto at = std::ranges::find_if(objects, [&](const Object &other) { return other.answers_to(name); });
      if (at == objects.end()) continue;  // then the loader would not have opened it
      found.emplace(name, &*at);
      open.push_back(&*at);
    }
  }
  std::vector<LinkedLibrary> linked;
  for (const auto &[name, object] : found) {
    const std::optional<std::string> build_id = build_id_of(*object);
    linked.push_back({name, object->path, build_id ? "build id " + *build_id : "digest " + digest_of_code(*object)});
  }
  return linked;
}

Digest identity_of(const Digest &file, std::span<const LinkedLibrary> links) {
  if (links.empty()) return file;
  std::string all = file.hex();
  for (const LinkedLibrary &link : links) str_append(all, str_cat("\n", link.name, " ", link.identity));
  return digest_of(all);
}

}  // namespace kiln
