// NumPy by its C API, which is looked up when the first array of its comes by: nothing is compiled against it.
#pragma once
#include "support.h"

namespace kiln_python::numpy {
/// What every version of NumPy has at the head of an array.
struct ArrayFields {
  PyObject_HEAD char *data;
  int rank;
  int64_t *shape;
  int64_t *strides;  // in bytes
  PyObject *base;
  struct Descr {
    PyObject_HEAD PyTypeObject *type;
    char kind, letter, byte_order, flags;
    int number;
  } *descr;
  int flags;
};
constexpr int kContiguous = 0x1, kAligned = 0x100, kWritable = 0x400;

/// Whether NumPy has been imported by anybody; if so, it can be asked.
bool is_loaded();
/// numpy.ndarray; imports NumPy when `import` is set, else null before anybody did.
PyTypeObject *find_array_type(bool import);
inline PyTypeObject *known_array_type = nullptr;
inline PyTypeObject *array_type(bool import = false) {
  return known_array_type ? known_array_type : find_array_type(import);
}
/// Whether it is numpy.ndarray or a type made of it. Never imports.
bool is_array(PyTypeObject *type);

/// The element type of an array; 0 for one that Kiln has not.
kiln_dtype dtype_of_array(const ArrayFields &array);

/// An array over memory that `base` (stolen) keeps alive.
nb::object make(const DLTensor &tensor, PyObject *base, bool writable);
/// One of NumPy's own, row-major, not initialised.
nb::object make(kiln_dtype dtype, int rank, const int64_t *shape);
}  // namespace kiln_python::numpy
