// The records of one key that differ by what their passes asked and were answered: which is whose. Internal to this
// folder.
//
// Beside the record of those that asked nothing, artifact.kiln, the key's folder has
//   SET.questions    what passes have asked, one file for each set of questions
//   ANSWERS.kiln     the record that was made after these answers
// A lookup answers each set anew, and takes the record of these answers. Which questions there are may follow from
// answers, so there may be several sets. All these files are finished and never change, as records are.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/cache/artifact_bytes.h"
#include "runtime/cache/files.h"
#include "runtime/passes/questions.h"

namespace kiln {

inline constexpr size_t max_question_sets = 8, max_variants = 16;  // a key

// "ANSWERS.kiln", or artifact.kiln where nothing was asked.
std::string record_name(std::span<const Answer> answers);

// The content of a file SET.questions: with the files among them that a lookup need not read to answer.
struct QuestionSet {
  Asked questions;
  std::vector<FileDigests::Known> files;
};
Bytes write_question_set(const QuestionSet &set, const Digest &graph_key);
Result<QuestionSet> read_question_set(ByteSpan bytes, const Digest &graph_key);
std::string question_set_name(ByteSpan bytes);  // "SET.questions"

// Those that lie in the folder of a key.
struct StoredQuestions {
  std::string path;
  RecordFile file;  // without bytes
  QuestionSet set;
};
struct StoredSets {
  std::vector<StoredQuestions> sets;
  std::vector<std::pair<std::string, RecordFile>> damaged;
};
StoredSets stored_questions(const std::string &folder, const Digest &graph_key);

// The sets that led lookups to a record, the last one of each key. Since no set's file ever changes, a lookup tries it
// before it reads the folder. Threads: all methods from any thread.
class KnownQuestions {
 public:
  class Set {
   public:
    Set(std::string path, QuestionSet set);
    const Asked &questions() const { return set_.questions; }
    // Tells the file that it was used, at most once a second: of sets that are all used that often, none is the one to
    // go.
    void touch() const;

   private:
    std::string path_;
    QuestionSet set_;
    mutable std::atomic<int64_t> touched_ms_ = 0;
  };
  std::shared_ptr<const Set> find(const Digest &graph_key) const;
  void add(const Digest &graph_key, std::string path, QuestionSet set);

 private:
  mutable std::mutex mutex_;
  std::map<Digest, std::shared_ptr<const Set>> sets_;
};

// Why none of the records in the folder is for these answers: "question 'host.rank' is answered 1, the nearest record
// was made after 0".
std::string differing_answers(const std::string &folder, Questions &questions);

// Makes room for a file that is to be there: of those of its kind, removes what was used least recently. Best effort.
void make_room_beside(const std::string &path);

}  // namespace kiln
