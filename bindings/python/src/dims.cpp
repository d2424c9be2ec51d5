#include "dims.h"

namespace kiln_python {
namespace {
// Where expressions are brought to their one form: of no user's, without a cache, never closed.
kiln_context *scratch() {
  static kiln_context *context = [] {
    kiln_options *options = nullptr;
    check(kiln_options_create(&options));
    OptionsHandle owned(options);
    check(kiln_options_set_text(options, "cache", 5, "off", 3));
    kiln_context *made = nullptr;
    check(kiln_context_create(options, nullptr, &made));
    return made;
  }();
  return context;
}

// What an operand of arithmetic is in a text; nothing where it is no size.
std::string operand(nb::handle object) {
  if (nb::isinstance<Dim>(object)) return "(" + nb::inst_ptr<Dim>(object)->text + ")";
  return PyLong_Check(object.ptr()) ? nb::cast<std::string>(nb::str(object)) : std::string();
}

nb::object made(const std::string &text) {
  kiln_dim dim;
  check(kiln_dim_parse(scratch(), text.data(), text.size(), &dim));
  return from_dim(scratch(), dim);
}

nb::object combined(nb::handle a, const char *between, nb::handle b) {
  const std::string left = operand(a), right = operand(b);
  if (left.empty() || right.empty()) return nb::borrow(Py_NotImplemented);
  return made(left + between + right);
}
nb::object extreme(const char *function, nb::handle a, nb::handle b) {
  const std::string left = operand(a), right = operand(b);
  if (left.empty() || right.empty()) raise(KILN_TYPE_MISMATCH, std::string(function) + " takes ints and Dims");
  return made(std::string(function) + "(" + left + ", " + right + ")");
}
}  // namespace

kiln_dim to_dim(kiln_context *context, nb::handle object) {
  kiln_dim dim{};
  if (nb::isinstance<Dim>(object)) {
    const std::string &text = nb::inst_ptr<Dim>(object)->text;
    check(kiln_dim_parse(context, text.data(), text.size(), &dim));
  } else if (PyUnicode_Check(object.ptr())) {
    const std::string_view text = utf8(object, "dim");
    check(kiln_dim_parse(context, text.data(), text.size(), &dim));
  } else if (PyIndex_Check(object.ptr())) {
    nb::object index = nb::steal(PyNumber_Index(object.ptr()));
    if (!index.is_valid()) throw nb::python_error();
    dim.value = PyLong_AsLongLong(index.ptr());
    if (dim.value == -1 && PyErr_Occurred()) throw nb::python_error();
  } else {
    raise(KILN_TYPE_MISMATCH, std::string("a size is a ") + Py_TYPE(object.ptr())->tp_name +
                                  ", an int, a Dim or a text such as \"2*n + 1\" was expected");
  }
  return dim;
}

nb::object from_dim(kiln_context *context, const kiln_dim &dim) {
  if (!dim.expr) return nb::int_(dim.value);
  kiln_text text;
  check(kiln_dim_text(context, &dim, &text));
  return nb::cast(Dim{std::string(view(text))});
}

std::vector<kiln_dim> to_dims(kiln_context *context, nb::handle sequence) {
  std::vector<kiln_dim> dims;
  if (PyUnicode_Check(sequence.ptr()) || !PySequence_Check(sequence.ptr()))
    raise(KILN_TYPE_MISMATCH,
          std::string("sizes are a ") + Py_TYPE(sequence.ptr())->tp_name + ", a sequence was expected");
  for (nb::handle each : nb::borrow(sequence)) dims.push_back(to_dim(context, each));
  return dims;
}

nb::tuple from_dims(kiln_context *context, const std::vector<kiln_dim> &dims) {
  nb::object all = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(dims.size())));
  for (size_t i = 0; i < dims.size(); ++i)
    PyTuple_SET_ITEM(all.ptr(), static_cast<Py_ssize_t>(i), from_dim(context, dims[i]).release().ptr());
  return nb::borrow<nb::tuple>(all);
}

void add_dims(nb::module_ &module) {
  auto type =
      nb::class_<Dim>(module, "Dim", nb::is_final(),
                      "A size that is known when a program runs: an expression over symbols, as Kiln writes it.");
  type.def(
          "__init__",
          [](Dim *self, const std::string &text) {
            nb::object dim = made(text);
            new (self) Dim{nb::isinstance<Dim>(dim) ? nb::inst_ptr<Dim>(dim)->text : text};
          },
          nb::arg("text"))
      .def_ro("text", &Dim::text)
      .def("__repr__", [](const Dim &self) { return "Dim('" + self.text + "')"; })
      .def("__str__", [](const Dim &self) { return self.text; })
      .def("__hash__", [](const Dim &self) { return nb::hash(str(self.text)); })
      .def(
          "__eq__",
          [](const Dim &self, nb::handle other) {
            return nb::isinstance<Dim>(other) && nb::inst_ptr<Dim>(other)->text == self.text;
          },
          nb::arg("other").none())
      .def("__bool__",
           [](const Dim &self) -> bool {
             raise(KILN_TYPE_MISMATCH,
                   "size " + self.text + " is known when the program runs: it is neither true nor false");
           })
      .def("__reduce__",
           [](const Dim &self) { return nb::make_tuple(package("kiln._kiln").attr("Dim"), nb::make_tuple(self.text)); })
      .def(
          "evaluate",
          [](const Dim &self, const nb::kwargs &sizes) {
            std::vector<kiln_text> names;
            std::vector<int64_t> values;
            for (auto [name, value] : sizes) {
              names.push_back(text(utf8(name, "symbol")));
              values.push_back(nb::cast<int64_t>(value));
            }
            kiln_dim dim;
            check(kiln_dim_parse(scratch(), self.text.data(), self.text.size(), &dim));
            int64_t value = 0;
            check(kiln_dim_evaluate(scratch(), &dim, names.data(), values.data(), names.size(), &value));
            return value;
          },
          nb::arg("sizes"), "Its value, where each symbol has the size that is told by its name.");
#define BINARY(NAME, BETWEEN)                                                                                      \
  type.def("__" NAME "__", [](nb::handle a, nb::handle b) { return combined(a, BETWEEN, b); }, nb::is_operator()); \
  type.def("__r" NAME "__", [](nb::handle a, nb::handle b) { return combined(b, BETWEEN, a); }, nb::is_operator())
  BINARY("add", " + ");
  BINARY("sub", " - ");
  BINARY("mul", " * ");
  BINARY("floordiv", " // ");
  BINARY("truediv", " / ");
  BINARY("mod", " % ");
#undef BINARY
  type.def("__neg__", [](const Dim &self) { return made("0 - (" + self.text + ")"); });
  module.def(
      "dim_min", [](nb::handle a, nb::handle b) { return extreme("min", a, b); }, nb::arg("a"), nb::arg("b"),
      "The smaller of two sizes.");
  module.def(
      "dim_max", [](nb::handle a, nb::handle b) { return extreme("max", a, b); }, nb::arg("a"), nb::arg("b"),
      "The larger of two sizes.");
}
}  // namespace kiln_python
