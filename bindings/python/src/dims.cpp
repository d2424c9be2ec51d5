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

bool is_traced(nb::handle object) { return nb::isinstance<Dim>(object) && nb::inst_ptr<Dim>(object)->is_traced; }

// What is made of a trace's sizes is one, too.
nb::object like(nb::handle a, nb::handle b, nb::object size) {
  if (nb::isinstance<Dim>(size)) nb::inst_ptr<Dim>(size)->is_traced = is_traced(a) || is_traced(b);
  return size;
}

nb::object combined(nb::handle a, const char *between, nb::handle b) {
  const std::string left = operand(a), right = operand(b);
  if (left.empty() || right.empty()) return nb::borrow(Py_NotImplemented);
  return like(a, b, made(left + between + right));
}
nb::object extreme(const char *function, nb::handle a, nb::handle b) {
  const std::string left = operand(a), right = operand(b);
  if (left.empty() || right.empty()) raise(KILN_TYPE_MISMATCH, std::string(function) + " takes ints and Dims");
  return like(a, b, made(std::string(function) + "(" + left + ", " + right + ")"));
}

bool are_same(nb::handle a, nb::handle b) {
  const bool is_a = nb::isinstance<Dim>(a), is_b = nb::isinstance<Dim>(b);
  if (is_a && is_b) return nb::inst_ptr<Dim>(a)->text == nb::inst_ptr<Dim>(b)->text;
  return !is_a && !is_b && a.equal(b);
}

// Of a trace's sizes only what has the same text is known to be the same; whether others are decides a run.
bool is_equal(nb::handle self, nb::handle other) {
  const bool is_size = nb::isinstance<Dim>(other) || PyLong_Check(other.ptr());
  if (!is_size || are_same(self, other)) return is_size;
  if (is_traced(self) || is_traced(other))
    raise(KILN_TYPE_MISMATCH, "size " + nb::inst_ptr<Dim>(self)->text +
                                  " is known when the program runs: whether it is " +
                                  nb::cast<std::string>(nb::str(other)) + " is not");
  return false;
}

nb::tuple traced(nb::handle sizes) {
  nb::list all;
  for (nb::handle size : nb::borrow(sizes))
    all.append(nb::isinstance<Dim>(size) ? nb::cast(Dim{nb::inst_ptr<Dim>(size)->text, true}) : nb::borrow(size));
  return nb::tuple(all);
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
      .def("__hash__",
           [](const Dim &self) {
             if (self.is_traced)
               raise(KILN_TYPE_MISMATCH, "size " + self.text + " is known when the program runs: it is no key before");
             return nb::hash(str(self.text));
           })
      .def(
          "__eq__", [](nb::handle self, nb::handle other) { return is_equal(self, other); }, nb::arg("other").none())
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
  type.def("__neg__",
           [](nb::handle self) { return like(self, self, made("0 - (" + nb::inst_ptr<Dim>(self)->text + ")")); });
  module.def("traced_sizes", &traced, nb::arg("sizes"));
  module.def("same_size", &are_same, nb::arg("a"), nb::arg("b"));
  module.def(
      "dim_min", [](nb::handle a, nb::handle b) { return extreme("min", a, b); }, nb::arg("a"), nb::arg("b"),
      "The smaller of two sizes.");
  module.def(
      "dim_max", [](nb::handle a, nb::handle b) { return extreme("max", a, b); }, nb::arg("a"), nb::arg("b"),
      "The larger of two sizes.");
}
}  // namespace kiln_python
