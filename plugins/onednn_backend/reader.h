// A graph as the host shows it, by the host's tables; errors are thrown.
#pragma once
#include <string_view>
#include <utility>

#include "program.h"

namespace onednn {

// An error of the host's, to be handed on as it is.
struct HostError {
  kiln_error *error;
};
inline void check(kiln_error *error) {
  if (error) throw HostError{error};
}

inline kiln_node node_of(kiln_value value) { return value >> 32; }

class Reader {
 public:
  Reader(const kiln_host *host, const kiln_graph *graph) : host_(*host), graph_(graph) {}

  uint32_t kind(kiln_node node) const { return host_.node->kind(graph_, node); }
  kiln_op op(kiln_node node) const { return host_.node->op(graph_, node); }
  uint32_t input_count(kiln_node node) const { return host_.node->input_count(graph_, node); }
  kiln_value input(kiln_node node, uint32_t index) const { return host_.node->input(graph_, node, index); }
  uint32_t output_count(kiln_node node) const { return host_.node->output_count(graph_, node); }
  uint32_t use_count(kiln_value value) const { return host_.value->use_count(graph_, value); }
  std::vector<kiln_node> nodes() const {
    return all<kiln_node>([&](auto... to) { return host_.graph->nodes(graph_, to...); });
  }
  std::vector<kiln_value> side(uint32_t which) const {
    return all<kiln_value>([&](auto... to) { return host_.graph->signature(graph_, which, to...); });
  }
  std::vector<kiln_node> users(kiln_value value) const {
    return all<kiln_node>([&](auto... to) { return host_.value->users(graph_, value, to...); });
  }
  std::vector<kiln_dim> dims(kiln_value value) const {
    return all<kiln_dim>([&](auto... to) { return host_.value->dims(graph_, value, to...); });
  }
  kiln_dtype dtype(kiln_value value) const {
    kiln_dtype type = 0;
    check(host_.value->dtype(graph_, value, &type));
    return type;
  }
  const DLTensor &constant(kiln_node node) const {
    const DLTensor *tensor = nullptr;
    check(host_.node->constant(graph_, node, &tensor));
    return *tensor;
  }

  double real(kiln_node node, std::string_view name) const { return *data<double>(attr(node, name)); }
  int64_t integer(kiln_node node, std::string_view name) const { return *data<int64_t>(attr(node, name)); }
  bool truth(kiln_node node, std::string_view name) const { return *data<uint8_t>(attr(node, name)) != 0; }
  std::string_view text(kiln_node node, std::string_view name) const {
    const auto *text = data<kiln_text>(attr(node, name));
    return {text->data, text->size};
  }
  Dims integers(kiln_node node, std::string_view name) const {
    const kiln_attr found = attr(node, name);
    return {data<int64_t>(found), data<int64_t>(found) + found.count};
  }

 private:
  template <class T>
  static const T *data(const kiln_attr &attr) {
    return static_cast<const T *>(attr.data);
  }
  kiln_attr attr(kiln_node node, std::string_view name) const {
    kiln_attr out{};
    check(host_.node->attr(graph_, node, name.data(), name.size(), &out));
    return out;
  }
  template <class T, class Get>
  static std::vector<T> all(const Get &get) {
    uint64_t count = 0;
    check(get(nullptr, uint64_t{0}, &count));
    std::vector<T> items(count);
    if (count) check(get(items.data(), count, &count));
    return items;
  }

  const kiln_host &host_;
  const kiln_graph *graph_;
};

// Sizes that a call tells are equal where they are the same expression: a context has one of each.
inline bool is_known(const kiln_dim &dim) { return dim.expr == 0; }
inline bool is_same(const kiln_dim &a, const kiln_dim &b) { return a.expr == b.expr && a.value == b.value; }
inline bool is_same(const std::vector<kiln_dim> &a, const std::vector<kiln_dim> &b) {
  if (a.size() != b.size()) return false;
  for (size_t d = 0; d < a.size(); ++d)
    if (!is_same(a[d], b[d])) return false;
  return true;
}

}  // namespace onednn
