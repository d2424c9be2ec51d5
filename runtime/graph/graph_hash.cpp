// The canonical bytes of a graph. Tags and order are part of every key: a change here makes every record a miss.
#include <unordered_map>

#include "runtime/graph/graph.h"

namespace kiln {
namespace {

class Hasher {
 public:
  void graph(const Graph &g, ByteWriter &out) {
    out.put<uint64_t>(g.symbols().size());
    for (const auto &[name, info] : g.symbols()) {
      out.text(name);
      for (int64_t number : {info.min, info.max, info.divisor, info.hint}) out.put(number);
    }
    std::unordered_map<uint32_t, uint32_t> number_of;
    out.put<uint64_t>(g.nodes().size());
    for (const Node &node : g.nodes()) {
      number_of.emplace(node.id, static_cast<uint32_t>(number_of.size()));
      this->node(node, number_of, out);
    }
    out.put<uint64_t>(g.outputs().size());
    for (const GraphOutput &output : g.outputs()) {
      out.text(output.name);
      out.put(number_of.at(output.value.node));
      out.put(output.value.output);
      out.put(static_cast<uint8_t>(output.layout.kind));
      dims(output.layout.strides, out);
    }
  }

 private:
  void node(const Node &node, const std::unordered_map<uint32_t, uint32_t> &number_of, ByteWriter &out) {
    out.put(static_cast<uint8_t>(node.kind));
    switch (node.kind) {
      case Node::Kind::input:
      case Node::Kind::parameter:
        out.text(node.name);
        break;
      case Node::Kind::constant:
        tensor(node.constant, out);
        break;
      case Node::Kind::op:
        out.text(node.op->name);
        out.put(node.op->version);
        out.put<uint64_t>(node.inputs.size());
        for (ValueId value : node.inputs) {
          out.put(number_of.at(value.node));
          out.put(value.output);
        }
        values(node.attrs, false, out);
    }
    values(node.annotations, true, out);
    out.put<uint64_t>(node.results.size());
    for (const TensorType &type : node.results) this->type(type, out);
  }

  static void dims(const Shape &shape, ByteWriter &out) {
    out.put<uint64_t>(shape.size());
    for (const Dim &dim : shape) item(dim, out);
  }

  static void type(const TensorType &type, ByteWriter &out) {
    out.put(static_cast<uint8_t>(type.dtype));
    out.put(static_cast<uint8_t>(type.layout));
    out.put(type.device);
    dims(type.dims, out);
    dims(type.strides, out);
  }

  void values(const AttrMap &map, bool skip_debug, ByteWriter &out) {
    for (const auto &[name, value] : map) {
      if (skip_debug && name.starts_with("debug.")) continue;
      out.put<uint8_t>(1);
      out.text(name);
      out.put(static_cast<uint8_t>(value.kind()));
      out.put<uint8_t>(value.is_list);
      out.put<uint64_t>(value.size());
      std::visit(
          [&](const auto &list) {
            using Item = typename std::decay_t<decltype(list)>::value_type;
            for (const Item &e : list) {
              if constexpr (std::is_same_v<Item, GraphPtr>)
                nested(e, out);
              else if constexpr (std::is_same_v<Item, TensorPtr>)
                tensor(e, out);
              else
                item(e, out);
            }
          },
          value.items);
    }
    out.put<uint8_t>(0);
  }

  static void item(int64_t v, ByteWriter &out) { out.put(v); }
  static void item(double v, ByteWriter &out) { out.put(v); }
  static void item(const std::string &v, ByteWriter &out) { out.text(v); }
  static void item(DType v, ByteWriter &out) { out.put(static_cast<uint8_t>(v)); }
  static void item(bool v, ByteWriter &out) { out.put<uint8_t>(v); }
  static void item(const Dim &v, ByteWriter &out) {
    out.put<uint8_t>(v.is_integer());
    if (v.is_integer())
      out.put(v.integer());
    else
      out.text(v.text());
  }

  // A graph or tensor that is used many times is hashed once.
  void nested(const GraphPtr &g, ByteWriter &out) {
    auto [found, is_new] = digests_.try_emplace(g.get());
    if (is_new) {
      ByteWriter bytes;
      if (g) graph(*g, bytes);
      digests_[g.get()] = digest_of(bytes.bytes());  // the recursion may have moved `found`
    }
    out.raw(digests_[g.get()].bytes);
  }
  void tensor(const TensorPtr &t, ByteWriter &out) {
    auto [found, is_new] = digests_.try_emplace(t.get());
    if (is_new && t) found->second = digest_of(t->bytes);
    out.raw(found->second.bytes);
    if (!t) return;
    out.put(static_cast<uint8_t>(t->dtype));
    out.put<uint64_t>(t->shape.size());
    for (int64_t extent : t->shape) out.put(extent);
  }

  std::unordered_map<const void *, Digest> digests_;
};

}  // namespace

void hash_bytes(const Graph &graph, ByteWriter &out) { Hasher().graph(graph, out); }

Digest digest_of(const Graph &graph) {
  ByteWriter bytes;
  hash_bytes(graph, bytes);
  return digest_of(bytes.bytes());
}

}  // namespace kiln
