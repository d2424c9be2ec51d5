// A hit made again, and compared with what was found: by the digests that the artifact keeps of its making, and by its
// kernels.
#include <algorithm>

#include "runtime/compile_steps.h"
#include "runtime/graph/json.h"
#include "runtime/graph/json_view.h"

namespace kiln {
namespace {

using json::View;

std::vector<View> list_of(const View &object, std::string_view name) {
  const std::optional<View> list = object.member(name);
  if (!list) return {};
  Result<std::vector<View>> items = list->as_list();
  return items.ok() ? std::move(items).value() : std::vector<View>();
}

std::string text_of(const View &object, std::string_view name) {
  const std::optional<View> text = object.member(name);
  return text && text->is_text() ? std::string(text->text()) : "";
}

// What differs first of two compiles, as their provenance tells them.
struct Difference {
  std::string pass, stage;  // one of them
};

template <class Visit>
std::optional<Difference> first_of(const View &found, const View &again, std::string_view list, Visit visit) {
  const std::vector<View> before = list_of(found, list), now = list_of(again, list);
  for (size_t i = 0; i < std::max(before.size(), now.size()); ++i)
    if (std::optional<Difference> other =
            visit(i < before.size() ? &before[i] : nullptr, i < now.size() ? &now[i] : nullptr))
      return other;
  return std::nullopt;
}

std::optional<Difference> difference(const View &found, const View &again) {
  const auto other_digest = [](const View *before, const View *now, std::string_view name) {
    return !before || !now || text_of(*before, name) != text_of(*now, name) ||
           text_of(*before, "digest") != text_of(*now, "digest");
  };
  const auto pass = [&](const View *before, const View *now) -> std::optional<Difference> {
    if (!other_digest(before, now, "name")) return std::nullopt;
    return Difference{.pass = text_of(now ? *now : *before, "name"), .stage = {}};
  };
  const auto piece = [&](const View *before, const View *now) -> std::optional<Difference> {
    if (!before || !now) return Difference{.pass = {}, .stage = "pieces"};
    const std::optional<View> made = before->member("made"), made_now = now->member("made");
    return made && made_now ? difference(*made, *made_now) : std::nullopt;
  };
  const auto stage = [&](const View *before, const View *now) -> std::optional<Difference> {
    if (!other_digest(before, now, "stage")) return std::nullopt;
    return Difference{.pass = {}, .stage = text_of(now ? *now : *before, "stage")};
  };
  if (auto other = first_of(found, again, "passes", pass)) return other;
  if (auto other = first_of(found, again, "pieces", piece)) return other;
  return first_of(found, again, "stages", stage);
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
  KILN_ASSIGN(const json::Document before, json::parse(found.report_json));
  KILN_ASSIGN(const json::Document now, json::parse(made.report_json));
  if (const auto other = difference(View(before.get(), ""), View(now.get(), ""))) {
    if (!other->pass.empty()) return blamed(work, other->pass);
    return error(Code::invariant, "stage ", other->stage, " left something else than when the record was made, and no ",
                 "pass did");
  }
  if (const std::string kernel = differing_kernel(found, made); !kernel.empty())
    return error(Code::invariant, "the record has ", kernel);
  work.report.verified = true;
  return {};
}

}  // namespace kiln
