// Little-endian byte streams: what keys hash, what files hold, what crosses to an emitter. A reader never runs past
// its end: reads after that give zeros and `ok()` is false, so a parser checks once, at its end or before a loop.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace kiln {

using Bytes = std::vector<uint8_t>;
using ByteSpan = std::span<const uint8_t>;

static_assert(std::endian::native == std::endian::little, "the formats are little-endian, and read in place");

class ByteWriter {
 public:
  template <class T>
    requires std::is_arithmetic_v<T>
  void put(T value) {
    const auto *p = reinterpret_cast<const uint8_t *>(&value);
    bytes_.insert(bytes_.end(), p, p + sizeof value);
  }
  void raw(ByteSpan bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void blob(ByteSpan bytes) {
    put<uint64_t>(bytes.size());
    raw(bytes);
  }  // length, then bytes
  void text(std::string_view s) { blob({reinterpret_cast<const uint8_t *>(s.data()), s.size()}); }
  void align(size_t to) {
    while (bytes_.size() % to) bytes_.push_back(0);
  }
  size_t size() const { return bytes_.size(); }
  Bytes take() { return std::move(bytes_); }
  const Bytes &bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(ByteSpan bytes) : bytes_(bytes) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  T get() {
    T value{};
    if (ByteSpan part = raw(sizeof value); part.size() == sizeof value) std::memcpy(&value, part.data(), sizeof value);
    return value;
  }
  ByteSpan raw(uint64_t size) {
    if (size > bytes_.size() - at_) {
      ok_ = false;
      at_ = bytes_.size();
      return {};
    }
    ByteSpan part = bytes_.subspan(at_, size);
    at_ += size;
    return part;
  }
  ByteSpan blob() { return raw(get<uint64_t>()); }
  std::string text() {
    ByteSpan b = blob();
    return {reinterpret_cast<const char *>(b.data()), b.size()};
  }
  // A count of elements that take at least `element_bytes` each: refused (0, not ok) when they cannot all be there.
  uint64_t count(uint64_t element_bytes = 1) {
    uint64_t n = get<uint64_t>();
    if (n > (bytes_.size() - at_) / element_bytes) {
      ok_ = false;
      at_ = bytes_.size();
      return 0;
    }
    return n;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return at_ == bytes_.size(); }
  size_t position() const { return at_; }
  void fail() {
    ok_ = false;
    at_ = bytes_.size();
  }

 private:
  ByteSpan bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

// A struct at `offset` of `bytes`, or nothing when it does not lie in them. Copied: they need not be aligned.
template <class T>
std::optional<T> read_at(ByteSpan bytes, uint64_t offset) {
  T value;
  if (offset > bytes.size() || bytes.size() - offset < sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace kiln
