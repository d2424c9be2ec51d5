// Element types, as kiln.f32 and its like.
#pragma once
#include "support.h"

namespace kiln_python {
struct DType {
  kiln_dtype number = 0;
  std::string name;       // "f32"
  std::string long_name;  // "float32", as other libraries say
  uint32_t bytes = 0;
  DLDataType dlpack{};
};

/// What the library has, by number; 0 is none. Filled when the module is made.
inline std::vector<DType> dtype_table;
[[noreturn]] void refuse_dtype(kiln_dtype number);
/// By its number; KILN_OUT_OF_RANGE for one that the library does not have.
inline const DType &dtype_of(kiln_dtype number) {
  if (number == 0 || number >= dtype_table.size()) refuse_dtype(number);
  return dtype_table[number];
}
/// Of DLPack's; null where Kiln has none.
const DType *dtype_of(DLDataType type);
/// The Python object of it: there is one of each.
nb::object dtype_object(kiln_dtype number);
/// Of a DType, a name ("f32", "float32"), or another library's (numpy.float32, torch.float32).
kiln_dtype to_dtype(nb::handle object);
}  // namespace kiln_python
