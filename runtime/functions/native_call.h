// A function of any signature, called by libffi.
#pragma once
#include <cstdint>
#include <memory>

#include "runtime/functions/signature.h"

namespace kiln {

// How functions of one signature are called, worked out once. Threads: any.
class NativeCall {
 public:
  static Result<NativeCall> of(const FunctionSignature &signature);
  NativeCall(NativeCall &&) noexcept;
  NativeCall &operator=(NativeCall &&) noexcept;
  ~NativeCall();
  // `values` points to as many values as there are arguments, each of its type. What the function returns: nothing, 0;
  // a code, as it is; an error, its address.
  uint64_t call(void (*function)(), void *const *values) const;

 private:
  struct Prepared;
  explicit NativeCall(std::unique_ptr<Prepared> prepared);
  std::unique_ptr<Prepared> prepared_;
};

}  // namespace kiln
