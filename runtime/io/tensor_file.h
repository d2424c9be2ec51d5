// Tensors in files: safetensors (many, named) and npy (one). Read through a map of the file, written whole or not at
// all. Errors: io; corrupt, which names the tensor and what is wrong with it.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jit/base/bytes.h"
#include "jit/base/dtype.h"
#include "jit/base/file.h"
#include "jit/base/status.h"
#include "runtime/io/file_source.h"

namespace kiln {

struct StoredTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements; empty: row-major (an npy file may be in Fortran's order)
  ByteSpan bytes;                // a view
};

// Any bytes. What they return views them.
Result<std::vector<StoredTensor>> parse_safetensors(ByteSpan file);
Result<StoredTensor> parse_npy(ByteSpan file);
// Row-major tensors. Errors: invalid_argument, for two of one name or a dtype that the format lacks (npy has no bf16
// and no f8).
Result<Bytes> write_safetensors(std::span<const StoredTensor> tensors);
Result<Bytes> write_npy(const StoredTensor &tensor);

// A file by its name's ending: ".safetensors", ".npy" (its tensor is named as the file, without folder and ending).
// Immutable; any thread.
class TensorFile {
 public:
  static Result<TensorFile> open(const std::string &path);
  std::span<const StoredTensor> tensors() const { return tensors_; }  // in the file's order; aligned to their elements

 private:
  MappedFile file_;
  SharedSource source_;  // after file_: it goes first
  std::vector<StoredTensor> tensors_;
  std::vector<Bytes> moved_;  // of tensors that are not aligned in the file
};
Status write_tensor_file(const std::string &path, std::span<const StoredTensor> tensors);

}  // namespace kiln
