// Python values as kiln_attr (attributes, annotations, options) and back.
#pragma once
#include <deque>

#include "support.h"

namespace kiln_python {
/// Attributes for one call, with what they point to.
class Attrs {
 public:
  explicit Attrs(kiln_context *context) : context_(context) {}
  Attrs(const Attrs &) = delete;
  Attrs &operator=(const Attrs &) = delete;

  /// A value whose kind follows from its Python type: of options and annotations. None takes an annotation away.
  void add(std::string_view name, nb::handle value);
  /// One of `kind` (KILN_ATTR_*), of which the schema of an op says whether it is a list.
  void add(std::string_view name, nb::handle value, uint32_t kind, bool is_list);
  /// Each item of a dict, likewise.
  void add_all(nb::handle dict);

  const kiln_attr *data() const { return attrs_.data(); }
  uint64_t size() const { return attrs_.size(); }

 private:
  template <class T>
  T *array(size_t count) {
    memory_.push_back(std::make_unique<char[]>(count * sizeof(T) + 1));
    return reinterpret_cast<T *>(memory_.back().get());
  }
  void put(std::string_view name, uint32_t kind, bool is_list, nb::handle *items, size_t count);

  kiln_context *context_;
  std::vector<kiln_attr> attrs_;
  std::vector<std::unique_ptr<char[]>> memory_;
  std::vector<nb::object> owners_;
};

/// The value of an attribute of the kiln.Context: int, float, str, DType, int or Dim, bool, Graph, an array, or a list
/// of them.
nb::object from_attr(nb::handle context, const kiln_attr &attr);
/// KILN_ATTR_* of a schema's "i64", "dim", ...; 0 for another.
uint32_t attr_kind(std::string_view name);

/// Options of a dict (or None) and of keywords, which win.
OptionsHandle to_options(nb::handle dict, nb::handle keywords);
}  // namespace kiln_python
