#include "runtime/cache/variants.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "runtime/cache/artifact_sections.h"

namespace kiln {
namespace {

constexpr std::string_view record_suffix = ".kiln", questions_suffix = ".questions", plain_name = "artifact.kiln";

// Of more files than there may be, which another writer is about to put right, no more are looked at.
constexpr size_t most_listed = 4 * (max_question_sets + max_variants);

std::vector<std::string> files_of(const std::string &folder, std::string_view suffix) {
  std::vector<std::string> files;
  const Result<std::vector<std::filesystem::path>> all = folder_entries(folder, most_listed);
  if (!all.ok()) return files;
  for (const std::filesystem::path &path : *all)
    if (path.native().ends_with(suffix)) files.push_back(path.native());
  return files;
}

// The time of its last use; no file of ours: none.
std::optional<int64_t> used_at(const std::string &path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return info.st_mtim.tv_sec * 1'000'000'000LL + info.st_mtim.tv_nsec;
}

int64_t now_ms() {
  using std::chrono::milliseconds, std::chrono::steady_clock;
  return std::chrono::duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::string record_name(std::span<const Answer> answers) {
  if (answers.empty()) return std::string(plain_name);
  ByteWriter bytes;
  for (const Answer &answer : answers) {
    bytes.text(answer.question);
    bytes.raw(answer.digest.bytes);
  }
  return str_cat(digest_of(bytes.bytes()).hex(), record_suffix);
}

Bytes write_question_set(const QuestionSet &set, const Digest &graph_key) {
  ByteWriter out;
  out.put<uint64_t>(set.questions.size());
  for (const std::string &question : set.questions) out.text(question);
  out.put<uint64_t>(set.files.size());
  for (const FileDigests::Known &file : set.files) {
    const FileStamp &stamp = file.stamp;
    for (const uint64_t number : {stamp.device, stamp.inode, stamp.size}) out.put(number);
    for (const int64_t time : {stamp.modified_ns, stamp.changed_ns}) out.put(time);
    out.raw(file.digest.bytes);
  }
  RecordWriter record;
  record.add(SectionKind::questions, out.take());
  return record.finish(graph_key);
}

Result<QuestionSet> read_question_set(ByteSpan bytes, const Digest &graph_key) {
  KILN_ASSIGN(const RecordReader record, RecordReader::open(bytes));
  if (record.key() != graph_key) return error(Code::corrupt, "header at offset 24: the key is not the file's");
  KILN_ASSIGN(const ByteSpan section, record.section(SectionKind::questions));
  ByteReader in(section);
  QuestionSet set;
  const uint64_t count = in.count(8);
  for (uint64_t i = 0; i < count && in.ok(); ++i) set.questions.insert(in.text());
  const uint64_t files = in.count(72);
  for (uint64_t i = 0; i < files && in.ok(); ++i) {
    FileDigests::Known &file = set.files.emplace_back();
    file.is_settled = true;
    for (uint64_t *number : {&file.stamp.device, &file.stamp.inode, &file.stamp.size}) *number = in.get<uint64_t>();
    for (int64_t *time : {&file.stamp.modified_ns, &file.stamp.changed_ns}) *time = in.get<int64_t>();
    file.digest = get_digest(in);
  }
  if (!in.ok() || !in.at_end() || set.questions.empty())
    return error(Code::corrupt, record.where(SectionKind::questions), ": expected questions, and files");
  return set;
}

std::string question_set_name(ByteSpan bytes) { return str_cat(digest_of(bytes).hex(), questions_suffix); }

StoredSets stored_questions(const std::string &folder, const Digest &graph_key) {
  StoredSets found;
  for (const std::string &path : files_of(folder, questions_suffix)) {
    StoredQuestions stored{.path = path, .file = open_record(path), .set = {}};
    if (stored.file.state == RecordFile::State::none || stored.file.state == RecordFile::State::failed) continue;
    Result<QuestionSet> set = stored.file.state == RecordFile::State::read
                                  ? read_question_set(stored.file.bytes, graph_key)
                                  : error(Code::corrupt, stored.file.reason);
    if (!set.ok()) {
      found.damaged.emplace_back(stored.path, std::move(stored.file));
      continue;
    }
    stored.set = std::move(set).value();
    stored.file.bytes = {};
    stored.file.memory.reset();
    found.sets.push_back(std::move(stored));
  }
  return found;
}

std::shared_ptr<const KnownQuestions::Set> KnownQuestions::find(const Digest &graph_key) const {
  const std::lock_guard lock(mutex_);
  const auto found = sets_.find(graph_key);
  return found == sets_.end() ? nullptr : found->second;
}

KnownQuestions::Set::Set(std::string path, QuestionSet set) : path_(std::move(path)), set_(std::move(set)) {}

void KnownQuestions::Set::touch() const {
  constexpr int64_t often_ms = 1000;
  const int64_t now = now_ms();
  if (now - touched_ms_.load(std::memory_order_relaxed) < often_ms) return;
  touched_ms_.store(now, std::memory_order_relaxed);
  kiln::touch(path_);
}

void KnownQuestions::add(const Digest &graph_key, std::string path, QuestionSet set) {
  constexpr size_t most_keys = 256;
  auto made = std::make_shared<const Set>(std::move(path), std::move(set));
  const std::lock_guard lock(mutex_);
  if (sets_.size() >= most_keys) sets_.clear();
  sets_[graph_key] = std::move(made);
}

std::string differing_answers(const std::string &folder, Questions &questions) {
  // How many answers differ, and how many do not: of as few that do, more that do not are nearer, for what was asked
  // may follow from answers.
  std::pair<size_t, size_t> least(SIZE_MAX, 0);
  std::string nearest = "no record for what passes ask";
  for (const std::string &path : files_of(folder, record_suffix)) {
    const RecordFile file = open_record(path, SectionKind::components);
    if (file.state != RecordFile::State::read) continue;
    const Result<ArtifactIdentity> identity = read_identity(file.bytes, file.length);
    if (!identity.ok()) continue;
    size_t count = 0, equal = 0;
    std::string names, one;
    for (const Answer &answer : identity->answers) {
      const Result<Answer> now = questions.answer(answer.question);
      if (now.ok() && now->digest == answer.digest) {
        ++equal;
        continue;
      }
      str_append(names, str_cat(count++ ? ", '" : "'", answer.question, "'"));
      one = str_cat("question ", names, " is answered ", now.ok() ? now->text : now.status().message(),
                    ", and the nearest record was made after ", answer.text);
    }
    const bool is_nearer = count < least.first || (count == least.first && equal > least.second);
    if (count == 0 || !is_nearer) continue;
    least = {count, equal};
    nearest = count == 1 ? one : str_cat("questions ", names, " are answered otherwise than for the nearest record");
  }
  return nearest;
}

void make_room_beside(const std::string &path) {
  const bool is_set = path.ends_with(questions_suffix);
  const size_t most = is_set ? max_question_sets : max_variants;
  std::vector<std::string> files = files_of(path.substr(0, path.rfind('/')), is_set ? questions_suffix : record_suffix);
  while (files.size() >= most) {
    size_t oldest = 0;
    for (size_t i = 1; i < files.size(); ++i)
      if (used_at(files[i]) < used_at(files[oldest])) oldest = i;
    (void)::unlink(files[oldest].c_str());
    files.erase(files.begin() + static_cast<std::ptrdiff_t>(oldest));
  }
}

}  // namespace kiln
