#include "temporary_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "handles.h"

namespace kiln::cli {

Folder::Folder() : path_((std::filesystem::temp_directory_path() / "kiln-XXXXXX").string()) {
  if (!mkdtemp(path_.data())) throw Failure(path_ + ": " + std::strerror(errno));
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace kiln::cli
