// Results handed over to other libraries, and kiln.Array, which is of none.
#include <algorithm>
#include <cstring>

#include "arrays.h"
#include "dtypes.h"
#include "numpy.h"

namespace kiln_python {
namespace {
constexpr char kVersioned[] = "dltensor_versioned", kPlain[] = "dltensor";

// Owns a tensor that nobody took: the base of NumPy arrays, and what is handed to from_dlpack.
nb::object capsule_of(ManagedTensor tensor) {
  nb::object capsule = nb::steal(PyCapsule_New(tensor.get(), kVersioned, [](PyObject *self) {
    if (!PyCapsule_IsValid(self, kVersioned)) return;  // it was taken, and renamed
    auto *owned = static_cast<DLManagedTensorVersioned *>(PyCapsule_GetPointer(self, kVersioned));
    if (owned->deleter) owned->deleter(owned);
  }));
  if (!capsule.is_valid()) throw nb::python_error();
  (void)tensor.release();
  return capsule;
}

// An array that belongs to no library, for any to take by DLPack.
struct Array {
  explicit Array(ManagedTensor owned) : tensor(std::move(owned)) {}
  std::shared_ptr<DLManagedTensorVersioned> tensor;  // shared with what __dlpack__ lent
  const DLTensor &dl() const { return tensor->dl_tensor; }
};

// What __dlpack__ lends: the same memory, which keeps the array's owner alive.
struct Lent {
  std::shared_ptr<DLManagedTensorVersioned> owner;
  DLManagedTensorVersioned versioned{};
  DLManagedTensor plain{};
};

nb::object lend(const Array &array, bool versioned) {
  auto lent = std::make_unique<Lent>();
  lent->owner = array.tensor;
  if (versioned) {
    lent->versioned = {{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                       lent.get(),
                       [](DLManagedTensorVersioned *self) { delete static_cast<Lent *>(self->manager_ctx); },
                       array.tensor->flags,
                       array.dl()};
    DLManagedTensorVersioned *tensor = &lent.release()->versioned;
    return capsule_of(managed(tensor));
  }
  lent->plain = {array.dl(), lent.get(), [](DLManagedTensor *self) { delete static_cast<Lent *>(self->manager_ctx); }};
  nb::object capsule = nb::steal(PyCapsule_New(&lent->plain, kPlain, [](PyObject *self) {
    if (!PyCapsule_IsValid(self, kPlain)) return;
    auto *owned = static_cast<DLManagedTensor *>(PyCapsule_GetPointer(self, kPlain));
    owned->deleter(owned);
  }));
  if (!capsule.is_valid()) throw nb::python_error();
  (void)lent.release();
  return capsule;
}

nb::tuple numbers(const int64_t *values, int count) {
  nb::list all;
  for (int i = 0; i < count; ++i) all.append(values[i]);
  return nb::tuple(all);
}

char *begin_of(const DLTensor &tensor) { return static_cast<char *>(tensor.data) + tensor.byte_offset; }

size_t bytes_of(const DLTensor &tensor) {
  size_t bytes = tensor.dtype.bits / 8;
  for (int i = 0; i < tensor.ndim; ++i) bytes *= static_cast<size_t>(tensor.shape[i]);
  return bytes;
}

// A tensor that `owner` keeps alive, as one that can be handed over.
struct Viewed {
  DLManagedTensorVersioned tensor{};
  PyObject *owner = nullptr;
  std::vector<int64_t> shape, strides;
};
}  // namespace

ManagedTensor viewed(const DLTensor &tensor, nb::handle owner, uint64_t flags) {
  auto view = std::make_unique<Viewed>();
  view->owner = owner.inc_ref().ptr();
  view->shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  if (tensor.strides) view->strides.assign(tensor.strides, tensor.strides + tensor.ndim);
  DLTensor dl = tensor;
  dl.shape = view->shape.data();
  dl.strides = tensor.strides ? view->strides.data() : nullptr;
  view->tensor = {{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                  view.get(),
                  [](DLManagedTensorVersioned *self) {
                    auto *mine = static_cast<Viewed *>(self->manager_ctx);
                    nb::gil_scoped_acquire locked;
                    Py_DECREF(mine->owner);
                    delete mine;
                  },
                  flags,
                  dl};
  return managed(&view.release()->tensor);
}
nb::object hand_over(ManagedTensor tensor, const Library &library) {
  switch (library.kind) {
    case Library::Kind::kNumpy: {
      const DLTensor dl = tensor->dl_tensor;
      const bool writable = !(tensor->flags & DLPACK_FLAG_BITMASK_READ_ONLY);
      return numpy::make(dl, capsule_of(std::move(tensor)).release().ptr(), writable);
    }
    case Library::Kind::kExchange: {
      void *object = nullptr;
      if (library.exchange->managed_tensor_to_py_object_no_sync(tensor.get(), &object)) throw nb::python_error();
      (void)tensor.release();
      return nb::steal(static_cast<PyObject *>(object));
    }
    case Library::Kind::kFromDlpack:
      return nb::handle(library.from_dlpack)(nb::cast(std::make_unique<Array>(std::move(tensor))));
    default:
      return nb::cast(std::make_unique<Array>(std::move(tensor)));
  }
}

nb::object view_of(const DLTensor &tensor, nb::handle owner) {
  const DType *type = dtype_of(tensor.dtype);
  const bool numpy_has =
      type && type->number != KILN_BF16 && type->number != KILN_F8_E4M3FN && type->number != KILN_F8_E5M2;
  nb::object array = nb::cast(std::make_unique<Array>(viewed(tensor, owner, DLPACK_FLAG_BITMASK_READ_ONLY)));
  return package("kiln._arrays").attr("view")(array, numpy_has);
}

nb::object copy_of(const DLTensor &tensor) {
  nb::bytes owner(begin_of(tensor), bytes_of(tensor));  // what Kiln keeps is row-major
  DLTensor copy = tensor;
  copy.data = const_cast<char *>(owner.c_str());
  copy.byte_offset = 0;
  return view_of(copy, owner);
}

CallbackArrays::CallbackArrays(const DLTensor *const *arrays, uint64_t count, uint64_t results)
    : arrays_(arrays), first_(count - std::min(count, results)) {
  for (uint64_t i = 0; i < count; ++i) {
    DLTensor tensor = *arrays[i];
    auto memory = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(bytes_of(tensor))));
    if (!memory.is_valid()) throw nb::python_error();
    if (i < first_) std::memcpy(PyBytes_AS_STRING(memory.ptr()), begin_of(tensor), memory.size());
    tensor.data = PyBytes_AS_STRING(memory.ptr());
    tensor.byte_offset = 0;
    list_.append(
        package("kiln._arrays").attr("view")(nb::cast(std::make_unique<Array>(viewed(tensor, memory, 0))), true));
    if (i >= first_) results_.push_back(std::move(memory));
  }
}

void CallbackArrays::give_back() const {
  for (size_t i = 0; i < results_.size(); ++i)
    std::memcpy(begin_of(*arrays_[first_ + i]), results_[i].c_str(), results_[i].size());
}

nb::object numpy_view(const Array &self, nb::handle owner) {
  return numpy::make(self.dl(), owner.inc_ref().ptr(), !(self.tensor->flags & DLPACK_FLAG_BITMASK_READ_ONLY));
}

void add_arrays(nb::module_ &module) {
  nb::class_<Array>(
      module, "Array", nb::is_final(),
      "An array of Kiln's memory that belongs to no library; any takes it by from_dlpack, without a copy.")
      .def_prop_ro(
          "shape", [](const Array &self) { return numbers(self.dl().shape, self.dl().ndim); }, "Sizes.")
      .def_prop_ro(
          "strides",
          [](const Array &self) {
            return self.dl().strides ? nb::object(numbers(self.dl().strides, self.dl().ndim)) : nb::object(nb::none());
          },
          "In elements; None: row-major.")
      .def_prop_ro(
          "dtype", [](const Array &self) { return dtype_object(dtype_of(self.dl().dtype)->number); }, "Element type.")
      .def(
          "__dlpack__",
          [](const Array &self, nb::handle, nb::handle max_version, nb::handle, nb::handle) {
            return lend(self, !max_version.is_none() && nb::cast<int>(max_version[0]) >= DLPACK_MAJOR_VERSION);
          },
          nb::kw_only(), nb::arg("stream").none() = nb::none(), nb::arg("max_version").none() = nb::none(),
          nb::arg("dl_device").none() = nb::none(), nb::arg("copy").none() = nb::none(), "For from_dlpack.")
      .def(
          "__dlpack_device__",
          [](const Array &self) {
            return nb::make_tuple(static_cast<int>(self.dl().device.device_type), self.dl().device.device_id);
          },
          "For from_dlpack.")
      .def(
          "numpy", [](nb::handle self) { return numpy_view(*nb::inst_ptr<Array>(self), self); },
          "The same memory as a NumPy array.")
      .def("__repr__", [](const Array &self) {
        return "kiln.Array(shape=" + nb::cast<std::string>(nb::repr(numbers(self.dl().shape, self.dl().ndim))) +
               ", dtype=" + dtype_of(self.dl().dtype)->name + ")";
      });
}
}  // namespace kiln_python
