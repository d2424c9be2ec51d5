#include "temporary_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "handles.h"

namespace kiln::cli {

TemporaryFolder::TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "kiln-XXXXXX").string()) {
  if (!mkdtemp(path_.data())) throw Failure(path_ + ": " + std::strerror(errno));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace kiln::cli
