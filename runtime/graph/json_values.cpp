#include "runtime/graph/json_values.h"

#include <bit>
#include <cstring>

#include "runtime/graph/json_number.h"

namespace kiln::json {

constexpr size_t longest_expression = 1000;  // characters

Result<Dim> read_dim(const View &v) {
  if (v.is_number()) {
    KILN_ASSIGN(int64_t integer, v.as_integer());
    return Dim(integer);
  }
  if (!v.is_text()) return v.fail("expected an integer or an expression in quotes");
  if (v.text().size() > longest_expression)
    return v.fail("an expression has more than ", longest_expression, " characters");
  Result<Expr> dim = Expr::parse(v.text());
  if (!dim.ok()) return v.fail(dim.take_status());
  return dim;
}

namespace {

Result<Shape> read_dims(const View &v) {
  KILN_ASSIGN(std::vector<View> elements, v.as_list());
  Shape shape;
  for (const View &element : elements) {
    KILN_ASSIGN(Dim dim, read_dim(element));
    shape.push_back(std::move(dim));
  }
  return shape;
}

}  // namespace

Result<DType> read_dtype(const View &v, int last) {
  KILN_ASSIGN(std::string_view name, v.as_text());
  if (std::optional<DType> dtype = dtype_from_name(name); dtype && static_cast<int>(*dtype) <= last) return *dtype;
  std::string known;
  for (int number = 1; number <= last; ++number)
    str_append(known, str_cat(number == 1 ? "" : ", ", name_of(static_cast<DType>(number))));
  return v.fail(Code::unknown_name, "unknown dtype '", name, "'; known are ", known);
}

namespace {

// `strides`: its member, or none.
Result<TensorType> read_type(const View &v, const std::optional<View> &strides) {
  KILN_TRY(v.allow_members({"dtype", "shape", "strides", "device"}));
  KILN_ASSIGN(View dtype_view, v.required("dtype"));
  KILN_ASSIGN(DType dtype, read_dtype(dtype_view, last_dtype));
  KILN_ASSIGN(View shape_view, v.required("shape"));
  KILN_ASSIGN(Shape shape, read_dims(shape_view));
  TensorType type = exact_type(dtype, std::move(shape));
  if (strides) {
    KILN_ASSIGN(type.strides, read_dims(*strides));
  }
  if (std::optional<View> device = v.member("device")) {
    KILN_ASSIGN(int64_t slot, device->as_integer());
    if (slot < 0 || slot > UINT32_MAX) return device->fail("device is ", slot, ", expected 0 to ", UINT32_MAX);
    type.device = static_cast<uint32_t>(slot);
  }
  if (Status status = check_type(type); !status.ok()) return v.fail(std::move(status));
  return type;
}

}  // namespace

Result<TensorType> read_type(const View &v) { return read_type(v, v.member("strides")); }

Result<std::pair<TensorType, OutputLayout>> read_output_type(const View &v) {
  const std::optional<View> strides = v.member("strides");
  OutputLayout layout;
  if (strides && strides->is_text()) {
    if (strides->text() != "any") return strides->expected("a list, or \"any\"");
    layout.kind = OutputLayout::Kind::any;
  }
  KILN_ASSIGN(TensorType type, read_type(v, layout.kind == OutputLayout::Kind::any ? std::nullopt : strides));
  if (type.strides != row_major_strides(type.dims)) layout = {OutputLayout::Kind::strided, type.strides};
  return std::pair(std::move(type), std::move(layout));
}

Result<uint64_t> read_element(const View &v, DType dtype) {
  if (dtype == DType::boolean) {
    if (!v.is_boolean()) return v.expected("true or false");
    return uint64_t{v.boolean()};
  }
  std::optional<uint64_t> bits;
  if (v.is_number()) bits = element_of(dtype, v.number());
  if (v.is_text()) bits = element_of(dtype, v.text());
  if (!bits) return v.expected(str_cat("a number of dtype ", name_of(dtype)));
  return *bits;
}

Result<TensorPtr> read_tensor(const View &type_view, const View &data_view, std::span<const TensorPtr> apart) {
  KILN_ASSIGN(TensorType type, read_type(type_view));
  auto tensor = std::make_shared<TensorData>();
  if (type.dtype == DType::token) return type_view.fail("a token has no data; op token begins one");
  tensor->dtype = type.dtype;
  for (const Dim &dim : type.dims) {
    if (!dim.is_integer()) return type_view.fail("a dim is ", dim.text(), "; where there is data it is an integer");
    tensor->shape.push_back(dim.integer());
  }
  if (type.strides != row_major_strides(type.dims)) return type_view.fail("data is row-major");
  if (!apart.empty() && data_view.is_object()) {
    KILN_ASSIGN(const View number_view, data_view.required("apart"));
    KILN_ASSIGN(const int64_t number, number_view.as_integer());
    if (number < 0 || static_cast<uint64_t>(number) >= apart.size())
      return number_view.fail("there are ", apart.size(), " tensors apart");
    const TensorPtr &found = apart[static_cast<size_t>(number)];
    if (found->dtype != tensor->dtype || found->shape != tensor->shape)
      return number_view.fail("tensor ", number, " is not ", type.text());
    return found;
  }
  KILN_ASSIGN(std::vector<View> elements, data_view.as_list());
  if (elements.size() != static_cast<uint64_t>(tensor->element_count()))
    return data_view.fail(elements.size(), " elements, expected ", tensor->element_count(), " for ", type.text());
  uint32_t size = size_of(type.dtype);
  tensor->bytes.resize(elements.size() * size);
  for (size_t i = 0; i < elements.size(); ++i) {
    KILN_ASSIGN(uint64_t bits, read_element(elements[i], type.dtype));
    std::memcpy(&tensor->bytes[i * size], &bits, size);
  }
  return TensorPtr(std::move(tensor));
}

Result<AttrValue> read_attr(const View &v, AttrKind kind, bool is_list) {
  switch (kind) {
    case AttrKind::i64:
      return read_items<int64_t>(v, is_list, [](const View &e) { return e.as_integer(); });
    case AttrKind::f64:
      return read_items<double>(v, is_list, [](const View &e) -> Result<double> {
        KILN_ASSIGN(uint64_t bits, read_element(e, DType::f64));
        return std::bit_cast<double>(bits);
      });
    case AttrKind::text:
      return read_items<std::string>(v, is_list, [](const View &e) -> Result<std::string> {
        KILN_ASSIGN(std::string_view text, e.as_text());
        return std::string(text);
      });
    case AttrKind::dtype:
      return read_items<DType>(v, is_list, [](const View &e) { return read_dtype(e); });
    case AttrKind::dim:
      return read_items<Dim>(v, is_list, read_dim);
    case AttrKind::boolean:
      return read_items<bool>(v, is_list, [](const View &e) -> Result<bool> {
        if (!e.is_boolean()) return e.expected("true or false");
        return e.boolean();
      });
    case AttrKind::graph:
    case AttrKind::tensor:
      break;
  }
  return v.fail("an attribute of kind ", name_of(kind), " has no value of its own");
}

}  // namespace kiln::json
