// A hit made again, and compared with what was found: by the digests that the artifact keeps of its making, and by its
// kernels.
#include <algorithm>

#include "runtime/compile_steps.h"
#include "runtime/graph/json.h"
#include "runtime/graph/json_view.h"

namespace kiln {
namespace {

// What a compile made on its way, as its provenance tells it: "pass 'fuse'", "stage 'lower'", with digests; of pieces,
// in turn, what theirs do.
struct Step {
  bool is_pass = false;
  std::string name, digest;
  bool operator==(const Step &) const = default;
};

Status add_steps(const json::View &made, std::vector<Step> &steps) {
  for (const bool is_pass : {true, false}) {
    KILN_ASSIGN(const json::View list, made.required(is_pass ? "passes" : "stages"));
    KILN_ASSIGN(const std::vector<json::View> items, list.as_list());
    for (const json::View &item : items) {
      KILN_ASSIGN(const json::View name, item.required(is_pass ? "name" : "stage"));
      KILN_ASSIGN(const json::View digest, item.required("digest"));
      KILN_ASSIGN(const std::string_view name_text, name.as_text());
      KILN_ASSIGN(const std::string_view digest_text, digest.as_text());
      steps.push_back({is_pass, std::string(name_text), std::string(digest_text)});
    }
    const auto pieces = made.member("pieces");
    if (!is_pass || !pieces) continue;  // pieces come before the stages that they are part of
    KILN_ASSIGN(const std::vector<json::View> parts, pieces->as_list());
    for (const json::View &part : parts)
      if (const auto of_part = part.member("made")) KILN_TRY(add_steps(*of_part, steps));
  }
  return {};
}

Result<std::vector<Step>> steps_of(const Artifact &artifact) {
  KILN_ASSIGN(const json::Document report, json::parse(artifact.report_json));
  std::vector<Step> steps;
  KILN_TRY(add_steps(json::View(report.get(), ""), steps));
  return steps;
}

std::string differing_kernel(const Artifact &found, const Artifact &again) {
  if (found.images.size() != again.images.size())
    return str_cat(found.images.size(), " kernels, and ", again.images.size(), " when it is made again");
  for (size_t i = 0; i < found.images.size(); ++i) {
    if (found.images[i].kernel_key != again.images[i].kernel_key) return str_cat("another kernel ", i);
    if (*found.images[i].code != *again.images[i].code) return str_cat("other code of kernel ", i);
  }
  return "";
}

Status blamed(const Work &work, const std::string &name) {
  constexpr std::string_view what =
      "it made another graph than when the record was made; what it makes must follow from what is keyed and from what "
      "it asks (kiln_pass_query), and be the same in each run";
  for (const auto &pass : work.env.passes.all())
    if (pass->name == name) return blame(*pass, Code::invariant, what);
  return error(Code::invariant, "pass '", name, "': ", what);
}

}  // namespace

Status verify_found(Work &work, const Artifact &found, const std::function<Result<Compiled>(Work &again)> &make) {
  CompileOptions options = work.options;
  options.use_cache = options.strict = options.require_hit = options.verify = false;
  CompileReport report;
  Work again{work.env, options, report};
  again.lower = work.lower;
  again.questions = work.questions;
  again.asked = work.asked;
  KILN_ASSIGN(const Compiled compiled, make(again));
  std::ranges::move(report.passes, std::back_inserter(work.report.passes));
  const Artifact &made = compiled.executable->artifact();
  KILN_ASSIGN(const std::vector<Step> before, steps_of(found));
  KILN_ASSIGN(const std::vector<Step> now, steps_of(made));
  for (size_t i = 0; i < std::max(before.size(), now.size()); ++i) {
    if (i < before.size() && i < now.size() && before[i] == now[i]) continue;
    const Step &other = i < now.size() ? now[i] : before[i];
    if (other.is_pass) return blamed(work, other.name);
    return error(Code::invariant, "stage ", other.name, " left something else than when the record was made, and no ",
                 "pass did");
  }
  if (const std::string kernel = differing_kernel(found, made); !kernel.empty())
    return error(Code::invariant, "the record has ", kernel);
  work.report.verified = true;
  return {};
}

}  // namespace kiln
