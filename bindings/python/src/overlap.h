// Whether arrays share memory, with others or with themselves, told by their strides alone.
#pragma once
#include "kiln/types.h"

namespace kiln_python {
/// Whether no element is there twice, by the rule of kiln.h's outputs of any strides: from the smallest stride on, each
/// steps over all that those before it reach. The tensor has strides.
bool elements_apart(const DLTensor &tensor);
/// Whether two arrays share memory, or may: some that lie between each other's elements in a way that no single stride
/// tells count, too.
bool may_overlap(const DLTensor &a, const DLTensor &b);
}  // namespace kiln_python
