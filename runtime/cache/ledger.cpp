#include "runtime/cache/ledger.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "jit/base/file.h"
#include "jit/base/hash.h"
#include "jit/base/process.h"

namespace kiln {
namespace {

using std::chrono::milliseconds, std::chrono::steady_clock;

// As the file has it.
struct Entry {
  uint64_t total = 0, written = 0, checksum = 0;
  uint64_t sum() const {
    ByteWriter covered;
    covered.put(total);
    covered.put(written);
    return checksum_of(covered.bytes());
  }
};

Status failed(std::string_view what, const std::string &path) {
  return error(Code::io, "cannot ", what, " ", path, ": ", errno_text(errno));
}

// Asked for again and again, and not waited for: a writer that was stopped would stop all others for ever.
Status wait_for(const FileDescriptor &file, const std::string &path, milliseconds patience) {
  const auto deadline = steady_clock::now() + patience;
  for (milliseconds pause(0);; pause = std::min(pause + milliseconds(1), milliseconds(10))) {
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return {};
    if (errno != EWOULDBLOCK && errno != EINTR) return failed("lock", path);
    if (steady_clock::now() >= deadline)
      return error(Code::busy, "another writer has kept ", path, " locked for ", patience.count(), " ms");
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

Result<Ledger> Ledger::lock(const std::string &dir, milliseconds patience) {
  const std::string path = dir + "/ledger";
  for (;;) {
    FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() < 0) return failed("open", path);
    KILN_TRY(wait_for(file, path, patience));
    // Somebody may have removed the folder meanwhile: then others lock another file.
    if (is_file_at(file, path)) return Ledger(std::move(file), path);
  }
}

Ledger::Ledger(FileDescriptor file, std::string path) : file_(std::move(file)), path_(std::move(path)) {
  Entry entry;
  if (::pread(file_.get(), &entry, sizeof entry, 0) != sizeof entry || entry.checksum != entry.sum()) return;
  is_known_ = true;
  total_ = entry.total;
  written_ = entry.written;
}

Ledger::~Ledger() {
  // By name, because a process that was forked meanwhile has the file open, too.
  if (file_.get() >= 0) ::flock(file_.get(), LOCK_UN);
}

void Ledger::count(uint64_t total) {
  is_known_ = true;
  total_ = total;
  written_ = 0;
}

Status Ledger::reserve(uint64_t bytes) {
  total_ += bytes;
  written_ += bytes;
  Entry entry{total_, written_};
  entry.checksum = entry.sum();
  const WriteSignalsHeld held;
  return ::pwrite(file_.get(), &entry, sizeof entry, 0) == sizeof entry ? Status() : failed("write", path_);
}

}  // namespace kiln
