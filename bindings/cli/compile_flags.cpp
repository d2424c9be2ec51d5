// What the flags of a command ask of a compile.
#include <algorithm>
#include <map>

#include "session.h"

namespace kiln::cli {
namespace {

std::vector<std::string> split(const std::string &list) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < list.size();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    parts.push_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

bool to_bool(const std::string &text, const std::string &what) {
  if (text != "true" && text != "false") throw Usage(what + ": '" + text + "' is neither true nor false");
  return text == "true";
}

// Sets the option to what `text` says of its kind.
void set(const Report &known, size_t at, const std::string &text, Options &options) {
  const auto member = [&](std::string_view name) { return path_of("compile", at, name); };
  const std::string name = known.text(member("name")), kind = known.text(member("kind")), what = "--option " + name;
  if (known.boolean(member("list"))) return options.set(name, split(text));
  if (kind == "bool") return options.set(name, to_bool(text, what));
  if (kind == "i64") return options.set(name, to_integer(text, INT64_MIN, INT64_MAX, what));
  options.set(name, text);
}

struct Named {
  std::string_view option;  // of the library
  const Flag &flag;
};
// The flags that have an option's place.
constexpr Named flags_of_options[] = {{"backend", backend_flag},
                                      {"cpu", cpu_flag},
                                      {"arch", arch_flag},
                                      {"rounding", rounding_flag},
                                      {"strict", strict_flag},
                                      {"passes", passes_flag},
                                      {"disable_passes", disable_passes_flag}};

// --option NAME=VALUE, for any option of a compile. Returns the texts by name.
std::map<std::string, std::string> set_by_name(const Args &args, Options &options) {
  const std::span<const std::string> given = args.all(option_flag.name);
  std::map<std::string, std::string> seen;
  if (given.empty()) return seen;
  const Report known = report_of(kiln_options_describe);
  std::vector<std::string> names;
  for (size_t i = 0; i < known.count("compile"); ++i) names.push_back(known.text(path_of("compile", i, "name")));
  const std::vector<std::string_view> views(names.begin(), names.end());
  for (const std::string &text : given) {
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (equals == std::string::npos || name.empty()) throw Usage("--option: '" + text + "' is not NAME=VALUE");
    const auto at = std::ranges::find(names, name);
    if (at == names.end())
      throw Usage("--option: a compile has no option '" + name + "'" + suggestion(name, views) +
                  "; kiln options lists them");
    for (const Named &named : flags_of_options)
      if (named.option == name && args.has(named.flag.name))
        throw Usage("option '" + name + "' is given twice, by --option and by " + std::string(named.flag.name));
    if (!seen.emplace(name, text.substr(equals + 1)).second) throw Usage("--option: '" + name + "' is given twice");
    set(known, static_cast<size_t>(at - names.begin()), text.substr(equals + 1), options);
  }
  return seen;
}

}  // namespace

Options compile_options(const Args &args, std::optional<std::string_view> implied_backend) {
  Options options;
  const std::map<std::string, std::string> by_name = set_by_name(args, options);
  const auto named = by_name.find("backend");
  const auto given = named == by_name.end() ? args.get(backend_flag.name) : std::optional(named->second);
  const auto backend = given ? given : implied_backend;
  if (backend) options.set("backend", *backend);
  if (const auto cpu = args.get(cpu_flag.name)) {
    if (backend.value_or("cpu") != "cpu") throw Usage("--cpu is for --backend cpu");
    options.set("cpu", *cpu);
  }
  if (const auto arch = args.get(arch_flag.name)) {
    if (backend != "cuda") throw Usage("--arch is for --backend cuda");
    options.set("arch", *arch);
  }
  if (const auto rounding = args.get(rounding_flag.name)) options.set("rounding", *rounding);
  if (args.has(strict_flag.name)) options.set("strict", true);
  for (const Flag &flag : {passes_flag, disable_passes_flag}) {
    const auto names = args.get(flag.name);
    if (names) options.set(flag.name == passes_flag.name ? "passes" : "disable_passes", split(*names));
  }
  return options;
}

void refuse_compile_flags(const Args &args) {
  const auto refuse = [&](const Flag &flag) {
    if (args.has(flag.name))
      throw Usage(std::string(flag.name) + " applies to a graph; this is an artifact, compiled already");
  };
  refuse(plugin_flag);
  refuse(option_flag);
  for (const Named &named : flags_of_options) refuse(named.flag);
}

}  // namespace kiln::cli
