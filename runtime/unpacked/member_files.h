// The files of an unpacked artifact. Internal to this folder.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/bytes.h"
#include "jit/base/file_descriptor.h"
#include "jit/base/status.h"

namespace kiln::unpacked {

// A folder that is made beside where it is to be, and has its name once all is in it. What was not finished is removed.
class NewFolder {
 public:
  explicit NewFolder(std::string path);
  NewFolder(const NewFolder &) = delete;
  NewFolder &operator=(const NewFolder &) = delete;
  ~NewFolder();

  // Code io.
  Status make();
  // `path` is in it, with '/'; folders are made.
  Status write(std::string_view path, ByteSpan bytes);
  // Something that is there already, but an empty folder, stays: it may hold what somebody edited.
  Status finish();

 private:
  Status make_folders(std::string_view path);
  const std::string path_;
  std::string temporary_;               // empty: none is there
  std::vector<std::string> made_ = {};  // in it, folders before what they hold; a folder's ends in '/'
};

// A folder to read from. What it leads to by links is not its own: a path has none.
class OldFolder {
 public:
  static Result<OldFolder> open(const std::string &path);
  // A regular file of at most `most` bytes. Errors name the path: io, also where it is not there; corrupt, where it is
  // no file, or too large.
  Result<Bytes> read(const std::string &path, uint64_t most) const;

 private:
  explicit OldFolder(FileDescriptor folder) : folder_(std::move(folder)) {}
  FileDescriptor folder_;
};

}  // namespace kiln::unpacked
