#include "runtime/report/list_text.h"

#include "jit/kernel/kernel.h"
#include "runtime/graph/json.h"
#include "runtime/plan/source.h"
#include "runtime/report/step_report.h"

namespace kiln {

namespace {

// "; ---- kernel 2 of 'y' [softmax]"; a name cannot end the comment.
std::string heading(size_t kernel, std::string nodes, std::string_view comment = ";") {
  for (char &c : nodes)
    if (static_cast<unsigned char>(c) < 0x20 || c == '\\') c = '?';
  return str_cat(comment, " ---- kernel ", kernel, nodes.empty() ? "" : " of ", nodes, "\n");
}

Result<std::string> list_kernels(const Artifact &artifact) {
  std::string text;
  const std::vector<std::string> nodes = nodes_of_kernels(artifact);
  for (size_t i = 0; i < artifact.kernels.size(); i++) {
    KILN_ASSIGN(const kernel::Kernel kernel, kernel::parse(artifact.kernels[i]));
    text += heading(i, nodes[i]) + kernel::print(kernel);
  }
  return text;
}

Result<std::string> list_graph(const Executable &executable, const OpTable &ops) {
  KILN_ASSIGN(const GraphPtr graph, read_source(executable.shared_artifact(), ops));
  return write_json(*graph);
}

Result<std::string> list_code(const Artifact &artifact, const BackendInfo &backend, const BackendInfo::Listing &listing,
                              Modules &modules) {
  if (artifact.kernels.empty()) return std::string();  // of what makes no code, or of a graph that computes nothing
  if (artifact.backend != backend.name)
    return invalid("'", listing.name, "' lists kernels of backend ", backend.name, "; these are of backend ",
                   artifact.backend);
  CodegenModule::Request request;
  for (const Bytes &kernel : artifact.kernels) request.kernels.push_back(kernel);
  if (backend.on_device()) {
    request.target = Target::device(artifact.target);
  } else {
    KILN_ASSIGN(request.target, Target::by_name(artifact.target));
  }
  request.want = listing.want;
  KILN_ASSIGN(const std::vector<CodegenModule::Output> outputs, modules.of(backend).compile(request));
  std::string text;
  const std::vector<std::string> nodes = nodes_of_kernels(artifact);
  for (size_t i = 0; i < outputs.size(); i++) text += heading(i, nodes[i], listing.comment) + outputs[i].text;
  return text;
}

}  // namespace

Result<std::string> list_text(const Executable &executable, std::string_view what, const OpTable &ops,
                              Modules &modules) {
  const Artifact &artifact = executable.artifact();
  if (what == "plan") return print(artifact.plan);
  if (what == "steps") return list_steps(artifact);
  if (what == "kernels") return list_kernels(artifact);
  if (what == "graph") return list_graph(executable, ops);
  std::string names;
  for (const BackendInfo *backend : backends())
    for (const BackendInfo::Listing &listing : backend->listings) {
      if (what == listing.name) return list_code(artifact, *backend, listing, modules);
      str_append(names, str_cat(", ", listing.name));
    }
  return error(Code::unknown_name, "no listing is named '", what, "'; there are: plan, steps, graph, kernels", names);
}

}  // namespace kiln
