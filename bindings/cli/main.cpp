// kiln: runs, compiles and inspects graphs. A client of kiln.h alone.
//
// Exit codes: 0 success, 1 failure, 2 wrong use, 3 slower (bench --against). An error is one line on stderr.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

#include "bench/child.h"
#include "commands.h"
#include "handles.h"
#include "session.h"

namespace kiln::cli {
namespace {

constexpr const Command *commands[] = {&run_command,  &compile_command, &inspect_command, &passes_command,
                                       &ops_command,  &options_command, &bench_command,   &cache_command,
                                       &pack_command, &unpack_command,  &plugin_command,  &version_command};

std::string overview() {
  std::string text = "usage: kiln COMMAND …\n\n";
  for (const Command *command : commands) {
    std::string left = std::string(command->name) + " " + std::string(command->operands);
    left.resize(std::max<size_t>(left.size(), 34), ' ');
    text += "  " + left + " " + std::string(command->summary.substr(0, command->summary.find('\n'))) + "\n";
  }
  return text + "\nkiln COMMAND --help tells a command's flags.\n";
}

bool asks_for_help(std::string_view word) { return word == "--help" || word == "-h"; }

// Of a command with verbs the one that the next word names, whose own name is "COMMAND VERB".
const Command &verb_of(const Command &command, std::span<const char *const> words) {
  if (words.empty()) throw Usage("missing operand: " + std::string(command.operands));
  std::vector<std::string_view> known;
  for (const Command *verb : command.verbs) {
    known.push_back(verb->name.substr(command.name.size() + 1));
    if (known.back() == words[0]) return *verb;
  }
  throw Usage("unknown verb '" + std::string(words[0]) + "' of " + std::string(command.name) +
              suggestion(words[0], known));
}

int run(const Command &command, std::span<const char *const> words) {
  if (!command.verbs.empty() && (words.empty() || !asks_for_help(words[0])))
    return run(verb_of(command, words), words.subspan(1));
  if (std::ranges::any_of(words, asks_for_help)) {
    print(help_of(command));
    return 0;
  }
  return command.run(Args::parse(command, words));
}

int dispatch(std::span<const char *const> words) {
  if (words.empty()) throw Usage("no command given; kiln --help lists them");
  const std::string_view name = words[0];
  if (name == "--help" || name == "-h" || name == "help") {
    print(overview());
    return 0;
  }
  std::vector<std::string_view> known;
  if (name == bench::child_command.name) return run(bench::child_command, words.subspan(1));
  for (const Command *command : commands) {
    known.push_back(command->name);
    if (command->name == name) return run(*command, words.subspan(1));
  }
  throw Usage("unknown command '" + std::string(name) + "'" + suggestion(name, known));
}

}  // namespace
}  // namespace kiln::cli

int main(int count, char **words) {
  try {
    return kiln::cli::dispatch(std::span<const char *const>(words, count).subspan(1));
  } catch (const kiln::cli::Usage &usage) {
    std::fprintf(stderr, "kiln: %s\n", kiln::cli::printable(usage.what()).c_str());
    return 2;
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "kiln: out of memory\n");
    return 1;
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "kiln: %s\n", kiln::cli::printable(failure.what()).c_str());
    return 1;
  }
}
