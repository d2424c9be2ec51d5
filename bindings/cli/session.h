// What the commands share: flags, a context with plugins and progress, and loading a graph or an artifact.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "args.h"
#include "handles.h"

namespace kiln::cli {

inline constexpr Flag plugin_flag{"--plugin", "P.so", "load a plugin, with its passes", true};
inline constexpr Flag plugin_option_flag{"--plugin-option", "PASS.OPTION=V",
                                         "set an option of a pass of a plugin's; kiln plugin inspect lists them", true};
inline constexpr Flag fact_flag{"--fact", "host.NAME=V", "a fact that passes may ask for (true, 3, 0.5, or a text)",
                                true};
inline constexpr Flag backend_flag{"--backend", "cpu|cuda|reference|NAME",
                                   "what runs the graph, NAME of a plugin (cpu)"};
inline constexpr Flag cpu_flag{
    "--cpu", "NAME", "generate code for x86-64, v3, v4 or these and more (v4+vnni-movbe; native: this machine)"};
inline constexpr Flag arch_flag{"--arch", "NAME",
                                "of --backend cuda: generate code for sm_80, sm_90, … (native: this GPU)"};
inline constexpr Flag rounding_flag{"--rounding", "strict|relaxed", "whether results may depend on fusion (strict)"};
inline constexpr Flag mode_flag{"--mode", "all|marked|except_fallback|none",
                                "which nodes are compiled together (all); kiln options says more"};
inline constexpr Flag fallback_flag{"--fallback", "kernel|reference|error", "what runs the others (kernel)"};
inline constexpr Flag passes_flag{"--passes", "NAME,NAME", "of the passes that plugins register, run these (all)"};
inline constexpr Flag disable_passes_flag{"--disable-passes", "NAME,NAME", "leave these passes out, built-in or not"};
inline constexpr Flag specialize_flag{"--specialize", "SYMBOL=N,SYMBOL=N",
                                      "also make a program for these sizes alone, which runs where they are met", true};
inline constexpr Flag specialize_when_flag{
    "--specialize-when", "ahead|background|lazy",
    "when to make it: with the rest, after it, or when a run meets the sizes (ahead)"};
inline constexpr Flag dump_flag{"--dump", "DIR", "write what each pass makes of the graph into a new folder in DIR"};
inline constexpr Flag option_flag{"--option", "NAME=VALUE", "set an option of the compile; kiln options lists them",
                                  true};
inline constexpr Flag threads_flag{"--threads", "N", "threads that run kernels (KILN_THREADS, or one per usable core)"};
inline constexpr Flag cache_flag{"--cache", "DIR|off", "the cache's folder (the user's cache folder)"};
inline constexpr Flag strict_flag{"--strict", "", "fail when the cache has to be bypassed"};
inline constexpr Flag stats_flag{"--stats", "F|-", "write how the compile and the run went, as JSON"};
inline constexpr Flag json_flag{"--json", "", "write JSON"};

// A fact of the kind that its text looks like.
void set_fact(kiln_context *context, const std::string &name, const std::string &text);
// Those that --fact tells.
void set_facts(kiln_context *context, const Args &args);

// Shows the phase of a compile that takes over a second on stderr, when that is a terminal. Warnings are always shown.
class Progress;

class Session {
 public:
  // Reads --cache, --threads, --fact, --plugin (those that the command knows).
  // `keeps_prepared`: what runs prepare of parameters is looked for in the cache, and kept there.
  explicit Session(const Args &args, bool keeps_prepared = true);
  ~Session();

  // Loads what --plugin names, with its --plugin-option: for graphs, which their passes may rewrite.
  void load_plugins() const;

  kiln_context *context() const { return context_.get(); }
  // Calls `on_step` with the text of each KILN_EVENT_STEP from now on, on the thread that runs; empty: nobody.
  void listen(std::function<void(std::string_view)> on_step) const;
  // The compile is over: its progress is cleared from the terminal.
  void finish_progress() const;

 private:
  std::vector<std::string> plugins_, plugin_options_;
  std::unique_ptr<Progress> progress_;  // outlives the context, which calls it
  Context context_;
};

// The options that the flags ask for; another flag may imply a backend. Values are not checked here, but for those of
// --option to be of its kind: the compile refuses a backend, CPU, architecture or pass that it does not know.
Options compile_options(const Args &args, const Session &session,
                        std::optional<std::string_view> implied_backend = std::nullopt);

// The same for each of the targets that --cpu or --arch lists, "v3,v4".
std::vector<Options> options_of_targets(const Args &args, const Session &session);
// Sets an option of that kind to what a text says, lists by commas. Throws Usage, with `what` before it, where the text
// is none of it, or there is no way to say the kind.
void set_option(Options &options, const std::string &name, const std::string &kind, bool is_list,
                const std::string &text, const std::string &what);

// Either a graph (its file holds JSON) or an executable (of an artifact).
struct Subject {
  Graph graph;
  Executable executable;
};
Subject load(const Session &session, const std::string &path);
// The first of the flags that compile_options() reads that is given; "": none is.
std::string_view given_compile_flag(const Args &args);
// Throws Usage when one of the flags that only a graph's compile obeys is given for an artifact.
void refuse_compile_flags(const Args &args);

struct Compiled {
  Executable executable;
  Report report;
};
// Of a name or value on the command line that the library refuses: exit code 2.
bool is_of_usage(const Failure &failure);
// Throws Usage for such a one.
Compiled compile(const Session &session, const Graph &graph, const Options &options);

// With blanks behind it, one at least: what follows does not touch it.
std::string padded(std::string text, size_t width);
// A graph's JSON, whole.
std::string read_file(const std::string &path);
// "-" is standard output.
void write_file(const std::string &path, std::string_view text);
void print(std::string_view text);
// For one line that holds a path or another's message: control characters, and what is not UTF-8, as \xNN.
std::string printable(std::string_view text);

}  // namespace kiln::cli
