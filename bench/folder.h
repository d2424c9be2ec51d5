// A temporary folder that goes with its owner.
#pragma once
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "handles.h"

namespace kiln::bench {

class TemporaryFolder {
 public:
  TemporaryFolder() : path_(std::filesystem::temp_directory_path() / "kiln-bench-XXXXXX") {
    if (!mkdtemp(path_.data())) throw cli::Failure("no temporary folder: " + path_);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string &path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace kiln::bench
