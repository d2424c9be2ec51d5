#include "runtime/edited.h"

#include <algorithm>

#include "runtime/backends/backend.h"
#include "runtime/cache/key.h"
#include "runtime/plan/contract_format.h"
#include "runtime/plan/source.h"
#include "runtime/plan/verify_plan.h"

namespace kiln {
namespace {

Result<Target> target_of(const Artifact &artifact, const BackendInfo &backend) {
  if (backend.on_device()) return Target::device(artifact.target);
  return Target::by_name(artifact.target);
}

// What an artifact was compiled with, as far as it says what is made; and for which target.
Result<CompileOptions> options_of(const Artifact &artifact, const BackendInfo &backend) {
  CompileOptions options;
  options.backend = backend.name;
  KILN_ASSIGN(const json::Document report, json::parse(artifact.report_json));
  if (const auto told = json::View(report.get(), "").member("options")) {
    KILN_ASSIGN(options, read_compile_options(*told));
    if (options.registered_backend().empty()) options.backend = backend.name;
  }
  if (backend.makes_code()) (backend.on_device() ? options.arch : options.cpu) = artifact.target;
  options.code = has_code(artifact);
  options.use_cache = false;
  for (const Artifact::Entry &entry : artifact.entries) options.specialize.push_back(entry.sizes);
  return options;
}

// Which edit it is that the graph would undo; empty: none.
std::string beside_graph(const Unpacked &unpacked) {
  for (const std::string &path : unpacked.edited)
    if (!path.ends_with("graph.json") && path.find("constants/") == path.npos) return path;
  return "";
}

Result<Artifact> compile_graph(const CompileEnvironment &env, const Unpacked &unpacked, const BackendInfo &backend) {
  if (const std::string other = beside_graph(unpacked); !other.empty())
    return error(Code::corrupt, "graph.json and ", other, " are edited, and all but the graph is made of the graph: ",
                 "edit it alone, or the others without it");
  KILN_ASSIGN(CompileOptions options, options_of(*unpacked.artifact, backend));
  KILN_ASSIGN(GraphPtr graph, read_source(unpacked.artifact, env.ops));
  const PassList none;
  const CompileEnvironment without_passes{.ops = env.ops,
                                          .passes = none,
                                          .cache = nullptr,
                                          .pool = env.pool,
                                          .progress = env.progress,
                                          .warning = env.warning,
                                          .modules = env.modules,
                                          .functions = env.functions,
                                          .backends = env.backends};
  CompileReport report;
  KILN_ASSIGN(const Compiled compiled, compile(without_passes, std::move(graph), options, report));
  Artifact artifact = compiled.executable->artifact();
  artifact.entries = compiled.executable->made_entries();
  return artifact;
}

// What is not the kernel's to say: launches are as they were.
Status check_same_use(const kernel::Kernel &kernel, const Contract &before) {
  if (kernel.symbols.size() != before.symbols.size())
    return error(Code::corrupt, kernel.symbols.size(), " symbols, and its launches give ", before.symbols.size());
  size_t buffers = 0;
  for (const kernel::Buffer &buffer : kernel.buffers) {
    if (buffer.space == kernel::Buffer::Space::row_local) continue;
    const size_t number = buffers++;
    if (number >= before.buffers.size()) continue;
    const Contract::Buffer &was = before.buffers[number];
    if (buffer.type != was.dtype || (buffer.space == kernel::Buffer::Space::out) != was.written)
      return error(Code::corrupt, "buffers[", number, "] is another than its launches give: it was ",
                   was.written ? "out" : "in", " of ", name_of(was.dtype));
  }
  if (buffers == before.buffers.size()) return {};
  return error(Code::corrupt, buffers, " buffers of in and out, and its launches give ", before.buffers.size());
}

Status compile_kernel(const CompileEnvironment &env, const BackendInfo &backend, uint32_t number, Artifact &artifact) {
  KILN_ASSIGN(const kernel::Kernel kernel, kernel::parse(artifact.kernels[number]));
  Contract &contract = artifact.contracts[number];
  KILN_TRY(check_same_use(kernel, contract));
  contract = contract_of(kernel, contract);
  KILN_ASSIGN(const Target target, target_of(artifact, backend));
  Image &image = artifact.images[number];
  if (image.code->empty()) return {};  // it is here to be looked at
  CodegenModule &module = env.modules->of(backend);
  std::string compiler;
  if (backend.compiles_outside) {
    KILN_ASSIGN(compiler, module.compiler());
  }
  const CodegenModule::Request request{
      .kernels = {artifact.kernels[number]}, .target = target, .threads = 1, .want = 0, .cancelled = {}};
  KILN_ASSIGN(std::vector<CodegenModule::Output> outputs, module.compile(request));
  image = std::move(outputs.front().image);
  image.kernel_key = kernel_key(artifact.kernels[number], backend.name, target, artifact.build_id, compiler);
  return {};
}

// As it is checked when it is read back from bytes, but with the member's name.
Status check_plan(const Artifact &artifact) {
  ByteWriter contracts, plan;
  std::vector<Expr> known = serialize(artifact.contracts, contracts);
  serialize(artifact.plan, known, plan);
  ByteReader in(plan.bytes());
  KILN_ASSIGN(Plan read, parse_plan(in, known));
  read.written_inputs = artifact.plan.written_inputs;
  read.donated_inputs = artifact.plan.donated_inputs;
  return verify_plan(read, artifact.contracts, artifact.constants);
}

Result<Artifact> with_edited_parts(const CompileEnvironment &env, const Unpacked &unpacked,
                                   const BackendInfo &backend) {
  Artifact artifact = *unpacked.artifact;
  for (const uint32_t number : unpacked.edited_kernels)
    if (Status status = compile_kernel(env, backend, number, artifact); !status.ok())
      return std::move(status).with_prefix(str_cat("kernels/", number, ".json: "));
  if (unpacked.edited_plan)
    if (Status status = check_plan(artifact); !status.ok()) return std::move(status).with_prefix("plan.json: ");
  for (size_t i = 0; i < unpacked.entries.size(); ++i) {
    Result<Artifact> entry = make_edited(env, unpacked.entries[i]);
    if (!entry.ok()) return entry.take_status().with_prefix(str_cat("entries/", i, "/"));
    artifact.entries[i].artifact = std::make_shared<const Artifact>(std::move(entry).value());
  }
  return artifact;
}

}  // namespace

Result<Artifact> make_edited(const CompileEnvironment &env, const Unpacked &unpacked) {
  if (unpacked.edited.empty()) return *unpacked.artifact;
  KILN_ASSIGN(const BackendInfo *backend, find_backend(unpacked.artifact->backend));
  const auto make = unpacked.edited_graph ? compile_graph : with_edited_parts;
  KILN_ASSIGN(Artifact artifact, make(env, unpacked, *backend));
  artifact.graph_key = {};
  artifact.components.clear();
  artifact.edited = unpacked.artifact->edited;
  for (const std::string &path : unpacked.edited)
    if (std::ranges::find(artifact.edited, path) == artifact.edited.end()) artifact.edited.push_back(path);
  return artifact;
}

}  // namespace kiln
