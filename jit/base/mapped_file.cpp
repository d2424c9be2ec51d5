#include "jit/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace kiln {

namespace {

Status io_error(const std::string &path, std::string_view what) {
  return error(Code::io, path, ": ", what, ": ", std::generic_category().message(errno));
}

}  // namespace

MappedFile::MappedFile(MappedFile &&other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) munmap(data_, size_);
}

Result<MappedFile> MappedFile::open(const std::string &path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return io_error(path, "cannot open");
  struct stat info{};
  Status status;
  MappedFile mapped;
  if (fstat(file, &info) != 0) {
    status = io_error(path, "cannot stat");
  } else if (!S_ISREG(info.st_mode)) {
    status = error(Code::io, path, ": not a regular file");
  } else if (info.st_size > 0) {  // an empty file has nothing to map
    void *data = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) {
      status = io_error(path, "cannot map");
    } else {
      mapped.data_ = data;
      mapped.size_ = static_cast<size_t>(info.st_size);
    }
  }
  ::close(file);
  if (!status.ok()) return status;
  return mapped;
}

}  // namespace kiln
