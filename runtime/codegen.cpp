#include "runtime/codegen.h"

#include <cstring>
#include <map>
#include <unordered_map>

#include "jit/base/build_id.h"
#include "jit/base/dynamic_library.h"
#include "runtime/cache/key.h"

namespace kiln {
namespace {

std::string_view view(const char *text, uint64_t size) { return text ? std::string_view(text, size) : ""; }

// Receives what a module delivers, on the compiling thread.
struct Delivery {
  const CodegenModule::Request &request;
  std::vector<CodegenModule::Output> outputs;
  std::map<uint64_t, std::shared_ptr<const Bytes>> codes;  // by the module's numbers of images
  size_t done = 0;
  Status status;  // the first error

  static void deliver(void *user, const kiln_codegen_result *result) { static_cast<Delivery *>(user)->take(*result); }
  static uint32_t cancelled(void *user) {
    auto &self = *static_cast<Delivery *>(user);
    if (!self.status.ok()) return 1;  // the others would be for nothing
    return self.request.cancelled && self.request.cancelled(self.done) ? 1 : 0;
  }
  void take(const kiln_codegen_result &result) {
    ++done;
    if (result.error) {
      if (!status.ok()) return;
      status = error(static_cast<Code>(result.error_code), "kernel ", result.kernel, ": ",
                     view(result.error, result.error_size));
      status.info()->report = view(result.error_report, result.error_report_size);
      return;
    }
    CodegenModule::Output &output = outputs[result.kernel];
    std::shared_ptr<const Bytes> &code = codes[result.image_number];
    if (!code) code = std::make_shared<const Bytes>(result.image, result.image + result.image_size);
    output.image.code = code;
    output.image.entry_offset = result.entry_offset;
    output.image.entry = view(result.entry, result.entry_size);
    if (result.use) output.image.use = *result.use;
    output.image.compiler = view(result.compiler, result.compiler_size);
    output.text = view(result.text, result.text_size);
  }
};

}  // namespace

CodegenModule::CodegenModule(std::string file_name) : path_(str_cat(directory_of_this_library(), "/", file_name)) {}

Result<const kiln_codegen_table *> CodegenModule::open() {
  std::lock_guard lock(mutex_);
  if (table_) return table_;
  KILN_ASSIGN(const DynamicLibrary library, DynamicLibrary::open(path_));
  KILN_ASSIGN(const auto entry, library.symbol<kiln_codegen_entry_fn>(KILN_CODEGEN_ENTRY));
  const kiln_codegen_table *table = entry();
  if (std::string_view(table->build_id) != build_id_text)
    return error(Code::incompatible, path_, " is of build ", table->build_id, "; expected ", build_id_text);
  return table_ = table;
}

Result<std::vector<CodegenModule::Output>> CodegenModule::compile(const Request &request) {
  KILN_ASSIGN(const kiln_codegen_table *table, open());
  std::vector<const uint8_t *> kernels;
  std::vector<uint64_t> sizes;
  for (ByteSpan kernel : request.kernels) {
    kernels.push_back(kernel.data());
    sizes.push_back(kernel.size());
  }
  const std::string target = request.target.name();
  Delivery delivery{.request = request, .outputs = std::vector<Output>(kernels.size()), .codes = {}, .status = {}};
  kiln_codegen_request c_request{};
  c_request.kernels = kernels.data();
  c_request.kernel_sizes = sizes.data();
  c_request.kernel_count = kernels.size();
  c_request.target = target.data();
  c_request.target_size = target.size();
  c_request.threads = request.threads;
  c_request.want = request.want;
  c_request.cancelled = Delivery::cancelled;
  c_request.user = &delivery;
  const bool cancelled = table->compile(&c_request, Delivery::deliver, &delivery) != 0;
  KILN_TRY(delivery.status);
  if (cancelled) return error(Code::cancelled, "cancelled after ", delivery.done, " of ", kernels.size(), " kernels");
  return std::move(delivery.outputs);
}

Result<const kiln_device_table *> CodegenModule::device_table() {
  KILN_ASSIGN(const kiln_codegen_table *table, open());
  if (table->device) return table->device;
  return error(Code::unimplemented, path_, " runs nothing on a device");
}

bool CodegenModule::in_memory() const { return DynamicLibrary::is_in_memory(path_); }

namespace {

// The distinct kernels, and which one each launch runs. `images` get their keys.
Kernels distinct_kernels(const KernelRequest &request) {
  Kernels kernels;
  std::unordered_map<const kernel::Kernel *, uint32_t> numbers;
  for (const kernel::Launch &launch : request.fused.launches) {
    auto [number, is_new] = numbers.try_emplace(launch.kernel.get(), static_cast<uint32_t>(kernels.bytes.size()));
    if (is_new) {
      kernels.bytes.push_back(kernel::serialize(*launch.kernel));
      kernels.images.emplace_back().kernel_key =
          kernel_key(kernels.bytes.back(), request.backend, request.target, request.build_id);
    }
    kernels.of_launch.push_back(number->second);
  }
  return kernels;
}

// Images that come from several records, or from the module and a record, may hold the same code.
void share_equal_code(std::vector<Image> &images) {
  const auto less = [](const Bytes *a, const Bytes *b) {
    return a->size() != b->size() ? a->size() < b->size() : std::memcmp(a->data(), b->data(), a->size()) < 0;
  };
  std::map<const Bytes *, std::shared_ptr<const Bytes>, decltype(less)> known(less);
  for (Image &image : images) image.code = known.try_emplace(image.code.get(), image.code).first->second;
}

}  // namespace

Result<Kernels> compile_kernels(const KernelRequest &request, CodegenModule *module) {
  Kernels kernels = distinct_kernels(request);
  if (!module) return kernels;
  if (request.want) kernels.texts.resize(kernels.bytes.size());
  CodegenModule::Request missing{
      .kernels = {}, .target = request.target, .threads = request.threads, .want = request.want, .cancelled = {}};
  for (uint32_t i = 0; i < kernels.bytes.size(); ++i) {
    std::optional<Image> found;
    if (request.cache && !request.want) found = request.cache->find_kernel(kernels.images[i].kernel_key);
    if (found) {
      kernels.images[i] = std::move(*found);
      ++kernels.from_cache;
    } else {
      missing.kernels.push_back(kernels.bytes[i]);
      kernels.fresh.push_back(i);
    }
  }
  if (kernels.fresh.empty()) {
    share_equal_code(kernels.images);
    return kernels;
  }

  missing.cancelled = [&](size_t done) {
    return request.progress && request.progress(str_cat("compiling kernels ", done, "/", kernels.fresh.size()));
  };
  KILN_ASSIGN(std::vector<CodegenModule::Output> outputs, module->compile(missing));
  for (size_t i = 0; i < outputs.size(); ++i) {
    Image &image = kernels.images[kernels.fresh[i]];
    outputs[i].image.kernel_key = image.kernel_key;
    image = std::move(outputs[i].image);
    if (request.want) kernels.texts[kernels.fresh[i]] = std::move(outputs[i].text);
  }
  share_equal_code(kernels.images);
  return kernels;
}

}  // namespace kiln
