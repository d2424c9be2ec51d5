// What a compile answers the passes that it runs, and what it keeps of that.
#include "jit/base/cores.h"
#include "jit/base/cpuid.h"
#include "runtime/compile_steps.h"

namespace kiln {
namespace {

// Those options that are in the key, by the names that hosts set them by.
AttrMap keyed_answers(const CompileOptions &options, const Target &target) {
  AttrMap answers;
  answers["compile.backend"] = options.backend;
  answers["compile.target"] = target.name();
  for (const auto &row : compile_option_rows())
    if (row.unkeyed.empty()) answers.emplace(str_cat("compile.option.", row.name), row.get(options));
  for (const auto *named : {&options.of_regions, &options.of_backends})
    for (const auto &[name, value] : *named) answers.emplace(str_cat("compile.option.", name), value);
  return answers;
}

AttrMap of_device(std::string_view kind, std::string arch) {
  AttrMap answers;
  answers["device.kind"] = std::string(kind);
  answers["device.arch"] = std::move(arch);
  return answers;
}

// Asked once in a process: a virtual machine takes long to tell of its processor.
const AttrMap &of_processor() {
  static const AttrMap answers = [] {
    AttrMap made = of_device("cpu", Target::host().name());
    const Caches caches = Caches::of_host();
    for (const auto &[name, value] :
         {std::pair("device.cores", uint64_t{usable_cores()}), std::pair("device.l1_bytes", caches.l1),
          std::pair("device.l2_bytes", caches.l2), std::pair("device.l3_bytes", caches.l3)})
      made[name] = static_cast<int64_t>(value);
    return made;
  }();
  return answers;
}

}  // namespace

std::shared_ptr<Questions> questions_of(const Work &work, const Target &target) {
  const auto device = [modules = work.env.modules, &backend = work.backend()]() -> Result<AttrMap> {
    if (!backend.on_device()) return of_processor();
    KILN_ASSIGN(const std::shared_ptr<Device> open, modules->device(backend, 0));
    return of_device(backend.name, open->arch());
  };
  return std::make_shared<Questions>(
      Questions::Sources{work.env.facts, work.env.files, device, keyed_answers_of(work.options, target)});
}

std::function<AttrMap()> keyed_answers_of(const CompileOptions &options, const Target &target) {
  return [&options, target] { return keyed_answers(options, target); };
}

PassHost Work::host_of(const Pass &pass) {
  PassHost host{
      .progress = env.progress, .warning = env.warning, .questions = questions.get(), .policy = env.passes_that_fail};
  if (pass.early()) return host;
  host.asked = &asked;
  host.uncacheable = &uncacheable;
  return host;
}

std::string differing_answer(std::span<const Answer> answers, Questions *questions) {
  for (const Answer &answer : answers) {
    const Result<Answer> now = questions ? questions->answer(answer.question) : error(Code::internal, "by nobody");
    if (now.ok() && now->digest == answer.digest) continue;
    return str_cat("question '", answer.question, "' is answered ", now.ok() ? now->text : now.status().message(),
                   ", and what was made came after ", answer.text);
  }
  return "";
}

}  // namespace kiln
