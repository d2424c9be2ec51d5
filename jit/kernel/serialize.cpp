// The kernel's bytes: hashed for its key, sent to emitters, kept in artifacts.
#include <charconv>

#include "jit/base/byte_walk.h"
#include "jit/kernel/walk.h"

namespace kiln::kernel {
namespace {

constexpr uint32_t format_version = 4;

class Writer : public WalkWriter<Writer, uint32_t> {
 public:
  using WalkWriter::put;
  void put(const Expr &e) { out_.text(e.text()); }
  template <class T>
  void immediate(std::string_view name, const T &item, uint64_t T::*member, DType) {
    field(name, item, member);
  }
  template <class T>
  void immediates(std::string_view name, const T &item, std::vector<uint64_t> T::*member, std::span<const DType>) {
    field(name, item, member);
  }
  Bytes take() { return out_.take(); }
};

class Reader : public WalkReader<Reader> {
 public:
  std::vector<Axis> scope = {};

  using WalkReader::get;
  using WalkReader::WalkReader;
  void get(Expr &e) {
    std::optional<Expr> parsed = parse_expr(in_.text(), scope);
    if (!parsed) return in_.fail();
    e = std::move(*parsed);
  }
  template <class T>
  void get(std::vector<T> &items) {
    const auto count = in_.get<uint32_t>();
    for (uint32_t i = 0; i < count && in_.ok(); ++i) get(items.emplace_back());
  }
  template <class T>
  void immediate(std::string_view name, T &item, uint64_t T::*member, DType) {
    field(name, item, member);
  }
  template <class T>
  void immediates(std::string_view name, T &item, std::vector<uint64_t> T::*member, std::span<const DType>) {
    field(name, item, member);
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
  return writer.take();
}

Result<Kernel> parse(ByteSpan bytes) {
  ByteReader in(bytes);
  if (in.get<uint32_t>() != format_version) return error(Code::corrupt, "kernel: unknown format version");
  Kernel kernel;
  Reader(in).get(kernel);
  if (!in.ok() || !in.at_end()) return error(Code::corrupt, "kernel: damaged near byte ", in.position());
  KILN_TRY(verify(kernel));
  return kernel;
}

}  // namespace kiln::kernel
