#include "runtime/exec/image_memory.h"

#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "jit/base/file.h"
#include "jit/base/memory_file.h"
#include "runtime/exec/layout.h"

namespace kiln {
namespace {

constexpr uint64_t image_alignment = 64;

// Where each image begins, and the size of all.
struct Placement {
  std::vector<uint64_t> offsets;
  uint64_t size = 0;
};

Placement place(std::span<const Image> images) {
  Layout layout(image_alignment);
  Placement placement;
  for (const Image &image : images) placement.offsets.push_back(layout.add(image.code->size()));
  placement.size = layout.size_bytes();
  return placement;
}

// Null where memory files are not possible.
void *map_sealed_file(std::span<const Image> images, const Placement &placement, const std::string &name) {
  static constexpr std::array<uint8_t, image_alignment> zeros{};
  std::vector<ByteSpan> parts;
  for (size_t i = 0; i < images.size(); ++i) {
    const ByteSpan code = *images[i].code;
    const uint64_t next = i + 1 < images.size() ? placement.offsets[i + 1] : placement.size;
    parts.insert(parts.end(), {code, ByteSpan(zeros).first(next - placement.offsets[i] - code.size())});
  }
  const FileDescriptor file = sealed_memory_file(name, parts);
  if (file.get() < 0) return nullptr;
  // All pages at once: they are compared next, and each would be a fault.
  void *base = mmap(nullptr, placement.size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_POPULATE, file.get(), 0);
  return base == MAP_FAILED ? nullptr : base;
}

// Where memory files are forbidden, or may not be executed.
void *map_anonymous(std::span<const Image> images, const Placement &placement) {
  void *base = mmap(nullptr, placement.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  for (size_t i = 0; i < images.size(); ++i)
    std::memcpy(static_cast<uint8_t *>(base) + placement.offsets[i], images[i].code->data(), images[i].code->size());
  if (mprotect(base, placement.size, PROT_READ | PROT_EXEC) == 0) return base;
  munmap(base, placement.size);
  return nullptr;
}

}  // namespace

Result<ImageMemory> ImageMemory::load(std::span<const Image> images, std::string_view name, bool anonymous) {
  ImageMemory memory;
  for (size_t i = 0; i < images.size(); ++i)
    if (images[i].entry_offset >= images[i].code->size())
      return error(Code::corrupt, "image ", i, ": the entry is at ", images[i].entry_offset,
                   ", expected below its size ", images[i].code->size());
  const Placement placement = place(images);
  if (placement.size == 0) return memory;

  if (!anonymous) memory.base_ = map_sealed_file(images, placement, std::string(name));
  if (!memory.base_) memory.base_ = map_anonymous(images, placement);
  if (!memory.base_)
    return error(errno_code(errno), "cannot map ", placement.size, " bytes of executable memory: ", errno_text(errno),
                 "; the system may forbid code that is generated at run time");
  memory.size_ = placement.size;

  for (size_t i = 0; i < images.size(); ++i) {
    const uint8_t *code = static_cast<const uint8_t *>(memory.base_) + placement.offsets[i];
    // What runs is what was checked: compared in the memory that nobody can change any more.
    if (std::memcmp(code, images[i].code->data(), images[i].code->size()) != 0)
      return error(Code::corrupt, "image ", i, " changed while it was mapped");
    memory.entries_.push_back(code + images[i].entry_offset);
  }
  return memory;
}

ImageMemory::ImageMemory(ImageMemory &&other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      entries_(std::move(other.entries_)) {}

ImageMemory &ImageMemory::operator=(ImageMemory &&other) noexcept {
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  std::swap(entries_, other.entries_);
  return *this;
}

ImageMemory::~ImageMemory() {
  if (base_) munmap(base_, size_);
}

}  // namespace kiln
