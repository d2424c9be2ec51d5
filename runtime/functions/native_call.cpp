#include "runtime/functions/native_call.h"

#include <ffi.h>

#include <utility>
#include <vector>

namespace kiln {
namespace {

using Argument = FunctionSignature::Argument;

ffi_type *type_of(const Argument &argument) {
  if (argument.kind != Argument::Kind::scalar || argument.by_pointer) return &ffi_type_pointer;
  switch (argument.type) {
    case DType::f64:
      return &ffi_type_double;
    case DType::f32:
      return &ffi_type_float;
    case DType::i64:
      return &ffi_type_sint64;
    case DType::i32:
      return &ffi_type_sint32;
    case DType::i16:
      return &ffi_type_sint16;
    case DType::i8:
      return &ffi_type_sint8;
    case DType::u64:
      return &ffi_type_uint64;
    case DType::u32:
      return &ffi_type_uint32;
    case DType::u16:
      return &ffi_type_uint16;
    case DType::u8:
    case DType::boolean:
      return &ffi_type_uint8;
    case DType::none:
    case DType::f16:
    case DType::bf16:
    case DType::f8_e4m3fn:
    case DType::f8_e5m2:
    case DType::token:
      break;
  }
  return &ffi_type_void;  // refused where the signature is read
}

}  // namespace

struct NativeCall::Prepared {
  std::vector<ffi_type *> types;
  ffi_cif interface = {};
};

NativeCall::NativeCall(std::unique_ptr<Prepared> prepared) : prepared_(std::move(prepared)) {}
NativeCall::NativeCall(NativeCall &&) noexcept = default;
NativeCall &NativeCall::operator=(NativeCall &&) noexcept = default;
NativeCall::~NativeCall() = default;

Result<NativeCall> NativeCall::of(const FunctionSignature &signature) {
  auto prepared = std::make_unique<Prepared>();
  for (const Argument &argument : signature.arguments) prepared->types.push_back(type_of(argument));
  ffi_type *returned = signature.returns == FunctionSignature::Return::nothing ? &ffi_type_void
                       : signature.returns == FunctionSignature::Return::code  ? &ffi_type_sint32
                                                                               : &ffi_type_pointer;
  const auto count = static_cast<unsigned>(prepared->types.size());
  if (ffi_prep_cif(&prepared->interface, FFI_DEFAULT_ABI, count, returned, prepared->types.data()) != FFI_OK)
    return error(Code::internal, "libffi does not take the signature");
  return NativeCall(std::move(prepared));
}

uint64_t NativeCall::call(void (*function)(), void *const *values) const {
  ffi_arg returned = 0;  // smaller integers are widened to it
  ffi_call(&prepared_->interface, function, &returned, const_cast<void **>(values));
  return returned;
}

}  // namespace kiln
