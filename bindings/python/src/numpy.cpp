#include "numpy.h"

#include <algorithm>
#include <array>

#include "dtypes.h"

namespace kiln_python::numpy {
namespace {
// Places in NumPy's table of functions, permanent since 1.7.
constexpr int kTypeIndex = 2, kNewIndex = 93, kDescrFromTypeIndex = 45, kEmptyIndex = 184, kSetBaseIndex = 282;

void **api = nullptr;
// Kiln's types by NumPy's numbers, and back. Those of ml_dtypes have numbers that NumPy gave them at run time.
std::vector<std::pair<int, kiln_dtype>> registered;

constexpr struct {
  int number;
  kiln_dtype dtype;
} kTypes[] = {{0, KILN_BOOL}, {1, KILN_I8},   {2, KILN_U8},   {3, KILN_I16}, {4, KILN_U16},
              {5, KILN_I32},  {6, KILN_U32},  {7, KILN_I64},  {8, KILN_U64}, {9, KILN_I64},
              {10, KILN_U64}, {11, KILN_F32}, {12, KILN_F64}, {23, KILN_F16}};

template <class Function>
Function function(int index) {
  array_type(true);
  return reinterpret_cast<Function>(api[index]);
}

int number_of(kiln_dtype dtype) {
  for (auto [number, known] : kTypes)
    if (known == dtype) return number;
  for (auto [number, known] : registered)
    if (known == dtype) return number;
  const std::string &name = dtype_of(dtype).long_name;
  nb::object type;
  try {
    type = package("ml_dtypes").attr(name.c_str());
  } catch (nb::python_error &) {
    raise(KILN_UNKNOWN_NAME, "NumPy has no " + name +
                                 " without the package ml_dtypes; install it, or ask for results "
                                 "by library=\"dlpack\" or another library");
  }
  const int number = nb::cast<int>(package("numpy").attr("dtype")(type).attr("num"));
  registered.emplace_back(number, dtype);
  return number;
}
}  // namespace

bool is_loaded() {
  if (api) return true;
  PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");
  return module && module != Py_None;
}

PyTypeObject *find_array_type(bool import) {
  if (!api && (import || is_loaded())) {
    const char *name =
        nb::hasattr(package("numpy"), "_core") ? "numpy._core._multiarray_umath" : "numpy.core._multiarray_umath";
    nb::object capsule = package(name).attr("_ARRAY_API");
    api = static_cast<void **>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
    if (!api) throw nb::python_error();
  }
  if (api) known_array_type = static_cast<PyTypeObject *>(api[kTypeIndex]);
  return known_array_type;
}

bool is_array(PyTypeObject *type) {
  PyTypeObject *array = array_type();
  return array && (type == array || PyType_IsSubtype(type, array));
}

kiln_dtype dtype_of_array(const ArrayFields &array) {
  const int number = array.descr->number;
  static const auto types = [] {
    std::array<kiln_dtype, 24> all{};
    for (auto [known, dtype] : kTypes) all[static_cast<size_t>(known)] = dtype;
    return all;
  }();
  if (array.descr->byte_order == '>') return 0;
  if (number >= 0 && number < 24) return types[static_cast<size_t>(number)];
  for (auto [known, dtype] : registered)
    if (known == number) return dtype;
  if (number < 256) return 0;
  const auto name = nb::cast<std::string>(nb::handle(reinterpret_cast<PyObject *>(array.descr)).attr("name"));
  for (kiln_dtype dtype : {KILN_BF16, KILN_F8_E4M3FN, KILN_F8_E5M2})
    if (dtype_of(dtype).long_name == name) {
      registered.emplace_back(number, dtype);
      return dtype;
    }
  return 0;
}

nb::object make(const DLTensor &tensor, PyObject *base, bool writable) {
  nb::object owned = nb::steal(base);
  const DType *type = dtype_of(tensor.dtype);
  std::vector<int64_t> strides(static_cast<size_t>(tensor.strides ? tensor.ndim : 0));
  std::transform(tensor.strides, tensor.strides + strides.size(), strides.begin(),
                 [&](int64_t stride) { return stride * type->bytes; });
  using New = PyObject *(*)(PyTypeObject *, int, const int64_t *, int, const int64_t *, void *, int, int, PyObject *);
  char *data = static_cast<char *>(tensor.data) + tensor.byte_offset;
  static char nothing[16];  // NumPy would allocate for NULL
  nb::object array = nb::steal(
      function<New>(kNewIndex)(array_type(true), tensor.ndim, tensor.shape, number_of(type->number),
                               tensor.strides ? strides.data() : nullptr, tensor.data ? data : nothing, 0,
                               kAligned | (tensor.strides ? 0 : kContiguous) | (writable ? kWritable : 0), nullptr));
  if (!array.is_valid()) throw nb::python_error();
  using SetBase = int (*)(PyObject *, PyObject *);
  if (function<SetBase>(kSetBaseIndex)(array.ptr(), owned.release().ptr()) < 0) throw nb::python_error();
  return array;
}

nb::object make(kiln_dtype dtype, int rank, const int64_t *shape) {
  using FromType = PyObject *(*)(int);
  using Empty = PyObject *(*)(int, const int64_t *, PyObject *, int);
  PyObject *descr = function<FromType>(kDescrFromTypeIndex)(number_of(dtype));
  nb::object array = nb::steal(function<Empty>(kEmptyIndex)(rank, shape, descr, 0));
  if (!array.is_valid()) throw nb::python_error();
  return array;
}
}  // namespace kiln_python::numpy
