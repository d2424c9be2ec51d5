#include "jit/llvm/image.h"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/x86_64.h>

#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

namespace jitlink = llvm::jitlink;
namespace orc = llvm::orc;
namespace x86 = llvm::jitlink::x86_64;
LLVM_ENABLE_BITMASK_ENUMS_IN_NAMESPACE();

constexpr uint64_t image_alignment = 64;

llvm::Error refusal(const std::string &why) {
  return llvm::make_error<llvm::StringError>("an image cannot hold " + why, llvm::inconvertibleErrorCode());
}

bool is_pc_relative(jitlink::Edge::Kind kind) {
  switch (kind) {
    case x86::Delta64:
    case x86::Delta32:
    case x86::NegDelta64:
    case x86::NegDelta32:
    case x86::PCRel32:
    case x86::BranchPCRel32:
      return true;
    default:
      return false;
  }
}

// Runs after pruning, when only what the entry reaches is left, and before the default passes would hide undefined
// symbols behind stubs.
llvm::Error check(jitlink::LinkGraph &graph) {
  for (jitlink::Symbol *symbol : graph.external_symbols())
    return refusal("a reference to the undefined symbol '" + symbol->getName().str() + "'");
  for (jitlink::Section &section : graph.sections()) {
    const bool writable = (section.getMemProt() & orc::MemProt::Write) != orc::MemProt::None;
    for (jitlink::Block *block : section.blocks()) {
      if (writable) return refusal("writable data, section " + section.getName().str());
      for (const jitlink::Edge &edge : block->edges()) {
        if (!edge.isRelocation() || is_pc_relative(edge.getKind())) continue;
        return refusal(std::string("a relocation that is not PC-relative, ") + graph.getEdgeKindName(edge.getKind()) +
                       " in section " + section.getName().str());
      }
    }
  }
  return llvm::Error::success();
}

// Kernels do not unwind. Without this the frame section would keep what it mentions alive.
llvm::Error drop_eh_frame(jitlink::LinkGraph &graph) {
  jitlink::Section *section = graph.findSectionByName(".eh_frame");
  if (!section) return llvm::Error::success();
  for (jitlink::Symbol *symbol : std::vector<jitlink::Symbol *>(section->symbols().begin(), section->symbols().end()))
    graph.removeDefinedSymbol(*symbol);
  for (jitlink::Block *block : std::vector<jitlink::Block *>(section->blocks().begin(), section->blocks().end()))
    graph.removeBlock(*block);
  return llvm::Error::success();
}

class ImageChecks final : public orc::ObjectLinkingLayer::Plugin {
 public:
  void modifyPassConfig(orc::MaterializationResponsibility &, jitlink::LinkGraph &,
                        jitlink::PassConfiguration &passes) override {
    passes.PrePrunePasses.insert(passes.PrePrunePasses.begin(), drop_eh_frame);
    passes.PostPrunePasses.insert(passes.PostPrunePasses.begin(), check);
  }
  llvm::Error notifyFailed(orc::MaterializationResponsibility &) override { return llvm::Error::success(); }
  llvm::Error notifyRemovingResources(orc::JITDylib &, orc::ResourceKey) override { return llvm::Error::success(); }
  void notifyTransferringResources(orc::JITDylib &, orc::ResourceKey, orc::ResourceKey) override {}
};

// Nothing is left to do once the graph's fixups are applied: the working memory is the image.
class ImageAllocation final : public jitlink::JITLinkMemoryManager::InFlightAlloc {
 public:
  void abandon(OnAbandonedFunction on_abandoned) override { on_abandoned(llvm::Error::success()); }
  void finalize(OnFinalizedFunction on_finalized) override {
    on_finalized(jitlink::JITLinkMemoryManager::FinalizedAlloc(orc::ExecutorAddr(image_alignment)));
  }
};

}  // namespace

void ImageMemoryManager::allocate(const jitlink::JITLinkDylib *, jitlink::LinkGraph &graph,
                                  OnAllocatedFunction on_allocated) {
  jitlink::BasicLayout layout(graph);
  uint64_t size = 0;
  for (auto &[group, segment] : layout.segments()) {
    if (segment.Alignment.value() > image_alignment)
      return on_allocated(refusal("a section aligned to " + std::to_string(segment.Alignment.value()) + " bytes"));
    size = llvm::alignTo(size, image_alignment) + segment.ContentSize + segment.ZeroFillSize;
  }
  image_ = {Bytes(size, 0), 0};

  // Addresses matter only as distances; 0 would read as "no address".
  const orc::ExecutorAddr base(1 << 16);
  uint64_t offset = 0;
  for (auto &[group, segment] : layout.segments()) {
    offset = llvm::alignTo(offset, image_alignment);
    segment.Addr = base + offset;
    segment.WorkingMem = reinterpret_cast<char *>(image_.bytes.data() + offset);
    offset += segment.ContentSize + segment.ZeroFillSize;
  }
  if (llvm::Error failure = layout.apply()) return on_allocated(std::move(failure));
  for (jitlink::Symbol *symbol : graph.defined_symbols())
    if (symbol->hasName() && symbol->getName() == entry_name) image_.entry_offset = symbol->getAddress() - base;
  on_allocated(std::make_unique<ImageAllocation>());
}

void ImageMemoryManager::deallocate(std::vector<FinalizedAlloc> allocations, OnDeallocatedFunction on_deallocated) {
  for (FinalizedAlloc &allocation : allocations) allocation.release();
  on_deallocated(llvm::Error::success());
}

std::shared_ptr<orc::ObjectLinkingLayer::Plugin> make_image_checks() { return std::make_shared<ImageChecks>(); }

}  // namespace kiln::codegen
