// Inputs, parameters and outputs of an executable, as calls need them.
#pragma once
#include "support.h"

namespace kiln_python {
struct Slot {
  std::string name;
  kiln_dtype dtype = 0;
  bool row_major = true;
  bool stored = false;  // of a parameter: the artifact's file has it
  // Of an output: the input that it is a view of (-1: none), and whether its shape follows from those of the inputs, so
  // that memory can be made for it before a run. Of neither where it has strides of its own.
  int view_of = -1;
  bool viewed = false;  // of an input: an output is a view of it
  bool sized_by_inputs = false;
};

struct Signature {
  std::vector<Slot> inputs, parameters, outputs;
  explicit Signature(nb::handle description);  // the dict of kiln_executable_describe
  /// The number of a slot, as kiln_call_slot counts; -1: there is none of that name.
  int find(std::string_view name) const;
  /// Of an output; -1 likewise.
  int find_output(std::string_view name) const;
  size_t size() const { return inputs.size() + parameters.size() + outputs.size(); }
  const Slot &slot(size_t number) const;
};
}  // namespace kiln_python
