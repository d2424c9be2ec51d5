// Tensors in files: .safetensors and .npy.
#include "arrays.h"

namespace kiln_python {
namespace {
// A mapped file, which the arrays that view it keep alive.
struct TensorFile {
  TensorsHandle handle;
};

nb::dict open_tensors(nb::handle path) {
  const auto text = nb::cast<std::string>(package("os").attr("fspath")(path));
  kiln_tensors *tensors = nullptr;
  check(kiln_tensors_open(text.data(), text.size(), &tensors));
  nb::object owner = nb::cast(std::make_unique<TensorFile>(TensorFile{TensorsHandle(tensors)}));
  nb::dict all;
  for (uint64_t i = 0; i < kiln_tensors_count(tensors); ++i) {
    kiln_text name;
    const DLTensor *tensor = nullptr;
    check(kiln_tensors_at(tensors, i, &name, &tensor));
    all[str(name)] = view_of(*tensor, owner);
  }
  return all;
}

void save_tensors(nb::handle path, const nb::dict &arrays) {
  const auto text = nb::cast<std::string>(package("os").attr("fspath")(path));
  std::vector<std::unique_ptr<BorrowedArray>> borrowed;
  std::vector<kiln_text> names;
  std::vector<const DLTensor *> tensors;
  for (auto [name, array] : arrays) {
    names.push_back(kiln_python::text(utf8(name, "a tensor's name")));
    borrowed.push_back(std::make_unique<BorrowedArray>(array, 0, std::string(view(names.back()))));
    borrowed.back()->pack();
    tensors.push_back(&borrowed.back()->tensor());
  }
  kiln_error *error = nullptr;
  {
    nb::gil_scoped_release unlocked;
    error = kiln_tensors_write(text.data(), text.size(), names.data(), tensors.data(), tensors.size());
  }
  check(error);
}
}  // namespace

void add_tensors(nb::module_ &module) {
  const nb::class_<TensorFile> file(module, "TensorFile", nb::is_final(), "A mapped file.");
  module.def(
      "open_tensors", &open_tensors, nb::arg("path"),
      "The tensors of a .safetensors or .npy file by their names, without a copy: read-only views of the mapped file.");
  module.def("save_tensors", &save_tensors, nb::arg("path"), nb::arg("arrays"),
             "Writes arrays by their names into a .safetensors file, or one into a .npy file, which appears whole or "
             "not at all.");
}
}  // namespace kiln_python
