// Element types. Numbers are KILN_F32 ... of kiln.h and are permanent: they stand in files and keys.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kiln {

enum class DType : uint8_t {
  none = 0,
  f64 = 1,
  f32 = 2,
  f16 = 3,
  bf16 = 4,
  i64 = 5,
  i32 = 6,
  i16 = 7,
  i8 = 8,
  u8 = 9,
  boolean = 10,
  u16 = 11,
  u32 = 12,
  u64 = 13,
  f8_e4m3fn = 14,  // finite: no infinities, one NaN of each sign
  f8_e5m2 = 15,
  token = 16  // what orders effects: of rank 0 and no bytes; no array has it
};
inline constexpr int dtype_count = 15;  // that arrays have
inline constexpr int last_dtype = 16;   // that values have

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // "f32", as in JSON
  uint32_t size_bytes;
  bool is_float, is_integer;  // bool is neither
  bool is_signed;             // can be below 0
  DType computes_as;          // f32 for smaller floats, which are stored and converted, never computed with
  uint8_t dlpack_code, dlpack_bits;
};
const DTypeInfo &dtype_info(DType dtype);  // any enumerator but none
std::optional<DType> dtype_from_name(std::string_view name);
std::optional<DType> dtype_from_dlpack(uint8_t code, uint8_t bits);  // of arrays
inline std::string_view name_of(DType d) { return d == DType::none ? "none" : dtype_info(d).name; }
inline uint32_t size_of(DType d) { return dtype_info(d).size_bytes; }
// Of 16 bits or fewer. Not none.
inline bool is_small_float(DType d) { return dtype_info(d).computes_as != d; }

// The bytes of a dense tensor. Nothing when a dimension is negative, or when they would pass 2^63 - 1 with its empty
// dimensions counted as 1 (NumPy's rule): so the order of dimensions does not matter, and no stride can overflow.
std::optional<uint64_t> dense_bytes(DType dtype, std::span<const int64_t> shape);

// Sets of dtypes, for schemas.
using DTypes = uint32_t;
constexpr DTypes dtypes(DType d) { return 1u << static_cast<uint32_t>(d); }
template <class... More>
constexpr DTypes dtypes(DType d, More... more) {
  return dtypes(d) | dtypes(more...);
}

}  // namespace kiln
