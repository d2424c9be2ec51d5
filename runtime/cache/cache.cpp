#include "runtime/cache/cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <map>

#include "jit/base/env.h"
#include "jit/base/file.h"
#include "runtime/cache/artifact_sections.h"
#include "runtime/cache/files.h"
#include "runtime/cache/ledger.h"
#include "runtime/cache/nearest.h"
#include "runtime/cache/trust.h"
#include "runtime/cache/variants.h"

namespace kiln {
namespace {

constexpr uint64_t default_max_bytes = uint64_t{1} << 30;

std::string default_dir() {
  if (const auto dir = env_text(Env::KILN_CACHE)) return *dir == "off" ? "" : *dir;
  if (const auto xdg = env_text(Env::XDG_CACHE_HOME); xdg && xdg->front() == '/') return *xdg + "/kiln";
  if (const auto home = env_text(Env::HOME)) return *home + "/.cache/kiln";
  return "";
}

// Marks as just used, so that eviction takes others first. Best effort: the folder may be read-only.
void touch(const FileDescriptor &file) { (void)::futimens(file.get(), nullptr); }

constexpr std::string_view cachedir_tag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder holds what Kiln compiled; it can be removed at any time.\n"
    "# See https://bford.info/cachedir/\n";

}  // namespace

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::hit:
      return "HIT";
    case Outcome::miss:
      return "MISS";
    case Outcome::bypass:
      return "BYPASS";
    case Outcome::reject:
      return "REJECT";
  }
  return "?";
}

Cache::Cache(std::string dir, uint64_t max_bytes)
    : dir_(dir.empty() ? default_dir() : std::move(dir)), max_bytes_(max_bytes ? max_bytes : default_max_bytes) {}

std::string Cache::folder_of(const Digest &graph_key) const { return str_cat(dir_, "/a/", graph_key.hex(), "/"); }

std::string Cache::kernel_path(const Digest &kernel_key) const {
  const std::string hex = kernel_key.hex();
  return str_cat(dir_, "/k/", hex.substr(0, 2), "/", hex, ".kimg");
}

Status Cache::note(Status status) {
  if (status.ok()) return status;
  ++io_errors_;
  const std::lock_guard lock(error_mutex_);
  last_io_error_ = status.message();
  return status;
}

std::string Cache::last_io_error() const {
  const std::lock_guard lock(error_mutex_);
  return last_io_error_;
}

bool Cache::is_marked() const {
  struct stat there{};
  const std::string path = dir_ + "/CACHEDIR.TAG";
  if (::lstat(path.c_str(), &there) != 0 || there.st_size != static_cast<off_t>(cachedir_tag.size())) return false;
  const Result<Bytes> tag = read_file(path);
  return tag.ok() && std::ranges::equal(*tag, cachedir_tag);
}

std::string Cache::refusal() const {
  const std::string reason = dir_.empty() ? "" : reason_to_distrust(dir_);
  return reason.empty() ? "" : str_cat("cache folder ", dir_, " is not used: ", reason);
}

struct Cache::Wanted {
  const Digest &graph_key;
  const std::vector<KeyComponent> &components;
  std::string_view build_id, target;
  std::span<const Answer> answers = {};
};

Lookup Cache::find(const Digest &graph_key, const std::vector<KeyComponent> &components, std::string_view build_id,
                   std::string_view target, Questions *questions) {
  if (dir_.empty()) return {Outcome::miss, "no cache folder", nullptr};
  const Wanted wanted{graph_key, components, build_id, target};
  const std::string path = folder_of(graph_key) + record_name({});
  RecordFile file = open_record(path);
  if (file.state != RecordFile::State::none) return read_record(path, std::move(file), wanted);
  if (questions) return find_variant(wanted, *questions);
  return {Outcome::miss, nearest_record(dir_, components), nullptr};
}

Lookup Cache::find_variant(const Wanted &wanted, Questions &questions) {
  const std::string folder = folder_of(wanted.graph_key);
  const StoredSets stored = stored_questions(folder, wanted.graph_key);
  for (const auto &[path, file] : stored.damaged) quarantine(path, file);
  if (stored.sets.empty()) return {Outcome::miss, nearest_record(dir_, wanted.components), nullptr};
  for (const StoredQuestions &each : stored.sets)
    for (const FileDigests::Known &file : each.set.files) questions.files().add(file.stamp, file.digest);
  for (const StoredQuestions &each : stored.sets) {
    const Result<std::vector<Answer>> answers = questions.answers(each.set.questions);
    if (!answers.ok()) continue;  // what cannot be answered is not what it was
    const std::string path = folder + record_name(*answers);
    RecordFile file = open_record(path);
    if (file.state == RecordFile::State::none) continue;
    Wanted these = wanted;
    these.answers = *answers;
    Lookup found = read_record(path, std::move(file), these);
    if (found.outcome == Outcome::hit) touch(each.file.file);
    return found;
  }
  return {Outcome::miss, differing_answers(folder, questions), nullptr};
}

Lookup Cache::read_record(const std::string &path, RecordFile file, const Wanted &wanted) {
  if (file.state == RecordFile::State::failed)
    return {Outcome::miss, note(error(Code::io, file.reason)).message(), nullptr};
  if (file.state == RecordFile::State::wrong) {
    quarantine(path, file);
    return {Outcome::reject, note(error(Code::io, file.reason)).message(), nullptr};
  }

  Result<Artifact> read =
      file.state == RecordFile::State::damaged ? error(Code::corrupt, file.reason) : read_artifact(file.bytes);
  if (read.ok() && read->graph_key != wanted.graph_key)
    read = error(Code::corrupt, "header at offset 24: the key is not the file's");
  if (read.ok() && !std::ranges::equal(read->answers, wanted.answers))
    read = error(Code::corrupt, "section 'answers': they are not the file's");
  if (!read.ok()) {
    quarantine(path, file);
    return {Outcome::reject, str_cat("the record is damaged: ", read.status().message()), nullptr};
  }
  if (read->build_id != wanted.build_id || read->target != wanted.target) {
    quarantine(path, file);
    return {Outcome::miss,
            str_cat("component '", read->build_id != wanted.build_id ? "build" : "target", "' differs from the record"),
            nullptr};
  }
  touch(file.file);
  file.memory.reset();
  file.bytes = {};
  return {Outcome::hit, "hit", std::make_shared<Artifact>(std::move(read).value()),
          std::make_shared<const RecordFile>(std::move(file)), path};
}

void Cache::reject(const Lookup &found) {
  if (found.file) quarantine(found.path, *found.file);
}

Status Cache::publish(const Artifact &artifact, std::span<const FileDigests::Known> files) {
  if (!artifact.edited.empty()) return invalid("an edited artifact is nobody's to find");
  const std::string folder = folder_of(artifact.graph_key);
  if (!artifact.answers.empty()) {  // first, or the record could not be found
    QuestionSet set{.questions = {}, .files = {files.begin(), files.end()}};
    for (const Answer &answer : artifact.answers) set.questions.insert(answer.question);
    const Bytes bytes = write_question_set(set, artifact.graph_key);
    KILN_TRY(publish_file(folder + question_set_name(bytes), bytes));
  }
  return publish_file(folder + record_name(artifact.answers), write_artifact(artifact));
}

std::optional<Image> Cache::find_kernel(const Digest &kernel_key) {
  if (dir_.empty()) return std::nullopt;
  if (std::optional<Image> unwritten = in_flight_.find_kernel(kernel_key)) return unwritten;
  const std::string path = kernel_path(kernel_key);
  const RecordFile file = open_record(path);
  if (file.state == RecordFile::State::none) return std::nullopt;
  const bool is_record = file.state == RecordFile::State::read || file.state == RecordFile::State::damaged;
  if (!is_record) (void)note(error(Code::io, file.reason));
  if (file.state == RecordFile::State::failed) return std::nullopt;
  Result<std::vector<Image>> images = read_kernel_images(file.bytes);
  const auto image =
      images.ok() ? std::ranges::find(*images, kernel_key, &Image::kernel_key) : std::vector<Image>::iterator();
  if (!images.ok() || image == images->end()) {
    quarantine(path, file);
    return std::nullopt;
  }
  touch(file.file);
  return std::move(*image);
}

Status Cache::publish_kernels(std::span<const Image> images) {
  std::map<const Bytes *, std::vector<Image>> by_code;
  for (const Image &image : images) by_code[image.code.get()].push_back(image);
  for (const auto &[code, sharing] : by_code) {
    const std::string first = kernel_path(sharing.front().kernel_key);
    const Bytes bytes = write_kernel_images(sharing);
    KILN_TRY(publish_file(first, bytes));
    for (size_t i = 1; i < sharing.size(); ++i)
      KILN_TRY(publish_name(kernel_path(sharing[i].kernel_key), first, bytes.size()));
  }
  return {};
}

// What writing needs: a folder of our own, and our turn.
Result<Ledger> Cache::begin_writing() {
  if (dir_.empty()) return error(Code::io, "no cache folder: set KILN_CACHE, XDG_CACHE_HOME or HOME, or name one");
  if (const std::string reason = refusal(); !reason.empty()) return error(Code::io, reason);
  KILN_TRY(make_private_folders(dir_));
  // Whoever holds the lock that long is stopped: it is not waited for again, or each save would take as long.
  Result<Ledger> ledger = Ledger::lock(dir_, std::chrono::milliseconds(is_locked_out_ ? 0 : 10'000));
  is_locked_out_ = ledger.status().code() == Code::busy;
  if (is_locked_out_) return error(Code::io, ledger.status().message());
  KILN_TRY(ledger.status());
  const std::string tag = dir_ + "/CACHEDIR.TAG";
  if (::access(tag.c_str(), F_OK) != 0)
    KILN_TRY(link_new_file(tag, {reinterpret_cast<const uint8_t *>(cachedir_tag.data()), cachedir_tag.size()}));
  return ledger;
}

// Makes room for a record of `size` bytes and its folder; false: the record is there already. What else is in the place
// of either is put aside.
Result<bool> Cache::prepare_place(Ledger &ledger, const std::string &path, uint64_t size) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  for (const std::string &place : {folder, path}) {
    struct stat there{};
    if (::lstat(place.c_str(), &there) != 0 || (place == folder && S_ISDIR(there.st_mode))) continue;
    if (place == path && S_ISREG(there.st_mode)) return false;
    RecordFile wrong;
    wrong.identity = {there.st_dev, there.st_ino};
    quarantine(place, wrong);
  }
  KILN_TRY(make_room(ledger, size));
  KILN_TRY(make_private_folders(folder));
  return true;
}

Status Cache::publish_name(const std::string &path, const std::string &same_as, uint64_t size) {
  return note([&]() -> Status {
    KILN_ASSIGN(Ledger ledger, begin_writing());
    KILN_ASSIGN(const bool is_free, prepare_place(ledger, path, size));
    // Gone: it was evicted, and its other names are worth no more than it was.
    if (!is_free || ::link(same_as.c_str(), path.c_str()) == 0 || errno == ENOENT) return {};
    return error(Code::io, "cannot link ", same_as, " as ", path, ": ", errno_text(errno));
  }());
}

Status Cache::publish_file(const std::string &path, ByteSpan bytes) {
  return note([&]() -> Status {
    KILN_ASSIGN(Ledger ledger, begin_writing());
    KILN_ASSIGN(const bool is_free, prepare_place(ledger, path, bytes.size()));
    if (!is_free) return {};
    make_room_beside(path);
    KILN_TRY(link_new_file(path, bytes));
    ++saves_;
    return {};
  }());
}

void Cache::quarantine(const std::string &path, const RecordFile &file) {
  const std::string folder = dir_ + "/quarantine";
  if (!note(make_private_folders(folder)).ok()) return;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const std::filesystem::path from(path);
  const std::string to = str_cat(folder, "/", from.parent_path().filename().string().substr(0, 16), "-",
                                 from.stem().string().substr(0, 16), "-", now.tv_sec, ".", now.tv_nsec, ".bad");
  (void)note(set_aside(path, file.identity, to));
}

}  // namespace kiln
