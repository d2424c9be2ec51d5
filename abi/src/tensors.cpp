// Tensors in files.
#include <deque>

#include "abi/src/convert.h"
#include "abi/src/kept.h"
#include "runtime/io/tensor_file.h"

struct kiln_tensors : kiln::abi::Kept {
  kiln::abi::Magic<kiln::abi::word("kilnten1")> magic;
  kiln::TensorFile file;
  std::vector<DLTensor> views;  // one for each of the file's

  explicit kiln_tensors(kiln::TensorFile of) : file(std::move(of)) {
    for (const kiln::StoredTensor &tensor : file.tensors()) {
      DLTensor &view = views.emplace_back();
      // DLPack has no const: what is handed out is `const DLTensor *`, and the header says that it is for reading.
      view.data = const_cast<uint8_t *>(tensor.bytes.data());
      view.device = {kDLCPU, 0};
      view.ndim = static_cast<int32_t>(tensor.shape.size());
      view.dtype = kiln::abi::dlpack_type(tensor.dtype);
      view.shape = const_cast<int64_t *>(tensor.shape.data());
      view.strides = tensor.strides.empty() ? nullptr : const_cast<int64_t *>(tensor.strides.data());
    }
  }
};

using namespace kiln;
using namespace kiln::abi;

kiln_error *kiln_tensors_open(const char *path, uint64_t path_size, kiln_tensors **out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const std::string name, check.path(path, path_size, "path"));
    KILN_TRY(check.pointer(out, "out"));
    KILN_ASSIGN(TensorFile file, TensorFile::open(name));
    *out = new kiln_tensors(std::move(file));
    return {};
  });
}

uint64_t kiln_tensors_count(const kiln_tensors *tensors) {
  return tensors && tensors->magic.ok() ? tensors->views.size() : 0;
}

kiln_error *kiln_tensors_at(const kiln_tensors *tensors, uint64_t index, kiln_text *out_name, const DLTensor **out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(tensors, "tensors"));
    if (index >= tensors->views.size())
      return error(Code::out_of_range, "tensor ", index, " of ", tensors->views.size());
    if (out_name) *out_name = text_view(tensors->file.tensors()[index].name);
    if (out) *out = &tensors->views[index];
    return {};
  });
}

kiln_error *kiln_tensors_find(const kiln_tensors *tensors, const char *name, uint64_t name_size, const DLTensor **out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(tensors, "tensors"));
    KILN_ASSIGN(const std::string_view wanted, check.text(name, name_size, "name"));
    KILN_TRY(check.pointer(out, "out"));
    const std::span<const StoredTensor> stored = tensors->file.tensors();
    for (size_t i = 0; i < stored.size(); i++) {
      if (stored[i].name != wanted) continue;
      *out = &tensors->views[i];
      return {};
    }
    return error(Code::unknown_name, "no tensor is named '", wanted, "' among the ", stored.size(), " of the file");
  });
}

kiln_error *kiln_tensors_write(const char *path, uint64_t path_size, const kiln_text *names,
                               const DLTensor *const *tensors, uint64_t count) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const std::string file, check.path(path, path_size, "path"));
    KILN_ASSIGN(const std::span<const DLTensor *const> given, check.array(tensors, count, "tensors"));
    std::vector<StoredTensor> stored;
    std::deque<TensorData> copies;  // dense, whatever the strides
    for (size_t i = 0; i < given.size(); i++) {
      KILN_TRY(check.pointer(given[i], "a tensor"));
      StoredTensor &tensor = stored.emplace_back();
      if (names) {
        KILN_ASSIGN(tensor.name, check.text(names[i], "a tensor's name"));
      }
      KILN_ASSIGN(TensorData data, copy_tensor(*given[i], str_cat("tensor '", tensor.name, "'")));
      const TensorData &copy = copies.emplace_back(std::move(data));
      tensor.dtype = copy.dtype;
      tensor.shape = copy.shape;
      tensor.bytes = copy.bytes;
    }
    return write_tensor_file(file, stored);
  });
}

void kiln_tensors_destroy(kiln_tensors *tensors) {
  if (tensors && tensors->magic.ok()) delete tensors;
}
