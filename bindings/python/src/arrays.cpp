#include "arrays.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <unordered_map>

#include "dtypes.h"
#include "numpy.h"
#include "overlap.h"

namespace kiln_python {
namespace {
// What is known of a type of arrays, asked once.
struct TypeInfo {
  enum class Way { kNumpy, kExchange, kDlpack, kInterface, kNumber, kRefused };
  Way way = Way::kRefused;
  const Library *library = nullptr;
  const DLPackExchangeAPI *exchange = nullptr;
  bool is_torch = false;
  bool immutable = false;  // JAX's, whatever their DLPack says
  std::string why;         // of kRefused
};

const Library kNumpy{Library::Kind::kNumpy, nullptr, nullptr, false};
const Library kArray{};

// A library that lives as long as the process.
const Library *keep(Library library) {
  static std::deque<Library> all;
  for (const Library &each : all)
    if (each.kind == library.kind && each.exchange == library.exchange && each.from_dlpack == library.from_dlpack)
      return &each;
  all.push_back(library);
  return &all.back();
}

const DLPackExchangeAPI *exchange_of(nb::handle type) {
  if (!nb::hasattr(type, "__dlpack_c_exchange_api__")) return nullptr;
  nb::object capsule = type.attr("__dlpack_c_exchange_api__");
  auto *exchange = static_cast<const DLPackExchangeAPI *>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (!exchange) throw nb::python_error();
  return exchange->header.version.major == DLPACK_MAJOR_VERSION ? exchange : nullptr;
}

TypeInfo inspect(PyTypeObject *type) {
  TypeInfo info;
  nb::handle object(reinterpret_cast<PyObject *>(type));
  if (type == &PyFloat_Type || type == &PyLong_Type || type == &PyBool_Type) {
    info.way = TypeInfo::Way::kNumber;
  } else if (numpy::is_array(type)) {
    info.way = std::string_view(type->tp_name) == "MaskedArray" ? TypeInfo::Way::kRefused : TypeInfo::Way::kNumpy;
    info.why = "a masked array; give its data or fill it";
    info.library = &kNumpy;
  } else {
    // What Python knows better: whether it is torch's and which of torch's types hold memory, and whose from_dlpack to
    // use.
    nb::object told = package("kiln._arrays").attr("inspect")(object);
    info.is_torch = nb::cast<bool>(told[0]);
    info.why = nb::cast<std::string>(told[1]);
    info.immutable = nb::cast<bool>(told[3]);
    info.exchange = exchange_of(object);
    const bool dlpack = nb::hasattr(object, "__dlpack__");
    if (!info.why.empty())
      info.way = TypeInfo::Way::kRefused;
    else if (info.exchange && info.exchange->dltensor_from_py_object_no_sync)
      info.way = TypeInfo::Way::kExchange;
    else if (dlpack)
      info.way = TypeInfo::Way::kDlpack;
    else if (nb::hasattr(object, "__array_interface__") || nb::hasattr(object, "__array__"))
      info.way = TypeInfo::Way::kInterface;
    else
      info.why = "no array, nor does it have __dlpack__";
    nb::object from_dlpack = told[2];
    if (info.exchange)
      info.library = keep({Library::Kind::kExchange, info.exchange, nullptr, info.is_torch});
    else if (!from_dlpack.is_none())
      info.library = keep({Library::Kind::kFromDlpack, nullptr, from_dlpack.release().ptr(), info.is_torch});
    else
      info.library = info.way == TypeInfo::Way::kDlpack ? &kArray : &kNumpy;
  }
  return info;
}

const TypeInfo &info_of(PyTypeObject *type) {
  static std::unordered_map<PyTypeObject *, TypeInfo> known;
  static PyTypeObject *last_type = nullptr;  // most calls have arrays of one type
  static const TypeInfo *last = nullptr;
  if (type == last_type) return *last;
  auto found = known.find(type);
  if (found == known.end()) {
    TypeInfo info = inspect(type);
    Py_INCREF(type);  // its address stands for it
    found = known.emplace(type, std::move(info)).first;
  }
  last_type = type;
  last = &found->second;
  return *last;
}

[[noreturn]] void refuse(const std::string &name, PyObject *object, const std::string &why) {
  raise(KILN_TYPE_MISMATCH, "'" + name + "' is a " + Py_TYPE(object)->tp_name + ": " + why);
}

[[noreturn]] void overflow(const std::string &name, PyObject *object, const std::string &why) {
  const nb::object type = package("kiln._errors").attr("Overflow");
  const nb::object text = nb::str("'{}' is {}: {}").format(name, nb::handle(object), why);
  PyErr_SetObject(type.ptr(), text.ptr());
  throw nb::python_error();
}

PyObject *interned(const char *name) { return PyUnicode_InternFromString(name); }

// What reads `requires_grad` of a tensor: torch's own function, without looking the name up again.
const PyGetSetDef *requires_grad_of(nb::handle tensor_type) {
  nb::object found = tensor_type.attr("requires_grad");
  if (Py_TYPE(found.ptr()) != &PyGetSetDescr_Type) return nullptr;
  return reinterpret_cast<PyGetSetDescrObject *>(found.ptr())->d_getset;  // the type lives as long as torch
}

bool requires_grad(PyObject *tensor) {
  static const PyGetSetDef *getter = requires_grad_of(package("torch").attr("Tensor"));
  static PyObject *text = interned("requires_grad");
  nb::object required = nb::steal(getter ? getter->get(tensor, getter->closure) : PyObject_GetAttr(tensor, text));
  if (!required.is_valid()) throw nb::python_error();
  return required.ptr() == Py_True;
}

// torch's tensors that require gradients are refused where torch would record what is done with them. What is asked
// first is what told it last time: of a model's weights the mode, once a run.
void check_grad(PyObject *tensor, const std::string &name, GradMode &mode) {
  static bool mode_tells = false;
  if (mode.may_be_dual() && nb::cast<bool>(package("kiln._arrays").attr("is_dual")(nb::handle(tensor))))
    refuse(name, tensor,
           "it has a tangent of forward-mode differentiation, which would be lost; unpack_dual(...).primal has none");
  if (mode_tells) mode_tells = !mode.is_enabled();
  if (mode_tells || !requires_grad(tensor)) return;
  mode_tells = !mode.is_enabled();
  if (!mode_tells)
    refuse(name, tensor,
           "it requires grad, and nothing here records one; call .detach(), or run under torch.no_grad()");
}

// What calls a method of torch.Tensor that takes nothing: torch's own function, as above.
PyCFunction method_of(nb::handle tensor_type, const char *name) {
  nb::object found = tensor_type.attr(name);
  if (Py_TYPE(found.ptr()) != &PyMethodDescr_Type) return nullptr;
  const PyMethodDef *method = reinterpret_cast<PyMethodDescrObject *>(found.ptr())->d_method;
  return method->ml_flags == METH_NOARGS ? method->ml_meth : nullptr;
}

bool is_negated(PyObject *tensor) {
  static const PyCFunction function = method_of(package("torch").attr("Tensor"), "is_neg");
  static PyObject *text = interned("is_neg");
  nb::object negated = nb::steal(function ? function(tensor, nullptr) : PyObject_CallMethodNoArgs(tensor, text));
  if (!negated.is_valid()) throw nb::python_error();
  return negated.ptr() == Py_True;
}

bool is_row_major(const DLTensor &tensor) {
  int64_t expected = 1;
  for (int i = tensor.ndim; tensor.strides && i-- > 0;) {
    if (tensor.shape[i] == 0) return true;
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

// torch's tensors whose elements are negated when they are read, which no DLTensor tells: imaginary parts of what is
// conjugated. Between their elements lie real parts, so that of others it is not asked, which costs as much as all
// else.
void check_negated(PyObject *object, const DLTensor &tensor, const std::string &name) {
  bool is_single = true;
  for (int i = 0; i < tensor.ndim; ++i) is_single = is_single && tensor.shape[i] <= 1;
  if ((is_single || !is_row_major(tensor)) && is_negated(object))
    refuse(name, object, "its elements are negated when they are read; call .resolve_neg()");
}

// Elements of `bytes` bytes between rows by strides and a row-major block, which `block` moves along.
template <bool to_block>
void move(const DLTensor &tensor, int dim, char *at, char *&block, size_t bytes) {
  if (dim == tensor.ndim) {
    std::memcpy(to_block ? block : at, to_block ? at : block, bytes);
    block += bytes;
    return;
  }
  const int64_t stride = tensor.strides ? tensor.strides[dim] : 1;
  if (dim == tensor.ndim - 1 && stride == 1) {
    const size_t row = bytes * static_cast<size_t>(tensor.shape[dim]);
    std::memcpy(to_block ? block : at, to_block ? at : block, row);
    block += row;
    return;
  }
  for (int64_t i = 0; i < tensor.shape[dim]; ++i)
    move<to_block>(tensor, dim + 1, at + i * stride * static_cast<int64_t>(bytes), block, bytes);
}

nb::tuple tuple_of(const int64_t *numbers, int count) {
  nb::list all;
  for (int i = 0; i < count; ++i) all.append(numbers[i]);
  return nb::tuple(all);
}

// What a capsule of DLPack's lends; null for one that was used.
template <class Managed>
Managed *managed_of(PyObject *capsule, const char *name) {
  return PyCapsule_IsValid(capsule, name) ? static_cast<Managed *>(PyCapsule_GetPointer(capsule, name)) : nullptr;
}
}  // namespace

bool GradMode::is_enabled() {
  static PyObject *function = nb::object(package("torch").attr("is_grad_enabled")).release().ptr();
  if (!known_) {
    nb::object enabled = nb::steal(PyObject_CallNoArgs(function));
    if (!enabled.is_valid()) throw nb::python_error();
    enabled_ = enabled.ptr() == Py_True;
    known_ = true;
  }
  return enabled_;
}

void increment_version(PyObject *tensor) {
  // What torch.autograd.graph.increment_version calls, which takes several times as long: torch's own function.
  static PyObject *function = nb::object(nb::getattr(package("torch._C"), "_increment_version",
                                                     package("torch.autograd.graph").attr("increment_version")))
                                  .release()
                                  .ptr();
  static const bool is_plain = PyCFunction_Check(function) && PyCFunction_GET_FLAGS(function) == METH_O;
  static PyObject *one = PyTuple_New(1);  // used again, unless somebody kept it
  nb::object own = nb::borrow(one);
  if (Py_REFCNT(one) > 2) own = nb::steal(PyTuple_New(1));
  PyTuple_SET_ITEM(own.ptr(), 0, tensor);
  nb::object done = nb::steal(is_plain ? PyCFunction_GET_FUNCTION(function)(PyCFunction_GET_SELF(function), own.ptr())
                                       : PyObject_CallOneArg(function, own.ptr()));
  PyTuple_SET_ITEM(own.ptr(), 0, nullptr);
  if (!done.is_valid()) throw nb::python_error();
}

bool GradMode::may_be_dual() {
  static PyObject *names = nb::object(package("torch.autograd.forward_ad").attr("__dict__")).release().ptr();
  static PyObject *level = interned("_current_level");
  if (!level_known_) {
    // A private name of torch's (2.15), -1 outside of all; without it each tensor is asked.
    PyObject *found = PyDict_GetItemWithError(names, level);
    in_level_ = !found || !PyLong_Check(found) || PyLong_AsLong(found) >= 0;
    level_known_ = true;
  }
  return in_level_;
}

const Library &library_of(nb::handle type) { return *info_of(reinterpret_cast<PyTypeObject *>(type.ptr())).library; }

const Library &default_library() {
  static const Library &found = [&]() -> const Library & {
    try {
      numpy::array_type(true);
      return kNumpy;
    } catch (nb::python_error &) {
      return kArray;
    }
  }();
  return found;
}

const Library &library_by_name(nb::handle name) {
  if (PyUnicode_Check(name.ptr())) {
    const std::string_view text = utf8(name, "library");
    if (text == "numpy") return kNumpy;
    if (text == "dlpack") return kArray;
    if (text == "torch") return library_of(package("torch").attr("Tensor"));
  } else if (PyModule_Check(name.ptr())) {
    const auto text = nb::cast<std::string>(name.attr("__name__"));
    if (text == "numpy" || text == "torch") return library_by_name(str(text));
    if (nb::hasattr(name, "from_dlpack"))
      return *keep({Library::Kind::kFromDlpack, nullptr, nb::object(name.attr("from_dlpack")).release().ptr(), false});
  }
  raise(KILN_UNKNOWN_NAME, "library " + nb::cast<std::string>(nb::repr(name)) +
                               " is none of 'numpy', 'torch', 'dlpack', nor a module with from_dlpack");
}

void Argument::borrow(PyObject *object, kiln_dtype dtype, const std::string &name, GradMode &mode) {
  release();
  if (Py_TYPE(object) == numpy::array_type() && borrow_numpy(object, name)) return;
  const TypeInfo &info = info_of(Py_TYPE(object));
  library_ = info.library;
  read_only_ = info.immutable;
  switch (info.way) {
    case TypeInfo::Way::kNumpy:
      borrow_numpy(object, name);
      return;
    case TypeInfo::Way::kExchange:
      if (info.is_torch) check_grad(object, name, mode);
      if (info.exchange->dltensor_from_py_object_no_sync(object, &tensor_) == 0) {
        if (info.is_torch) check_negated(object, tensor_, name);
        return;
      }
      break;
    case TypeInfo::Way::kDlpack:
      if (info.is_torch) check_grad(object, name, mode);
      borrow_dlpack(object, name);
      if (info.is_torch) check_negated(object, tensor_, name);
      return;
    case TypeInfo::Way::kInterface: {
      nb::object array = package("numpy").attr("asarray")(nb::handle(object));
      if (!borrow_numpy(array.ptr(), name)) refuse(name, object, "NumPy makes no array of it");
      lent_ = array.release().ptr();
      library_ = &kNumpy;
      return;
    }
    case TypeInfo::Way::kNumber:
      return borrow_number(object, dtype, name);
    default:
      refuse(name, object, info.why);
  }
  // The library says why in its own words; what we know of it is said, too.
  nb::python_error error;
  const auto why = nb::cast<std::string>(package("kiln._arrays").attr("why_not")(nb::handle(object), error.value()));
  refuse(name, object, why);
}

bool Argument::borrow_numpy(PyObject *object, const std::string &name) {
  if (!numpy::is_array(Py_TYPE(object))) return false;
  const auto &array = *reinterpret_cast<numpy::ArrayFields *>(object);
  const kiln_dtype dtype = numpy::dtype_of_array(array);
  if (!dtype)
    refuse(name, object,
           "its dtype " + nb::cast<std::string>(nb::str(nb::object(nb::handle(object).attr("dtype")))) +
               " is none of Kiln's");
  const DType &known = dtype_of(dtype);
  tensor_ = {array.data, {kDLCPU, 0}, array.rank, known.dlpack, array.shape, nullptr, 0};
  if (!(array.flags & numpy::kContiguous)) {
    strides_.resize(static_cast<size_t>(array.rank));
    for (int i = 0; i < array.rank; ++i) {
      if (array.strides[i] % known.bytes) refuse(name, object, "its strides are no multiples of an element; copy it");
      strides_[static_cast<size_t>(i)] = array.strides[i] / known.bytes;
    }
    tensor_.strides = strides_.data();
  }
  read_only_ = !(array.flags & numpy::kWritable);
  library_ = &kNumpy;
  return true;
}

void Argument::borrow_dlpack(PyObject *object, const std::string &name) {
  nb::object capsule = package("kiln._arrays").attr("dlpack")(nb::handle(object), name);
  if (auto *versioned = managed_of<DLManagedTensorVersioned>(capsule.ptr(), "dltensor_versioned")) {
    if (versioned->version.major != DLPACK_MAJOR_VERSION)
      refuse(name, object, "its DLPack is of another major version");
    tensor_ = versioned->dl_tensor;
    read_only_ |= (versioned->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
  } else if (auto *plain = managed_of<DLManagedTensor>(capsule.ptr(), "dltensor")) {
    tensor_ = plain->dl_tensor;
  } else {
    refuse(name, object, "its __dlpack__ gives no tensor");
  }
  lent_ = capsule.release().ptr();  // not renamed: its destructor gives the tensor back
}

void Argument::borrow_number(PyObject *object, kiln_dtype dtype, const std::string &name) {
  if (!dtype) refuse(name, object, "an array was expected");
  const DType &type = dtype_of(dtype);
  const bool whole = PyLong_Check(object);
  number_ = 0;
  const bool fits = nb::cast<bool>(
      package("kiln._arrays")
          .attr("pack")(
              nb::handle(object), type.name,
              nb::steal(PyMemoryView_FromMemory(reinterpret_cast<char *>(&number_), sizeof number_, PyBUF_WRITE))));
  const std::string why = (whole ? "an int that " : "a float that ") + type.name + " does not hold";
  if (!fits && whole && !PyBool_Check(object) && type.name != "bool") overflow(name, object, why);
  if (!fits) refuse(name, object, why);
  tensor_ = {&number_, {kDLCPU, 0}, 0, type.dlpack, nullptr, nullptr, 0};
  library_ = nullptr;
  read_only_ = true;
}

void Argument::pack(bool with_elements) {
  const size_t bytes = tensor_.dtype.bits / 8u;  // a power of two
  char *data = static_cast<char *>(tensor_.data) + tensor_.byte_offset;
  if (tensor_.strides && is_row_major(tensor_)) tensor_.strides = nullptr;
  const bool aligned = (reinterpret_cast<uintptr_t>(data) & (bytes - 1)) == 0;
  if ((!tensor_.strides && aligned) || tensor_.device.device_type != kDLCPU) return;
  size_t size = bytes;
  for (int i = 0; i < tensor_.ndim; ++i) size *= static_cast<size_t>(tensor_.shape[i]);
  packed_.resize(std::max<size_t>(size, 1));
  original_ = tensor_;
  if (!original_.strides) {  // only its address is odd
    strides_.assign(static_cast<size_t>(tensor_.ndim), 1);
    for (int i = tensor_.ndim - 1; i-- > 0;)
      strides_[static_cast<size_t>(i)] = strides_[static_cast<size_t>(i) + 1] * tensor_.shape[i + 1];
    original_.strides = strides_.data();
  }
  char *block = packed_.data();
  if (with_elements && size) move<true>(original_, 0, data, block, bytes);
  tensor_.data = packed_.data();
  tensor_.byte_offset = 0;
  tensor_.strides = nullptr;
}

void Argument::unpack() {
  char *block = packed_.data();
  char *data = static_cast<char *>(original_.data) + original_.byte_offset;
  for (int i = 0; i < original_.ndim; ++i)
    if (original_.shape[i] == 0) return;
  move<false>(original_, 0, data, block, original_.dtype.bits / 8);
}

void Argument::require_apart(const std::string &name, PyObject *object) const {
  if (elements_apart(original_)) return;
  const nb::object why =
      nb::str(
          "its shape {} and strides {}, in elements, lead to an element twice; an output whose elements lie apart "
          "was expected")
          .format(tuple_of(original_.shape, original_.ndim), tuple_of(original_.strides, original_.ndim));
  refuse(name, object, nb::cast<std::string>(why));
}

void Argument::require_writable(const std::string &name) const {
  if (read_only_) raise(KILN_INVALID_ARGUMENT, "'" + name + "' is written, but its array is read-only");
}

void Argument::give_back() noexcept { Py_CLEAR(lent_); }

ManagedTensor managed(DLManagedTensorVersioned *tensor) {
  return {tensor, [](DLManagedTensorVersioned *owned) {
            if (owned && owned->deleter) owned->deleter(owned);
          }};
}
}  // namespace kiln_python
