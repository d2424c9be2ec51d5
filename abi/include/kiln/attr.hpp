// kiln/attr.hpp: values of attributes, annotations and options in C++17 or later, for kiln/pass.hpp and kiln/op.hpp,
// which include it. Nothing here is part of the ABI.
#ifndef KILN_ATTR_HPP
#define KILN_ATTR_HPP
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/types.h"

namespace kiln {
namespace pass {

// A view of values that stand in a row: a vector, an array, or a list in braces.
template <class T>
class Span {
 public:
  Span(std::initializer_list<T> items) : data_(nullptr), size_(items.size()) {
    data_ = items.begin();  // which lives as long as the call that it is written in
  }
  Span(const std::vector<T> &items) : data_(items.data()), size_(items.size()) {}
  template <size_t count>
  Span(const std::array<T, count> &items) : data_(items.data()), size_(count) {}
  Span(const T *data, size_t size) : data_(data), size_(size) {}
  const T *begin() const { return data_; }
  const T *end() const { return data_ + size_; }
  const T *data() const { return data_; }
  size_t size() const { return size_; }

 private:
  const T *data_;
  size_t size_;
};

// How many of a node's operands are given: those of 0 at the end are optional ones that are left out.
inline size_t given_count(Span<kiln_value> operands) {
  size_t count = operands.size();
  while (count && !operands.data()[count - 1]) count--;
  return count;
}

// Takes an annotation away (Rewriter::annotate).
struct Remove {};

// A named value: an attribute of an added node, an annotation, the default of a pass's option. Integers serve where an
// op wants dimensions, too. Graphs stay the caller's.
class Attr {
 public:
  using Value = std::variant<Remove, int64_t, double, bool, std::string, uint32_t, kiln_dim, const kiln_graph *,
                             std::vector<int64_t>, std::vector<double>, std::vector<uint8_t>, std::vector<std::string>,
                             std::vector<kiln_dtype>, std::vector<kiln_dim>, std::vector<const kiln_graph *>>;
  std::string_view name;
  Value value;

  Attr(std::string_view named, Remove) : name(named) {}
  Attr(std::string_view named, bool truth) : name(named), value(truth) {}
  Attr(std::string_view named, int integer) : name(named), value(int64_t{integer}) {}
  Attr(std::string_view named, int64_t integer) : name(named), value(integer) {}
  Attr(std::string_view named, double real) : name(named), value(real) {}
  Attr(std::string_view named, kiln_dtype dtype) : name(named), value(dtype) {}
  Attr(std::string_view named, const kiln_dim &dim) : name(named), value(dim) {}
  Attr(std::string_view named, const char *text) : name(named), value(std::string(text)) {}
  Attr(std::string_view named, std::string_view text) : name(named), value(std::string(text)) {}
  Attr(std::string_view named, std::string text) : name(named), value(std::move(text)) {}
  Attr(std::string_view named, const kiln_graph *graph) : name(named), value(graph) {}
  template <class T>  // of bytes: booleans, 0 or 1
  Attr(std::string_view named, std::vector<T> list) : name(named), value(std::move(list)) {}
};

// One attribute in C form; a view of `attr`.
class CAttr {
 public:
  explicit CAttr(const Attr &attr) {
    c_.name = attr.name.data();
    c_.name_size = attr.name.size();
    std::visit([this](const auto &value) { set(value); }, attr.value);
  }
  CAttr(const CAttr &) = delete;
  CAttr &operator=(const CAttr &) = delete;
  CAttr(CAttr &&other) noexcept = default;  // moves buffers, not what is in them: what c_ points to stays
  const kiln_attr &c() const { return c_; }

 private:
  void scalar(uint32_t kind, const void *data) { c_.kind = kind, c_.count = 1, c_.data = data; }
  template <class T>
  void list(uint32_t kind, const std::vector<T> &items) {
    c_.kind = kind | KILN_ATTR_LIST, c_.count = items.size(), c_.data = items.data();
  }
  void set(Remove) { c_.kind = KILN_ATTR_NONE; }
  void set(const int64_t &integer) { scalar(KILN_ATTR_I64, &integer); }
  void set(const double &real) { scalar(KILN_ATTR_F64, &real); }
  void set(const bool &truth) { bytes_.assign(1, truth ? 1 : 0), scalar(KILN_ATTR_BOOL, bytes_.data()); }
  void set(const std::string &text) {
    texts_.push_back({text.data(), text.size()}), scalar(KILN_ATTR_TEXT, texts_.data());
  }
  void set(const uint32_t &dtype) { scalar(KILN_ATTR_DTYPE, &dtype); }
  void set(const kiln_dim &dim) { scalar(KILN_ATTR_DIM, &dim); }
  void set(const kiln_graph *const &graph) { scalar(KILN_ATTR_GRAPH, &graph); }
  void set(const std::vector<int64_t> &items) { list(KILN_ATTR_I64, items); }
  void set(const std::vector<double> &items) { list(KILN_ATTR_F64, items); }
  void set(const std::vector<uint8_t> &items) { list(KILN_ATTR_BOOL, items); }
  void set(const std::vector<kiln_dtype> &items) { list(KILN_ATTR_DTYPE, items); }
  void set(const std::vector<kiln_dim> &items) { list(KILN_ATTR_DIM, items); }
  void set(const std::vector<const kiln_graph *> &items) { list(KILN_ATTR_GRAPH, items); }
  void set(const std::vector<std::string> &items) {
    for (const std::string &text : items) texts_.push_back({text.data(), text.size()});
    list(KILN_ATTR_TEXT, texts_);
  }

  kiln_attr c_{};
  std::vector<kiln_text> texts_;
  std::vector<uint8_t> bytes_;
};

// The C forms of several, in a row.
class CAttrs {
 public:
  explicit CAttrs(Span<Attr> attrs) {
    made_.reserve(attrs.size());
    for (const Attr &attr : attrs) made_.emplace_back(attr);
    for (const CAttr &attr : made_) row_.push_back(attr.c());
  }
  const kiln_attr *data() const { return row_.data(); }
  uint64_t size() const { return row_.size(); }

 private:
  std::vector<CAttr> made_;
  std::vector<kiln_attr> row_;
};

}  // namespace pass
}  // namespace kiln
#endif
