// kiln run: compiles (or loads), binds, runs once, and shows or writes the outputs.
#include <algorithm>
#include <deque>
#include <map>

#include "arrays.h"
#include "commands.h"
#include "session.h"
#include "signature.h"
#include "stats.h"

namespace kiln::cli {
namespace {

constexpr Flag flags[] = {
    {"--weights", "F.safetensors", "the graph's parameters, by name"},
    {"--input", "NAME=F.npy", "an input", true},
    {"--random", "SEED", "generate the inputs and weights that are not given"},
    {"--size", "SYMBOL=N", "the size of a symbolic dimension, for --random", true},
    {"--output", "NAME=F.npy", "write an output", true},
    plugin_flag,
    backend_flag,
    cpu_flag,
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

// The arrays of one run: what files give, and what is drawn for the rest.
class Binder {
 public:
  // `graph` may be empty: an artifact is run.
  Binder(const Args &args, const Session &session, const Signature &signature, const Graph &graph)
      : signature_(signature), sizes_(session.context()), seed_(args.integer("--random", 0)) {
    sizes_.set(args.pairs("--size"), signature.symbols);
    if (!seed_ && args.has("--size")) throw Usage("--size is for --random, which is not given");
    for (const auto &[name, path] : args.pairs("--input")) open_input(name, path);
    if (graph) sizes_.add_hints(report_of(kiln_graph_describe, graph.get()));
    if (const auto path = args.get("--weights"))
      weights_ = make<Tensors>(kiln_tensors_open, path->data(), path->size());
  }

  void bind(kiln_call *call) {
    uint32_t index = 0;  // inputs, then parameters: by number, since an output may have the same name
    for (const Slot &slot : signature_.inputs) {
      const auto given = inputs_.find(slot.name);
      bind(call, index++,
           given != inputs_.end() ? given->second : draw(slot, false, "--input " + slot.name + "=F.npy"));
    }
    for (const Slot &slot : signature_.parameters) {
      const DLTensor *tensor = weights_ ? find_weight(slot) : nullptr;
      bind(call, index++, tensor ? tensor : draw(slot, true, "--weights F.safetensors with it"));
    }
  }

 private:
  void open_input(const std::string &name, const std::string &path) {
    const Slot &slot = find(signature_.inputs, name, "--input");
    const Tensors file = make<Tensors>(kiln_tensors_open, path.data(), path.size());
    const DLTensor *tensor = nullptr;
    check(kiln_tensors_at(file.get(), 0, nullptr, &tensor));
    given_.push_back(Array::copy_of(*tensor));  // the file's memory is read only, and copy_ may write to an input
    inputs_[name] = given_.back().tensor();
    sizes_.learn(slot, *tensor);
  }

  const DLTensor *find_weight(const Slot &slot) const {
    const DLTensor *tensor = nullptr;
    kiln_error *error = kiln_tensors_find(weights_.get(), slot.name.data(), slot.name.size(), &tensor);
    if (!error) return tensor;
    if (!seed_ || kiln_error_code(error) != KILN_UNKNOWN_NAME) check(error);
    kiln_error_destroy(error);
    return nullptr;  // to be drawn
  }

  const DLTensor *draw(const Slot &slot, bool parameter, const std::string &remedy) {
    if (!seed_)
      throw Usage("'" + slot.name + "' " + slot.type() + " is not given; give " + remedy + ", or --random SEED");
    const auto seed = static_cast<uint64_t>(*seed_);
    drawn_.push_back(Array::random(slot.dtype, sizes_.dims(slot), seed, slot.name, parameter));
    return drawn_.back().tensor();
  }

  static void bind(kiln_call *call, uint32_t slot, const DLTensor *tensor) {
    check(kiln_call_bind(call, slot, tensor));
  }

  const Signature &signature_;
  Sizes sizes_;
  std::optional<int64_t> seed_;
  Tensors weights_;
  std::map<std::string, const DLTensor *> inputs_;
  std::deque<Array> given_, drawn_;
};

void show_outputs(kiln_call *call, const Args &args, const Signature &signature) {
  std::map<std::string, std::string> files;
  for (const auto &[name, path] : args.pairs("--output")) files[name] = path;
  auto index = static_cast<uint32_t>(signature.inputs.size() + signature.parameters.size());
  for (const Slot &slot : signature.outputs) {
    DLManagedTensorVersioned *taken = nullptr;
    check(kiln_call_take(call, index++, &taken));
    const Output output(taken);
    std::string line = slot.name + "  " + slot.dtype + " " + summary_of(output->dl_tensor);
    if (const auto file = files.find(slot.name); file != files.end()) {
      const DLTensor *tensor = &output->dl_tensor;
      check(kiln_tensors_write(file->second.data(), file->second.size(), nullptr, &tensor, 1));
      line += "  -> " + file->second;
    }
    // With the statistics on standard output, that is all that is there, so that it can be read by a program.
    if (args.get(stats_flag.name) != "-") print(line + "\n");
  }
}

int run(const Args &args) {
  Stopwatch watch;
  Stats stats;
  const Session session(args);
  Subject subject = load(session, args.operands()[0]);
  stats.phases.emplace_back("read_ms", watch.lap());
  if (subject.graph) {
    Compiled compiled = compile(session, subject.graph, compile_options(args));
    subject.executable = std::move(compiled.executable);
    stats.compile = std::move(compiled.report);
  } else {
    refuse_compile_flags(args);
  }
  watch.lap();  // the compile's own phases tell more

  const Signature signature = signature_of(report_of(kiln_executable_describe, subject.executable.get()));
  for (const auto &[name, path] : args.pairs("--output")) find(signature.outputs, name, "--output");
  const Call call = make<Call>(kiln_call_create, subject.executable.get());
  Binder binder(args, session, signature, subject.graph);
  binder.bind(call.get());
  stats.phases.emplace_back("bind_ms", watch.lap());
  check(kiln_call_run(call.get(), nullptr, 0, nullptr));
  stats.phases.emplace_back("run_ms", watch.lap());
  stats.call_bytes = static_cast<uint64_t>(report_of(kiln_call_report, call.get()).i64("memory_bytes"));
  show_outputs(call.get(), args, signature);
  stats.total_ms = watch.total();
  if (const auto file = args.get(stats_flag.name)) write_file(*file, json_of(stats));
  return 0;
}

}  // namespace

const Command run_command{
    "run", "GRAPH|ARTIFACT", "Runs a graph, or an artifact that was compiled before, once.", 1, 1, flags, run};

}  // namespace kiln::cli
