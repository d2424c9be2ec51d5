#include "args.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

namespace kiln::cli {
namespace {

// Levenshtein's distance.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

const Flag &find(const Command &command, std::string_view name) {
  std::vector<std::string_view> known = {"--help"};
  for (const Flag &flag : command.flags) {
    if (name == flag.name || (!flag.alias.empty() && name == flag.alias)) return flag;
    known.push_back(flag.name);
  }
  throw Usage("unknown flag '" + std::string(name) + "'" + suggestion(name, known));
}

std::string spelled(const Flag &flag) {
  std::string text(flag.alias.empty() ? "" : std::string(flag.alias) + ", ");
  text += flag.name;
  if (!flag.value.empty()) text.append(" ").append(flag.value);
  return text;
}

}  // namespace

std::string suggestion(std::string_view given, std::span<const std::string_view> known) {
  size_t best = given.size() / 3 + 2;  // further away it is another word
  std::string_view nearest;
  for (std::string_view candidate : known) {
    const size_t d = distance(given, candidate);
    if (d < best) best = d, nearest = candidate;
  }
  return nearest.empty() ? "" : " (did you mean '" + std::string(nearest) + "'?)";
}

int64_t to_integer(std::string_view text, int64_t least, int64_t most, std::string_view what) {
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw Usage(std::string(what) + ": '" + std::string(text) + "' is not an integer from " + std::to_string(least) +
                " to " + std::to_string(most));
  }
  return value;
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (size_t end = text.find(at); end != text.npos; end = text.find(at)) {
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.emplace_back(text);
  return parts;
}

std::string help_of(const Command &command) {
  std::string text = "usage: kiln " + std::string(command.name);
  if (!command.operands.empty()) text.append(" ").append(command.operands);
  if (!command.flags.empty()) text += " [FLAGS]";
  text.append("\n\n").append(command.summary).append("\n");
  for (const Command *verb : command.verbs)
    text.append("\n  kiln ")
        .append(verb->name)
        .append(" ")
        .append(verb->operands)
        .append("\n    ")
        .append(verb->summary);
  if (!command.verbs.empty()) text += "\n\nkiln " + std::string(command.name) + " VERB --help tells a verb's flags.\n";
  size_t width = 0;
  for (const Flag &flag : command.flags) width = std::max(width, spelled(flag).size());
  if (width) text += "\n";
  for (const Flag &flag : command.flags) {
    const std::string left = spelled(flag);
    text.append("  ").append(left).append(width + 2 - left.size(), ' ').append(flag.doc);
    text += flag.repeated ? " (may be repeated)\n" : "\n";
  }
  return text;
}

Args Args::parse(const Command &command, std::span<const char *const> given) {
  Args args;
  bool flags = true;
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string_view word = given[i];
    if (!flags || word.size() < 2 || word[0] != '-') {
      args.operands_.emplace_back(word);
      continue;
    }
    if (word == "--") {
      flags = false;
      continue;
    }
    const size_t equals = word.starts_with("--") ? word.find('=') : std::string_view::npos;
    const Flag &flag = find(command, word.substr(0, equals));
    std::vector<std::string> &values = args.values_[flag.name];
    if (!values.empty() && !flag.repeated) throw Usage(std::string(flag.name) + " is given twice");
    if (flag.value.empty()) {
      if (equals != std::string_view::npos) throw Usage(std::string(flag.name) + " takes no value");
      values.emplace_back();
    } else if (equals != std::string_view::npos) {
      values.emplace_back(word.substr(equals + 1));
    } else {
      values.emplace_back(i + 1 < given.size() ? given[++i] : "");
    }
    if (!flag.value.empty() && values.back().empty())
      throw Usage(std::string(flag.name) + " needs a value: " + std::string(flag.value));
  }
  if (std::ranges::find(args.operands_, "") != args.operands_.end()) throw Usage("an operand is empty");
  if (args.operands_.size() < command.least_operands) {
    throw Usage("missing operand: " + std::string(command.operands));
  }
  if (args.operands_.size() > command.most_operands) {
    throw Usage("unexpected operand '" + args.operands_[command.most_operands] + "'");
  }
  return args;
}

std::optional<std::string> Args::get(std::string_view flag) const {
  const auto found = values_.find(flag);
  if (found == values_.end()) return std::nullopt;
  return found->second.front();
}

std::span<const std::string> Args::all(std::string_view flag) const {
  const auto found = values_.find(flag);
  if (found == values_.end()) return {};
  return found->second;
}

std::optional<int64_t> Args::integer(std::string_view flag, int64_t least, int64_t most) const {
  const std::optional<std::string> text = get(flag);
  if (!text) return std::nullopt;
  return to_integer(*text, least, most, flag);
}

std::vector<std::pair<std::string, std::string>> Args::pairs(std::string_view flag) const {
  std::vector<std::pair<std::string, std::string>> result;
  for (const std::string &text : all(flag)) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
      throw Usage(std::string(flag) + ": '" + text + "' is not NAME=VALUE");
    }
    const std::string name = text.substr(0, equals);
    for (const auto &[other, value] : result)
      if (other == name) throw Usage(std::string(flag) + ": '" + name + "' is given twice");
    result.emplace_back(name, text.substr(equals + 1));
  }
  return result;
}

}  // namespace kiln::cli
