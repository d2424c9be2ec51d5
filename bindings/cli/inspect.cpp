// kiln inspect: what a graph or an artifact is, as text, JSON, a drawing, kernel IR, LLVM IR, assembly or CUDA C++.
#include "commands.h"
#include "dumped.h"
#include "regions.h"
#include "session.h"
#include "temporary_folder.h"

namespace kiln::cli {
namespace {

constexpr Flag inspect_flags[] = {
    {"--json", "", "a graph as its JSON; an artifact's description, with its regions"},
    {"--dot", "", "a graph for Graphviz"},
    {"--after", "PASS|STAGE|all",
     "the graph behind a pass, or a stage (given, early, pre_grad, post_grad, lower); also with --dot or --json"},
    {"--diff", "", "of --after: what each pass changed"},
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

constexpr std::string_view views[] = {"after", "regions", "json", "dot", "graph", "kernels", "llvm", "asm", "cuda"};

// Views that are also shown as JSON, or drawn.
bool has_forms(std::string_view view) { return view == "regions" || view == "after"; }

std::string_view chosen_view(const Args &args) {
  std::string_view chosen = "text";
  for (const std::string_view view : views) {
    if (!args.has("--" + std::string(view)) || (has_forms(chosen) && (view == "json" || view == "dot"))) continue;
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

// The parameters that the artifact's file has.
void print_weights(const Report &description) {
  if (!description.has("weights")) return;
  print("weights " + std::to_string(description.i64("weights.bytes")) + " bytes\n");
  for (size_t i = 0; i < description.count("parameters"); ++i) {
    const std::string stored = path_of("parameters", i, "stored_bytes");
    if (!description.has(stored)) continue;
    const int64_t bytes = description.i64(stored);
    print("weights parameter " + printable(description.text(path_of("parameters", i, "name"))) + ": " +
          (bytes ? std::to_string(bytes) + " bytes" : "as it is prepared") + "\n");
  }
  for (size_t i = 0; i < description.count("weights.prepared"); ++i) {
    const std::string names = path_of("weights.prepared", i, "parameters");
    std::string all;
    for (size_t k = 0; k < description.count(names); ++k) all += (k ? ", " : "") + description.text(path_of(names, k));
    print("weights prepared of " + printable(all) + ": " +
          std::to_string(description.i64(path_of("weights.prepared", i, "bytes"))) + " bytes\n");
  }
}

void print_executable(const Executable &executable, std::string_view what, bool dot) {
  if (what == "regions") {
    const Report description = report_of(kiln_executable_describe, executable.get());
    return print(dot ? regions_dot(description) : regions_text(description));
  }
  if (what == "json") return print(report_of(kiln_executable_describe, executable.get()).json() + "\n");
  if (what == "text") {
    const Report description = report_of(kiln_executable_describe, executable.get());
    print_head(description);
    print_weights(description);
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

// What passes make of a graph on the way to kernels: a compile dumps it.
void print_after(const Session &session, const Graph &graph, const Args &args, Options &options) {
  const TemporaryFolder folder;
  options.set("dump", folder.path());
  const Compiled compiled = compile(session, graph, options);
  const std::string_view form = args.has("--diff")   ? "diff"
                                : args.has("--json") ? "json"
                                : args.has("--dot")  ? "dot"
                                                     : "text";
  print(text_after(read_dumped(compiled.report.text("dump")), *args.get("--after"), form));
}

void check_forms(const Args &args, std::string_view view) {
  std::string_view given;
  for (const std::string_view form : {"--json", "--dot", "--diff"}) {
    if (!args.has(form)) continue;
    if (form == "--diff" && view != "after") throw Usage("--diff is for --after");
    if (has_forms(view) && !given.empty())
      throw Usage(std::string(given) + " and " + std::string(form) + " exclude each other");
    given = form;
  }
}

int inspect_main(const Args &args) {
  std::string_view what = chosen_view(args);
  check_forms(args, what);
  const Session session(args);
  Subject subject = load(session, args.operands()[0]);
  if (subject.graph && (what == "text" || what == "json" || what == "dot")) {
    if (const std::string_view flag = given_compile_flag(args); !flag.empty())
      throw Usage(std::string(flag) + " is for --after, --regions, --graph, --kernels, --llvm, --asm and --cuda");
    print(view(make<Blob>(kiln_graph_write, subject.graph.get(), what.data(), what.size())));
    return 0;
  }
  if (subject.graph) {
    Options options = compile_options(args, session, what == "cuda" ? std::optional(what) : std::nullopt);
    options.set("code", false);  // listings are made of the kernels
    options.set("cache", false);
    if (what == "after") {
      print_after(session, subject.graph, args, options);
      return 0;
    }
    subject.executable = compile(session, subject.graph, options).executable;
  } else {
    refuse_compile_flags(args);
    if (what == "after") throw Usage("--after applies to a graph; this is an artifact, compiled already");
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
    "inspect",     "GRAPH|ARTIFACT", "Shows a graph or an artifact; as text unless a flag says otherwise.", 1, 1,
    inspect_flags, inspect_main};

}  // namespace kiln::cli
