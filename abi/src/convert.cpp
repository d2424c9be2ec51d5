#include "abi/src/convert.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace kiln::abi {

namespace {

constexpr int32_t max_rank = 64;

// Reads `count` elements of type C, each through `convert`, into a list of AttrValue.
template <class C, class V, class Convert>
Result<AttrValue::List> read_list(const kiln_attr &attr, Convert convert) {
  const std::span<const C> in(static_cast<const C *>(attr.data), attr.count);
  std::vector<V> out;
  out.reserve(in.size());
  for (const C &element : in) {
    KILN_ASSIGN(V value, convert(element));
    out.push_back(std::move(value));
  }
  return AttrValue::List(std::move(out));
}

Result<AttrValue::List> read_items(const Checks &check, Context *context, const kiln_attr &attr, std::string_view name,
                                   NoDType no_dtype) {
  switch (attr.kind & ~KILN_ATTR_LIST) {
    case KILN_ATTR_I64:
      return read_list<int64_t, int64_t>(attr, [](int64_t v) { return Result<int64_t>(v); });
    case KILN_ATTR_F64:
      return read_list<double, double>(attr, [](double v) { return Result<double>(v); });
    case KILN_ATTR_TEXT:
      return read_list<kiln_text, std::string>(attr, [&](const kiln_text &t) -> Result<std::string> {
        KILN_ASSIGN(const std::string_view text, check.text(t, "a text attribute"));
        return std::string(text);
      });
    case KILN_ATTR_DTYPE:
      return read_list<kiln_dtype, DType>(attr, [&](kiln_dtype d) -> Result<DType> {
        if ((d == 0 && no_dtype == NoDType::refused) || d > static_cast<uint32_t>(dtype_count))
          return check.fail("'", name, "': no dtype has number ", d);
        return static_cast<DType>(d);
      });
    case KILN_ATTR_DIM:
      return read_list<kiln_dim, Dim>(attr, [&](const kiln_dim &dim) { return read_dim(*context, dim); });
    case KILN_ATTR_GRAPH:
      return read_list<const kiln_graph *, GraphPtr>(attr, [&](const kiln_graph *graph) -> Result<GraphPtr> {
        KILN_TRY(check.own_graph(graph, *context, "a graph attribute"));
        if (!graph->graph) return check.fail("'", name, "': the view of an edit cannot be an attribute; finish it");
        return graph->graph;
      });
    case KILN_ATTR_TENSOR:
      return read_list<const DLTensor *, TensorPtr>(attr, [&](const DLTensor *tensor) -> Result<TensorPtr> {
        KILN_TRY(check.pointer(tensor, "a tensor attribute"));
        KILN_ASSIGN(TensorData data, copy_tensor(*tensor, name));
        return std::make_shared<const TensorData>(std::move(data));
      });
    case KILN_ATTR_BOOL:
      return read_list<uint8_t, bool>(attr, [&](uint8_t v) -> Result<bool> {
        if (v > 1) return check.fail("'", name, "': a boolean is 0 or 1, not ", uint32_t{v});
        return v == 1;
      });
    default:
      return check.fail("'", name, "': no kind of attribute has number ", attr.kind);
  }
}

}  // namespace

Result<Expr> read_dim(Context &context, const kiln_dim &dim) {
  if (dim.expr == 0) return Expr(dim.value);
  if (std::optional<Expr> expr = context.dims().expr(dim.expr)) return *expr;
  return invalid("no expression of this context has number ", dim.expr, " (kiln_dim_parse makes them)");
}

kiln_dim write_dim(Context &context, const Expr &expr) {
  if (expr.is_integer()) return {expr.integer(), 0};
  return {0, context.dims().number_of(expr)};
}

Status write_dims(const Checks &check, Context &context, const Shape &dims, kiln_dim *buffer, uint64_t capacity,
                  uint64_t *out_rank) {
  std::vector<kiln_dim> out;
  for (const Dim &dim : dims) out.push_back(write_dim(context, dim));
  return write_list<kiln_dim>(check, out, buffer, capacity, out_rank);
}

Result<NamedAttr> read_attr(const Checks &check, Context *context, const kiln_attr &attr, NoDType no_dtype) {
  KILN_ASSIGN(const std::string_view name, check.text(attr.name, attr.name_size, "an attribute's name"));
  if (name.empty()) return check.fail("an attribute has no name");
  if (attr.reserved0) return check.fail("'", name, "': reserved0 is not 0");
  const bool is_list = attr.kind & KILN_ATTR_LIST;
  const bool no_graph = attr.kind == KILN_ATTR_GRAPH && attr.count == 0;
  if (!is_list && attr.count != 1 && !no_graph)
    return check.fail("'", name, "': a scalar's count is 1, not ", attr.count);
  if (attr.count && !attr.data) return check.fail("'", name, "': data is NULL");
  KILN_ASSIGN(AttrValue::List items, read_items(check, context, attr, name, no_dtype));
  NamedAttr read{name, {}};
  read.value.items = std::move(items);
  read.value.is_list = is_list;
  return read;
}

Result<AttrMap> read_attrs(const Checks &check, Context &context, const kiln_attr *attrs, uint64_t count,
                           NoDType no_dtype) {
  KILN_ASSIGN(const std::span<const kiln_attr> in, check.array(attrs, count, "attrs"));
  AttrMap map;
  for (const kiln_attr &attr : in) {
    KILN_ASSIGN(NamedAttr read, read_attr(check, &context, attr, no_dtype));
    if (!map.emplace(read.name, std::move(read.value)).second) return check.fail("'", read.name, "' is given twice");
  }
  return map;
}

Status give_attr(const Checks &check, const AttrMap &attrs, const kiln_text &name, std::string_view where_none,
                 Views &views, const std::shared_ptr<Context> &context, kiln_attr *out) {
  KILN_ASSIGN(const std::string_view wanted, check.text(name, "name"));
  KILN_TRY(check.pointer(out, "out"));
  const auto attr = attrs.find(wanted);
  if (attr == attrs.end()) return error(Code::unknown_name, where_none, " '", wanted, "'");
  *out = views.attr(context, attr->first, attr->second);
  return {};
}

namespace {

Result<TensorType> read_type(const Checks &check, Context &context, const kiln_type &in) {
  if (in.dtype == 0 || in.dtype > static_cast<uint32_t>(last_dtype))
    return check.fail("type->dtype: no dtype has number ", in.dtype);
  if (in.rank > static_cast<uint32_t>(max_rank))
    return check.fail("type->rank is ", in.rank, ", the most is ", max_rank);
  auto read_dims = [&](const kiln_dim *dims, const char *name) -> Result<Shape> {
    KILN_ASSIGN(const std::span<const kiln_dim> given, check.array(dims, in.rank, name));
    Shape shape;
    for (const kiln_dim &dim : given) {
      KILN_ASSIGN(Expr expr, read_dim(context, dim));
      shape.push_back(std::move(expr));
    }
    return shape;
  };
  KILN_ASSIGN(Shape dims, read_dims(in.dims, "type->dims"));
  TensorType read = exact_type(static_cast<DType>(in.dtype), std::move(dims));
  if (in.layout == KILN_LAYOUT_STRIDED) {
    KILN_ASSIGN(read.strides, read_dims(in.strides, "type->strides"));
  } else if (in.layout != KILN_LAYOUT_ROW_MAJOR) {
    return check.fail("type->layout: no layout has number ", in.layout);
  }
  return read;
}

}  // namespace

Result<TensorType> read_type(const Checks &check, Context &context, const kiln_type *type) {
  KILN_ASSIGN(const kiln_type in, check.request(type, "type"));
  if (in.layout == KILN_LAYOUT_ANY) return check.fail("type->layout is KILN_LAYOUT_ANY, which is for outputs");
  return read_type(check, context, in);
}

Result<std::pair<TensorType, OutputLayout>> read_output_type(const Checks &check, Context &context,
                                                             const kiln_type *type) {
  KILN_ASSIGN(kiln_type in, check.request(type, "output->type"));
  OutputLayout layout;
  if (in.layout == KILN_LAYOUT_ANY) {
    if (in.strides) return check.fail("type->strides is not NULL, and its layout is KILN_LAYOUT_ANY");
    layout.kind = OutputLayout::Kind::any;
    in.layout = KILN_LAYOUT_ROW_MAJOR;
  }
  KILN_ASSIGN(TensorType read, read_type(check, context, in));
  if (read.strides != row_major_strides(read.dims)) layout = {OutputLayout::Kind::strided, read.strides};
  return std::pair(std::move(read), std::move(layout));
}

Result<ArrayRef> read_array(const DLTensor &tensor, std::string_view name) {
  if (tensor.ndim < 0 || tensor.ndim > max_rank) return invalid(name, ": ndim is ", tensor.ndim);
  if (tensor.ndim && !tensor.shape) return invalid(name, ": shape is NULL, ndim is ", tensor.ndim);
  const std::optional<DType> dtype = dtype_from_dlpack(tensor.dtype.code, tensor.dtype.bits);
  if (!dtype || tensor.dtype.lanes != 1)
    return error(Code::type_mismatch, name, ": Kiln has no dtype of DLPack code ", uint32_t{tensor.dtype.code}, ", ",
                 uint32_t{tensor.dtype.bits}, " bits, ", uint32_t{tensor.dtype.lanes}, " lanes");
  for (int32_t i = 0; i < tensor.ndim; i++)
    if (tensor.shape[i] < 0) return invalid(name, ": dim ", i, " is ", tensor.shape[i]);
  if (uintptr_t end = 0; __builtin_add_overflow(reinterpret_cast<uintptr_t>(tensor.data), tensor.byte_offset, &end))
    return invalid(name, ": byte_offset is ", tensor.byte_offset, ", which leaves the address space");
  ArrayRef array;
  array.data = tensor.data ? static_cast<uint8_t *>(tensor.data) + tensor.byte_offset : nullptr;
  if (!array.data) {
    if (std::find(tensor.shape, tensor.shape + tensor.ndim, 0) == tensor.shape + tensor.ndim)
      return invalid(name, ": data is NULL");
    static std::max_align_t no_elements;  // an address for arrays that need none: nothing is read or written there
    array.data = &no_elements;
  }
  array.dtype = *dtype;
  array.rank = static_cast<uint32_t>(tensor.ndim);
  array.shape = tensor.shape;
  array.strides = tensor.strides;
  // What is pinned for a GPU is the host's memory all the same; the CPU has no index that matters.
  if (tensor.device.device_type != kDLCPU && tensor.device.device_type != kDLCUDAHost)
    array.place = {static_cast<int32_t>(tensor.device.device_type), tensor.device.device_id};
  return array;
}

Result<TensorData> copy_tensor(const DLTensor &tensor, std::string_view name) {
  KILN_ASSIGN(const ArrayRef array, read_array(tensor, name));
  if (!array.place.is_host())
    return error(Code::no_device, name, " is on ", text_of(array.place), ", expected ", text_of(ArrayPlace()));
  TensorData data;
  data.dtype = array.dtype;
  data.shape.assign(array.shape, array.shape + array.rank);
  const std::optional<uint64_t> bytes = dense_bytes(array.dtype, data.shape);
  if (!bytes) return invalid(name, ": its size overflows");
  data.bytes.resize(*bytes);
  const size_t element = size_of(array.dtype);
  const uint64_t count = *bytes / element;
  std::vector<int64_t> index(array.rank, 0);
  for (uint64_t at = 0; at < count; at++) {
    int64_t offset = static_cast<int64_t>(at);
    if (array.strides) {
      offset = 0;
      for (size_t d = 0; d < index.size(); d++) offset += index[d] * array.strides[d];
    }
    std::memcpy(data.bytes.data() + at * element,
                static_cast<const uint8_t *>(array.data) + offset * static_cast<int64_t>(element), element);
    for (size_t d = index.size(); d-- > 0;) {  // the next index, the last dimension fastest
      if (++index[d] < data.shape[d]) break;
      index[d] = 0;
    }
  }
  return data;
}

DLDataType dlpack_type(DType dtype) {
  const DTypeInfo &info = dtype_info(dtype);
  return {info.dlpack_code, info.dlpack_bits, 1};
}

}  // namespace kiln::abi
