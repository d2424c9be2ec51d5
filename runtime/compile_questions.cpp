// What a compile answers the passes that it runs, and what it keeps of that.
#include "jit/base/cores.h"
#include "jit/base/cpuid.h"
#include "runtime/compile_steps.h"

namespace kiln {
namespace {

// Those options that are in the key, by the names that hosts set them by.
AttrMap keyed_answers(const CompileOptions &options, const Target &target) {
  AttrMap answers = {{"compile.backend", options.backend}, {"compile.target", target.name()}};
  for (const auto &row : compile_option_rows())
    if (row.unkeyed.empty()) answers.emplace(str_cat("compile.option.", row.name), row.get(options));
  for (const auto *named : {&options.of_regions, &options.of_backends})
    for (const auto &[name, value] : *named) answers.emplace(str_cat("compile.option.", name), value);
  return answers;
}

AttrMap of_processor() {
  const Caches caches = Caches::of_host();
  const auto number = [](uint64_t value) { return static_cast<int64_t>(value); };
  return {{"device.kind", "cpu"},
          {"device.arch", Target::host().name()},
          {"device.cores", number(usable_cores())},
          {"device.l1_bytes", number(caches.l1)},
          {"device.l2_bytes", number(caches.l2)},
          {"device.l3_bytes", number(caches.l3)}};
}

}  // namespace

std::shared_ptr<Questions> questions_of(const Work &work, const Target &target) {
  const auto device = [modules = work.env.modules, &backend = work.backend()]() -> Result<AttrMap> {
    if (!backend.on_device()) return of_processor();
    KILN_ASSIGN(const std::shared_ptr<Device> open, modules->device(backend, 0));
    return AttrMap{{"device.kind", std::string(backend.name)}, {"device.arch", open->arch()}};
  };
  const auto keyed = [&options = work.options, target] { return keyed_answers(options, target); };
  return std::make_shared<Questions>(Questions::Sources{work.env.facts, work.env.files, device, keyed});
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
