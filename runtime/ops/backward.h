// The tables of ops that training needs: gradients, each beside its op's family. For the files of this folder.
#pragma once
#include "runtime/ops/op.h"

namespace kiln::ops {

// What their reference kernels sum in, of all types: one kernel of each.
using Wide = long double;

std::span<const Op> norms_backward_ops();
std::span<const Op> attention_backward_ops();
std::span<const Op> convolution_backward_ops();
std::span<const Op> pool_backward_ops();
std::span<const Op> resize_backward_ops();
std::span<const Op> embedding_backward_ops();

}  // namespace kiln::ops
