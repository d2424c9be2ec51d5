#include "runtime/outside_compiler.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "jit/base/env.h"
#include "jit/base/file.h"
#include "jit/base/hash.h"
#include "jit/base/str.h"

namespace kiln {
namespace {

std::string file_in(const std::string &folder) { return folder + "/nvrtc"; }

// Of a file, or of which entries a folder has.
std::string stamp_of(const std::string &path) {
  struct stat s{};
  if (::stat(path.c_str(), &s) != 0) return "none";
  return str_cat(s.st_dev, ":", s.st_ino, ":", s.st_size, ":", s.st_mtim.tv_sec, ".", s.st_mtim.tv_nsec);
}

// The variable's path, where it names a file: nothing else is looked for then.
std::optional<std::string> named_file() {
  const std::optional<std::string> given = env_text(Env::KILN_NVRTC);
  return given && given->find('/') != std::string::npos ? given : std::nullopt;
}

// What the loader searches by itself.
std::vector<std::string> loader_folders() {
  Dl_serinfo needed{};
  void *const program = ::dlopen(nullptr, RTLD_LAZY);
  if (!program || ::dlinfo(program, RTLD_DI_SERINFOSIZE, &needed) != 0) return {};
  const std::unique_ptr<std::byte[]> memory(new std::byte[needed.dls_size]);
  auto *const all = new (memory.get()) Dl_serinfo(needed);
  if (::dlinfo(program, RTLD_DI_SERINFO, all) != 0) return {};
  std::vector<std::string> folders;
  const Dl_serpath *const paths = all->dls_serpath;
  for (unsigned i = 0; i < all->dls_cnt; ++i) folders.emplace_back(paths[i].dls_name);
  return folders;
}

Digest surroundings() {
  if (const auto named = named_file()) return digest_of(*named);
  std::string text = str_cat("loader\n", stamp_of("/etc/ld.so.cache"), "\n");
  for (const Env variable : {Env::KILN_NVRTC, Env::CUDA_HOME, Env::CUDA_PATH})
    str_append(text, str_cat(env_text(variable).value_or(""), "\n"));
  for (const std::string &folder : loader_folders()) str_append(text, str_cat(folder, " ", stamp_of(folder), "\n"));
  return digest_of(text);
}

// Empty: there is none, or more than one.
std::string open_file_of_compiler() {
  if (const auto named = named_file()) return *named;
  std::vector<std::string> found;
  const auto note = [](dl_phdr_info *library, size_t, void *into) {
    const std::string_view path = library->dlpi_name ? library->dlpi_name : "";
    if (path.substr(path.rfind('/') + 1).starts_with("libnvrtc.so"))
      static_cast<std::vector<std::string> *>(into)->emplace_back(path);
    return 0;
  };
  ::dl_iterate_phdr(note, &found);
  return found.size() == 1 ? found[0] : "";
}

// The next line of `text`, which begins behind it then.
std::string_view take_line(std::string_view &text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

}  // namespace

std::string remembered_compiler(const std::string &folder) {
  const Result<Bytes> bytes = read_file(file_in(folder));
  if (!bytes.ok()) return "";
  std::string_view text(reinterpret_cast<const char *>(bytes->data()), bytes->size());
  const std::string_view name = take_line(text), around = take_line(text), stamp = take_line(text),
                         path = take_line(text);
  const bool is_still_so = around == surroundings().hex() && stamp == stamp_of(std::string(path)) && stamp != "none";
  return is_still_so ? std::string(name) : "";
}

void remember_compiler(const std::string &folder, std::string_view name) {
  const std::string path = open_file_of_compiler();
  if (path.empty() || path.find('\n') != std::string::npos) return;
  const std::string text = str_cat(name, "\n", surroundings().hex(), "\n", stamp_of(path), "\n", path, "\n");
  (void)write_file(file_in(folder), {reinterpret_cast<const uint8_t *>(text.data()), text.size()});
}

}  // namespace kiln
