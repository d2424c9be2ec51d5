// A file that has no name before it is finished, so that nothing is left of it when the process is killed. Where the
// file system has no such files, it has a temporary name meanwhile. All is false, with errno, on failure.
#pragma once
#include <sys/types.h>

#include <string>

#include "jit/base/bytes.h"
#include "jit/base/file_descriptor.h"

namespace kiln {

class NewFile {
 public:
  // `prefix` begins the temporary names beside it.
  NewFile(std::string folder, std::string prefix, mode_t mode);
  NewFile(const NewFile &) = delete;
  NewFile &operator=(const NewFile &) = delete;
  ~NewFile();  // removes what got no name

  bool is_open() const { return file_.get() >= 0; }
  bool write(ByteSpan bytes);
  bool flush();                           // to the disk
  bool link(const std::string &path);     // in its folder; errno EEXIST when something is there
  bool replace(const std::string &path);  // what is there; a reader sees the old file or the new one

 private:
  bool open_unnamed(mode_t mode);
  bool open_named(mode_t mode);

  const std::string folder_, prefix_;
  FileDescriptor file_{-1};
  std::string temporary_;  // its name; empty: it has none
};

}  // namespace kiln
