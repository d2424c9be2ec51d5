#include "runtime/codegen_module.h"

#include <exception>
#include <map>

#include "jit/base/build_id.h"
#include "jit/base/dynamic_library.h"

namespace kiln {
namespace {

std::string_view view(const char *text, uint64_t size) { return text ? std::string_view(text, size) : ""; }

// Receives what a module delivers, on the compiling thread.
struct Delivery {
  const CodegenModule::Request &request;
  std::vector<CodegenModule::Output> outputs;
  std::map<uint64_t, std::shared_ptr<const Bytes>> codes;  // by the module's numbers of images
  size_t done = 0;
  Status status;              // the first error
  std::exception_ptr thrown;  // what no frame of the module's may see: it has a C++ library of its own

  static void deliver(void *user, const kiln_codegen_result *result) {
    auto &self = *static_cast<Delivery *>(user);
    try {
      if (!self.thrown) self.take(*result);
    } catch (...) {
      self.thrown = std::current_exception();
    }
  }
  static uint32_t cancelled(void *user) {
    auto &self = *static_cast<Delivery *>(user);
    if (self.thrown || !self.status.ok()) return 1;  // the others would be for nothing
    try {
      return self.request.cancelled && self.request.cancelled(self.done) ? 1 : 0;
    } catch (...) {
      self.thrown = std::current_exception();
      return 1;
    }
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

CodegenModule::CodegenModule(std::string_view file_name)
    : path_(str_cat(directory_of_this_library(), "/", file_name)) {}

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
  Delivery delivery{
      .request = request, .outputs = std::vector<Output>(kernels.size()), .codes = {}, .status = {}, .thrown = {}};
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
  if (delivery.thrown) std::rethrow_exception(delivery.thrown);
  KILN_TRY(delivery.status);
  if (cancelled) return error(Code::cancelled, "cancelled after ", delivery.done, " of ", kernels.size(), " kernels");
  return std::move(delivery.outputs);
}

Result<const kiln_device_table *> CodegenModule::device_table() {
  KILN_ASSIGN(const kiln_codegen_table *table, open());
  if (table->device) return table->device;
  return error(Code::unimplemented, path_, " runs nothing on a device");
}

Result<std::string> CodegenModule::compiler() {
  KILN_ASSIGN(const kiln_codegen_table *table, open());
  char name[64] = "";
  if (table->compiler) (void)table->compiler(name, sizeof name);
  return std::string(name);
}

bool CodegenModule::in_memory() const { return DynamicLibrary::find(path_).has_value(); }

}  // namespace kiln
