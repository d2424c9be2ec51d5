#include "runtime/cache/variants.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>

#include "runtime/cache/artifact_sections.h"
#include "runtime/plan/expr_table.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view record_suffix = ".kiln", questions_suffix = ".questions", plain_name = "artifact.kiln";

// Of more files than there may be, which another writer is about to put right, no more are looked at.
constexpr size_t most_listed = 4 * (max_question_sets + max_variants);

std::vector<fs::path> files_of(const std::string &folder, std::string_view suffix) {
  Result<std::vector<fs::path>> all = folder_entries(folder, most_listed);
  if (!all.ok()) return {};
  std::erase_if(*all, [&](const fs::path &path) { return path.extension() != suffix; });
  return std::move(all).value();
}

Digest get_digest(ByteReader &in) {
  Digest digest;
  std::ranges::copy(in.raw(digest.bytes.size()), digest.bytes.begin());
  return digest;
}

void keep_newest(std::vector<fs::path> files, size_t most) {
  if (files.size() <= most) return;
  std::vector<std::pair<int64_t, fs::path>> by_use;
  for (fs::path &path : files) {
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    by_use.emplace_back(info.st_mtim.tv_sec * 1'000'000'000LL + info.st_mtim.tv_nsec, std::move(path));
  }
  std::ranges::sort(by_use);
  for (size_t i = 0; i + most < by_use.size(); ++i) (void)::unlink(by_use[i].second.c_str());
}

// What of the answers that a record was made after is otherwise now.
std::vector<std::pair<Answer, std::string>> differing(std::span<const Answer> answers, Questions &questions) {
  std::vector<std::pair<Answer, std::string>> others;
  for (const Answer &answer : answers) {
    const Result<Answer> now = questions.answer(answer.question);
    if (!now.ok()) others.emplace_back(answer, now.status().message());
    if (now.ok() && now->digest != answer.digest) others.emplace_back(answer, now->text);
  }
  return others;
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
  set.files = read_list<FileDigests::Known>(in, 72, [&](FileDigests::Known &file) {
    for (uint64_t *number : {&file.stamp.device, &file.stamp.inode, &file.stamp.size}) *number = in.get<uint64_t>();
    for (int64_t *time : {&file.stamp.modified_ns, &file.stamp.changed_ns}) *time = in.get<int64_t>();
    file.digest = get_digest(in);
  });
  if (!in.ok() || !in.at_end() || set.questions.empty())
    return error(Code::corrupt, record.where(SectionKind::questions), ": expected questions, and files");
  return set;
}

std::string question_set_name(ByteSpan bytes) { return str_cat(digest_of(bytes).hex(), questions_suffix); }

StoredSets stored_questions(const std::string &folder, const Digest &graph_key) {
  StoredSets found;
  for (const fs::path &path : files_of(folder, questions_suffix)) {
    StoredQuestions stored{.path = path.string(), .file = open_record(path.string()), .set = {}};
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

std::string differing_answers(const std::string &folder, Questions &questions) {
  std::optional<std::vector<std::pair<Answer, std::string>>> nearest;
  for (const fs::path &path : files_of(folder, record_suffix)) {
    const RecordFile file = open_record(path.string(), SectionKind::components);
    if (file.state != RecordFile::State::read) continue;
    const Result<ArtifactIdentity> identity = read_identity(file.bytes, file.length);
    if (!identity.ok() || identity->answers.empty()) continue;
    auto others = differing(identity->answers, questions);
    if (!nearest || others.size() < nearest->size()) nearest = std::move(others);
  }
  if (!nearest || nearest->empty()) return "no record for what passes ask";
  const auto &[answer, now] = nearest->front();
  if (nearest->size() == 1)
    return str_cat("question '", answer.question, "' is answered ", now, ", and the nearest record was made after ",
                   answer.text);
  return str_cat("questions ",
                 join(*nearest, ", ", [](const auto &other) { return str_cat("'", other.first.question, "'"); }),
                 " are answered otherwise than for the nearest record");
}

void make_room_beside(const std::string &path) {
  const fs::path file(path);
  const std::string suffix = file.extension().string();
  keep_newest(files_of(file.parent_path().string(), suffix),
              (suffix == questions_suffix ? max_question_sets : max_variants) - 1);
}

}  // namespace kiln
