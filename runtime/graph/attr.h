// Attribute values of nodes (typed by the op's schema) and annotations (typed by themselves).
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "jit/base/bytes.h"
#include "jit/base/dtype.h"
#include "jit/base/expr.h"
#include "jit/base/status.h"

namespace kiln {

class Graph;
using GraphPtr = std::shared_ptr<const Graph>;

// Numbers are KILN_ATTR_* of kiln.h.
enum class AttrKind : uint8_t { i64 = 1, f64 = 2, text = 3, dtype = 4, dim = 5, graph = 6, tensor = 7, boolean = 8 };
std::string_view name_of(AttrKind kind);

// A constant's bytes: dense, row-major.
struct TensorData {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  Bytes bytes;
  int64_t element_count() const;
  bool operator==(const TensorData &) const = default;
};
// A valid type, non-negative extents, and as many bytes as they take.
Status check_tensor(const TensorData &tensor);
using TensorPtr = std::shared_ptr<const TensorData>;

// A scalar or a list. Equality is by value (graphs and tensors by content).
class AttrValue {
 public:
  using List = std::variant<std::vector<int64_t>, std::vector<double>, std::vector<std::string>, std::vector<DType>,
                            std::vector<Dim>, std::vector<GraphPtr>, std::vector<TensorPtr>, std::vector<bool>>;
  // Defined in attr.cpp: records and samples make so many that their code would be a tenth of the library.
  AttrValue() noexcept;
  AttrValue(int64_t v);
  AttrValue(int v);
  AttrValue(double v);
  AttrValue(bool v);
  AttrValue(const char *v);
  AttrValue(std::string v);
  AttrValue(DType v);
  AttrValue(Dim v);
  AttrValue(GraphPtr v);
  AttrValue(TensorPtr v);
  AttrValue(std::vector<int64_t> v);
  AttrValue(std::vector<double> v);
  AttrValue(std::vector<std::string> v);
  AttrValue(std::vector<Dim> v);
  AttrValue(const AttrValue &other);
  AttrValue(AttrValue &&) noexcept;
  AttrValue &operator=(const AttrValue &);
  AttrValue &operator=(AttrValue &&) noexcept;
  ~AttrValue();

  AttrKind kind() const { return static_cast<AttrKind>(items.index() + 1); }
  size_t size() const;
  bool operator==(const AttrValue &other) const;
  std::string text() const;  // for people

  // Of the expected kind, asserted: callers have checked against the schema.
  int64_t i64() const { return std::get<0>(items).front(); }
  double f64() const { return std::get<1>(items).front(); }
  const std::string &text_value() const { return std::get<2>(items).front(); }
  DType dtype() const { return std::get<3>(items).front(); }
  const Dim &dim() const { return std::get<4>(items).front(); }
  const GraphPtr &graph() const { return std::get<5>(items).front(); }
  const TensorPtr &tensor() const { return std::get<6>(items).front(); }
  bool boolean() const { return std::get<7>(items).front(); }
  const std::vector<int64_t> &i64_list() const { return std::get<0>(items); }
  const std::vector<Dim> &dim_list() const { return std::get<4>(items); }

  List items = std::vector<int64_t>{};
  bool is_list = false;
};
using AttrMap = std::map<std::string, AttrValue, std::less<>>;

// Which of `names` a text is; else invalid_argument, which goes on from what has the text: "is 'loose', expected one of
// strict, relaxed".
Result<size_t> which_of(std::string_view text, std::span<const std::string_view> names);

}  // namespace kiln
