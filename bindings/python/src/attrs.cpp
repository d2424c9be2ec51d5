#include "attrs.h"

#include <cstring>

#include "arrays.h"
#include "dims.h"
#include "dtypes.h"
#include "graph.h"

namespace kiln_python {
namespace {
constexpr std::pair<std::string_view, uint32_t> kKinds[] = {
    {"i64", KILN_ATTR_I64}, {"f64", KILN_ATTR_F64},     {"text", KILN_ATTR_TEXT},     {"dtype", KILN_ATTR_DTYPE},
    {"dim", KILN_ATTR_DIM}, {"graph", KILN_ATTR_GRAPH}, {"tensor", KILN_ATTR_TENSOR}, {"bool", KILN_ATTR_BOOL}};

std::string_view kind_name(uint32_t kind) {
  for (auto [name, number] : kKinds)
    if (number == kind) return name;
  return "none";
}

uint32_t kind_of(std::string_view name, nb::handle value) {
  PyObject *object = value.ptr();
  if (PyBool_Check(object)) return KILN_ATTR_BOOL;
  if (PyLong_Check(object)) return KILN_ATTR_I64;
  if (PyFloat_Check(object)) return KILN_ATTR_F64;
  if (PyUnicode_Check(object)) return KILN_ATTR_TEXT;
  if (nb::isinstance<DType>(value)) return KILN_ATTR_DTYPE;
  raise(KILN_TYPE_MISMATCH, "'" + std::string(name) + "' is a " + Py_TYPE(object)->tp_name +
                                ", an int, float, str, bool, DType or a list of one of them was expected");
}

bool is_sequence(nb::handle value) { return PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()); }
}  // namespace

uint32_t attr_kind(std::string_view name) {
  for (auto [known, number] : kKinds)
    if (known == name) return number;
  return 0;
}

void Attrs::add(std::string_view name, nb::handle value) {
  if (value.is_none()) {
    attrs_.push_back({name.data(), name.size(), KILN_ATTR_NONE, 0, 0, nullptr});
    return;
  }
  if (!is_sequence(value)) return add(name, value, kind_of(name, value), false);
  nb::object items = nb::steal(PySequence_Fast(value.ptr(), "a list was expected"));
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(items.ptr());
  add(name, value, count ? kind_of(name, PySequence_Fast_GET_ITEM(items.ptr(), 0)) : KILN_ATTR_TEXT, true);
}

void Attrs::add(std::string_view name, nb::handle value, uint32_t kind, bool is_list) {
  if (!is_list) return put(name, kind, false, &value, 1);
  if (!is_sequence(value)) {
    if (!PySequence_Check(value.ptr()) || PyUnicode_Check(value.ptr()))
      raise(KILN_TYPE_MISMATCH, "'" + std::string(name) + "' is a " + Py_TYPE(value.ptr())->tp_name + ", a list of " +
                                    std::string(kind_name(kind)) + " was expected");
    owners_.push_back(nb::list(nb::borrow(value)));
    value = owners_.back();
  }
  nb::object items = nb::steal(PySequence_Fast(value.ptr(), "a list was expected"));
  std::vector<nb::handle> all;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i)
    all.push_back(PySequence_Fast_GET_ITEM(items.ptr(), i));
  put(name, kind, true, all.data(), all.size());
}

void Attrs::put(std::string_view name, uint32_t kind, bool is_list, nb::handle *items, size_t count) {
  const void *data = nullptr;
  const auto refuse = [&](nb::handle item) {
    raise(KILN_TYPE_MISMATCH, "'" + std::string(name) + "' is " + nb::cast<std::string>(nb::repr(item)) + ", " +
                                  std::string(kind_name(kind)) + " was expected");
  };
  const auto fill = [&]<class T>(T *to, auto convert) {
    for (size_t i = 0; i < count; ++i) to[i] = convert(items[i]);
    data = to;
  };
  switch (kind) {
    case KILN_ATTR_I64:
      fill(array<int64_t>(count), [&](nb::handle item) {
        if (!PyIndex_Check(item.ptr())) refuse(item);
        nb::object index = nb::steal(PyNumber_Index(item.ptr()));
        const int64_t value = index.is_valid() ? PyLong_AsLongLong(index.ptr()) : -1;
        if (value == -1 && PyErr_Occurred()) throw nb::python_error();
        return value;
      });
      break;
    case KILN_ATTR_F64:
      fill(array<double>(count), [&](nb::handle item) {
        if (!PyFloat_Check(item.ptr()) && !PyLong_Check(item.ptr()) && !nb::hasattr(item, "__float__")) refuse(item);
        const double value = PyFloat_AsDouble(item.ptr());
        if (value == -1 && PyErr_Occurred()) throw nb::python_error();
        return value;
      });
      break;
    case KILN_ATTR_BOOL:
      fill(array<uint8_t>(count), [&](nb::handle item) -> uint8_t {
        const int value = PyObject_IsTrue(item.ptr());
        if (value < 0) throw nb::python_error();
        return static_cast<uint8_t>(value);
      });
      break;
    case KILN_ATTR_TEXT:
      fill(array<kiln_text>(count), [&](nb::handle item) {
        owners_.push_back(nb::borrow(item));
        return text(utf8(item, "a text"));
      });
      break;
    case KILN_ATTR_DTYPE:
      fill(array<kiln_dtype>(count), [&](nb::handle item) { return to_dtype(item); });
      break;
    case KILN_ATTR_DIM:
      fill(array<kiln_dim>(count), [&](nb::handle item) { return to_dim(context_, item); });
      break;
    case KILN_ATTR_GRAPH:
      fill(array<const kiln_graph *>(count), [&](nb::handle item) {
        if (!nb::isinstance<Graph>(item)) refuse(item);
        owners_.push_back(nb::borrow(item));
        return nb::inst_ptr<Graph>(item)->finished();
      });
      break;
    case KILN_ATTR_TENSOR:
      fill(array<const DLTensor *>(count), [&](nb::handle item) {
        owners_.push_back(nb::cast(std::make_unique<BorrowedArray>(item)));
        return &nb::inst_ptr<BorrowedArray>(owners_.back())->tensor();
      });
      break;
    default:
      raise(KILN_INTERNAL, "attribute '" + std::string(name) + "' is of a kind that this binding does not know");
  }
  attrs_.push_back({name.data(), name.size(), kind | (is_list ? KILN_ATTR_LIST : 0), 0, count, data});
}

void Attrs::add_all(nb::handle dict) {
  if (dict.is_none()) return;
  if (!PyDict_Check(dict.ptr()))
    raise(KILN_TYPE_MISMATCH, std::string("a dict of names was expected, this is a ") + Py_TYPE(dict.ptr())->tp_name);
  for (auto [name, value] : nb::borrow<nb::dict>(dict)) {
    owners_.push_back(nb::borrow(name));
    add(utf8(name, "a name"), value);
  }
}

nb::object from_attr(nb::handle context, const kiln_attr &attr) {
  const uint32_t kind = attr.kind & ~KILN_ATTR_LIST;
  const auto item = [&](uint64_t i) -> nb::object {
    switch (kind) {
      case KILN_ATTR_I64:
        return nb::int_(static_cast<const int64_t *>(attr.data)[i]);
      case KILN_ATTR_F64:
        return nb::float_(static_cast<const double *>(attr.data)[i]);
      case KILN_ATTR_TEXT:
        return str(static_cast<const kiln_text *>(attr.data)[i]);
      case KILN_ATTR_DTYPE: {
        const kiln_dtype dtype = static_cast<const kiln_dtype *>(attr.data)[i];
        return dtype ? dtype_object(dtype) : nb::object(nb::none());
      }
      case KILN_ATTR_DIM:
        return from_dim(nb::inst_ptr<Context>(context)->get(), static_cast<const kiln_dim *>(attr.data)[i]);
      case KILN_ATTR_BOOL:
        return nb::bool_(static_cast<const uint8_t *>(attr.data)[i] != 0);
      case KILN_ATTR_TENSOR:
        return copy_of(*static_cast<const DLTensor *const *>(attr.data)[i]);
      case KILN_ATTR_GRAPH:
        return graph_of(context, static_cast<const kiln_graph *const *>(attr.data)[i]);
      default:
        return nb::none();
    }
  };
  if (!(attr.kind & KILN_ATTR_LIST)) return attr.count ? item(0) : nb::object(nb::none());
  nb::list all;
  for (uint64_t i = 0; i < attr.count; ++i) all.append(item(i));
  return all;
}

OptionsHandle to_options(nb::handle dict, nb::handle keywords) {
  kiln_options *options = nullptr;
  check(kiln_options_create(&options));
  OptionsHandle owned(options);
  Attrs attrs(nullptr);
  if (dict.is_valid()) attrs.add_all(dict);
  if (keywords.is_valid()) attrs.add_all(keywords);
  for (uint64_t i = 0; i < attrs.size(); ++i)
    if (attrs.data()[i].kind != KILN_ATTR_NONE) check(kiln_options_set(options, attrs.data() + i));
  return owned;
}
}  // namespace kiln_python
