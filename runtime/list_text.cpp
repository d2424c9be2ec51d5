#include "jit/kernel/kernel.h"
#include "runtime/describe.h"

namespace kiln {

namespace {

std::string heading(size_t kernel) { return str_cat("; ---- kernel ", kernel, "\n"); }

Result<std::string> list_kernels(const Artifact &artifact) {
  std::string text;
  for (size_t i = 0; i < artifact.kernels.size(); i++) {
    KILN_ASSIGN(const kernel::Kernel kernel, kernel::parse(artifact.kernels[i]));
    text += heading(i) + kernel::print(kernel);
  }
  return text;
}

Result<std::string> list_code(const Artifact &artifact, uint32_t want, CodegenModule &codegen) {
  if (artifact.kernels.empty()) return std::string();  // of the reference backend: there is no code
  CodegenModule::Request request;
  for (const Bytes &kernel : artifact.kernels) request.kernels.push_back(kernel);
  KILN_ASSIGN(request.target, Target::by_name(artifact.target));
  request.want = want;
  KILN_ASSIGN(const std::vector<CodegenModule::Output> outputs, codegen.compile(request));
  std::string text;
  for (size_t i = 0; i < outputs.size(); i++) text += heading(i) + outputs[i].text;
  return text;
}

}  // namespace

Result<std::string> list_text(const Executable &executable, std::string_view what, CodegenModule &codegen) {
  const Artifact &artifact = executable.artifact();
  if (what == "plan") return print(artifact.plan);
  if (what == "kernels") return list_kernels(artifact);
  if (what == "llvm") return list_code(artifact, KILN_CODEGEN_IR, codegen);
  if (what == "asm") return list_code(artifact, KILN_CODEGEN_ASM, codegen);
  return error(Code::unknown_name, "no listing is named '", what, "'; there are: plan, kernels, llvm, asm");
}

}  // namespace kiln
