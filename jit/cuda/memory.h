// One block of device memory, in the order of a stream where the driver has memory pools.
// Lifetime: made and destroyed inside a ContextScope, before its stream; no other stream may still use it then.
// Threads: one at a time. Failure: code out_of_memory, or the driver's.
#pragma once
#include <utility>

#include "jit/cuda/context.h"
#include "jit/cuda/stream.h"

namespace kiln::cuda {

inline Result<Address> allocate(const Context &context, const Stream &stream, uint64_t bytes) {
  const Driver &driver = context.driver();
  Address address = 0;
  Status status = context.has_memory_pools()
                      ? driver.check(driver.allocate_async(&address, bytes, stream.handle()), "cuMemAllocAsync")
                      : driver.check(driver.allocate(&address, bytes), "cuMemAlloc");
  if (!status.ok()) return std::move(status).with_prefix(str_cat(bytes, " bytes: "));
  return address;
}

inline void free(const Context &context, const Stream &stream, Address address) {
  if (context.has_memory_pools())
    (void)context.driver().free_async(address, stream.handle());
  else
    (void)context.driver().free(address);  // waits for the device
}

class Memory {
 public:
  // Holds nothing. Context and stream outlive it.
  Memory(const Context &context, const Stream &stream) : context_(&context), stream_(&stream) {}
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  ~Memory() { release(); }

  // Makes it hold at least `bytes`; what it held is lost then.
  Status grow(uint64_t bytes) {
    if (bytes <= size_) return {};
    release();
    KILN_ASSIGN(address_, allocate(*context_, *stream_, bytes));
    size_ = bytes;
    return {};
  }
  Address address() const { return address_; }

 private:
  void release() {
    if (size_) free(*context_, *stream_, address_);
    address_ = size_ = 0;
  }
  const Context *context_;
  const Stream *stream_;
  Address address_ = 0;
  uint64_t size_ = 0;
};

}  // namespace kiln::cuda
