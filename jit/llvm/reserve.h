// Memory that a compile can count on.
//
// LLVM does not survive an allocation that fails: it is built without exceptions, so what unwinds through it leaves
// locks taken, statics half made and promises broken. Therefore all of this library, LLVM and the C++ library that is
// linked into it included, allocates through reserve.cpp (the linker's --wrap, see CMakeLists.txt): what malloc refuses
// comes from memory that was set aside. A compile holds a Reserve, large enough for the kernels at hand, and begins no
// other kernel once it is drawn on. The library's own start (static constructors) has a small reserve in its data.
#pragma once
#include <cstddef>
#include <optional>
#include <utility>

namespace kiln::codegen {

// Threads: any. All allocations of the process's compiles may draw on it.
class Reserve {
 public:
  // Nothing when the system does not have so much memory.
  static std::optional<Reserve> hold(size_t bytes);
  Reserve(Reserve &&other) noexcept : pool_(other.pool_) { other.pool_ = nullptr; }
  Reserve &operator=(Reserve &&other) noexcept {
    std::swap(pool_, other.pool_);
    return *this;
  }
  // Blocks that are still in use stay valid.
  ~Reserve();

  // Whether an eighth of it is in use: what else was to be begun has to wait for another time.
  bool is_low() const;
  // Whether all but an eighth is in use: even tidying up may fail.
  bool is_spent() const;

  struct Pool;

 private:
  explicit Reserve(Pool *pool) : pool_(pool) {}
  Pool *pool_;
};

}  // namespace kiln::codegen
