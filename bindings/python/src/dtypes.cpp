#include "dtypes.h"

#include <array>
#include <unordered_map>

namespace kiln_python {
namespace {
std::vector<DType> read_table() {
  std::vector<DType> types(1);
  for (kiln_dtype number = 1;; ++number) {
    DType type;
    kiln_text name;
    uint32_t packed = 0;
    if (kiln_error *error = kiln_dtype_info(number, &name, &type.bytes, &packed)) {
      kiln_error_destroy(error);
      return types;
    }
    type.number = number;
    type.name = view(name);
    type.dlpack = {static_cast<uint8_t>(packed), static_cast<uint8_t>(packed >> 8),
                   static_cast<uint16_t>(packed >> 16)};
    const std::string bits = type.name.substr(1);
    switch (type.name[0]) {
      case 'f':
        type.long_name = "float" + bits;
        break;
      case 'i':
        type.long_name = "int" + bits;
        break;
      case 'u':
        type.long_name = "uint" + bits;
        break;
      default:
        type.long_name = type.name == "bf16" ? "bfloat16" : type.name;
    }
    types.push_back(type);
  }
}

// The Python objects, by number; references that the process keeps.
std::vector<PyObject *> objects;

kiln_dtype find(std::string_view name) {
  for (const DType &type : dtype_table)
    if (type.number && (type.name == name || type.long_name == name)) return type.number;
  return 0;
}
}  // namespace

void refuse_dtype(kiln_dtype number) { raise(KILN_OUT_OF_RANGE, "dtype " + std::to_string(number) + " is none"); }

const DType *dtype_of(DLDataType type) {
  for (const DType &each : dtype_table)
    if (each.number && each.dlpack.code == type.code && each.dlpack.bits == type.bits &&
        each.dlpack.lanes == type.lanes)
      return &each;
  return nullptr;
}

nb::object dtype_object(kiln_dtype number) {
  dtype_of(number);
  return nb::borrow(objects[number]);
}

kiln_dtype to_dtype(nb::handle object) {
  if (nb::isinstance<DType>(object)) return nb::inst_ptr<DType>(object)->number;
  kiln_dtype number = 0;
  if (PyUnicode_Check(object.ptr())) {
    number = find(utf8(object, "dtype"));
  } else if (nb::hasattr(object, "name") && PyUnicode_Check(nb::object(object.attr("name")).ptr())) {  // numpy.dtype
    number = find(utf8(object.attr("name"), "dtype"));
  } else if (nb::hasattr(object, "__name__")) {  // numpy.float32, bool
    const std::string name = nb::cast<std::string>(object.attr("__name__"));
    number = find(name == "bool_" ? "bool" : name);
  } else {  // torch.float32
    const std::string name = nb::cast<std::string>(nb::str(object));
    number = find(name.substr(name.rfind('.') + 1));
  }
  if (!number) {
    std::string all;
    for (const DType &type : dtype_table) all += (all.empty() ? "" : ", ") + type.name;
    raise(KILN_TYPE_MISMATCH, "dtype " + nb::cast<std::string>(nb::repr(object)) + " is none of " + all);
  }
  return number;
}

namespace {
// The module's name of it, which is not Python's own bool.
std::string attribute_of(const DType &type) { return type.name == "bool" ? "bool_" : type.name; }
}  // namespace

void add_dtypes(nb::module_ &module) {
  dtype_table = read_table();
  nb::class_<DType>(module, "DType", nb::is_final(), "An element type; kiln.f32, kiln.bf16, ... are all there are.")
      .def_ro("name", &DType::name, "As Kiln says it: \"f32\".")
      .def_ro("long_name", &DType::long_name, "As other libraries say it: \"float32\".")
      .def_ro("itemsize", &DType::bytes, "Bytes of an element.")
      .def_prop_ro(
          "is_float", [](const DType &self) { return self.name[0] == 'f' || self.name == "bf16"; },
          "Whether it is a floating-point type.")
      .def("__repr__", [](const DType &self) { return "kiln." + self.name; })
      .def("__str__", [](const DType &self) { return self.name; })
      .def("__hash__", [](const DType &self) { return self.number; })
      .def(
          "__eq__",
          [](const DType &self, nb::handle other) {
            if (PyUnicode_Check(other.ptr())) return find(utf8(other, "dtype")) == self.number;
            return nb::isinstance<DType>(other) && nb::inst_ptr<DType>(other)->number == self.number;
          },
          nb::arg("other").none())
      .def("__reduce__", attribute_of);  // by the name of what the module has, of which there is one
  module.def(
      "dtype", [](nb::handle of) { return dtype_object(to_dtype(of)); }, nb::arg("of"),
      "The element type of a name (\"f32\", \"float32\"), or of NumPy's or torch's.");
  nb::list all;
  for (const DType &type : dtype_table) {
    objects.push_back(type.number ? nb::cast(type).release().ptr() : nullptr);
    if (type.number) {
      module.attr(attribute_of(type).c_str()) = nb::handle(objects.back());
      if (type.bytes) all.append(nb::handle(objects.back()));  // a token, which has none, is of no array
    }
  }
  module.attr("dtypes") = nb::tuple(all);
}
}  // namespace kiln_python
