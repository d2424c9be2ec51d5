#include "runtime/io/tensor_file.h"

#include <filesystem>

#include "jit/base/utf8.h"

namespace kiln {

namespace {

enum class Format : uint8_t { safetensors, npy };

Result<Format> format_of(const std::string &path) {
  if (path.ends_with(".safetensors")) return Format::safetensors;
  if (path.ends_with(".npy")) return Format::npy;
  return invalid(path, ": expected a name that ends in .safetensors or .npy");
}

// A name in a file may be of any length, and have any character.
Status damaged(const std::string &path, const Status &status) {
  return error(status.code(), path, ": ", printable(status.message()));
}

}  // namespace

Result<TensorFile> TensorFile::open(const std::string &path) {
  KILN_ASSIGN(const Format format, format_of(path));
  TensorFile opened;
  KILN_ASSIGN(opened.file_, MappedFile::open(path));
  opened.source_ = SharedSource(opened.file_, path);
  if (format == Format::safetensors) {
    Result<std::vector<StoredTensor>> tensors = parse_safetensors(opened.file_.bytes());
    if (!tensors.ok()) return damaged(path, tensors.status());
    opened.tensors_ = std::move(tensors).value();
  } else {
    Result<StoredTensor> tensor = parse_npy(opened.file_.bytes());
    if (!tensor.ok()) return damaged(path, tensor.status());
    tensor->name = std::filesystem::path(path).stem().string();
    opened.tensors_.push_back(std::move(tensor).value());
  }
  for (StoredTensor &tensor : opened.tensors_) {
    if (reinterpret_cast<uintptr_t>(tensor.bytes.data()) % size_of(tensor.dtype) == 0) continue;
    tensor.bytes = opened.moved_.emplace_back(tensor.bytes.begin(), tensor.bytes.end());
  }
  return opened;
}

Status write_tensor_file(const std::string &path, std::span<const StoredTensor> tensors) {
  KILN_ASSIGN(const Format format, format_of(path));
  if (format == Format::npy && tensors.size() != 1)
    return invalid(path, ": an npy file holds one tensor, not ", tensors.size());
  KILN_ASSIGN(const Bytes bytes, format == Format::npy ? write_npy(tensors.front()) : write_safetensors(tensors));
  return write_file(path, bytes);
}

}  // namespace kiln
