#include "runtime/graph/attr.h"

#include <algorithm>
#include <bit>

#include "runtime/graph/graph.h"

namespace kiln {
namespace {

std::string quoted(const std::string &text) { return str_cat('"', text, '"'); }

std::string text_of_item(int64_t v) { return str_cat(v); }
std::string text_of_item(double v) { return str_cat(v); }
std::string text_of_item(const std::string &v) { return quoted(v); }
std::string text_of_item(DType v) { return std::string(name_of(v)); }
std::string text_of_item(const Dim &v) { return v.text(); }
std::string text_of_item(const GraphPtr &v) {
  return v ? str_cat("graph of ", v->nodes().size(), " nodes") : "no graph";
}
std::string text_of_item(const TensorPtr &v) {
  return v ? str_cat(name_of(v->dtype), '[', join(v->shape, ", ", [](int64_t d) { return d; }), ']') : "no tensor";
}
std::string text_of_item(bool v) { return str_cat(v); }

bool equal_items(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}  // a NaN is itself
bool equal_items(const TensorPtr &a, const TensorPtr &b) { return a == b || (a && b && *a == *b); }
bool equal_items(const GraphPtr &a, const GraphPtr &b) { return a == b || (a && b && digest_of(*a) == digest_of(*b)); }
template <class T>
bool equal_items(const T &a, const T &b) {
  return a == b;
}

}  // namespace

AttrValue::AttrValue() noexcept = default;
AttrValue::AttrValue(int64_t v) : items(std::vector<int64_t>{v}) {}
AttrValue::AttrValue(int v) : AttrValue(static_cast<int64_t>(v)) {}
AttrValue::AttrValue(double v) : items(std::vector<double>{v}) {}
AttrValue::AttrValue(bool v) : items(std::vector<bool>{v}) {}
AttrValue::AttrValue(const char *v) : items(std::vector<std::string>{v}) {}
AttrValue::AttrValue(std::string v) : items(std::vector<std::string>{std::move(v)}) {}
AttrValue::AttrValue(DType v) : items(std::vector<DType>{v}) {}
AttrValue::AttrValue(Dim v) : items(std::vector<Dim>{std::move(v)}) {}
AttrValue::AttrValue(GraphPtr v) : items(std::vector<GraphPtr>{std::move(v)}) {}
AttrValue::AttrValue(TensorPtr v) : items(std::vector<TensorPtr>{std::move(v)}) {}
AttrValue::AttrValue(std::vector<int64_t> v) : items(std::move(v)), is_list(true) {}
AttrValue::AttrValue(std::vector<double> v) : items(std::move(v)), is_list(true) {}
AttrValue::AttrValue(std::vector<std::string> v) : items(std::move(v)), is_list(true) {}
AttrValue::AttrValue(std::vector<Dim> v) : items(std::move(v)), is_list(true) {}
// When a variant's own copying finds no memory, libstdc++ 12 destroys a vector that was not made.
AttrValue::AttrValue(const AttrValue &other) : is_list(other.is_list) {
  std::visit([this](const auto &list) { items = std::remove_cvref_t<decltype(list)>(list); }, other.items);
}
AttrValue::AttrValue(AttrValue &&) noexcept = default;
AttrValue &AttrValue::operator=(const AttrValue &) = default;
AttrValue &AttrValue::operator=(AttrValue &&) noexcept = default;
AttrValue::~AttrValue() = default;

std::string_view name_of(AttrKind kind) {
  switch (kind) {
    case AttrKind::i64:
      return "i64";
    case AttrKind::f64:
      return "f64";
    case AttrKind::text:
      return "text";
    case AttrKind::dtype:
      return "dtype";
    case AttrKind::dim:
      return "dim";
    case AttrKind::graph:
      return "graph";
    case AttrKind::tensor:
      return "tensor";
    case AttrKind::boolean:
      return "bool";
  }
  return "unknown";
}

int64_t TensorData::element_count() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

Status check_tensor(const TensorData &tensor) {
  Shape dims(tensor.shape.begin(), tensor.shape.end());
  KILN_TRY(check_type(make_type(tensor.dtype, dims)));
  uint64_t expected = static_cast<uint64_t>(tensor.element_count()) * size_of(tensor.dtype);
  if (tensor.bytes.size() != expected)
    return invalid(make_type(tensor.dtype, dims).text(), " takes ", expected, " bytes, ", tensor.bytes.size(),
                   " are given");
  return {};
}

size_t AttrValue::size() const {
  return std::visit([](const auto &list) { return list.size(); }, items);
}

bool AttrValue::operator==(const AttrValue &other) const {
  if (is_list != other.is_list || items.index() != other.items.index() || size() != other.size()) return false;
  return std::visit(
      [&](const auto &mine) {
        const auto &others = std::get<std::decay_t<decltype(mine)>>(other.items);
        for (size_t i = 0; i < mine.size(); ++i)
          if (!equal_items(mine[i], others[i])) return false;
        return true;
      },
      items);
}

std::string AttrValue::text() const {
  if (!is_list && size() == 0) return "none";
  std::string all = std::visit(
      [](const auto &list) {
        // Through the element type: vector<bool>'s proxies would pick another overload.
        using Item = typename std::decay_t<decltype(list)>::value_type;
        return join(list, ", ", [](const Item &item) { return text_of_item(item); });
      },
      items);
  return is_list ? str_cat('[', all, ']') : all;
}

Result<size_t> which_of(std::string_view text, std::span<const std::string_view> names) {
  const auto found = std::ranges::find(names, text);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  return invalid("is '", text, "', expected one of ", join(names, ", ", [](std::string_view name) { return name; }));
}

}  // namespace kiln
