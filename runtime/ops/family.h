// What the families of ops share: dtype sets, inference, lowering and reference loops that several records use. For
// the .cpp files of this folder alone.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/ops/op.h"
#include "runtime/ops/reference_loops.h"
#include "runtime/ops/samples.h"

namespace kiln::ops {

// ---- the families: each is the table of one .cpp file, and registry.cpp lists them all
std::span<const Op> creation_ops();
std::span<const Op> conversion_ops();
std::span<const Op> random_ops();
std::span<const Op> sampling_ops();
std::span<const Op> unary_ops();
std::span<const Op> transcendental_ops();
std::span<const Op> rounding_ops();
std::span<const Op> bits_ops();
std::span<const Op> activation_ops();
std::span<const Op> smooth_ops();
std::span<const Op> piecewise_ops();
std::span<const Op> gated_ops();
std::span<const Op> binary_ops();
std::span<const Op> blending_ops();
std::span<const Op> comparison_ops();
std::span<const Op> reduce_ops();
std::span<const Op> statistics_ops();
std::span<const Op> ordered_ops();
std::span<const Op> scans_ops();
std::span<const Op> counting_ops();
std::span<const Op> view_ops();
std::span<const Op> reshape_ops();
std::span<const Op> joining_ops();
std::span<const Op> rearrange_ops();
std::span<const Op> masks_ops();
std::span<const Op> indexing_ops();
std::span<const Op> replacing_ops();
std::span<const Op> picking_ops();
std::span<const Op> scatter_ops();
std::span<const Op> combining_ops();
std::span<const Op> shuffle_ops();
std::span<const Op> matmul_ops();
std::span<const Op> einsum_ops();
std::span<const Op> convolution_ops();
std::span<const Op> transposed_convolution_ops();
std::span<const Op> window_columns_ops();
std::span<const Op> winograd_ops();
std::span<const Op> pool_ops();
std::span<const Op> adaptive_pool_ops();
std::span<const Op> resize_ops();
std::span<const Op> grid_ops();
std::span<const Op> norm_ops();
std::span<const Op> channel_norms_ops();
std::span<const Op> softmax_ops();
std::span<const Op> losses_ops();
std::span<const Op> class_losses_ops();
std::span<const Op> attention_ops();
std::span<const Op> rope_ops();
std::span<const Op> quantization_ops();
std::span<const Op> quantizing_ops();
std::span<const Op> fourier_ops();
std::span<const Op> detection_ops();
std::span<const Op> determinant_ops();
std::span<const Op> grouped_matmul_ops();
std::span<const Op> nested_ops();
std::span<const Op> custom_function_ops();
std::span<const Op> scan_ops();
std::span<const Op> associative_scan_ops();
std::span<const Op> recurrent_ops();
std::span<const Op> resolving_ops();
std::span<const Op> token_ops();

// ---- the dtypes that ops take
inline constexpr DTypes float_types = dtypes(DType::f64, DType::f32, DType::f16, DType::bf16);
inline constexpr DTypes integer_types =
    dtypes(DType::i64, DType::i32, DType::i16, DType::i8) | dtypes(DType::u64, DType::u32, DType::u16, DType::u8);
inline constexpr DTypes index_types = dtypes(DType::i64, DType::i32);
inline constexpr DTypes numeric_types = float_types | integer_types;
inline constexpr DTypes comparable_types = numeric_types | dtypes(DType::boolean);
// 8-bit floats are stored, moved and converted.
inline constexpr DTypes byte_floats = dtypes(DType::f8_e4m3fn, DType::f8_e5m2);
inline constexpr DTypes any_type = comparable_types | byte_floats;
// Of what nested graphs are given.
inline constexpr DTypes any_value = any_type | dtypes(DType::token);

// ---- inference
// The result has the type of the first input.
Status infer_same(InferContext &c);
// Two or more inputs are broadcast together; the result has the dtype of the last.
Status infer_broadcast(InferContext &c);
// The attribute of what adds up elements, and the dtype that it gives result 0.
AttrDef accumulation_dtype();
Status accumulate_as_asked(InferContext &c);
// `dtype` names an attribute's value: an error unless it is one of `set`.
Status require_dtype(const InferContext &c, DType dtype, DTypes set);
// What products of operands `a` and `b` are summed in, and result in: numbers of one dtype in that; i8 or u8 by i8 in
// i32.
Result<DType> product_dtype(const InferContext &c, size_t a, size_t b);
// A bias that is added to them.
Status require_bias(const InferContext &c, size_t bias, DType product);
// Ok if small <= large, or if that can only be told at a call (then recorded); `what` says it: "end <= dim 1".
Status require_at_most(InferContext &c, const Dim &small, const Dim &large, std::string_view what);
// No dim may be negative; `name` is what an error calls each, beside its number.
Status require_shape(InferContext &c, std::span<const Dim> shape, std::string_view name = "shape dim");
Status require_rank(const InferContext &c, size_t input, size_t rank);
// Which of `rank` dims the attribute "dims" names; none may be named twice.
Result<std::vector<bool>> distinct_dims(const InferContext &c, size_t rank);
// No array reaches further, in elements: the address space of a process. What attributes count stays below it, so that
// sums of indices and such numbers don't overflow.
inline constexpr int64_t farthest = int64_t{1} << 47;
// An attribute that is a list of exactly `count` integers, from `minimum` to `farthest`.
Status require_integers(const InferContext &c, std::string_view attr, size_t count, int64_t minimum);

// An attribute that is a finite number of at least `minimum`.
Status require_finite(const InferContext &c, std::string_view attr,
                      double minimum = std::numeric_limits<double>::lowest());

// An attribute that is one of these words.
Status require_word(const InferContext &c, std::string_view attr, std::span<const std::string_view> words);
inline Status require_word(const InferContext &c, std::string_view attr,
                           std::initializer_list<std::string_view> words) {
  return require_word(c, attr, std::span(words.begin(), words.size()));
}

// `index`, or `start` and `end`: a literal below 0 counts from the end of a dim of `size`.
Dim from_the_end(const Dim &index, const Dim &size);
// The elements start, start + step, ... before end along one dim of x, as "dim", "start", "end" and "step" tell. With a
// step below 0 they go down, and an end of -size - 1, a literal or an expression, lies before the first.
struct Slice {
  size_t dim;
  Dim start, count;
  int64_t step;
};
// The attribute "step"; one that passes the end of every array is cut to `farthest`, so that products do not overflow.
int64_t slice_step(const AttrMap &attrs);
Result<Slice> checked_slice(InferContext &c, const TensorType &x);
// x is [N, C, ...], and the operands after it [C]; the result has the type of x.
Status infer_channels(InferContext &c);

// ---- attributes of records
AttrDef number(std::string_view name, std::string_view doc, double fallback);
AttrDef flag(std::string_view name, std::string_view doc, bool fallback);
AttrDef list(std::string_view name, std::string_view doc, AttrKind kind = AttrKind::i64);  // required
AttrDef list(std::string_view name, std::string_view doc, std::vector<int64_t> fallback);
AttrDef dim_attr(std::string_view doc);                    // "dim", required
AttrDef dim_attr(std::string_view doc, int64_t fallback);  // "dim"

// ---- attributes that inference has accepted
size_t normal_axis(int64_t axis, size_t rank);  // negative ones count from the end
// Of `rank` dims the one that "dim" names; of any context.
template <class Context>
size_t dim_of(const Context &c, size_t rank) {
  return normal_axis(c.attr("dim").i64(), rank);
}
// What two shapes are broadcast to.
Shape broadcast_shape(const Shape &a, const Shape &b);
std::vector<int64_t> broadcast_shape(const std::vector<int64_t> &a, const std::vector<int64_t> &b);
// Which of `rank` dims a list names.
std::vector<bool> named_dims(std::span<const int64_t> dims, size_t rank);

// ---- lowering
// The truth of 0 <= index < size as a value of the body, or -1 where bounds prove it: `valid` of a load.
int inside(kernel::BodyBuilder &body, const Expr &index, const Expr &size);
// Both, where -1 is always true.
int both(kernel::BodyBuilder &body, int a, int b);

}  // namespace kiln::ops
