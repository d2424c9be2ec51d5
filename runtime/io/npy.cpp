// npy: "\x93NUMPY", a version, the header's length, the header (a Python dictionary), the bytes.
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <set>

#include "runtime/graph/type.h"
#include "runtime/io/corrupt.h"
#include "runtime/io/tensor_file.h"

namespace kiln {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr size_t alignment = 64;  // of the bytes within the file, as numpy writes it

struct Descriptor {
  std::string_view text;
  DType dtype;
};
constexpr std::array descriptors = {
    Descriptor{"<f8", DType::f64}, Descriptor{"<f4", DType::f32}, Descriptor{"<f2", DType::f16},
    Descriptor{"<i8", DType::i64}, Descriptor{"<i4", DType::i32}, Descriptor{"<i2", DType::i16},
    Descriptor{"|i1", DType::i8},  Descriptor{"<u8", DType::u64}, Descriptor{"<u4", DType::u32},
    Descriptor{"<u2", DType::u16}, Descriptor{"|u1", DType::u8},  Descriptor{"|b1", DType::boolean},
};

// Reads the header's dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class Header {
 public:
  explicit Header(std::string_view text) : rest_(text) {}

  Status read() {
    if (!skip('{')) return unexpected("'{'");
    while (!skip('}')) {
      std::optional<std::string_view> key = quoted();
      if (!key || !skip(':')) return unexpected("a name and ':'");
      KILN_TRY(member(*key));
      if (!skip(',') && !ahead('}')) return unexpected("',' or '}'");
    }
    blanks();
    if (!rest_.empty()) return unexpected("the end");
    if (!descriptor || !fortran_order || !shape) return corrupt("header: descr, fortran_order or shape is missing");
    return {};
  }

  std::optional<std::string_view> descriptor;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;

 private:
  Status member(std::string_view key) {
    if (!keys_.insert(key).second) return corrupt("header: '", key, "' stands there twice");
    if (key == "descr") {
      descriptor = quoted();
      return descriptor ? Status() : unexpected("a dtype in quotes (Kiln reads no records)");
    }
    if (key == "fortran_order") {
      if (word("True"))
        fortran_order = true;
      else if (word("False"))
        fortran_order = false;
      return fortran_order ? Status() : unexpected("True or False");
    }
    if (key == "shape") return tuple();
    return corrupt("header: unknown member '", key, "'");
  }

  Status tuple() {
    if (!skip('(')) return unexpected("'('");
    shape.emplace();
    while (!skip(')')) {
      blanks();
      int64_t dim = 0;
      const auto [end, failure] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), dim);
      if (failure != std::errc() || dim < 0) return unexpected("a size");
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      shape->push_back(dim);
      if (!skip(',') && !ahead(')')) return unexpected("',' or ')'");
    }
    return {};
  }

  void blanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n')) rest_.remove_prefix(1);
  }
  bool ahead(char c) {
    blanks();
    return !rest_.empty() && rest_.front() == c;
  }
  bool skip(char c) {
    if (!ahead(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool word(std::string_view text) {
    blanks();
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  std::optional<std::string_view> quoted() {
    blanks();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return std::nullopt;
    const size_t end = rest_.find(rest_.front(), 1);
    if (end == rest_.npos) return std::nullopt;
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }
  Status unexpected(std::string_view expected) const {
    return corrupt("header: expected ", expected, " before '", rest_.substr(0, 12), "'");
  }

  std::string_view rest_;
  std::set<std::string_view> keys_;
};

std::vector<int64_t> column_major_strides(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides;
  int64_t stride = 1;
  for (int64_t dim : shape) {
    strides.push_back(stride);
    stride *= dim;
  }
  return strides;
}

}  // namespace

Result<StoredTensor> parse_npy(ByteSpan file) {
  ByteReader reader(file);
  const ByteSpan start = reader.raw(magic.size());
  if (!reader.ok() || std::memcmp(start.data(), magic.data(), magic.size()) != 0) return corrupt("not an npy file");
  const auto major = reader.get<uint8_t>();
  (void)reader.get<uint8_t>();  // the minor version changes nothing
  if (reader.ok() && (major < 1 || major > 3)) return corrupt("npy of version ", uint32_t{major}, "; 1 to 3 are known");
  const uint64_t header_bytes = major == 1 ? reader.get<uint16_t>() : reader.get<uint32_t>();
  const ByteSpan header_part = reader.raw(header_bytes);
  if (!reader.ok()) return corrupt("cut short in its header: ", file.size(), " bytes");
  Header header({reinterpret_cast<const char *>(header_part.data()), header_part.size()});
  KILN_TRY(header.read());

  StoredTensor tensor;
  tensor.dtype = DType::none;
  for (const Descriptor &known : descriptors)
    if (known.text == *header.descriptor) tensor.dtype = known.dtype;
  if (tensor.dtype == DType::none)
    return corrupt("dtype '", *header.descriptor, "' is not one that Kiln has",
                   header.descriptor->find('V') == std::string_view::npos
                       ? ""
                       : "; .npy has none for bf16 and 8-bit floats, use .safetensors");
  tensor.shape = std::move(*header.shape);
  if (tensor.shape.size() > max_rank)
    return corrupt("its shape has ", tensor.shape.size(), " dims; the most is ", max_rank);
  const std::optional<uint64_t> needed = dense_bytes(tensor.dtype, tensor.shape);
  const ByteSpan data = file.subspan(reader.position());
  if (!needed || *needed != data.size())
    return corrupt("has ", data.size(), " bytes of data; its dtype and shape need ",
                   needed ? str_cat(*needed) : "more than there can be");
  if (*header.fortran_order && tensor.shape.size() > 1) tensor.strides = column_major_strides(tensor.shape);
  tensor.bytes = data;
  return tensor;
}

Result<Bytes> write_npy(const StoredTensor &tensor) {
  std::string_view descriptor;
  for (const Descriptor &known : descriptors)
    if (known.dtype == tensor.dtype) descriptor = known.text;
  if (descriptor.empty()) return invalid("npy has no type for ", name_of(tensor.dtype), "; .safetensors has one");
  std::string header = str_cat("{'descr': '", descriptor, "', 'fortran_order': False, 'shape': (");
  for (int64_t dim : tensor.shape) header += str_cat(dim, ", ");
  header += "), }";
  const size_t before = magic.size() + 2 + sizeof(uint16_t);
  header.resize((before + header.size() + 1 + alignment - 1) / alignment * alignment - before - 1, ' ');
  header += '\n';

  ByteWriter out;
  out.raw({reinterpret_cast<const uint8_t *>(magic.data()), magic.size()});
  out.put<uint8_t>(1);
  out.put<uint8_t>(0);
  out.put(static_cast<uint16_t>(header.size()));  // a rank that fits in a DLTensor makes no header that long
  out.raw({reinterpret_cast<const uint8_t *>(header.data()), header.size()});
  out.raw(tensor.bytes);
  return out.take();
}

}  // namespace kiln
