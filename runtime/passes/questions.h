// What passes of a compile may ask of its surroundings (kiln_pass_query), and the answers, which stay the same until it
// ends:
//   env.NAME      a variable of the environment: text
//   file.PATH     the digest of a file's content, in hex: text
//   host.NAME     what the host has said (kiln_fact_set)
//   device.NAME   what the compile's backend runs on
//   compile.NAME  what is in the key anyway
// The first four are answered by what may be otherwise when the same key is looked up again: what was made after them
// is given only to who has the same answers. Threads: one at a time.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/file_digests.h"
#include "jit/base/hash.h"
#include "jit/base/status.h"
#include "runtime/graph/attr.h"

namespace kiln {

// A question with the answer that something was made after. `text` is for people; of what may be secret or long, the
// environment and files, it says a digest.
struct Answer {
  std::string question;
  Digest digest;
  std::string text;
  bool operator==(const Answer &) const = default;
};

// Of compile.NAME what differs from run to run; who runs a pass answers these.
inline constexpr std::string_view question_of_region = "compile.region", question_of_stage = "compile.stage";

// Names of questions, in order.
using Asked = std::set<std::string, std::less<>>;

class Questions {
 public:
  struct Sources {
    std::shared_ptr<const AttrMap> facts = std::make_shared<const AttrMap>();  // of the host, "host.rank"
    std::shared_ptr<FileDigests> files = std::make_shared<FileDigests>();
    std::function<Result<AttrMap>()> device = {};  // "device.cores"; asked when it is first needed
    std::function<AttrMap()> compile = {};         // "compile.backend"; likewise, and only by passes that run
  };
  explicit Questions(Sources sources) : sources_(std::move(sources)) {}

  // None: there is no such variable, file or fact. Valid as long as this. Errors: unknown_name, with what there is; io,
  // of a file; what `device` fails with.
  Result<const std::optional<AttrValue> *> ask(std::string_view question);
  // Whether what was made after an answer to it must say so.
  static bool is_guarded(std::string_view question) { return !question.starts_with("compile."); }
  Result<Answer> answer(const std::string &question);
  Result<std::vector<Answer>> answers(const Asked &questions);

  // Of the files that were asked for, those that stay the same as long as their stamps do.
  std::vector<FileDigests::Known> settled_files(const Asked &questions) const;
  // A file among these that has changed since it was asked for; empty: there is none.
  std::string changed_file(const Asked &questions) const;
  FileDigests &files() { return *sources_.files; }
  // From now on compile.NAME is answered by this: of a piece, by what is in its key.
  void answer_compile_by(std::function<AttrMap()> compile);

 private:
  struct Given {
    std::optional<AttrValue> value = {};
    std::optional<FileDigests::Known> file = {};  // of a question for one that is there
  };
  Result<Given> find(std::string_view question);
  Sources sources_;
  std::optional<AttrMap> device_, compile_;
  std::map<std::string, Given, std::less<>> given_;
};

}  // namespace kiln
