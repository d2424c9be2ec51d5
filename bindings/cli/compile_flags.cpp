// What the flags of a command ask of a compile.
#include <algorithm>
#include <map>
#include <set>

#include "session.h"

namespace kiln::cli {
namespace {

// Of a list of an option; "" is the empty one, and a comma may end it.
std::vector<std::string> members_of(const std::string &list) {
  std::vector<std::string> members = split(list, ',');
  if (members.back().empty()) members.pop_back();
  return members;
}

// Flags that are another way to say --option; a switch says true.
struct Spelling {
  std::string_view option;  // of the library
  const Flag &flag;
};
constexpr Spelling spellings[] = {{"backend", backend_flag},
                                  {"cpu", cpu_flag},
                                  {"arch", arch_flag},
                                  {"rounding", rounding_flag},
                                  {"strict", strict_flag},
                                  {"mode", mode_flag},
                                  {"fallback", fallback_flag},
                                  {"passes", passes_flag},
                                  {"disable_passes", disable_passes_flag},
                                  {"specialize_when", specialize_when_flag},
                                  {"dump", dump_flag}};

using Texts = std::map<std::string, std::string>;  // by option

// What the command line says of options.
Texts texts_of(const Args &args) {
  Texts texts;
  for (const auto &[option, flag] : spellings)
    if (args.has(flag.name)) texts.emplace(option, flag.value.empty() ? "true" : *args.get(flag.name));
  for (const std::string &text : args.all(option_flag.name)) {
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (equals == std::string::npos || name.empty()) throw Usage("--option: '" + text + "' is not NAME=VALUE");
    if (texts.emplace(name, text.substr(equals + 1)).second) continue;
    const auto *spelling = std::ranges::find(spellings, name, &Spelling::option);
    const bool by_flag = spelling != std::end(spellings) && args.has(spelling->flag.name);
    throw Usage("option '" + name + "' is given twice" +
                (by_flag ? ", by --option and by " + std::string(spelling->flag.name) : ""));
  }
  return texts;
}

// The row of an option; of one that names a region, that of the option behind the name.
std::optional<size_t> row_of(const Report &report, std::span<const std::string_view> known, std::string_view name) {
  const bool names_a_region = name.starts_with("region.");
  if (names_a_region) name.remove_prefix(name.rfind('.') + 1);
  const auto found = std::ranges::find(known, name);
  if (found == known.end()) return std::nullopt;
  const auto row = static_cast<size_t>(found - known.begin());
  if (names_a_region && !report.boolean(path_of("compile", row, "of_regions"))) return std::nullopt;
  return row;
}

// Of "region.NAME.backend.OPTION", which is of a registered backend's for one region: the OPTION; "": it is none.
std::string option_for_region(const std::string &name) {
  constexpr std::string_view mark = ".backend.";
  const size_t at = name.starts_with("region.") ? name.find(mark) : std::string::npos;
  return at == std::string::npos ? "" : name.substr(at + mark.size());
}

// An option of a registered backend's, "backend.NAME.OPTION", or of its for one region, which is of the kind that the
// first backend with an option of that name has; one that there is not is left to the library to name.
void set_of_backend(kiln_context *context, const std::string &name, const std::string &text, Options &options) {
  const Report report = report_of(kiln_context_report, context);
  const std::string for_region = option_for_region(name);
  for (size_t i = 0; i < report.count("backends"); ++i) {
    const std::string prefix = "backend." + report.text(path_of("backends", i, "name")) + ".";
    const std::string list = path_of("backends", i, "options");
    for (size_t k = 0; k < report.count(list); ++k)
      if (const std::string own = report.text(path_of(list, k, "name")); prefix + own == name || own == for_region)
        return set_option(options, name, report.text(path_of(list, k, "kind")),
                          report.boolean(path_of(list, k, "list")), text, "--option " + name);
  }
  options.set(name, text);
}

// Sets options to what the texts say of their kinds.
void set(kiln_context *context, const Texts &texts, Options &options) {
  if (texts.empty()) return;
  const Report report = report_of(kiln_options_describe);
  std::vector<std::string> names;
  for (size_t i = 0; i < report.count("compile"); ++i) names.push_back(report.text(path_of("compile", i, "name")));
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (const auto &[name, text] : texts) {
    if (name.starts_with("backend.") || !option_for_region(name).empty()) {
      set_of_backend(context, name, text, options);
      continue;
    }
    const std::optional<size_t> row = row_of(report, known, name);
    if (!row)
      throw Usage("--option: a compile has no option '" + name + "'" + suggestion(name, known) +
                  "; kiln options lists them");
    const auto member = [&](std::string_view what) { return path_of("compile", *row, what); };
    set_option(options, name, report.text(member("kind")), report.boolean(member("list")), text, "--option " + name);
  }
}

}  // namespace

void set_option(Options &options, const std::string &name, const std::string &kind, bool is_list,
                const std::string &text, const std::string &what) {
  if (kind == "bool" && !is_list) {
    if (text != "true" && text != "false") throw Usage(what + ": '" + text + "' is neither true nor false");
    options.set(name, text == "true");
  } else if (kind == "i64" && !is_list) {
    options.set(name, to_integer(text, INT64_MIN, INT64_MAX, what));
  } else if (kind == "text" && is_list) {
    options.set(name, members_of(text));
  } else if (kind == "text") {
    options.set(name, text);
  } else {
    throw Usage(what + ": it is of kind " + kind + (is_list ? "[]" : "") +
                "; on the command line bool, i64 and text can be set");
  }
}

Options compile_options(const Args &args, const Session &session, std::optional<std::string_view> implied_backend) {
  Texts texts = texts_of(args);
  if (implied_backend) texts.emplace("backend", *implied_backend);
  const auto backend = texts.find("backend");
  const std::string runs = backend == texts.end() ? "cpu" : backend->second;
  if (texts.contains("cpu") && (runs == "cuda" || runs == "reference")) throw Usage("--cpu is for --backend cpu");
  if (texts.contains("arch") && runs != "cuda") throw Usage("--arch is for --backend cuda");
  if (texts.contains("specialize")) throw Usage("--option specialize: its texts have commas; give --specialize");
  Options options;
  set(session.context(), texts, options);
  if (const auto texts_of_entries = args.all(specialize_flag.name); !texts_of_entries.empty())
    options.set("specialize", std::vector<std::string>(texts_of_entries.begin(), texts_of_entries.end()));
  return options;
}

std::vector<Options> options_of_targets(const Args &args, const Session &session) {
  const Texts texts = texts_of(args);
  for (const std::string_view option : {"cpu", "arch"}) {
    const auto given = texts.find(std::string(option));
    if (given == texts.end() || given->second.find(',') == std::string::npos) continue;
    std::vector<Options> all;
    const auto fail = [&](const std::string &what) { throw Usage("--" + given->first + " " + given->second + what); };
    if (given->second.ends_with(',')) fail(": a name is missing behind the last comma");
    std::set<std::string> seen;
    for (const std::string &target : members_of(given->second)) {
      if (target.empty()) fail(": a name is missing before a comma");
      if (!seen.insert(target).second) fail(": '" + target + "' is there twice");
      all.push_back(compile_options(args, session));
      all.back().set(option, target);
    }
    return all;
  }
  std::vector<Options> one;
  one.push_back(compile_options(args, session));
  return one;
}

std::string_view given_compile_flag(const Args &args) {
  for (const Flag *flag : {&option_flag, &specialize_flag})
    if (args.has(flag->name)) return flag->name;
  for (const auto &[option, flag] : spellings)
    if (args.has(flag.name)) return flag.name;
  return "";
}

void refuse_compile_flags(const Args &args) {
  const std::string_view flag = given_compile_flag(args);  // a plugin may have what the artifact runs on
  if (!flag.empty()) throw Usage(std::string(flag) + " applies to a graph; this is an artifact, compiled already");
}

}  // namespace kiln::cli
