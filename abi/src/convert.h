// Between the structs of the C interface and Kiln's values.
#pragma once
#include <span>
#include <string_view>
#include <utility>

#include "abi/src/entry.h"

namespace kiln::abi {

Result<Expr> read_dim(Context &context, const kiln_dim &dim);
kiln_dim write_dim(Context &context, const Expr &expr);
// By the protocol of write_list().
Status write_dims(const Checks &check, Context &context, const Shape &dims, kiln_dim *buffer, uint64_t capacity,
                  uint64_t *out_rank);

struct NamedAttr {
  std::string_view name;  // the caller's memory
  AttrValue value;
};
// Whether a dtype may be none (0): an op's attribute may, whose default that may be, and no other value.
enum class NoDType : uint8_t { refused, allowed };
// `context` may be null for kinds that need none (all but dim).
Result<NamedAttr> read_attr(const Checks &check, Context *context, const kiln_attr &attr,
                            NoDType no_dtype = NoDType::refused);
// Names must differ.
Result<AttrMap> read_attrs(const Checks &check, Context &context, const kiln_attr *attrs, uint64_t count,
                           NoDType no_dtype = NoDType::refused);

// The value of that name in C form, a view of `views`, or unknown_name: "WHERE_NONE 'name'".
Status give_attr(const Checks &check, const AttrMap &attrs, const kiln_text &name, std::string_view where_none,
                 Views &views, const std::shared_ptr<Context> &context, kiln_attr *out);

Result<TensorType> read_type(const Checks &check, Context &context, const kiln_type *type);
Result<std::pair<TensorType, OutputLayout>> read_output_type(const Checks &check, Context &context,
                                                             const kiln_type *type);

// A tensor as an array that calls take, wherever its memory is, with an address even where it has no elements; borrows
// data, shape and strides. The error starts with `name`.
Result<ArrayRef> read_array(const DLTensor &tensor, std::string_view name);
// A copy, dense and row-major, of a tensor in the host's memory.
Result<TensorData> copy_tensor(const DLTensor &tensor, std::string_view name);
DLDataType dlpack_type(DType dtype);

// A kiln_op is a number of its context (context_ops.h).
Result<const Op *> op_numbered(const Context &context, kiln_op op);

}  // namespace kiln::abi
