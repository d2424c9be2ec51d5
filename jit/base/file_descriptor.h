// Owns an open file descriptor.
#pragma once
#include <unistd.h>

#include <utility>

namespace kiln {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor &operator=(FileDescriptor &&other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() { (void)close(); }
  int get() const { return fd_; }  // negative: none
  // False: what was written may be lost (some file systems report a full disk only here).
  bool close() { return fd_ < 0 || ::close(std::exchange(fd_, -1)) == 0; }
  // It stays open, and is the caller's.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace kiln
