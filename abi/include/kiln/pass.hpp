// kiln/pass.hpp: for passes written in C++17 or later. Header-only, over plugin.h; nothing here is part of the ABI.
//
//   KILN_PLUGIN_NOTE(0, 0, "drop_copies");
//   static uint64_t rewrite(kiln::pass::Rewriter &graph) {
//     ... graph.replace(from, to) ...
//     return how_many;
//   }
//   static constexpr kiln::pass::Definition definition = {
//       "drop_copies", "1", {16 bytes}, KILN_STAGE_POST_GRAD, rewrite,
//   };
//   const kiln_plugin *kiln_plugin_entry_v1(void) {
//     return kiln::pass::plugin<definition>();
//   }
#ifndef KILN_PASS_HPP
#define KILN_PASS_HPP
#include <array>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/plugin.h"

namespace kiln {
namespace pass {

inline kiln_value result_of(kiln_node node, uint32_t output = 0) { return node << 32 | output; }
inline kiln_node node_of(kiln_value value) { return value >> 32; }

// A named value for an added node. Integers serve where an op wants dimensions, too.
struct Attr {
  std::string_view name;
  std::variant<int64_t, double, kiln_dtype, std::vector<int64_t>, std::vector<kiln_dim>> value;
};

// The graph of a running pass: questions, and changes. A question that has no answer is answered by 0, false or
// nothing, which is no match. The first change that fails ends the pass: later ones do nothing, and finish() returns
// its error.
class Rewriter {
 public:
  Rewriter(const kiln_host &host, kiln_pass_call *call)
      : host_(host), call_(call), edit_(host.pass->edit(call)), graph_(host.edit->view(edit_)) {}
  Rewriter(const Rewriter &) = delete;
  Rewriter &operator=(const Rewriter &) = delete;
  ~Rewriter() { host_.error->destroy(error_); }

  // ---- questions

  // The op's number, or 0: no node is of that op.
  kiln_op op(std::string_view name) const {
    kiln_op number = 0;
    return ok(host_.op->find(host_.pass->context(call_), name.data(), name.size(), &number)) ? number : 0;
  }
  // As they stand, in topological order; a copy.
  std::vector<kiln_node> nodes() const {
    return list<kiln_node>([&](kiln_node *buffer, uint64_t capacity, uint64_t *count) {
      return host_.graph->nodes(graph_, buffer, capacity, count);
    });
  }
  // Whether the node is of this op, and no attribute but those named differs from its default.
  bool is(kiln_node node, kiln_op op, std::initializer_list<std::string_view> named = {}) const {
    if (!op || host_.node->op(graph_, node) != op) return false;
    for (const kiln_attr &attr : attrs(node)) {
      bool known = false;
      for (std::string_view name : named) known = known || name == name_of(attr);
      if (!known) return false;
    }
    return true;
  }
  // KILN_NODE_*.
  uint32_t kind(kiln_node node) const { return host_.node->kind(graph_, node); }
  kiln_value input(kiln_node node, uint32_t index) const { return host_.node->input(graph_, node, index); }
  // Of a node with two operands, the one that is not `operand`.
  kiln_value other_input(kiln_node node, kiln_value operand) const {
    return input(node, 0) == operand ? input(node, 1) : input(node, 0);
  }
  bool used_once(kiln_value value) const { return host_.value->use_count(graph_, value) == 1; }
  // The node that alone uses the value, once; 0 when an output does.
  kiln_node only_user(kiln_value value) const {
    const auto users = list<kiln_node>([&](kiln_node *buffer, uint64_t capacity, uint64_t *count) {
      return host_.value->users(graph_, value, buffer, capacity, count);
    });
    return used_once(value) && users.size() == 1 ? users.front() : 0;
  }
  kiln_dtype dtype(kiln_value value) const {
    kiln_dtype number = 0;
    return ok(host_.value->dtype(graph_, value, &number)) ? number : 0;
  }
  std::vector<kiln_dim> dims(kiln_value value) const {
    return list<kiln_dim>([&](kiln_dim *buffer, uint64_t capacity, uint64_t *count) {
      return host_.value->dims(graph_, value, buffer, capacity, count);
    });
  }
  std::vector<int64_t> integers(kiln_node node, std::string_view attr) const {
    return read<int64_t>(node, attr, KILN_ATTR_I64);
  }
  std::optional<double> number(kiln_node node, std::string_view attr) const {
    return first(read<double>(node, attr, KILN_ATTR_F64));
  }
  std::optional<uint8_t> truth(kiln_node node, std::string_view attr) const {
    return first(read<uint8_t>(node, attr, KILN_ATTR_BOOL));
  }
  // The value of a scalar (rank 0) that the graph itself holds: an f32 or f64 constant, or `full`.
  std::optional<double> scalar(kiln_value value) const {
    const kiln_node node = node_of(value);
    if (!dims(value).empty()) return std::nullopt;
    if (is(node, op("full"), {"value", "shape", "dtype"})) return number(node, "value");
    const DLTensor *tensor = nullptr;
    if (kind(node) != KILN_NODE_CONSTANT || !ok(host_.node->constant(graph_, node, &tensor))) return std::nullopt;
    const char *data = static_cast<const char *>(tensor->data) + tensor->byte_offset;
    if (dtype(value) == KILN_F64) return load<double>(data);
    if (dtype(value) == KILN_F32) return load<float>(data);
    return std::nullopt;
  }
  // Whether two nodes carry the same annotations; debug.* are for people and do not count.
  bool same_annotations(kiln_node a, kiln_node b) const {
    const std::vector<kiln_attr> of_a = annotations(a), of_b = annotations(b);
    if (of_a.size() != of_b.size()) return false;
    for (size_t i = 0; i < of_a.size(); i++)
      if (!equal(of_a[i], of_b[i])) return false;
    return true;
  }

  // ---- changes

  // Adds an op node; its first result, or 0 after a failure.
  kiln_value add(kiln_op op, std::initializer_list<kiln_value> inputs, std::initializer_list<Attr> attrs = {}) {
    if (error_) return 0;
    std::vector<kiln_attr> given;
    for (const Attr &attr : attrs) given.push_back(as_c(attr));
    kiln_node node = 0;
    error_ = host_.edit->add(edit_, op, nullptr, 0, inputs.begin(), inputs.size(), given.data(), given.size(), &node);
    return error_ ? 0 : result_of(node);
  }
  void replace(kiln_value from, kiln_value to) {
    if (!error_) error_ = host_.edit->replace(edit_, from, to);
  }
  // Ends the pass: what run() returns.
  kiln_error *finish(uint64_t rewrites) {
    if (!error_) return host_.pass->done(call_, rewrites);
    return std::exchange(error_, nullptr);
  }

 private:
  bool ok(kiln_error *error) const {
    if (!error) return true;
    host_.error->destroy(error);
    return false;
  }
  static std::string_view name_of(const kiln_attr &attr) { return {attr.name, attr.name_size}; }

  // Asks how many there are, then for all of them.
  template <class T, class Ask>
  std::vector<T> list(Ask ask) const {
    uint64_t count = 0;
    if (!ok(ask(nullptr, 0, &count))) return {};
    std::vector<T> items(count);
    if (count && !ok(ask(items.data(), count, &count))) items.clear();
    return items;
  }
  std::vector<kiln_attr> attrs(kiln_node node) const {
    return list<kiln_attr>([&](kiln_attr *buffer, uint64_t capacity, uint64_t *count) {
      return host_.node->attrs(graph_, node, buffer, capacity, count);
    });
  }
  std::vector<kiln_attr> annotations(kiln_node node) const {
    std::vector<kiln_attr> kept;
    const auto all = list<kiln_attr>([&](kiln_attr *buffer, uint64_t capacity, uint64_t *count) {
      return host_.node->annotations(graph_, node, buffer, capacity, count);
    });
    for (const kiln_attr &annotation : all)
      if (name_of(annotation).substr(0, 6) != "debug.") kept.push_back(annotation);
    return kept;
  }

  template <class T>
  std::vector<T> read(kiln_node node, std::string_view name, uint32_t kind) const {
    kiln_attr attr{};
    if (!ok(host_.node->attr(graph_, node, name.data(), name.size(), &attr))) return {};
    if ((attr.kind & ~KILN_ATTR_LIST) != kind) return {};
    const T *data = static_cast<const T *>(attr.data);
    return {data, data + attr.count};
  }
  template <class T>
  static std::optional<T> first(const std::vector<T> &values) {
    return values.size() == 1 ? std::optional<T>(values.front()) : std::nullopt;
  }
  template <class T>
  static T load(const char *data) {
    T value;
    std::memcpy(&value, data, sizeof value);
    return value;
  }

  static bool equal(const kiln_attr &a, const kiln_attr &b) {
    if (name_of(a) != name_of(b) || a.kind != b.kind || a.count != b.count) return false;
    const uint32_t kind = a.kind & ~KILN_ATTR_LIST;
    if (kind == KILN_ATTR_TEXT) {
      const auto *of_a = static_cast<const kiln_text *>(a.data), *of_b = static_cast<const kiln_text *>(b.data);
      for (uint64_t i = 0; i < a.count; i++)
        if (std::string_view(of_a[i].data, of_a[i].size) != std::string_view(of_b[i].data, of_b[i].size)) return false;
      return true;
    }
    const uint64_t element = kind == KILN_ATTR_BOOL ? 1 : kind == KILN_ATTR_DTYPE ? 4 : 8;  // i64 and f64: 8
    return a.count == 0 || std::memcmp(a.data, b.data, a.count * element) == 0;
  }

  static kiln_attr as_c(const Attr &attr) {
    kiln_attr made{};
    made.name = attr.name.data();
    made.name_size = attr.name.size();
    const auto scalar = [&](uint32_t kind, const void *data) { made.kind = kind, made.count = 1, made.data = data; };
    if (const auto *integer = std::get_if<int64_t>(&attr.value)) scalar(KILN_ATTR_I64, integer);
    if (const auto *real = std::get_if<double>(&attr.value)) scalar(KILN_ATTR_F64, real);
    if (const auto *dtype = std::get_if<kiln_dtype>(&attr.value)) scalar(KILN_ATTR_DTYPE, dtype);
    const auto list = [&](uint32_t kind, const auto &items) {
      made.kind = kind | KILN_ATTR_LIST, made.count = items.size(), made.data = items.data();
    };
    if (const auto *integers = std::get_if<std::vector<int64_t>>(&attr.value)) list(KILN_ATTR_I64, *integers);
    if (const auto *dims = std::get_if<std::vector<kiln_dim>>(&attr.value)) list(KILN_ATTR_DIM, *dims);
    return made;
  }

  const kiln_host &host_;
  kiln_pass_call *call_;
  kiln_edit *edit_;
  const kiln_graph *graph_;
  kiln_error *error_ = nullptr;
};

// A plugin of one pass, which has an identity and no options.
struct Definition {
  std::string_view name, version;
  std::array<uint8_t, 16> uuid;
  uint32_t stage;                        // KILN_STAGE_*
  uint64_t (*rewrite)(Rewriter &graph);  // returns how many rewrites it made; see kiln_pass for what it may depend on
};

template <const Definition &definition>
kiln_error *run(void *user, kiln_pass_call *call) {
  const kiln_host &host = *static_cast<const kiln_host *>(user);
  try {
    Rewriter graph(host, call);
    return graph.finish(definition.rewrite(graph));
  } catch (const std::exception &exception) {  // nothing may be thrown into the host
    return host.error->create(KILN_INTERNAL, exception.what(), std::strlen(exception.what()), nullptr);
  }
}

template <const Definition &definition>
kiln_error *set_up(const kiln_host *host, kiln_context *context, void **) {
  kiln_pass pass{};
  pass.struct_size = sizeof pass;
  pass.stage = definition.stage;
  pass.name = definition.name.data();
  pass.name_size = definition.name.size();
  pass.version = definition.version.data();
  pass.version_size = definition.version.size();
  pass.uuid = definition.uuid.data();
  pass.user = const_cast<kiln_host *>(host);  // read only; it outlives the pass
  pass.run = run<definition>;
  return host->context->add_pass(context, &pass);
}

// The plugin's table; it must carry a note of the same name that needs nothing.
template <const Definition &definition>
const kiln_plugin *plugin() {
  static const kiln_plugin table = [] {
    kiln_plugin made{};
    made.struct_size = sizeof made;
    made.abi_major = KILN_ABI_MAJOR;
    made.magic = KILN_PLUGIN_MAGIC;
    made.name = definition.name.data();
    made.name_size = definition.name.size();
    made.setup = set_up<definition>;
    return made;
  }();
  return &table;
}

}  // namespace pass
}  // namespace kiln
#endif
