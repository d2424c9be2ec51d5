// A folder for files that are not kept.
#pragma once
#include <string>

namespace kiln::cli {

// A folder of its own below the one for temporary files, that goes with all that is in it.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;
  const std::string &path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace kiln::cli
