// kiln plugin new: a folder to begin a plugin in, from the templates, under its own name and with identities of its
// own.
#include <sys/random.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "../session.h"
#include "templates.h"
#include "verbs.h"

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

constexpr Flag plugin_new_flags[] = {
    {"--lang", "c|cpp|rust", "the language of its source (cpp)"},
    {"--kind", "pass|pattern|op|backend",
     "what it registers (pass); pattern: a pass that says what it looks for, in cpp and rust"},
};

constexpr size_t longest_name = 40;  // the note has room for 63 bytes, and names of passes are made of it

struct Language {
  std::string_view name, extension;
};
constexpr Language languages[] = {{"c", "c"}, {"cpp", "cpp"}, {"rust", "rs"}};

constexpr const char *kinds[] = {"pass", "pattern", "op", "backend"};

std::optional<std::string_view> find(const std::string &name) {
  for (const TemplateFile &file : template_files())
    if (file.name == name) return file.text;
  return std::nullopt;
}

const Language &language_of(const std::string &lang) {
  for (const Language &language : languages)
    if (language.name == lang) return language;
  throw Usage("--lang: there are no templates in '" + lang + "'; there are some in c, cpp and rust");
}

void refuse_unknown_kind(const std::string &lang, const std::string &kind) {
  if (find(lang + "/" + kind + "/source")) return;
  std::string known;
  for (const char *each : kinds)
    if (find(lang + "/" + each + "/source")) known += (known.empty() ? "" : ", ") + std::string(each);
  throw Usage("--kind: there is no template of a '" + kind + "' in " + lang + "; there are: " + known);
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

void refuse_name(const std::string &name, const std::string &lang) {
  const bool is_name = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
                       std::ranges::all_of(name, is_word) && name.size() <= longest_name;
  if (!is_name)
    throw Usage("'" + name + "' is no name of a plugin: expected letters, digits and _, at most " +
                std::to_string(longest_name) + ", and no digit first");
  if (lang == "rust" && name == "kiln") throw Usage("'kiln' is the module that a plugin in Rust has beside it");
}

// Puts `to` wherever `from` stands as a word by itself.
std::string with_word(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos;) {
    const size_t end = at + from.size();
    const bool is_whole = (at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]));
    if (is_whole) text.replace(at, from.size(), to);
    at += is_whole ? to.size() : 1;
  }
  return text;
}

std::string without(std::string text, std::string_view what) {
  for (size_t at = 0; (at = text.find(what)) != text.npos;) text.erase(at, what.size());
  return text;
}

// The template's words for itself; the longer ones come first where one begins another.
std::string renamed(std::string_view from, const std::string &name) {
  std::string text(from);
  for (const char *what : {"copy this folder, rename it, and ", "copy this folder, and ",
                           ", from a copy of this folder", "  // your own: kiln plugin uuid"})
    text = without(text, what);
  text = with_word(text, "use_square", name + "_use_square");
  for (const char *word : {"op_template", "backend_template", "template", "drop_neg", "fuse_silu", "mine"})
    text = with_word(text, word, name);
  return text;
}

// As C (and C++) or Rust write a list: one of C's on lines of its own, one of Rust's in its line.
std::string random_bytes(bool is_c) {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) throw Failure("the system has no random bytes");
  std::string text = is_c ? "\n    {" : "[";
  for (size_t i = 0; i < sizeof bytes; ++i) {
    char byte[8];
    std::snprintf(byte, sizeof byte, "0x%02x", bytes[i]);
    text.append(i == 0 ? "" : is_c && i == 8 ? ",\n     " : ", ").append(byte);
  }
  return text + (is_c ? "}" : "]");
}

// Another identity wherever the source has one, which is a list of bytes.
std::string with_new_identities(std::string text, bool is_c) {
  for (size_t at = 0; (at = text.find(is_c ? "{0x" : "[0x", at)) != text.npos;) {
    const std::string bytes = random_bytes(is_c);
    const size_t end = text.find(is_c ? '}' : ']', at) + 1;
    while (is_c && text[at - 1] == ' ') --at;
    text.replace(at, end - at, bytes);
    at += bytes.size();
  }
  return text;
}

std::string build_file(const std::string &name, const std::string &lang) {
  std::string text = renamed(*find(lang + "/build"), name);
  if (lang != "cpp") return text;
  text = with_word(text, "LANGUAGES C", "LANGUAGES CXX");
  text = with_word(text, name + ".c", name + ".cpp");
  text = with_word(text, "C_STANDARD 99", "CXX_STANDARD 17");
  return with_word(text, "C_VISIBILITY_PRESET", "CXX_VISIBILITY_PRESET");
}

// Where this program is installed, so that the build finds the headers; of one that is not, a word to be replaced.
std::string prefix() {
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed), root = program.parent_path().parent_path();
  if (failed || !fs::exists(root / "include" / "kiln" / "plugin.h", failed)) return "/where/kiln/is";
  const std::string path = root.string();
  const auto is_plain = [](char c) { return is_word(c) || std::string_view("/.-+").find(c) != std::string_view::npos; };
  return std::ranges::all_of(path, is_plain) ? path : "'" + path + "'";
}

// With placeholders, which readme() fills in.
constexpr std::string_view readme_text = R"(# NAME

A plugin of Kiln: its source is `NAME.ENDING`MODULE. The next five commands:

    cmake -S . -B buildHEADERS && cmake --build build
    kiln plugin inspect build/NAME.so
    kiln plugin test .
    kiln run golden/NAME.json --plugin build/NAME.so BACKEND--random 1 --compare reference
    kiln plugin check build/NAME.so

`kiln plugin test .` compares what becomes of each graph `golden/CASE.json` with `golden/CASE.txt`, and its numbers with
the reference's; `--update` writes the texts anew. Add a graph ADDED.
FURTHER
`cmake --install build --prefix DIR` puts the plugin into `DIR/lib/kiln/plugins`; it is one file, which `--plugin` and
`kiln_plugin_load` take by its path.
)";

std::string readme(const std::string &name, const std::string &kind, const Language &language) {
  const bool is_rust = language.name == "rust";
  const std::pair<std::string_view, std::string> placeholders[] = {
      {"HEADERS", is_rust ? "" : " -DCMAKE_PREFIX_PATH=" + prefix()},
      {"MODULE", is_rust ? ", written with the module `kiln/`" : ""},
      {"BACKEND", kind == "backend" ? "--backend " + name + " " : ""},
      {"ENDING", std::string(language.extension)},
      {"ADDED", kind == "pass" || kind == "pattern"
                    ? "with what the plugin rewrites, and one with what it must\nleave alone"
                : kind == "op" ? "that uses the op as yours do"
                               : "of what the backend takes, and one with what it must leave alone"},
      {"FURTHER", kind == "op" ? "`kiln ops --test --plugin build/" + name + ".so` runs the samples of its ops.\n"
                  : kind == "pattern"
                      ? "`kiln passes explain GRAPH --plugin build/" + name + ".so --pass " + name +
                            "` tells of a graph in which nothing is found the\nclosest place and what failed there.\n"
                      : ""},
  };
  std::string text(readme_text);
  for (const auto &[placeholder, meant] : placeholders) text.replace(text.find(placeholder), placeholder.size(), meant);
  return with_word(text, "NAME", name);
}

// What a plugin in the language has beside its source, as it is.
void write_module(const fs::path &folder, const std::string &lang) {
  const std::string begin = lang + "/module/";
  for (const TemplateFile &file : template_files()) {
    if (!file.name.starts_with(begin)) continue;
    const fs::path path = folder / file.name.substr(begin.size());
    std::error_code failed;
    if (!fs::create_directories(path.parent_path(), failed) && failed)
      throw Failure(path.parent_path().string() + ": " + failed.message());
    write_file(path.string(), file.text);
  }
}

int print_uuid(const Args &args) {
  const std::string lang = args.get("--lang").value_or("cpp");
  (void)language_of(lang);
  const std::string bytes = random_bytes(lang != "rust");
  print(bytes.substr(bytes.find_first_not_of("\n ")) + "\n");
  return 0;
}

int plugin_new_main(const Args &args) {
  fs::path folder = args.operands()[0];
  if (!folder.has_filename()) folder = folder.parent_path();
  const std::string name = folder.filename().string(), lang = args.get("--lang").value_or("cpp"),
                    kind = args.get("--kind").value_or("pass"), from = lang + "/" + kind + "/";
  const Language &language = language_of(lang);
  refuse_unknown_kind(lang, kind);
  refuse_name(name, lang);
  std::error_code failed;
  if (fs::exists(folder) && !fs::is_empty(folder, failed))
    throw Failure(folder.string() + ": is there already, and not empty");
  if (!fs::create_directories(folder / "golden", failed) && failed)
    throw Failure((folder / "golden").string() + ": " + failed.message());
  const auto write = [&](const fs::path &file, const std::string &text) { write_file((folder / file).string(), text); };
  write(name + "." + std::string(language.extension),
        with_new_identities(renamed(*find(from + "source"), name), lang != "rust"));
  write("CMakeLists.txt", build_file(name, lang));
  for (const char *ending : {"json", "txt"})
    write(fs::path("golden") / (name + "." + ending), renamed(*find(from + ending), name));
  write_module(folder, lang);
  const std::string text = readme(name, kind, language);
  write("README.md", text);
  print(printable(folder.string()) + " is there; the next commands, in it:\n\n");
  const size_t begin = text.find("    cmake");
  print(text.substr(begin, text.find("\n\n", begin) - begin) + "\n");
  return 0;
}

}  // namespace

const Command plugin_new_command{"plugin new",
                                 "NAME",
                                 "Writes the folder NAME with a plugin to begin with: source, build file, a test.",
                                 1,
                                 1,
                                 plugin_new_flags,
                                 plugin_new_main};

const Command plugin_uuid_command{"plugin uuid",
                                  "",
                                  "Prints a new identity, for one more pass or op of a plugin.",
                                  0,
                                  0,
                                  std::span(plugin_new_flags).first(1),
                                  print_uuid};

}  // namespace kiln::cli
