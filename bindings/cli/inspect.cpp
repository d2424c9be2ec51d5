// kiln inspect: what a graph or an artifact is, as text, JSON, a drawing, kernel IR, LLVM IR, assembly or CUDA C++.
#include "commands.h"
#include "regions.h"
#include "session.h"

namespace kiln::cli {
namespace {

constexpr Flag flags[] = {
    {"--json", "", "a graph as its JSON; an artifact's description, with its regions"},
    {"--dot", "", "a graph for Graphviz"},
    {"--regions", "", "how it is cut: what is compiled together, what falls back, and why; also with --dot or --json"},
    {"--graph", "", "the graph after all passes, as JSON"},
    {"--kernels", "", "the kernels that it compiles to: kernel IR"},
    {"--llvm", "", "the LLVM IR of its kernels"},
    {"--asm", "", "the machine code of its kernels"},
    {"--cuda", "", "the CUDA C++ of its kernels; needs neither a GPU nor NVRTC"},
    plugin_flag,
    plugin_option_flag,
    fact_flag,
    backend_flag,
    cpu_flag,
    arch_flag,
    rounding_flag,
    mode_flag,
    fallback_flag,
    passes_flag,
    disable_passes_flag,
    option_flag,
};

constexpr std::string_view views[] = {"regions", "json", "dot", "graph", "kernels", "llvm", "asm", "cuda"};

std::string_view chosen_view(const Args &args) {
  std::string_view chosen = "text";
  for (const std::string_view view : views) {
    if (!args.has("--" + std::string(view)) || (chosen == "regions" && (view == "json" || view == "dot"))) continue;
    if (chosen != "text")
      throw Usage("--" + std::string(chosen) + " and --" + std::string(view) + " exclude each other");
    chosen = view;
  }
  return chosen;
}

// What it was compiled for; the plan tells the rest.
void print_head(const Report &description) {
  for (const std::string_view key : {"backend", "target", "build_id", "key"}) {
    const std::string value = description.text(key);
    const bool has_none = key == "key" && value.empty();
    print(std::string(key) + " " + (has_none ? "none: no cache keeps it" : value) + "\n");
    if (key == "key" && description.has("edited"))
      for (size_t i = 0; i < description.count("edited"); ++i)
        print("edited " + printable(description.text(path_of("edited", i))) + "\n");
    if (key != "target" || !description.has("targets")) continue;
    std::string all;
    for (size_t i = 0; i < description.count("targets"); ++i)
      all += (i ? ", " : "") + description.text(path_of("targets", i));
    print("targets " + all + "\n");
  }
}

void print_executable(const Executable &executable, std::string_view what, bool dot) {
  if (what == "regions") {
    const Report description = report_of(kiln_executable_describe, executable.get());
    return print(dot ? regions_dot(description) : regions_text(description));
  }
  if (what == "json") return print(report_of(kiln_executable_describe, executable.get()).json() + "\n");
  if (what == "text") {
    print_head(report_of(kiln_executable_describe, executable.get()));
    what = "plan";
  }
  print(view(make<Blob>(kiln_executable_text, executable.get(), what.data(), what.size())));
}

// The graph after all passes, which an artifact keeps.
void draw(const Session &session, const Executable &executable) {
  const Blob kept = make<Blob>(kiln_executable_text, executable.get(), "graph", size_t{5});
  const std::string_view json = view(kept);
  const Graph graph = make<Graph>(kiln_graph_parse, session.context(), json.data(), json.size());
  print(view(make<Blob>(kiln_graph_write, graph.get(), "dot", size_t{3})));
}

int run(const Args &args) {
  std::string_view what = chosen_view(args);
  if (what == "regions" && args.has("--json") && args.has("--dot")) throw Usage("--json and --dot exclude each other");
  const Session session(args);
  Subject subject = load(session, args.operands()[0]);
  if (subject.graph && (what == "text" || what == "json" || what == "dot")) {
    if (const std::string_view flag = given_compile_flag(args); !flag.empty())
      throw Usage(std::string(flag) + " is for --regions, --graph, --kernels, --llvm, --asm and --cuda");
    print(view(make<Blob>(kiln_graph_write, subject.graph.get(), what.data(), what.size())));
    return 0;
  }
  if (subject.graph) {
    Options options = compile_options(args, session, what == "cuda" ? std::optional(what) : std::nullopt);
    options.set("code", false);  // listings are made of the kernels
    options.set("cache", false);
    subject.executable = compile(session, subject.graph, options).executable;
  } else {
    refuse_compile_flags(args);
    if (what == "dot") {
      draw(session, subject.executable);
      return 0;
    }
  }
  if (what == "regions" && args.has("--json")) what = "json";  // the description, which has them
  print_executable(subject.executable, what, args.has("--dot"));
  return 0;
}

}  // namespace

const Command inspect_command{
    "inspect", "GRAPH|ARTIFACT", "Shows a graph or an artifact; as text unless a flag says otherwise.", 1, 1, flags,
    run};

}  // namespace kiln::cli
