// The image writer: what JITLink links becomes one position-independent blob of read-only data and code.
#pragma once
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include <cstdint>
#include <memory>

#include "jit/base/bytes.h"

namespace kiln::codegen {

struct Image {
  Bytes bytes;                // to be loaded at a 64-byte aligned address
  uint64_t entry_offset = 0;  // of the symbol entry_name (emitter.h): read-only data precedes code
};

// Lays a linked graph out in an Image instead of executable memory. One link at a time.
class ImageMemoryManager final : public llvm::jitlink::JITLinkMemoryManager {
 public:
  using JITLinkMemoryManager::allocate;
  using JITLinkMemoryManager::deallocate;
  void allocate(const llvm::jitlink::JITLinkDylib *dylib, llvm::jitlink::LinkGraph &graph,
                OnAllocatedFunction on_allocated) override;
  void deallocate(std::vector<FinalizedAlloc> allocations, OnDeallocatedFunction on_deallocated) override;

  Image take() { return std::move(image_); }

 private:
  Image image_;
};

// Refuses to link what an image cannot hold: undefined symbols, writable data, relocations that are not PC-relative.
std::shared_ptr<llvm::orc::ObjectLinkingLayer::Plugin> make_image_checks();

}  // namespace kiln::codegen
