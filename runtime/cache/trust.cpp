#include "runtime/cache/trust.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "jit/base/str.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

bool is_strange(const struct stat &info) { return info.st_uid != 0 && info.st_uid != geteuid(); }

std::string reason_of_folder(const fs::path &path, bool is_last) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return "";  // to be made
  if (is_strange(info)) return str_cat(path.string(), " belongs to user ", info.st_uid);
  if (!S_ISDIR(info.st_mode)) return "";  // a link is its owner's; what it leads to is looked at by itself
  const bool by_all = (info.st_mode & S_IWOTH) != 0 && (is_last || !(info.st_mode & S_ISVTX));
  const bool by_group = is_last && (info.st_mode & S_IWGRP) != 0;
  return by_all || by_group ? str_cat(path.string(), " is writable by others") : "";
}

std::string reason_on_way(const fs::path &path) {
  fs::path so_far;
  for (auto part = path.begin(); part != path.end(); ++part) {
    so_far /= *part;
    if (std::string reason = reason_of_folder(so_far, std::next(part) == path.end()); !reason.empty()) return reason;
  }
  return "";
}

}  // namespace

std::string reason_to_distrust(const std::string &dir) {
  std::error_code failure;
  const fs::path named = fs::absolute(dir, failure);
  if (failure) return "";
  std::string reason = reason_on_way(named);
  if (!reason.empty()) return reason;
  const fs::path real = fs::weakly_canonical(named, failure);
  return failure || real == named ? "" : reason_on_way(real);
}

std::string reason_to_distrust(const struct stat &file) {
  if (is_strange(file)) return str_cat("it belongs to user ", file.st_uid);
  return file.st_mode & (S_IWGRP | S_IWOTH) ? "it is writable by others" : "";
}

}  // namespace kiln
