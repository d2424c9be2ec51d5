#include "jit/cuda/program.h"

#include <algorithm>
#include <map>

#include "jit/base/hash.h"
#include "jit/cuda/nvrtc.h"
#include "jit/cuda/source.h"
#include "jit/kernel/kernel.h"

namespace kiln::cuda {
namespace {

Status emit(ByteSpan bytes, Entry &entry) {
  KILN_ASSIGN(const kernel::Kernel kernel, kernel::parse(bytes));
  KILN_ASSIGN(entry.source, emit_source(kernel, entry.name));
  entry.use.group_threads = block_threads;
  entry.use.whole_group = mapping_of(kernel) == Mapping::block;
  return {};
}

}  // namespace

Entries emit_entries(std::span<const ByteSpan> kernels) {
  Entries entries;
  std::map<std::string, size_t> numbers;  // by name
  for (ByteSpan bytes : kernels) {
    const std::string name = "kiln_" + digest_of(bytes).hex().substr(0, 16);
    const auto [number, is_new] = numbers.try_emplace(name, entries.distinct.size());
    entries.of_kernel.push_back(number->second);
    if (!is_new) continue;
    Entry &entry = entries.distinct.emplace_back();
    entry.name = name;
    entry.status = emit(bytes, entry);
  }
  return entries;
}

Program compile_program(std::span<Entry> entries, std::string_view arch) {
  Program program;
  Result<Nvrtc> nvrtc = Nvrtc::open();
  if (!nvrtc.ok()) {
    program.status = nvrtc.take_status();
    return program;
  }
  std::string source(prelude());
  for (const Entry &entry : entries) source += entry.source;
  Result<Cubin> cubin = nvrtc->compile(source, arch);
  if (!cubin.ok()) {
    program.status = cubin.take_status();
    return program;
  }
  for (const EntryUse &use : cubin->entries) {
    const auto entry = std::ranges::find(entries, use.name, &Entry::name);
    if (entry == entries.end()) continue;
    entry->use.registers = use.registers;
    entry->use.shared_bytes = use.shared_bytes;
    entry->use.spill_bytes = use.spill_store_bytes;
  }
  program.code = std::move(cubin->code);
  program.compiler = nvrtc->name();
  return program;
}

}  // namespace kiln::cuda
