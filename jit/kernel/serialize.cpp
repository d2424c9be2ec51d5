// The kernel's bytes: hashed for its key, sent to emitters, kept in artifacts. One pair of functions a struct, in the
// order of kernel.h; `visit` walks fields in both directions, so that writing and reading cannot disagree.
#include <charconv>
#include <type_traits>

#include "jit/kernel/kernel.h"

namespace kiln::kernel {
namespace {

constexpr uint32_t format_version = 3;

struct Writer {
  ByteWriter out;
  template <class T>
    requires std::is_arithmetic_v<T>
  void field(const T &value) {
    out.put(value);
  }
  template <class T>
    requires std::is_enum_v<T>
  void field(const T &value) {
    out.put(static_cast<uint8_t>(value));
  }
  void field(const Expr &e) { out.text(e.text()); }
  void field(const std::string &s) { out.text(s); }
  template <class T>
  void field(const std::vector<T> &items) {
    out.put<uint32_t>(static_cast<uint32_t>(items.size()));
    for (const T &item : items) field(item);
  }
  template <class T>
  void field(const std::optional<T> &item) {
    out.put<uint8_t>(item.has_value());
    if (item) field(*item);
  }
  template <class T>
    requires std::is_class_v<T>
  void field(const T &item) {
    visit(*this, item);
  }
};

struct Reader {
  ByteReader in;
  std::vector<Axis> scope;  // axes that an Expr may name: their extents are what it is simplified by
  template <class T>
    requires std::is_arithmetic_v<T>
  void field(T &value) {
    value = in.get<T>();
  }
  void field(bool &value) { value = in.get<uint8_t>() != 0; }
  template <class T>
    requires std::is_enum_v<T>
  void field(T &value) {
    value = static_cast<T>(in.get<uint8_t>());
  }
  void field(Expr &e) {
    Result<Expr> parsed = Expr::parse(in.text());
    if (!parsed.ok()) return in.fail();
    e = parsed.value().substitute([&](const Expr &leaf) -> std::optional<Expr> {
      // Axes and values print as i0 and v0, symbols of a kernel as s0. What is none of these stays a symbol.
      if (leaf.kind() != Expr::Kind::symbol) return {};
      const std::string &name = leaf.symbol_name();
      uint32_t number = 0;
      const char *end = name.data() + name.size();
      if (const auto read = std::from_chars(name.data() + 1, end, number); read.ec != std::errc() || read.ptr != end)
        return {};
      if (name[0] == 'v') return Expr::value(number);
      if (name[0] != 'i') return {};
      if (number >= scope.size()) {
        in.fail();
        return {};
      }
      return Expr::axis(number, scope[number].extent);
    });
  }
  void field(std::string &s) { s = in.text(); }
  template <class T>
  void field(std::vector<T> &items) {
    const uint32_t count = in.get<uint32_t>();
    for (uint32_t i = 0; i < count && in.ok(); ++i) field(items.emplace_back());
  }
  template <class T>
  void field(std::optional<T> &item) {
    if (in.get<uint8_t>() != 0) field(item.emplace());
  }
  template <class T>
    requires std::is_class_v<T>
  void field(T &item) {
    visit(*this, item);
  }
};

// One walk writes and reads: V is the writer, with T const, or the reader.
template <class V>
void visit(V &v, auto &item);

template <class V, class T>
void walk(V &v, T &x, const Access *) {
  v.field(x.buffer);
  v.field(x.index);
  v.field(x.valid);
  v.field(x.fill);
}
template <class V, class T>
void walk(V &v, T &x, const Value *) {
  v.field(x.op);
  v.field(x.type);
  for (auto &arg : x.args) v.field(arg);
  v.field(x.immediate);
  if (reads_memory(x.op)) v.field(x.access);
  if (has_expr(x.op)) v.field(x.expr);
}
template <class V, class T>
void walk(V &v, T &x, const Body *) {
  v.field(x.values);
  v.field(x.yields);
}
template <class V, class T>
void walk(V &v, T &x, const Axis *) {
  v.field(x.extent);
  v.field(x.role);
}
template <class V, class T>
void walk(V &v, T &x, const Carriers *) {
  v.field(x.types);
  v.field(x.identities);
  v.field(x.combine);
  v.field(x.exclusive);
  v.field(x.reverse);
}
template <class V, class T>
void walk(V &v, T &x, const Store *) {
  v.field(x.to);
  v.field(x.value);
  v.field(x.mode);
}
template <class V, class T>
void walk(V &v, T &x, const Sort::Column *) {
  v.field(x.buffer);
  v.field(x.spare);
}
template <class V, class T>
void walk(V &v, T &x, const Sort *) {
  v.field(x.columns);
  v.field(x.descending);
  v.field(x.runs);
  v.field(x.wanted);
}
template <class V, class T>
void walk(V &v, T &x, const Contract *) {
  v.field(x.a);
  v.field(x.b);
  v.field(x.accumulator);
  v.field(x.a_factor);
  v.field(x.b_factor);
  v.field(x.group);
  v.field(x.panel);
  v.field(x.packed_buffer);
  v.field(x.packed_offset);
}
template <class V, class T>
void walk(V &v, T &x, const Stage *) {
  v.field(x.axes);
  size_t outer = 0;
  if constexpr (requires { v.scope; }) {  // reading: the stage's axes come into scope
    outer = v.scope.size();
    v.scope.insert(v.scope.end(), x.axes.begin(), x.axes.end());
  }
  v.field(x.contract);
  v.field(x.body);
  v.field(x.carriers);
  v.field(x.stores);
  v.field(x.sort);
  if constexpr (requires { v.scope; }) v.scope.resize(outer);
}
template <class V, class T>
void walk(V &v, T &x, const Buffer *) {
  v.field(x.type);
  v.field(x.space);
  v.field(x.size);
}
template <class V, class T>
void walk(V &v, T &x, const Schedule *) {
  v.field(x.vector);
  v.field(x.vector_bytes);
  v.field(x.tiles);
  v.field(x.masked_tail);
  v.field(x.ordered);
  v.field(x.stream_bytes);
  v.field(x.mr);
  v.field(x.nr);
  v.field(x.kc);
  v.field(x.products);
  v.field(x.vector_m);
}
template <class V, class T>
void walk(V &v, T &x, const Kernel *) {
  v.field(x.symbols);
  v.field(x.buffers);
  v.field(x.parallel);
  if constexpr (requires { v.scope; }) v.scope = x.parallel;
  v.field(x.stages);
  v.field(x.schedule);
}
template <class V>
void visit(V &v, auto &item) {
  walk(v, item, static_cast<const std::remove_cvref_t<decltype(item)> *>(nullptr));
}

}  // namespace

Bytes serialize(const Kernel &kernel) {
  Writer writer;
  writer.field(format_version);
  writer.field(kernel);
  return writer.out.take();
}

Result<Kernel> parse(ByteSpan bytes) {
  Reader reader{ByteReader(bytes), {}};
  if (reader.in.get<uint32_t>() != format_version) return error(Code::corrupt, "kernel: unknown format version");
  Kernel kernel;
  reader.field(kernel);
  if (!reader.in.ok() || !reader.in.at_end())
    return error(Code::corrupt, "kernel: damaged near byte ", reader.in.position());
  KILN_TRY(verify(kernel));
  return kernel;
}

}  // namespace kiln::kernel
