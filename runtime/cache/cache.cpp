#include "runtime/cache/cache.h"

#include <algorithm>
#include <map>

#include "jit/base/env.h"
#include "runtime/cache/artifact_sections.h"
#include "runtime/cache/files.h"
#include "runtime/cache/nearest.h"

namespace kiln {
namespace {

constexpr uint64_t default_max_bytes = uint64_t{1} << 30;

std::string default_dir() {
  if (const auto dir = env_text(Env::KILN_CACHE)) return *dir == "off" ? "" : *dir;
  if (const auto xdg = env_text(Env::XDG_CACHE_HOME); xdg && xdg->front() == '/') return *xdg + "/kiln";
  if (const auto home = env_text(Env::HOME)) return *home + "/.cache/kiln";
  return "";
}

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

Cache::Cache(std::string dir, uint64_t max_bytes, uint64_t max_prepared_bytes)
    : folder_(dir.empty() ? default_dir() : std::move(dir), "", max_bytes ? max_bytes : default_max_bytes),
      prepared_(folder_.dir(), max_prepared_bytes) {}

std::string Cache::folder_of(const Digest &graph_key) const { return str_cat(dir(), "/a/", graph_key.hex(), "/"); }

std::string Cache::kernel_path(const Digest &kernel_key) const {
  const std::string hex = kernel_key.hex();
  return str_cat(dir(), "/k/", hex.substr(0, 2), "/", hex, ".kimg");
}

struct Cache::Wanted {
  const Digest &graph_key;
  const std::vector<KeyComponent> &components;
  std::string_view build_id, target;
  std::span<const Answer> answers = {};
};

Lookup Cache::find(const Digest &graph_key, const std::vector<KeyComponent> &components, std::string_view build_id,
                   std::string_view target, Questions *questions) {
  if (dir().empty()) return {Outcome::miss, "no cache folder", nullptr};
  const Wanted wanted{graph_key, components, build_id, target};
  if (const auto known = questions ? known_questions_.find(graph_key) : nullptr) {
    std::optional<Lookup> found = find_answered(wanted, known->questions(), *questions);
    if (found && found->outcome == Outcome::hit) known->touch();
    if (found) return *std::move(found);
  }
  const std::string path = folder_of(graph_key) + record_name({});
  RecordFile file = open_record(path);
  if (file.state != RecordFile::State::none) return read_record(path, std::move(file), wanted);
  if (questions) return find_variant(wanted, *questions);
  return {Outcome::miss, nearest_record(dir(), components), nullptr};
}

Lookup Cache::find_variant(const Wanted &wanted, Questions &questions) {
  const std::string folder = folder_of(wanted.graph_key);
  StoredSets stored = stored_questions(folder, wanted.graph_key);
  for (const auto &[path, file] : stored.damaged) folder_.quarantine(path, file);
  if (stored.sets.empty()) return {Outcome::miss, nearest_record(dir(), wanted.components), nullptr};
  for (const StoredQuestions &each : stored.sets)
    for (const FileDigests::Known &file : each.set.files) questions.files().add(file.stamp, file.digest);
  for (StoredQuestions &each : stored.sets) {
    std::optional<Lookup> found = find_answered(wanted, each.set.questions, questions);
    if (!found) continue;
    if (found->outcome == Outcome::hit) {
      touch(each.file.file);
      known_questions_.add(wanted.graph_key, std::move(each.path), std::move(each.set));
    }
    return *std::move(found);
  }
  return {Outcome::miss, differing_answers(folder, questions), nullptr};
}

// What is found of the record that was made after today's answers to these questions; nullopt: there is none.
std::optional<Lookup> Cache::find_answered(const Wanted &wanted, const Asked &asked, Questions &questions) {
  const Result<std::vector<Answer>> answers = questions.answers(asked);
  if (!answers.ok()) return std::nullopt;  // what cannot be answered is not what it was
  const std::string path = folder_of(wanted.graph_key) + record_name(*answers);
  RecordFile file = open_record(path);
  if (file.state == RecordFile::State::none) return std::nullopt;
  Wanted these = wanted;
  these.answers = *answers;
  return read_record(path, std::move(file), these);
}

Lookup Cache::read_record(const std::string &path, RecordFile file, const Wanted &wanted) {
  if (file.state == RecordFile::State::failed)
    return {Outcome::miss, folder_.note(error(Code::io, file.reason)).message(), nullptr};
  if (file.state == RecordFile::State::wrong) {
    folder_.quarantine(path, file);
    return {Outcome::reject, folder_.note(error(Code::io, file.reason)).message(), nullptr};
  }

  Result<Artifact> read =
      file.state == RecordFile::State::damaged ? error(Code::corrupt, file.reason) : read_artifact(file.bytes);
  if (read.ok() && read->graph_key != wanted.graph_key)
    read = error(Code::corrupt, "header at offset 24: the key is not the file's");
  if (read.ok() && !std::ranges::equal(read->answers, wanted.answers))
    read = error(Code::corrupt, "section 'answers': they are not the file's");
  if (!read.ok()) {
    folder_.quarantine(path, file);
    return {Outcome::reject, str_cat("the record is damaged: ", read.status().message()), nullptr};
  }
  if (read->build_id != wanted.build_id || read->target != wanted.target) {
    folder_.quarantine(path, file);
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
  if (found.file) folder_.quarantine(found.path, *found.file);
}

Status Cache::publish(const Artifact &artifact, std::span<const FileDigests::Known> files) {
  if (!artifact.edited.empty()) return invalid("an edited artifact is nobody's to find");
  const std::string folder = folder_of(artifact.graph_key);
  if (!artifact.answers.empty()) {  // first, or the record could not be found
    QuestionSet set{.questions = {}, .files = {files.begin(), files.end()}};
    for (const Answer &answer : artifact.answers) set.questions.insert(answer.question);
    const Bytes bytes = write_question_set(set, artifact.graph_key);
    KILN_TRY(folder_.publish(folder + question_set_name(bytes), bytes));
  }
  return folder_.publish(folder + record_name(artifact.answers), write_artifact(artifact));
}

std::optional<Image> Cache::find_kernel(const Digest &kernel_key) {
  if (dir().empty()) return std::nullopt;
  if (std::optional<Image> unwritten = in_flight_.find_kernel(kernel_key)) return unwritten;
  const std::string path = kernel_path(kernel_key);
  const RecordFile file = open_record(path);
  if (file.state == RecordFile::State::none) return std::nullopt;
  const bool is_record = file.state == RecordFile::State::read || file.state == RecordFile::State::damaged;
  if (!is_record) (void)folder_.note(error(Code::io, file.reason));
  if (file.state == RecordFile::State::failed) return std::nullopt;
  Result<std::vector<Image>> images = read_kernel_images(file.bytes);
  const auto image =
      images.ok() ? std::ranges::find(*images, kernel_key, &Image::kernel_key) : std::vector<Image>::iterator();
  if (!images.ok() || image == images->end()) {
    folder_.quarantine(path, file);
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
    KILN_TRY(folder_.publish(first, bytes));
    for (size_t i = 1; i < sharing.size(); ++i)
      KILN_TRY(folder_.publish_name(kernel_path(sharing[i].kernel_key), first, bytes.size()));
  }
  return {};
}

}  // namespace kiln
