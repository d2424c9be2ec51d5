// oneDNN's primitives of steps, at sizes that are known.
#pragma once
#include "program.h"

namespace onednn {

using dnnl::memory;

memory::desc row_major(kiln_dtype dtype, const Dims &dims);
int64_t count_of(const Dims &dims);

// Arrays as a primitive sees them: a product may fold dims, a convolution counts groups as a dim of its weights.
struct ProductShape {
  Dims a, b, bias, result;  // all of one rank, by the primitive
  memory::dims a_strides, b_strides;
  Dims shape;  // of the step's result
};
ProductShape shape_product(const Step &step, const Dims &a, const Dims &b, bool has_bias);
Dims convolved(const Step &step, const Dims &x, const Dims &weight);
Dims grouped(const Step &step, const Dims &weight);
Dims pooled(const Step &step, const Dims &x);

// With this mode nothing of the environment changes what is computed, and scratch memory is the plan's: a primitive may
// run on another thread than the one that made it.
dnnl::primitive_attr attributes();

// `fixed`: the weights lie as the primitive likes them.
dnnl::matmul::primitive_desc product_of(const dnnl::engine &engine, kiln_dtype dtype, const ProductShape &shape,
                                        bool fixed, bool has_bias, const dnnl::primitive_attr &attr);
dnnl::convolution_forward::primitive_desc convolution_of(const dnnl::engine &engine, const Step &step, kiln_dtype dtype,
                                                         const Dims &x, const Dims &weight, bool has_bias,
                                                         const dnnl::primitive_attr &attr);

[[noreturn]] void misfit(const std::string &what);

}  // namespace onednn
