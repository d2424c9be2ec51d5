#include "runtime/cache/nearest.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "runtime/cache/artifact_sections.h"
#include "runtime/cache/files.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr size_t max_folders_listed = 256, max_records_read = 16;

// The folders of the records written last. Of a very large cache only a part is listed: this is a help, not a promise.
std::vector<fs::path> recent_folders(const std::string &dir) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  Result<std::vector<fs::path>> folders = folder_entries(fs::path(dir) / "a", max_folders_listed);
  if (!folders.ok()) return {};
  for (fs::path &folder : *folders) {
    std::error_code gone;
    if (const auto time = fs::last_write_time(folder, gone); !gone) found.emplace_back(time, std::move(folder));
  }
  const size_t keep = std::min(found.size(), max_records_read);
  std::ranges::partial_sort(found, found.begin() + static_cast<std::ptrdiff_t>(keep), std::greater<>());
  std::vector<fs::path> out;
  for (size_t i = 0; i < keep; ++i) out.push_back(std::move(found[i].second));
  return out;
}

// Of the record in the folder of one graph.
std::optional<ArtifactIdentity> any_identity(const fs::path &folder) {
  const Result<std::vector<fs::path>> paths = folder_entries(folder);
  if (!paths.ok()) return std::nullopt;
  for (const fs::path &path : *paths) {
    if (path.extension() != ".kiln") continue;
    const RecordFile file = open_record(path.string(), SectionKind::components);
    if (file.state != RecordFile::State::read) continue;
    Result<ArtifactIdentity> identity = read_identity(file.bytes, file.length);
    if (identity.ok()) return std::move(identity).value();
  }
  return std::nullopt;
}

// The names of components that are in one list only, or in both with other digests; those of `wanted` first.
std::vector<std::string> differing(const std::vector<KeyComponent> &wanted, const std::vector<KeyComponent> &present) {
  const auto has_name = [](const std::vector<KeyComponent> &list, const KeyComponent &c) {
    return std::ranges::find(list, c.name, &KeyComponent::name) != list.end();
  };
  const auto is_pass = [](const KeyComponent &c) { return c.name.starts_with("pass "); };
  // Where one was put in or taken out, those behind it have another place, which is part of what they are.
  const bool moved = std::ranges::any_of(wanted, [&](const auto &c) { return is_pass(c) && !has_name(present, c); }) ||
                     std::ranges::any_of(present, [&](const auto &c) { return is_pass(c) && !has_name(wanted, c); });
  const auto but_for_place = [](const KeyComponent &c) { return c.text.substr(0, c.text.rfind(", place ")); };
  const auto in = [&](const std::vector<KeyComponent> &list, const KeyComponent &c) {
    return std::ranges::any_of(list, [&](const KeyComponent &o) {
      return o.name == c.name && (o.digest == c.digest ||
                                  (moved && is_pass(c) && o.text != c.text && but_for_place(o) == but_for_place(c)));
    });
  };
  std::vector<std::string> names;
  const auto add = [&](const KeyComponent &c) {
    if (std::ranges::find(names, c.name) == names.end()) names.push_back(c.name);
  };
  for (const KeyComponent &c : wanted)
    if (!in(present, c)) add(c);
  for (const KeyComponent &c : present)
    if (!in(wanted, c)) add(c);
  return names;
}

}  // namespace

std::string nearest_record(const std::string &dir, const std::vector<KeyComponent> &components) {
  std::optional<std::vector<std::string>> nearest;
  for (const fs::path &folder : recent_folders(dir)) {
    const std::optional<ArtifactIdentity> identity = any_identity(folder);
    if (!identity) continue;
    std::vector<std::string> names = differing(components, identity->components);
    if (!nearest || names.size() < nearest->size()) nearest = std::move(names);
  }
  if (!nearest || nearest->empty()) return "no record";
  const std::string list = join(*nearest, ", ", [](const std::string &name) { return str_cat("'", name, "'"); });
  return nearest->size() == 1 ? str_cat("component ", list, " differs from the nearest record")
                              : str_cat("components ", list, " differ from the nearest record");
}

}  // namespace kiln
