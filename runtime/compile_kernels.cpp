#include <map>
#include <unordered_map>

#include "jit/base/cores.h"
#include "runtime/cache/key.h"
#include "runtime/compile_steps.h"

namespace kiln {
namespace {

// Calls visit(launch, program) for each launch, in order.
template <class Visit>
void for_each_launch(const LoweredGraphs &graphs, Visit visit) {
  for (const LoweredGraph &graph : graphs.graphs)
    for (const LoweredRegion &region : graph.regions)
      for (const kernel::Launch &launch : region.fused.launches) visit(launch, region);
}

// Part of the kernels' keys: one artifact holds the code of one compiler. Where that is not there, compiling tells it.
Result<std::string> outside_compiler(const Work &work) {
  if (!work.options.code || !work.backend().compiles_outside) return std::string();
  return work.env.modules->of(work.backend()).compiler();
}

// The distinct kernels, and which one each launch runs. Their images get their keys, and no code yet.
Kernels distinct_kernels(const Work &work, const LoweredGraphs &graphs, const Target &target,
                         std::string_view compiler) {
  Kernels kernels;
  std::map<Digest, uint32_t> by_key;  // regions are fused apart: equal kernels of two are two objects
  std::unordered_map<const kernel::Kernel *, uint32_t> numbers;
  for_each_launch(graphs, [&](const kernel::Launch &launch, const LoweredRegion &) {
    auto [number, is_new] = numbers.try_emplace(launch.kernel.get(), static_cast<uint32_t>(kernels.bytes.size()));
    if (is_new) {
      Bytes bytes = kernel::serialize(*launch.kernel);
      const Digest key = kernel_key(bytes, work.backend().name, target, build_id(), compiler);
      const auto [known, is_distinct] = by_key.try_emplace(key, number->second);
      number->second = known->second;
      if (is_distinct) {
        kernels.images.emplace_back().kernel_key = key;
        kernels.bytes.push_back(std::move(bytes));
      }
    }
    kernels.of_launch.push_back(number->second);
  });
  return kernels;
}

// Takes what the cache has, and numbers the others as fresh. Texts come from the compiler alone: the cache is not
// asked.
void find_kernels(const Work &work, Kernels &kernels) {
  Cache *cache = work.wanted_texts() ? nullptr : work.cache();
  for (uint32_t i = 0; i < kernels.images.size(); ++i) {
    if (std::optional<Image> found = cache ? cache->find_kernel(kernels.images[i].kernel_key) : std::nullopt) {
      kernels.images[i] = std::move(*found);
    } else {
      kernels.fresh.push_back(i);
    }
  }
}

Status compile_fresh(const Work &work, const Target &target, Kernels &kernels) {
  if (kernels.fresh.empty()) return {};  // then the module is not even opened
  const CompileEnvironment &env = work.env;
  const uint32_t threads = work.options.compile_threads;
  CodegenModule::Request request{
      .kernels = {},
      .target = target,
      .threads = threads ? threads : usable_cores(),
      .want = work.wanted_texts(),
      .cancelled =
          [&](size_t done) {
            return env.progress && env.progress(str_cat("compiling kernels ", done, "/", kernels.fresh.size()));
          },
  };
  for (uint32_t i : kernels.fresh) request.kernels.push_back(kernels.bytes[i]);
  KILN_ASSIGN(std::vector<CodegenModule::Output> outputs, env.modules->of(work.backend()).compile(request));
  if (request.want) kernels.texts.resize(kernels.images.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    Image &image = kernels.images[kernels.fresh[i]];
    outputs[i].image.kernel_key = image.kernel_key;
    image = std::move(outputs[i].image);
    if (request.want) kernels.texts[kernels.fresh[i]] = std::move(outputs[i].text);
  }
  return {};
}

// A module takes what it cannot read for damage. Of bytes that were made here it is a bug of ours, in what these nodes
// became.
Status explained(Status status, const LoweredGraphs &graphs, const Kernels &kernels) {
  if (status.code() != Code::corrupt) return status;
  size_t i = 0;
  for_each_launch(graphs, [&](const kernel::Launch &launch, const LoweredRegion &region) {
    if (status.code() != Code::corrupt || kernel::parse(kernels.bytes[kernels.of_launch[i++]]).ok()) return;
    status =
        error(Code::internal, "kernel made from ",
              kernel::nodes_of(launch, region.fused.tensors, region.lowered.program), ": its bytes do not read back");
  });
  return status;
}

}  // namespace

void share_equal_code(std::vector<Image> &images) {
  const auto less = [](const Bytes *a, const Bytes *b) {
    return a->size() != b->size() ? a->size() < b->size() : *a < *b;
  };
  std::map<const Bytes *, std::shared_ptr<const Bytes>, decltype(less)> known(less);
  for (Image &image : images) image.code = known.try_emplace(image.code.get(), image.code).first->second;
}

Result<Kernels> compile_kernels(Work &work, const LoweredGraphs &graphs, const Target &target) {
  KILN_TRY(work.phases.begin("kernels"));
  KILN_ASSIGN(const std::string compiler, outside_compiler(work));
  Kernels kernels = distinct_kernels(work, graphs, target, compiler);
  if (!work.options.code) return kernels;
  find_kernels(work, kernels);
  if (Status status = compile_fresh(work, target, kernels); !status.ok())
    return explained(std::move(status), graphs, kernels);
  share_equal_code(kernels.images);
  work.report.kernels_compiled = static_cast<uint32_t>(kernels.fresh.size());
  work.report.kernels_from_cache = static_cast<uint32_t>(kernels.images.size() - kernels.fresh.size());
  return kernels;
}

}  // namespace kiln
