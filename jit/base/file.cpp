#include "jit/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "jit/base/new_file.h"
#include "jit/base/process.h"
#include "jit/base/produce_file.h"

namespace kiln {
namespace {

Status failed(std::string_view what, const std::string &path) {
  int number = errno;
  return error(errno_code(number), "cannot ", what, " '", path, "': ", errno_text(number));
}

Result<size_t> size_of(const FileDescriptor &file, const std::string &path) {
  struct stat info{};
  if (fstat(file.get(), &info) != 0) return failed("examine", path);
  return static_cast<size_t>(info.st_size);
}

// False with errno set.
bool write_all(const FileDescriptor &file, ByteSpan bytes) {
  for (size_t at = 0; at < bytes.size();) {
    ssize_t put = ::write(file.get(), bytes.data() + at, bytes.size() - at);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    at += static_cast<size_t>(put);
  }
  return true;
}

using Produce = std::function<bool(const WriteBytes &)>;

Status write_into(const std::string &path, const Produce &produce) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) return failed("open", path);
  if (!produce([&](ByteSpan bytes) { return write_all(file, bytes); })) return failed("write", path);
  if (!file.close()) return failed("close", path);
  return {};
}

Status replace_file(const std::string &path, const Produce &produce) {
  const size_t slash = path.rfind('/');
  NewFile file(slash == path.npos ? "" : path.substr(0, slash + 1), ".kiln-", 0666);
  if (!file.is_open()) return failed("create a file beside", path);
  if (!produce([&](ByteSpan bytes) { return file.write(bytes); })) return failed("write", path);
  if (!file.flush()) return failed("flush", path);
  return file.replace(path) ? Status() : failed("rename a file to", path);
}

}  // namespace

std::string errno_text(int number) { return std::generic_category().message(number); }

Code errno_code(int number) { return number == ENOMEM ? Code::out_of_memory : Code::io; }

Result<FileDescriptor> open_file(const std::string &path) {
  // Not blocking: opening a FIFO would wait for a writer before we could refuse it.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return failed("open", path);
  struct stat info{};
  if (fstat(file.get(), &info) != 0) return failed("examine", path);
  if (!S_ISREG(info.st_mode)) return error(Code::io, "cannot read '", path, "': not a regular file");
  return file;
}

bool is_file_at(const FileDescriptor &file, const std::string &path) {
  struct stat opened{}, there{};
  return fstat(file.get(), &opened) == 0 && stat(path.c_str(), &there) == 0 && opened.st_dev == there.st_dev &&
         opened.st_ino == there.st_ino;
}

Result<Bytes> read_file(const FileDescriptor &file, const std::string &path) {
  KILN_ASSIGN(const size_t size, size_of(file, path));
  Bytes bytes(size);
  size_t at = 0;
  while (at < bytes.size()) {
    ssize_t got = ::pread(file.get(), bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("read", path);
    if (got == 0) break;  // it has become shorter since
    at += static_cast<size_t>(got);
  }
  bytes.resize(at);
  return bytes;
}

Result<Bytes> read_file(const std::string &path) {
  KILN_ASSIGN(const FileDescriptor file, open_file(path));
  return read_file(file, path);
}

Status write_file(const std::string &path, ByteSpan bytes) {
  return produce_file(path, [&](const WriteBytes &write) { return write(bytes); });
}

Status produce_file(const std::string &path, const Produce &produce) {
  const WriteSignalsHeld held;
  struct stat there{};
  const bool exists = ::lstat(path.c_str(), &there) == 0;
  const bool special = exists && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode);
  return special ? write_into(path, produce) : replace_file(path, produce);
}

Status MappedFile::map(const FileDescriptor &file, const std::string &path, const FileStamp &stamp, uint64_t offset,
                       uint64_t size) {
  stamp_ = stamp;
  if (size == 0) return {};  // mmap refuses a length of 0
  const uint64_t before = offset % static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  void *begin = mmap(nullptr, before + size, PROT_READ, MAP_PRIVATE, file.get(), static_cast<off_t>(offset - before));
  if (begin == MAP_FAILED) return failed("map", path);
  data_ = static_cast<const uint8_t *>(begin) + before;
  size_ = size;
  before_ = before;
  return {};
}

Result<MappedFile> MappedFile::open(const std::string &path) {
  KILN_ASSIGN(const FileDescriptor file, open_file(path));
  const std::optional<FileStamp> stamp = FileStamp::of(file);
  if (!stamp) return failed("examine", path);
  MappedFile mapped;
  KILN_TRY(mapped.map(file, path, *stamp, 0, stamp->size));
  return mapped;
}

Result<MappedFile> MappedFile::open(const std::string &path, uint64_t offset, uint64_t size) {
  KILN_ASSIGN(const FileDescriptor file, open_file(path));
  const std::optional<FileStamp> stamp = FileStamp::of(file);
  if (!stamp) return failed("examine", path);
  if (offset > stamp->size || size > stamp->size - offset)
    return error(Code::io, "'", path, "' has ", stamp->size, " bytes, and not ", size, " from byte ", offset, " on");
  MappedFile mapped;
  KILN_TRY(mapped.map(file, path, *stamp, offset, size));
  return mapped;
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      before_(std::exchange(other.before_, 0)),
      stamp_(other.stamp_) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(before_, other.before_);
  std::swap(stamp_, other.stamp_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<uint8_t *>(data_) - before_, before_ + size_);
}

}  // namespace kiln
