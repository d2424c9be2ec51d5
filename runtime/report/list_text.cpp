#include "runtime/report/list_text.h"

#include "jit/kernel/kernel.h"
#include "runtime/graph/json.h"
#include "runtime/plan/source.h"
#include "runtime/report/step_report.h"

namespace kiln {

namespace {

// "; ---- kernel 2 of 'y' [softmax]"; a name cannot end the comment.
std::string heading(size_t kernel, std::string nodes, std::string_view comment) {
  for (char &c : nodes)
    if (static_cast<unsigned char>(c) < 0x20 || c == '\\') c = '?';
  return str_cat(comment, " ---- kernel ", kernel, nodes.empty() ? "" : " of ", nodes, "\n");
}

// What the module of the backend emits of each kernel.
Result<std::vector<std::string>> emit(const Artifact &artifact, const BackendInfo &backend,
                                      const BackendInfo::Listing &listing, Modules &modules) {
  std::vector<std::string> texts;
  if (artifact.kernels.empty()) return texts;  // of what makes no code, or of a graph that computes nothing
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
  KILN_ASSIGN(std::vector<CodegenModule::Output> outputs, modules.of(backend).compile(request));
  for (CodegenModule::Output &output : outputs) texts.push_back(std::move(output.text));
  return texts;
}

// A listing of kernels, and how a comment begins in it.
struct Listed {
  std::vector<std::string> texts;
  std::string_view comment;
};
Result<Listed> list(const Artifact &artifact, std::string_view what, Modules &modules) {
  if (what == "kernels") {
    std::vector<std::string> texts;
    for (const Bytes &bytes : artifact.kernels) {
      KILN_ASSIGN(const kernel::Kernel kernel, kernel::parse(bytes));
      texts.push_back(kernel::print(kernel));
    }
    return Listed{std::move(texts), ";"};
  }
  std::string names;
  for (const BackendInfo *backend : backends())
    for (const BackendInfo::Listing &listing : backend->listings) {
      str_append(names, str_cat(", ", listing.name));
      if (what != listing.name) continue;
      KILN_ASSIGN(std::vector<std::string> texts, emit(artifact, *backend, listing, modules));
      return Listed{std::move(texts), listing.comment};
    }
  return error(Code::unknown_name, "no listing is named '", what, "'; there are: plan, steps, graph, kernels", names);
}

Result<std::string> list_graph(const Executable &executable, const OpTable &ops) {
  KILN_ASSIGN(const GraphPtr graph, read_source(executable.shared_artifact(), ops));
  return write_json(*graph);
}

}  // namespace

Result<std::string> list_text(const Executable &executable, std::string_view what, const OpTable &ops,
                              Modules &modules) {
  const Artifact &artifact = executable.artifact();
  if (what == "plan") return print(artifact.plan);
  if (what == "steps") return list_steps(artifact);
  if (what == "graph") return list_graph(executable, ops);
  KILN_ASSIGN(const Listed kernels, list(artifact, what, modules));
  const std::vector<std::string> nodes = nodes_of_kernels(artifact);
  std::string text;
  for (size_t i = 0; i < kernels.texts.size(); i++) text += heading(i, nodes[i], kernels.comment) + kernels.texts[i];
  return text;
}

Result<std::vector<std::string>> list_kernels(const Executable &executable, std::string_view what, Modules &modules) {
  KILN_ASSIGN(Listed kernels, list(executable.artifact(), what, modules));
  return std::move(kernels.texts);
}

}  // namespace kiln
