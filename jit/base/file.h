// Files: whole ones in and out, and read-only maps. Errors have code io and say what was done to which file, and why it
// failed.
#pragma once
#include <cstdint>
#include <string>

#include "jit/base/bytes.h"
#include "jit/base/file_descriptor.h"
#include "jit/base/file_stamp.h"
#include "jit/base/status.h"

namespace kiln {

// Of errno, as a person reads it.
std::string errno_text(int number);
// What a call that set errno to `number` failed of: memory, or else io.
Code errno_code(int number);

Result<Bytes> read_file(const std::string &path);
// The same in two steps, so that what is read later is of the same file: opens a regular file; reads all of it, from
// its start each time.
Result<FileDescriptor> open_file(const std::string &path);
Result<Bytes> read_file(const FileDescriptor &file, const std::string &path);
// Whether `path` leads to the file that is open, and not to another that has taken its place.
bool is_file_at(const FileDescriptor &file, const std::string &path);
// Written aside, flushed to disk, then put in its place: a reader sees the old file or the new one, never a part.
// What is there and is neither a regular file nor a folder stays: the bytes are written into it, or into what it links
// to, in place. No signal is raised: a FIFO whose reader left, or a limit on the size of files, is an error like
// others.
Status write_file(const std::string &path, ByteSpan bytes);

// A regular file, or a part of one, mapped read-only and private; an empty file has no bytes. The bytes stay valid for
// the object's life. A file that another process cuts short while it is mapped faults on access, as with every map.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string &path);
  // A part of it. code io: the file ends before that does.
  static Result<MappedFile> open(const std::string &path, uint64_t offset, uint64_t size);
  MappedFile() = default;
  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();
  ByteSpan bytes() const { return {data_, size_}; }
  const FileStamp &stamp() const { return stamp_; }  // of the file, when it was mapped

 private:
  Status map(const FileDescriptor &file, const std::string &path, const FileStamp &stamp, uint64_t offset,
             uint64_t size);

  const uint8_t *data_ = nullptr;
  size_t size_ = 0;
  size_t before_ = 0;  // bytes of the map before data_: it begins at a page
  FileStamp stamp_;
};

}  // namespace kiln
