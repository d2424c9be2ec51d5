// Arrays of other libraries, borrowed for a call without a copy, and results handed over to them.
#pragma once
#include "support.h"

namespace kiln_python {
/// Where a result goes: a library, found by the type of its arrays. There is one object of each, which lives as long as
/// the process.
struct Library {
  enum class Kind { kNumpy, kExchange, kFromDlpack, kArray };
  Kind kind = Kind::kArray;
  const DLPackExchangeAPI *exchange = nullptr;  // of kExchange
  PyObject *from_dlpack = nullptr;              // of kFromDlpack
  bool is_torch = false;
};

/// NumPy's, a library's that has exchange functions, ...: the library of a type of arrays.
const Library &library_of(nb::handle type);
/// "numpy", "torch", "dlpack" (kiln.Array), or a module that has from_dlpack.
const Library &library_by_name(nb::handle name);

/// Of results where no input tells it: NumPy's, where it can be imported.
const Library &default_library();

/// Whether torch records gradients, forward or backward: asked once, and only where a tensor makes it matter.
class GradMode {
 public:
  bool is_enabled();
  /// Whether tensors may have tangents: inside of torch.autograd.forward_ad.dual_level().
  bool may_be_dual();

 private:
  bool known_ = false, enabled_ = false;
  bool level_known_ = false, in_level_ = false;
};

/// Has a tensor of torch's count that it is written.
void increment_version(PyObject *tensor);

/// An array of another library's as a DLTensor. Reused from call to call, since that is cheaper than to make it anew.
class Argument {
 public:
  Argument() = default;
  ~Argument() { release(); }
  Argument(const Argument &) = delete;
  Argument &operator=(const Argument &) = delete;

  /// Lends the memory of `object`, which must live until release. `name` is for messages. A Python number is an array
  /// of `dtype` without dims (0: it is refused). `mode` is shared by arrays that are borrowed together.
  void borrow(PyObject *object, kiln_dtype dtype, const std::string &name, GradMode &mode);
  void release() noexcept {
    if (lent_) give_back();
    packed_.clear();
  }
  /// For a slot that is row-major: if the array is not, or not aligned, memory of our own takes its place, with its
  /// elements (of an input) or for them (of an output, until unpack). Of the host's memory alone.
  void pack(bool with_elements);
  /// What a run wrote into that memory goes where it belongs.
  void unpack();
  bool packed() const { return !packed_.empty(); }
  /// Of an output that was packed: raises where two of its elements are one in memory, by the rule of kiln.h's outputs
  /// of any strides.
  void require_apart(const std::string &name, PyObject *object) const;
  /// As it was borrowed, also where it was packed.
  const DLTensor &borrowed() const { return packed() ? original_ : tensor_; }
  /// Raises unless what was borrowed may be written.
  void require_writable(const std::string &name) const;

  const DLTensor &tensor() const { return tensor_; }
  bool read_only() const { return read_only_; }
  /// Null for a Python number.
  const Library *library() const { return library_; }

 private:
  void borrow_dlpack(PyObject *object, const std::string &name);
  void borrow_number(PyObject *object, kiln_dtype dtype, const std::string &name);
  bool borrow_numpy(PyObject *object, const std::string &name);
  void give_back() noexcept;

  DLTensor tensor_{};
  const Library *library_ = nullptr;
  PyObject *lent_ = nullptr;  // a capsule of DLPack's, or an array that we made
  bool read_only_ = false;
  int64_t number_ = 0;
  std::vector<int64_t> strides_;
  DLTensor original_{};  // of what was packed
  std::vector<char> packed_;
};

/// One that owns the object: of attributes and bound slots.
class BorrowedArray {
 public:
  explicit BorrowedArray(nb::handle object, kiln_dtype dtype = 0, const std::string &name = "an array")
      : object_(nb::borrow(object)) {
    GradMode mode;
    argument_.borrow(object.ptr(), dtype, name, mode);
  }
  const DLTensor &tensor() const { return argument_.tensor(); }
  const Argument &argument() const { return argument_; }
  void pack() { argument_.pack(true); }
  const nb::object &object() const { return object_; }

 private:
  nb::object object_;  // outlives the argument
  Argument argument_;
};

using ManagedTensor = std::unique_ptr<DLManagedTensorVersioned, void (*)(DLManagedTensorVersioned *)>;
ManagedTensor managed(DLManagedTensorVersioned *tensor);

/// Memory of Kiln's as an array of the library's. No copy.
nb::object hand_over(ManagedTensor tensor, const Library &library);
/// A copy of a row-major one, as a NumPy array where NumPy is there, else a kiln.Array; read-only.
nb::object copy_of(const DLTensor &tensor);
/// What `owner` keeps alive, as a tensor that can be handed over.
ManagedTensor viewed(const DLTensor &tensor, nb::handle owner, uint64_t flags);
/// A view of what `owner` keeps alive, as a NumPy array or a kiln.Array, read-only.
nb::object view_of(const DLTensor &tensor, nb::handle owner);
/// A callback's row-major arrays, operands and then results, as copies: whatever holds one after the callback (a
/// global, a view, the frames of an exception) holds memory of its own.
class CallbackArrays {
 public:
  CallbackArrays(const DLTensor *const *arrays, uint64_t count, uint64_t results);
  const nb::list &list() const { return list_; }
  /// What was written into the results goes where the callback was to write it.
  void give_back() const;

 private:
  const DLTensor *const *arrays_;
  nb::list list_;
  std::vector<nb::bytes> results_;  // the memory of the last arrays
  uint64_t first_;                  // of them
};
}  // namespace kiln_python
