// kiln run: compiles (or loads), binds, runs once, and shows or writes the outputs.
#include <cstdio>
#include <deque>
#include <map>
#include <set>

#include "arrays.h"
#include "commands.h"
#include "compare.h"
#include "profile.h"
#include "session.h"
#include "signature.h"
#include "stats.h"

namespace kiln::cli {
namespace {

constexpr Flag flags[] = {
    {"--weights", "F.safetensors", "the graph's parameters, by name"},
    {"--input", "NAME=F", "an input, of a .npy or .safetensors file", true},
    {"--random", "SEED", "generate the inputs and weights that are not given"},
    {"--size", "SYMBOL=N", "the size of a symbolic dimension, for --random", true},
    {"--output", "NAME=F", "write an output, as F.npy or F.safetensors", true},
    {"--times", "", "print how long each step of the plan took, in a second run"},
    {"--profile", "F.json", "print the same as a table, with rates, and write a trace of it for ui.perfetto.dev"},
    {"--compare", "reference", "run the reference backend, too, and print how far apart the outputs are"},
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
    specialize_flag,
    specialize_when_flag,
    dump_flag,
    option_flag,
    threads_flag,
    cache_flag,
    strict_flag,
    stats_flag,
};

const Slot &find(const std::vector<Slot> &slots, const std::string &name, std::string_view flag) {
  std::vector<std::string_view> known;
  for (const Slot &slot : slots) {
    if (slot.name == name) return slot;
    known.push_back(slot.name);
  }
  throw Usage(std::string(flag) + ": the graph has no '" + name + "'" + suggestion(name, known));
}

// The arrays of one run, in order of the slots: what files give, and what is drawn for the rest. All that can be wrong
// with them is found before anything is compiled.
class Arrays {
 public:
  // `graph` may be empty: an artifact is run.
  Arrays(const Args &args, const Session &session, const Signature &signature, const Graph &graph)
      : signature_(signature), sizes_(session.context()), seed_(args.integer("--random", 0)) {
    sizes_.set(args.pairs("--size"), signature.symbols);
    if (!seed_ && args.has("--size")) throw Usage("--size is for --random, which is not given");
    for (const auto &[name, path] : args.pairs("--input")) open_input(name, path);
    if (graph) sizes_.add_hints(report_of(kiln_graph_describe, graph.get()));
    for (const Slot &slot : signature.inputs) {
      const auto given = inputs_.find(slot.name);
      const bool is_given = given != inputs_.end();
      add(slot, is_given ? given->second : draw(slot, false, "--input " + slot.name + "=F.npy"), is_given);
    }
    if (const auto path = args.get("--weights")) open_weights(*path);
    for (const Slot &slot : signature.parameters) {
      const DLTensor *tensor = weights_ ? find_weight(slot) : nullptr;
      add(slot, tensor ? tensor : draw(slot, true, "--weights F.safetensors with it"), tensor != nullptr);
    }
  }

  // By number, since an output may have the same name.
  void bind(kiln_call *call) const {
    for (uint32_t slot = 0; slot < all_.size(); ++slot) check(kiln_call_bind(call, slot, all_[slot]));
  }

 private:
  // As the graph declares its layout. Of a wrong rank: binding it will say so.
  void add(const Slot &slot, const DLTensor *tensor, bool is_given) {
    if (!slot.strides.empty() && slot.strides.size() == static_cast<size_t>(tensor->ndim)) {
      drawn_.push_back(Array::laid_out(*tensor, sizes_.strides(slot), slot.name, is_given));
      tensor = drawn_.back().tensor();
    }
    all_.push_back(tensor);
  }

  void open_input(const std::string &name, const std::string &path) {
    const Slot &slot = find(signature_.inputs, name, "--input");
    const Tensors file = make<Tensors>(kiln_tensors_open, path.data(), path.size());
    const DLTensor *tensor = only_or_named(file, name, path);
    given_.push_back(Array::copy_of(*tensor, name));  // the file's memory is read only, and copy_ may write to an input
    inputs_[name] = given_.back().tensor();
    sizes_.learn(slot, *tensor);
  }

  // A file's one tensor, whatever it is called; of several, the one with the input's name.
  static const DLTensor *only_or_named(const Tensors &file, const std::string &name, const std::string &path) {
    const DLTensor *tensor = nullptr;
    std::set<std::string> names;
    for (uint64_t i = 0; i < kiln_tensors_count(file.get()); ++i) {
      kiln_text text = {};
      check(kiln_tensors_at(file.get(), i, &text, &tensor));
      names.emplace(view(text));
    }
    if (names.size() == 1) return tensor;
    if (!names.contains(name)) throw Failure(path + ": has no tensor '" + name + "'; it has " + listed(names));
    check(kiln_tensors_find(file.get(), name.data(), name.size(), &tensor));
    return tensor;
  }

  // A file that has none of the parameters is the wrong one, and --random must not hide that. One that has some of them
  // and other names is told of: a name may be misspelt.
  void open_weights(const std::string &path) {
    weights_ = make<Tensors>(kiln_tensors_open, path.data(), path.size());
    std::set<std::string> left;  // names of the file that no parameter has
    for (uint64_t i = 0; i < kiln_tensors_count(weights_.get()); ++i) {
      kiln_text name = {};
      check(kiln_tensors_at(weights_.get(), i, &name, nullptr));
      left.emplace(view(name));
    }
    std::set<std::string> missing;
    for (const Slot &slot : signature_.parameters)
      if (!left.erase(slot.name)) missing.insert(slot.name);
    if (missing.empty()) return;
    if (missing.size() == signature_.parameters.size())
      throw Failure(path + ": has none of the graph's parameters, " + listed(missing) + "; it has " + listed(left));
    if (!seed_)
      throw Failure(path + ": has no " + listed(missing) + "; of what the graph does not want, it has " + listed(left));
    if (!left.empty())
      std::fprintf(stderr, "kiln: warning: %s: the graph has no parameter %s; drawn at random: %s\n",
                   printable(path).c_str(), printable(listed(left)).c_str(), printable(listed(missing)).c_str());
  }

  // "'a', 'b', 'c' and 9 more"
  static std::string listed(const std::set<std::string> &names) {
    constexpr size_t most = 3;
    std::string text = names.empty() ? "nothing" : "";
    size_t count = 0;
    for (const std::string &name : names) {
      if (count == most) return text + " and " + std::to_string(names.size() - most) + " more";
      text += (count++ ? ", '" : "'") + name + "'";
    }
    return text;
  }

  const DLTensor *find_weight(const Slot &slot) const {
    const DLTensor *tensor = nullptr;
    kiln_error *error = kiln_tensors_find(weights_.get(), slot.name.data(), slot.name.size(), &tensor);
    kiln_error_destroy(error);
    return error ? nullptr : tensor;  // none: to be drawn
  }

  const DLTensor *draw(const Slot &slot, bool parameter, const std::string &remedy) {
    if (!seed_)
      throw Usage("'" + slot.name + "' " + slot.type() + " is not given; give " + remedy + ", or --random SEED");
    const auto seed = static_cast<uint64_t>(*seed_);
    drawn_.push_back(Array::random(slot.dtype, sizes_.dims(slot), seed, slot.name, parameter));
    return drawn_.back().tensor();
  }

  const Signature &signature_;
  Sizes sizes_;
  std::optional<int64_t> seed_;
  Tensors weights_;
  std::map<std::string, const DLTensor *> inputs_;
  std::deque<Array> given_, drawn_;
  std::vector<const DLTensor *> all_;  // by slot
};

std::vector<Array> outputs_of(kiln_call *call, const Signature &signature) {
  std::vector<Array> outputs;
  auto index = static_cast<uint32_t>(signature.inputs.size() + signature.parameters.size());
  for (const Slot &slot : signature.outputs) {
    const DLTensor *tensor = nullptr;
    check(kiln_call_output(call, index++, &tensor));
    outputs.push_back(Array::copy_of(*tensor, slot.name));  // whatever its strides
  }
  return outputs;
}

// With the statistics on standard output that is all that is there, so that it can be read by a program.
bool prints_lines(const Args &args) { return args.get(stats_flag.name) != "-"; }
// What was asked for beside them goes to standard error, then.
void say(const Args &args, const std::string &line) {
  if (prints_lines(args)) return print(printable(line) + "\n");
  std::fprintf(stderr, "%s\n", printable(line).c_str());
}

// Prints how far each output is from what the reference makes of arrays of its own. Returns whether one is too far.
bool is_beyond_reference(const std::vector<Array> &outputs, const Args &args, const Session &session,
                         const Signature &signature, const Graph &graph) {
  Options options;
  options.set("backend", std::string_view("reference"));
  const Compiled compiled = compile(session, graph, options);
  const Arrays arrays(args, session, signature, graph);  // again: the first run may have written to its inputs
  const Call call = make<Call>(kiln_call_create, compiled.executable.get());
  arrays.bind(call.get());
  check(kiln_call_run(call.get(), nullptr, 0, nullptr));
  const std::vector<Array> expected = outputs_of(call.get(), signature);
  bool is_beyond = false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Difference found = difference_of(*outputs[i].tensor(), *expected[i].tensor());
    char numbers[80];
    std::snprintf(numbers, sizeof numbers, "%.3g, relative %.3g", found.absolute, found.relative);
    std::string line = signature.outputs[i].name + "  differs from reference by " + numbers;
    if (!found.where.empty()) line += " at " + found.where;
    if (found.is_beyond) line += ", beyond the tolerance";
    say(args, line);
    is_beyond = is_beyond || found.is_beyond;
  }
  return is_beyond;
}

void show_outputs(const std::vector<Array> &outputs, const Args &args, const Signature &signature) {
  std::map<std::string, std::string> files;
  for (const auto &[name, path] : args.pairs("--output")) files[name] = path;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Slot &slot = signature.outputs[i];
    const DLTensor *tensor = outputs[i].tensor();
    std::string line = slot.name + "  " + slot.dtype + " " + summary_of(*tensor);
    if (const auto file = files.find(slot.name); file != files.end()) {
      const kiln_text name = {slot.name.data(), slot.name.size()};
      check(kiln_tensors_write(file->second.data(), file->second.size(), &name, &tensor, 1));
      line += "  -> " + file->second;
    }
    if (prints_lines(args)) print(printable(line) + "\n");
  }
}

// Of a run that is warm. What a run writes to its inputs is written again.
Report timed_run(kiln_call *call) {
  kiln_run_options options{};
  options.struct_size = sizeof options;
  options.flags = KILN_RUN_STEPS;
  check(kiln_call_run(call, nullptr, 0, &options));
  return report_of(kiln_call_report, call);
}

void show_times(const Args &args, const Report &report) {
  const uint64_t count = report.count("steps");
  for (uint64_t i = 0; i < count; ++i) {
    const std::string at = "steps." + std::to_string(i) + ".";
    char time[80];
    std::snprintf(time, sizeof time, "%10.1f us %6lld x  ", static_cast<double>(report.i64(at + "ns")) / 1000,
                  static_cast<long long>(report.i64(at + "runs")));
    const std::string plan = report.text(at + "plan");
    std::string nodes = report.has(at + "nodes") ? nodes_text(report, at + "nodes") : "";
    if (!nodes.empty()) nodes.insert(0, " of ");
    say(args, time + (plan.empty() ? "" : "plan " + plan + " ") + "step " + std::to_string(report.i64(at + "step")) +
                  ": " + report.text(at + "what") + nodes);
  }
}

void show_profile(const Args &args, const Session &session, const Subject &subject, kiln_call *call,
                  const Report &compiled) {
  StepSpans spans;
  session.listen([&](std::string_view event) { spans.ended(event); });
  const Report report = timed_run(call);
  session.listen({});
  if (args.has("--times")) show_times(args, report);
  write_file(*args.get("--profile"), trace_json(report, spans, compiled));
  const Report described = report_of(kiln_executable_describe, subject.executable.get());
  std::string table = profile_table(report, measure_roof(session, described.text("backend")));
  for (size_t end = table.find('\n'); end != table.npos; end = table.find('\n')) {
    say(args, table.substr(0, end));
    table.erase(0, end + 1);
  }
}

int run(const Args &args) {
  Stopwatch watch;
  Stats stats;
  const Session session(args);
  Subject subject = load(session, args.operands()[0]);
  if (!subject.graph) refuse_compile_flags(args);
  if (const auto with = args.get("--compare")) {
    if (*with != "reference") throw Usage("--compare: '" + *with + "' is not reference");
    if (!subject.graph) throw Usage("--compare applies to a graph; this is an artifact, compiled already");
  }
  const Signature signature =
      signature_of(subject.graph ? report_of(kiln_graph_describe, subject.graph.get())
                                 : report_of(kiln_executable_describe, subject.executable.get()));
  std::set<std::string> files;
  for (const auto &[name, path] : args.pairs("--output")) {
    find(signature.outputs, name, "--output");
    if (!files.insert(path).second) throw Usage("--output: '" + path + "' is given twice");
  }
  const Arrays arrays(args, session, signature, subject.graph);
  stats.phases.emplace_back("read_ms", watch.lap());
  if (subject.graph) {
    Compiled compiled = compile(session, subject.graph, compile_options(args, session));
    subject.executable = std::move(compiled.executable);
    stats.compile = std::move(compiled.report);
  }
  watch.lap();  // the compile's own phases tell more

  const Call call = make<Call>(kiln_call_create, subject.executable.get());
  arrays.bind(call.get());
  stats.phases.emplace_back("bind_ms", watch.lap());
  check(kiln_call_run(call.get(), nullptr, 0, nullptr));
  stats.phases.emplace_back("run_ms", watch.lap());
  const Report call_report = report_of(kiln_call_report, call.get());
  stats.call_bytes = static_cast<uint64_t>(call_report.i64("memory_bytes"));
  stats.entry = call_report.text("entry");
  const std::vector<Array> outputs = outputs_of(call.get(), signature);
  show_outputs(outputs, args, signature);
  stats.total_ms = watch.total();
  if (const auto file = args.get(stats_flag.name)) write_file(*file, json_of(stats));
  if (args.has("--profile")) {
    show_profile(args, session, subject, call.get(), stats.compile);
  } else if (args.has("--times")) {
    show_times(args, timed_run(call.get()));
  }
  return args.has("--compare") && is_beyond_reference(outputs, args, session, signature, subject.graph) ? 1 : 0;
}

}  // namespace

const Command run_command{
    "run", "GRAPH|ARTIFACT", "Runs a graph, or an artifact that was compiled before, once.", 1, 1, flags, run};

}  // namespace kiln::cli
