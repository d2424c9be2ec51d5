// The command line: which flags a command knows, and what was given. Wrong use throws Usage, which main turns into one
// line on stderr and exit code 2.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::cli {

struct Usage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Flag {
  std::string_view name;   // with its dashes: "--input"
  std::string_view value;  // placeholder of its value, "NAME=F.npy"; empty: a switch
  std::string_view doc;
  bool repeated = false;
  std::string_view alias = {};  // a second spelling: "-o"
};

class Args;

struct Command {
  std::string_view name;      // "run", "cache ls"
  std::string_view operands;  // as the synopsis shows them: "GRAPH|ARTIFACT"
  std::string_view summary;
  size_t least_operands, most_operands;
  std::span<const Flag> flags;
  int (*run)(const Args &);                    // returns the exit code
  std::span<const Command *const> verbs = {};  // of a command that is followed by a verb; it has only these
};

std::string help_of(const Command &command);

class Args {
 public:
  // Flags and operands may be mixed; "--flag=value" and "--flag value" are the same; after "--" all are operands.
  static Args parse(const Command &command, std::span<const char *const> given);

  const std::vector<std::string> &operands() const { return operands_; }
  bool has(std::string_view flag) const { return values_.contains(flag); }
  std::optional<std::string> get(std::string_view flag) const;
  std::span<const std::string> all(std::string_view flag) const;
  // The flag's value as an integer from `least` to `most`, or Usage.
  std::optional<int64_t> integer(std::string_view flag, int64_t least, int64_t most = INT64_MAX) const;
  // The flag's values, each NAME=REST, or Usage.
  std::vector<std::pair<std::string, std::string>> pairs(std::string_view flag) const;

 private:
  std::vector<std::string> operands_;
  std::map<std::string_view, std::vector<std::string>> values_;
};

// " (did you mean 'run'?)", or nothing when none of `known` is near.
std::string suggestion(std::string_view given, std::span<const std::string_view> known);
// `text` as an integer from `least` to `most`; `what` names it in the Usage.
int64_t to_integer(std::string_view text, int64_t least, int64_t most, std::string_view what);
// What stands before, between and behind each `at`; of a text without one the whole.
std::vector<std::string> split(std::string_view text, char at);

}  // namespace kiln::cli
