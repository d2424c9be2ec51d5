// Facts of the host (kiln_fact_set): what is made after one answer is given to nobody who has another.
#include <array>
#include <map>
#include <set>

#include "../../session.h"
#include "../../temporary_folder.h"
#include "cached.h"

namespace kiln::cli::plugin_check {
namespace {

// Two answers of each kind, as --fact has them.
constexpr std::array<std::array<const char *, 2>, 4> answers = {
    {{"2", "5"}, {"a", "b"}, {"true", "false"}, {"0.5", "0.25"}}};

// "host.NAME" in the file, each once. A string that is not ended there goes on with another one's text, which does no
// harm: nobody asks for that.
std::set<std::string> names_in(std::string_view bytes) {
  const auto is_of_name = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  constexpr std::string_view prefix = "host.";
  std::set<std::string> names;
  for (size_t at = bytes.find(prefix); at != bytes.npos && names.size() < 64; at = bytes.find(prefix, at)) {
    const size_t begin = at;
    for (at += prefix.size(); at < bytes.size() && is_of_name(bytes[at]);) ++at;
    if (at - begin > prefix.size() && at - begin < 64) names.emplace(bytes.substr(begin, at - begin));
  }
  return names;
}

// Of each fact the kind of its answers.
using Kinds = std::map<std::string, size_t>;

void set_all(const Context &context, const Kinds &kinds, size_t answer) {
  for (const auto &[name, kind] : kinds) set_fact(context.get(), name, answers[kind][answer]);
}

std::vector<std::string> as_words(const Kinds &kinds, size_t answer) {
  std::vector<std::string> words;
  for (const auto &[name, kind] : kinds) words.push_back(name + "=" + answers[kind][answer]);
  return words;
}

std::string joined(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// Whether all items compile under these answers that do under none; adds what passes ask for besides. What fails
// because of an answer's kind names the question, whose next kind is tried: `kinds` has it then.
bool are_taken(const Checked &subject, const Registered &registered, const std::vector<Item> &items, Kinds &kinds) {
  const Context context = context_of(subject);
  set_all(context, kinds, 0);
  bool are_all = true;
  for (const Item &item : items) {
    try {
      const Report report = compile(context, parse(context, item.json), passed(registered)).report;
      for (size_t i = 0; report.has("questions.0.question") && i < report.count("questions"); ++i) {
        const std::string question = report.text(path_of("questions", i, "question"));
        if (question.starts_with("host.") && kinds.try_emplace(question, 0).second) are_all = false;
      }
    } catch (const Failure &failure) {
      for (auto &[name, kind] : kinds) {
        if (std::string_view(failure.what()).find("'" + name + "'") == std::string_view::npos) continue;
        if (++kind == answers.size()) throw;
        return false;
      }
    }
  }
  return are_all;
}

// The facts that the plugin may ask for.
Kinds kinds_of(const Checked &subject, const Registered &registered, const std::vector<Item> &items) {
  Kinds kinds;
  for (const std::string &name : names_in(bytes_of(subject))) kinds[name] = 0;
  for (int i = 0; i < 64; ++i)
    if (are_taken(subject, registered, items, kinds)) break;
  return kinds;
}

}  // namespace

void test_facts(const Checked &subject) {
  const Registered registered(subject.path);
  if (registered.passes.empty()) return;
  const std::vector<Item> items = cached_items(subject);
  const Kinds kinds = kinds_of(subject, registered, items);
  if (kinds.empty()) return;
  {
    const Context context = context_of(subject);  // under facts a pass may do what it does not without
    set_all(context, kinds, 0);
    expect_invariants(subject, registered, context);
  }
  const TemporaryFolder folder, other;
  std::vector<Turn> made[2];
  {
    const Context context = context_of(subject, folder.path());
    for (size_t i = 0; i < 2; ++i) {
      set_all(context, kinds, i);
      made[i] = turns(context, registered, items);
    }
    check(kiln_context_close(context.get()));
  }
  const std::vector<std::string> first = as_words(kinds, 0), second = as_words(kinds, 1);
  if (are_bypassed(made[0])) return;
  if (const std::string at =
          parting(made_of(text_of(made[1])), made_of(turns_of_process(subject, other.path(), second)));
      !at.empty())
    throw Failure("with " + joined(second) + ", after a compile with " + joined(first) +
                  ", something else is made than without that of " + at);
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<std::string> &words = i == 0 ? first : second;
    expect_found(made[i], turns_of_process(subject, folder.path(), words), "another process with " + joined(words));
  }
}

}  // namespace kiln::cli::plugin_check
