// Sizes: an int, or kiln.Dim, an expression over symbols.
#pragma once
#include "support.h"

namespace kiln_python {
/// Bound to no graph: its text is what it is, as Kiln writes it, so that equal ones have equal texts.
struct Dim {
  std::string text;
  bool is_traced = false;  // of a function that is traced, whose way may not depend on how it compares
};

/// An int, a Dim, or a text as kiln_dim_parse reads it.
kiln_dim to_dim(kiln_context *context, nb::handle object);
/// An int, or a Dim.
nb::object from_dim(kiln_context *context, const kiln_dim &dim);
std::vector<kiln_dim> to_dims(kiln_context *context, nb::handle sequence);
nb::tuple from_dims(kiln_context *context, const std::vector<kiln_dim> &dims);
}  // namespace kiln_python
