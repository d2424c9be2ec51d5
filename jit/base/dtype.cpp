#include "jit/base/dtype.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace kiln {
namespace {

enum : uint8_t {
  dl_int = 0,
  dl_uint = 1,
  dl_float = 2,
  dl_opaque = 3,
  dl_bfloat = 4,
  dl_bool = 6,
  dl_e4m3fn = 10,
  dl_e5m2 = 12
};

constexpr std::array<DTypeInfo, last_dtype> dtype_table{{
    {DType::f64, "f64", 8, true, false, true, DType::f64, dl_float, 64},
    {DType::f32, "f32", 4, true, false, true, DType::f32, dl_float, 32},
    {DType::f16, "f16", 2, true, false, true, DType::f32, dl_float, 16},
    {DType::bf16, "bf16", 2, true, false, true, DType::f32, dl_bfloat, 16},
    {DType::i64, "i64", 8, false, true, true, DType::i64, dl_int, 64},
    {DType::i32, "i32", 4, false, true, true, DType::i32, dl_int, 32},
    {DType::i16, "i16", 2, false, true, true, DType::i16, dl_int, 16},
    {DType::i8, "i8", 1, false, true, true, DType::i8, dl_int, 8},
    {DType::u8, "u8", 1, false, true, false, DType::u8, dl_uint, 8},
    {DType::boolean, "bool", 1, false, false, false, DType::boolean, dl_bool, 8},
    {DType::u16, "u16", 2, false, true, false, DType::u16, dl_uint, 16},
    {DType::u32, "u32", 4, false, true, false, DType::u32, dl_uint, 32},
    {DType::u64, "u64", 8, false, true, false, DType::u64, dl_uint, 64},
    {DType::f8_e4m3fn, "f8_e4m3fn", 1, true, false, true, DType::f32, dl_e4m3fn, 8},
    {DType::f8_e5m2, "f8_e5m2", 1, true, false, true, DType::f32, dl_e5m2, 8},
    {DType::token, "token", 0, false, false, false, DType::token, dl_opaque, 0},
}};

}  // namespace

const DTypeInfo &dtype_info(DType dtype) {
  auto number = static_cast<size_t>(dtype);
  assert(number >= 1 && number <= dtype_table.size());
  return dtype_table[number - 1];
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeInfo &info : dtype_table)
    if (info.name == name) return info.dtype;
  return std::nullopt;
}

std::optional<DType> dtype_from_dlpack(uint8_t code, uint8_t bits) {
  for (const DTypeInfo &info : dtype_table)
    if (info.dtype != DType::token && info.dlpack_code == code && info.dlpack_bits == bits) return info.dtype;
  return std::nullopt;
}

std::optional<uint64_t> dense_bytes(DType dtype, std::span<const int64_t> shape) {
  int64_t room = size_of(dtype);
  bool empty = false;
  for (int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(room, std::max<int64_t>(dim, 1), &room)) return std::nullopt;
    empty |= dim == 0;
  }
  return empty ? 0 : static_cast<uint64_t>(room);
}

}  // namespace kiln
