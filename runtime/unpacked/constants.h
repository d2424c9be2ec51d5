// Constants in files. Internal to this folder.
#pragma once
#include "jit/base/dtype.h"

namespace kiln::unpacked {

// What a file of NumPy's has the elements of a type as: itself, or the bits, where NumPy lacks it.
inline DType stored_as(DType dtype) {
  if (dtype == DType::bf16) return DType::u16;
  return dtype == DType::f8_e4m3fn || dtype == DType::f8_e5m2 ? DType::u8 : dtype;
}

}  // namespace kiln::unpacked
