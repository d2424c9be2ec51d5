#include "runtime/io/file_source.h"

#include <map>
#include <mutex>
#include <utility>

#include "jit/base/bytes.h"
#include "jit/base/process.h"
#include "jit/base/str.h"

namespace kiln {
namespace {

// Hosts bind what files hold by its address, whatever they wrap it in on the way. So one list for the process.
struct Known {
  std::mutex mutex;
  struct File {
    uint64_t size;
    FileSource source;  // of its first byte
  };
  std::map<const uint8_t *, File> files;  // by where they are mapped
  const AtFork at_fork{{.before = [this] { mutex.lock(); },
                        .in_parent = [this] { mutex.unlock(); },
                        .in_child = [this] { mutex.unlock(); }}};
};
Known &known() {
  static Known &list = *new Known;  // never destroyed: threads may outlive main
  return list;
}

}  // namespace

Digest FileSource::name() const {
  ByteWriter out;
  out.put<uint8_t>(digest.has_value());
  if (digest) {
    out.raw(digest->bytes);
  } else {
    for (const uint64_t number : {stamp.device, stamp.inode, stamp.size}) out.put(number);
    for (const int64_t time : {stamp.modified_ns, stamp.changed_ns}) out.put(time);
  }
  out.put(offset);
  return digest_of(out.bytes());
}

std::string FileSource::reason_not_to_keep() const {
  return digest || is_settled ? "" : str_cat("'", path, "' was changed less than 3 s before it was mapped");
}

bool FileSource::is_as_it_was() const { return digest || FileStamp::of(path) == stamp; }

std::optional<FileSource> source_of(const void *data) {
  const auto *const at = static_cast<const uint8_t *>(data);
  Known &list = known();
  const std::lock_guard lock(list.mutex);
  auto found = list.files.upper_bound(at);
  if (found == list.files.begin()) return std::nullopt;
  --found;
  const auto offset = static_cast<uint64_t>(at - found->first);
  if (offset >= found->second.size) return std::nullopt;
  FileSource source = found->second.source;
  source.offset = offset;
  return source;
}

SharedSource::SharedSource(const MappedFile &file, std::string path) {
  if (file.bytes().empty()) return;
  Known &list = known();
  const std::lock_guard lock(list.mutex);
  list.files[file.bytes().data()] = {
      file.bytes().size(), {.stamp = file.stamp(), .path = std::move(path), .is_settled = file.stamp().is_settled()}};
  entry_.reset(file.bytes().data());
}

void SharedSource::Forget::operator()(const uint8_t *begin) const {
  Known &list = known();
  const std::lock_guard lock(list.mutex);
  list.files.erase(begin);
}

}  // namespace kiln
