#include "jit/cuda/driver.h"

#include "jit/base/dynamic_library.h"
#include "jit/base/env.h"

namespace kiln::cuda {
namespace {

template <class F>
Status find(const DynamicLibrary &library, const char *name, bool optional, F &function) {
  Result<F> symbol = library.symbol<F>(name);
  if (symbol.ok()) function = *symbol;
  if (symbol.ok() || optional) return {};
  return error(Code::no_device, "[cuda] ", symbol.status().message());
}

Code code_of(int result) {
  switch (result) {
    case number::out_of_memory:
      return Code::out_of_memory;
    case number::stub_library:
    case number::no_device:
    case number::invalid_device:
    case number::driver_mismatch:
    case number::compatibility_not_supported:
      return Code::no_device;
    case number::invalid_handle:  // a stream of the host's: all others are Kiln's own
      return Code::invalid_argument;
    case number::invalid_image:
    case number::no_binary_for_device:
      return Code::incompatible;
    default:
      return Code::internal;
  }
}

}  // namespace

Result<std::shared_ptr<const Driver>> Driver::open() {
  const std::string path = env_text(Env::KILN_LIBCUDA).value_or("libcuda.so.1");
  Result<DynamicLibrary> library = DynamicLibrary::open(path);
  if (library.status().code() == Code::out_of_memory) return library.take_status();
  if (!library.ok())
    return error(Code::no_device, "[cuda] no NVIDIA driver here: ", library.status().message(),
                 "; KILN_LIBCUDA can name the file");
  auto driver = std::make_shared<Driver>();
#define FUNCTION(name, symbol, parameters) KILN_TRY(find(*library, #symbol, false, driver->name));
#define OPTIONAL(name, symbol, parameters) KILN_TRY(find(*library, #symbol, true, driver->name));
#include "jit/cuda/driver.def"
#undef FUNCTION
#undef OPTIONAL
  KILN_TRY(driver->check(driver->init(0), "cuInit"));
  return std::shared_ptr<const Driver>(std::move(driver));
}

Status Driver::check(int result, std::string_view what) const {
  if (result == 0) return {};
  const char *name = nullptr, *text = nullptr;  // stay null for a number that the driver does not know
  (void)error_name(result, &name);
  (void)error_string(result, &text);
  return error(code_of(result), "[cuda] ", what, ": ", name ? name : str_cat("error ", result), ": ",
               text ? text : "unknown");
}

}  // namespace kiln::cuda
