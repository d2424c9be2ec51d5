#include "plan.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <map>
#include <set>

#include "process.h"

namespace kiln::cli::bench {
namespace {

// What --vary can name. `plugin` and options of plugins' passes are loaded, and sizes given, also for artifacts.
enum class Kind { threads, plugin, pass_option, option, size };

struct Value {
  std::string shown;
  std::vector<std::string> words;
};
struct Axis {
  std::string name;
  Kind kind;
  std::vector<Value> values;
};

struct Operand {
  std::string path, name;
  bool is_artifact = false;
  std::set<std::string> symbols;
};

std::string word(std::string_view flag, const std::string &value) { return std::string(flag) + "=" + value; }

// Those of the list's flags that are given, as words.
template <class Flags>
std::vector<std::string> words_of(const Args &args, const Flags &flags) {
  std::vector<std::string> words;
  for (const Flag &flag : flags)
    for (const std::string &value : args.all(flag.name)) words.push_back(word(flag.name, value));
  return words;
}

void append(std::vector<std::string> &words, const std::vector<std::string> &more) {
  words.insert(words.end(), more.begin(), more.end());
}

// Paths without their folders, where these tell them apart.
std::vector<std::string> short_names(const std::vector<std::string> &paths) {
  std::map<std::string, size_t> count;
  std::vector<std::string> names;
  for (const std::string &path : paths) {
    const std::filesystem::path trimmed = path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
    names.push_back(trimmed.filename().string());
    ++count[names.back()];
  }
  for (size_t i = 0; i < paths.size(); ++i)
    if (count[names[i]] > 1) names[i] = paths[i];
  return names;
}

// Options of a compile that are kiln bench's own to set, or that make no executable to measure.
constexpr std::string_view not_varied[] = {"cache", "code", "dump", "require_hit", "strict", "verify"};

class CompileOptions {
 public:
  CompileOptions() : report_(report_of(kiln_options_describe)) {
    for (size_t i = 0; i < report_.count("compile"); ++i) names_.push_back(report_.text(path_of("compile", i, "name")));
  }
  const std::vector<std::string> &names() const { return names_; }
  bool has(const std::string &name) const { return std::ranges::find(names_, name) != names_.end(); }
  bool is_list(const std::string &name) const {
    const auto row = static_cast<size_t>(std::ranges::find(names_, name) - names_.begin());
    return row < names_.size() && report_.boolean(path_of("compile", row, "list"));
  }

 private:
  const Report report_;
  std::vector<std::string> names_;
};

// What one --vary says, for operands with these symbols.
class Varied {
 public:
  Varied(const Args &args, std::set<std::string> symbols) : args_(args), symbols_(std::move(symbols)) {}

  Axis axis(const std::string &name, const std::string &list) const {
    Axis axis{name, kind_of(name), {}};
    const std::vector<std::string> texts = split(list, ',');
    std::set<std::string> seen;
    for (const std::string &text : texts) {
      if (text.empty()) throw Usage("--vary " + name + ": a value is missing beside a comma");
      if (!seen.insert(text).second) throw Usage("--vary " + name + ": '" + text + "' is there twice");
      axis.values.push_back({text, words(axis.kind, name, text)});
    }
    if (axis.kind == Kind::plugin) {
      const std::vector<std::string> names = short_names(texts);
      for (size_t i = 0; i < names.size(); ++i) axis.values[i].shown = names[i];
    }
    refuse_twice(axis);
    return axis;
  }

 private:
  Kind kind_of(const std::string &name) const {
    if (name == "threads") return Kind::threads;
    if (name == "plugin") return Kind::plugin;
    if (std::ranges::find(not_varied, name) != std::end(not_varied))
      throw Usage("--vary: '" + name +
                  "' cannot be varied: it says what kiln bench itself has to say, or leaves nothing to run");
    if (options_.has(name) || name.starts_with("region.") || name.starts_with("backend.")) return Kind::option;
    if (symbols_.contains(name)) return Kind::size;
    if (name.find('.') != std::string::npos) return Kind::pass_option;
    std::vector<std::string_view> known = {"threads", "plugin"};
    for (const std::string &option : options_.names()) known.push_back(option);
    for (const std::string &symbol : symbols_) known.push_back(symbol);
    std::string symbols;
    for (const std::string &symbol : symbols_) symbols += (symbols.empty() ? "" : ", ") + symbol;
    throw Usage("--vary: '" + name +
                "' is neither threads, plugin, an option of a compile (kiln options lists them) nor a symbol" +
                (symbols.empty() ? ", of which there are none" : " (" + symbols + ")") + suggestion(name, known));
  }

  std::vector<std::string> words(Kind kind, const std::string &name, const std::string &text) const {
    std::vector<std::string> words;
    switch (kind) {
      case Kind::threads:
        to_integer(text, 1, UINT32_MAX, "--vary threads");
        return {word(threads_flag.name, text)};
      case Kind::size:
        to_integer(text, 0, INT64_MAX, "--vary " + name);
        return {word(size_flag.name, name + "=" + text)};
      case Kind::pass_option:
        return {word(plugin_option_flag.name, name + "=" + text)};
      case Kind::plugin:
        if (text == "none") return {};
        for (const std::string &path : split(text, ':')) words.push_back(word(plugin_flag.name, path));
        return words;
      case Kind::option:
        break;
    }
    if (name == "specialize") {
      if (text == "none") return {};
      for (const std::string &entry : split(text, ':')) words.push_back(word(specialize_flag.name, entry));
      return words;
    }
    std::string value = text;
    if (options_.is_list(name)) {
      std::ranges::replace(value, ':', ',');
      if (value == "none") value.clear();
    }
    return {word(option_flag.name, name + "=" + value)};
  }

  // Where a flag says the same for all variants.
  void refuse_twice(const Axis &axis) const {
    const auto refuse = [&](const std::string &flag) {
      throw Usage("--vary " + axis.name + ": " + flag + " is given, too");
    };
    const auto given_by = [&](const Flag &flag) {
      for (const auto &[name, value] : args_.pairs(flag.name))
        if (name == axis.name) refuse(std::string(flag.name) + " " + axis.name);
    };
    if (axis.kind == Kind::threads && args_.has(threads_flag.name)) refuse(std::string(threads_flag.name));
    if (axis.kind == Kind::size) given_by(size_flag);
    if (axis.kind == Kind::pass_option) given_by(plugin_option_flag);
    if (axis.kind != Kind::option) return;
    for (const std::string &text : args_.all(option_flag.name))
      if (text.starts_with(axis.name + "=")) refuse(std::string(option_flag.name) + " " + axis.name);
    std::string flag = "--" + axis.name;  // of the same option
    std::ranges::replace(flag, '_', '-');
    if (args_.has(flag)) refuse(flag);
  }

  const Args &args_;
  const CompileOptions options_;
  const std::set<std::string> symbols_;
};

// With the plugins that are given, and, where it cannot be read with those, in turn with what --vary adds.
Operand described(const Args &args, const std::string &path, int limit) {
  std::vector<std::vector<std::string>> sets = {{}};
  for (const auto &[name, list] : args.pairs("--vary"))
    if (name == "plugin")
      for (const std::string &set : split(list, ','))
        if (set != "none") sets.push_back(split(set, ':'));
  std::exception_ptr first;
  for (const std::vector<std::string> &plugins : sets) {
    Asked asked;
    asked.limit = limit;
    for (const std::string &plugin : args.all(plugin_flag.name)) asked.words.push_back(word(plugin_flag.name, plugin));
    for (const std::string &plugin : plugins) asked.words.push_back(word(plugin_flag.name, plugin));
    append(asked.words, {"--", path});
    try {
      const Json told = measured(asked);
      Operand operand{path, "", told.number_at("artifact") != 0, {}};
      for (const Json &symbol : told.find("symbols")->values) operand.symbols.insert(symbol.text);
      return operand;
    } catch (const std::exception &) {
      if (!first) first = std::current_exception();
    }
  }
  std::rethrow_exception(first);
}

std::vector<Operand> operands_of(const Args &args, int limit) {
  const std::vector<std::string> names = short_names(args.operands());
  std::vector<Operand> operands;
  for (size_t i = 0; i < names.size(); ++i) {
    for (size_t before = 0; before < i; ++before)
      if (args.operands()[before] == args.operands()[i]) throw Usage("'" + args.operands()[i] + "' is given twice");
    operands.push_back(described(args, args.operands()[i], limit));
    operands.back().name = names[i];
  }
  return operands;
}

bool applies(const Axis &axis, const Operand &operand) {
  if (axis.kind == Kind::option) return !operand.is_artifact;
  return axis.kind != Kind::size || operand.symbols.contains(axis.name);
}

// The words that all variants of a operand begin with. What is not for it is for another operand.
std::vector<std::string> shared_words(const Args &args, const Operand &operand, const std::set<std::string> &symbols,
                                      bool all_artifacts) {
  std::vector<std::string> words = words_of(args, run_flags);
  std::erase_if(words, [&](const std::string &text) {
    const std::string prefix = std::string(size_flag.name) + "=";
    if (!text.starts_with(prefix)) return false;
    const std::string name = text.substr(prefix.size(), text.find('=', prefix.size()) - prefix.size());
    return symbols.contains(name) && !operand.symbols.contains(name);
  });
  if (!args.has("--random")) words.emplace_back("--random=0");
  if (!operand.is_artifact || all_artifacts) append(words, words_of(args, compile_flags));
  return words;
}

// An option of a pass is for what some plugin has.
void drop_pass_options(std::vector<std::string> &words) {
  const auto is = [](std::string_view flag) {
    return [flag](const std::string &text) { return text.starts_with(std::string(flag) + "="); };
  };
  if (std::ranges::none_of(words, is(plugin_flag.name))) std::erase_if(words, is(plugin_option_flag.name));
}

}  // namespace

std::vector<Variant> variants_of(const Args &args, int limit) {
  const std::vector<Operand> operands = operands_of(args, limit);
  std::set<std::string> symbols;
  for (const Operand &operand : operands) symbols.insert(operand.symbols.begin(), operand.symbols.end());
  const Varied varied(args, symbols);
  std::vector<Axis> axes;
  for (const auto &[name, list] : args.pairs("--vary")) axes.push_back(varied.axis(name, list));
  const bool all_artifacts = std::ranges::all_of(operands, &Operand::is_artifact);
  std::vector<Variant> variants;
  for (const Axis &axis : axes)
    if (std::ranges::none_of(operands, [&](const Operand &operand) { return applies(axis, operand); }))
      throw Usage("--vary " + axis.name + " is of a compile, and artifacts are compiled already");
  for (const Operand &operand : operands) {
    std::vector<Variant> made = {
        {operand.name, operand.name, operand.is_artifact, shared_words(args, operand, symbols, all_artifacts)}};
    for (const Axis &axis : axes) {
      if (!applies(axis, operand)) continue;
      std::vector<Variant> more;
      for (const Variant &variant : made)
        for (const Value &value : axis.values) {
          Variant &next = more.emplace_back(variant);
          const std::string text = "/" + axis.name + ":" + value.shown;
          next.name += text;
          if (axis.kind == Kind::size) next.inputs += text;
          append(next.words, value.words);
        }
      made = std::move(more);
      if (made.size() > most_variants) break;
    }
    for (Variant &variant : made) {
      drop_pass_options(variant.words);
      append(variant.words, {"--", operand.path});
    }
    variants.insert(variants.end(), made.begin(), made.end());
    if (variants.size() > most_variants)
      throw Usage("--vary asks for more than " + std::to_string(most_variants) + " variants");
  }
  return variants;
}

}  // namespace kiln::cli::bench
