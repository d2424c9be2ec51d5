// The kernel's bytes: hashed for its key, sent to emitters, kept in artifacts.
#include <charconv>
#include <type_traits>

#include "jit/kernel/walk.h"

namespace kiln::kernel {
namespace {

constexpr uint32_t format_version = 3;

struct Writer {
  ByteWriter out;
  template <class T, class M>
  void field(std::string_view, const T &item, M T::*member) {
    put(item.*member);
  }
  template <class T>
  void immediate(std::string_view, const T &item, uint64_t T::*member, DType) {
    put(item.*member);
  }
  template <class T>
  void immediates(std::string_view, const T &item, std::vector<uint64_t> T::*member, std::span<const DType>) {
    put(item.*member);
  }

  template <class T>
    requires std::is_arithmetic_v<T>
  void put(const T &value) {
    out.put(value);
  }
  template <class T>
    requires std::is_enum_v<T>
  void put(const T &value) {
    out.put(static_cast<uint8_t>(value));
  }
  void put(const Expr &e) { out.text(e.text()); }
  void put(const std::string &s) { out.text(s); }
  template <class T, size_t n>
  void put(const std::array<T, n> &items) {
    for (const T &item : items) put(item);
  }
  template <class T>
  void put(const std::vector<T> &items) {
    out.put<uint32_t>(static_cast<uint32_t>(items.size()));
    for (const T &item : items) put(item);
  }
  template <class T>
  void put(const std::optional<T> &item) {
    out.put<uint8_t>(item.has_value());
    if (item) put(*item);
  }
  template <class T>
    requires std::is_class_v<T>
  void put(const T &item) {
    walk(*this, item, static_cast<const T *>(nullptr));
  }
};

struct Reader {
  ByteReader in;
  std::vector<Axis> scope;
  template <class T, class M>
  void field(std::string_view, T &item, M T::*member) {
    get(item.*member);
  }
  template <class T>
  void immediate(std::string_view, T &item, uint64_t T::*member, DType) {
    get(item.*member);
  }
  template <class T>
  void immediates(std::string_view, T &item, std::vector<uint64_t> T::*member, std::span<const DType>) {
    get(item.*member);
  }

  template <class T>
    requires std::is_arithmetic_v<T>
  void get(T &value) {
    value = in.get<T>();
  }
  void get(bool &value) { value = in.get<uint8_t>() != 0; }
  template <class T>
    requires std::is_enum_v<T>
  void get(T &value) {
    value = static_cast<T>(in.get<uint8_t>());
  }
  void get(Expr &e) {
    std::optional<Expr> parsed = parse_expr(in.text(), scope);
    if (!parsed) return in.fail();
    e = std::move(*parsed);
  }
  void get(std::string &s) { s = in.text(); }
  template <class T, size_t n>
  void get(std::array<T, n> &items) {
    for (T &item : items) get(item);
  }
  template <class T>
  void get(std::vector<T> &items) {
    const uint32_t count = in.get<uint32_t>();
    for (uint32_t i = 0; i < count && in.ok(); ++i) get(items.emplace_back());
  }
  template <class T>
  void get(std::optional<T> &item) {
    if (in.get<uint8_t>() != 0) get(item.emplace());
  }
  template <class T>
    requires std::is_class_v<T>
  void get(T &item) {
    walk(*this, item, static_cast<const T *>(nullptr));
  }
};

}  // namespace

std::optional<Expr> parse_expr(std::string_view text, std::span<const Axis> scope) {
  Result<Expr> parsed = Expr::parse(text);
  if (!parsed.ok()) return std::nullopt;
  bool known = true;
  Expr e = parsed.value().substitute([&](const Expr &leaf) -> std::optional<Expr> {
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
      known = false;
      return {};
    }
    return Expr::axis(number, scope[number].extent);
  });
  if (!known) return std::nullopt;
  return e;
}

Bytes serialize(const Kernel &kernel) {
  Writer writer;
  writer.put(format_version);
  writer.put(kernel);
  return writer.out.take();
}

Result<Kernel> parse(ByteSpan bytes) {
  Reader reader{ByteReader(bytes), {}};
  if (reader.in.get<uint32_t>() != format_version) return error(Code::corrupt, "kernel: unknown format version");
  Kernel kernel;
  reader.get(kernel);
  if (!reader.in.ok() || !reader.in.at_end())
    return error(Code::corrupt, "kernel: damaged near byte ", reader.in.position());
  KILN_TRY(verify(kernel));
  return kernel;
}

}  // namespace kiln::kernel
