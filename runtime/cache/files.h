// What the cache does with files: read, publish whole, set aside, walk. Internal to this folder.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/bytes.h"
#include "jit/base/file.h"
#include "jit/base/status.h"
#include "runtime/cache/record.h"

namespace kiln {

// Which file, or folder, whatever its name is.
struct FileIdentity {
  uint64_t device = 0, inode = 0;
  bool operator==(const FileIdentity &) const = default;
};

// What lies in a record's place. `bytes` are memory of this process's own: nobody changes them once they are checked.
struct RecordFile {
  enum class State : uint8_t {
    none,
    read,
    damaged,  // its header is none that a file of its size has, so that no more of it was read
    wrong,    // no record of ours could be there: a folder, a link, what others may write, what cannot be read
    failed,   // the system did not let it be read, this time
  };
  State state = State::none;
  std::string reason = {};  // damaged, wrong, failed
  std::unique_ptr<uint8_t[]> memory = nullptr;
  ByteSpan bytes = {};         // read
  uint64_t length = 0;         // read: of the file, also where only a part of it was
  FileDescriptor file{-1};     // read, damaged: keeps the identity from coming again
  FileIdentity identity = {};  // read, damaged, wrong
};
// Reads all of it, or all up to the end of section `last`. The size of a file is believed, and memory taken for it,
// only where its header tells the same.
RecordFile open_record(const std::string &path, std::optional<SectionKind> last = {});

// Marks a record as just used, so that eviction takes others first. Best effort: the folder may be read-only.
void touch(const FileDescriptor &file);
void touch(const std::string &path);

// Moves what has this identity from its place to `to`; does nothing when something else has taken the place. code io.
Status set_aside(const std::string &path, const FileIdentity &identity, const std::string &to);

// What is in a folder, in no order, at most so many; nothing when it is not there. code io. (libstdc++'s
// iterator ends the process where there is no memory.)
Result<std::vector<std::filesystem::path>> folder_entries(const std::filesystem::path &folder, size_t most = SIZE_MAX);

// Makes `path` and the folders above it that are missing, readable for their owner alone. code io.
Status make_private_folders(const std::string &path);

// Writes a file of these bytes that has no name, then links it to `path`, where nothing is. Nothing is left behind on
// failure. code io.
Status link_new_file(const std::string &path, std::span<const ByteSpan> bytes);

struct StoredFile {
  enum class Kind : uint8_t {
    artifact,
    questions,
    kernel,
    prepared,
    quarantined,
    temporary,  // of a writer that died, if asked with the ledger locked
    empty_folder,
  };
  std::string path;
  Kind kind = Kind::artifact;
  std::string key = {};  // hex; of those that have a name below
  uint64_t size_bytes = 0;
  int64_t modified_ns = 0;  // since the epoch
};
// Of those that somebody looks up, "artifact"; empty: of what is nobody's.
std::string_view name_of(StoredFile::Kind kind);
// The cache's own files below `dir`, and key folders without any; what is not the cache's is left out. A missing folder
// holds nothing. code io.
Result<std::vector<StoredFile>> stored_files(const std::string &dir);

}  // namespace kiln
