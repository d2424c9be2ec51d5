// Patterns of passes: read when a pass is registered, and what a rewrite of a match asks and says.
#include <algorithm>

#include "abi/src/convert.h"
#include "abi/src/pass.h"
#include "runtime/patterns/replacement.h"

namespace kiln::abi {
namespace {

// The ops of a context, and those that the plugin which is being set up has added.
class OpsInSetup : public OpTable {
 public:
  OpsInSetup(const OpTable &ops, const PluginInContext *plugin) : ops_(ops), plugin_(plugin) {}
  const OpSchema *find(std::string_view name) const override {
    if (plugin_)
      for (const auto &op : plugin_->ops)
        if (op->name == name) return op.get();
    return ops_.find(name);
  }
  std::string suggest(std::string_view name) const override { return ops_.suggest(name); }

 private:
  const OpTable &ops_;
  const PluginInContext *plugin_;
};

Result<patterns::Pattern> read_one(const Checks &check, const kiln_pattern *given, const OpTable &ops,
                                   PatternCalls &calls) {
  KILN_ASSIGN(const kiln_pattern in, check.request(given, "pattern"));
  if (in.reserved0) return check.fail("pattern->reserved0 is not 0");
  KILN_TRY(check.pointer(in.json, "pattern->json"));
  KILN_ASSIGN(patterns::Pattern pattern, patterns::read_pattern({in.json, in.json_size}, ops));
  if (in.rewrite && pattern.replacement)
    return check.fail("pattern '", pattern.name, "' has a replacement, and pattern->rewrite is not NULL");
  if (!in.rewrite && !pattern.replacement)
    return check.fail("pattern '", pattern.name, "' has no replacement, and pattern->rewrite is NULL");
  calls.rewrites.push_back(in.rewrite);
  return pattern;
}

// The values that a pass's function gives in the place of a match; none: it leaves it.
Result<std::vector<ValueId>> ask_pass(kiln_pass_call &call, size_t number, const patterns::Place &place) {
  Match match{.pattern = call.pass->pass->patterns->set.patterns()[number], .place = place, .by = {}};
  call.match = &match;
  const Status status = call_pass([&] { return call.patterns->rewrites[number](call.patterns->user, &call); });
  call.match = nullptr;
  if (call.pass->cancelled) return error(Code::cancelled, "the host cancelled the compile");
  KILN_TRY(status);
  return std::move(match.by);
}

Result<Match *> match_of(const Checks &check, const kiln_pass_call *call) {
  KILN_TRY(check.handle(call, "call"));
  if (call->match) return call->match;
  return check.fail("no match is being rewritten; inside pattern->rewrite one is");
}

// The term that a name is of.
Result<size_t> term_named(const Checks &check, const Match &match, const char *name, uint64_t name_size) {
  KILN_ASSIGN(const std::string_view wanted, check.text(name, name_size, "name"));
  const patterns::Term *term = wanted.empty() ? nullptr : match.pattern.find(wanted);
  if (term) return static_cast<size_t>(term - match.pattern.terms.data());
  return error(Code::unknown_name, check.function(), ": pattern '", match.pattern.name, "' has no '", wanted, "'");
}

}  // namespace

Result<std::shared_ptr<const PassPatterns>> read_patterns(const Checks &check, const Context &context,
                                                          const PluginInContext *plugin, const kiln_pass &pass,
                                                          PatternCalls &calls) {
  KILN_ASSIGN(const auto given, check.array(pass.patterns, pass.pattern_count, "pass->patterns"));
  if (given.empty()) return std::shared_ptr<const PassPatterns>();
  const OpsInSetup ops(context.ops(), plugin);
  std::vector<patterns::Pattern> all;
  std::vector<std::string> texts;
  ByteWriter keyed;
  for (const kiln_pattern *one : given) {
    Result<patterns::Pattern> read = read_one(check, one, ops, calls);
    if (!read.ok()) return read.take_status().with_prefix(str_cat("pass->patterns[", all.size(), "]: "));
    all.push_back(std::move(read).value());
    keyed.text(texts.emplace_back(one->json, one->json_size));
  }
  Result<patterns::PatternSet> set = patterns::PatternSet::make(std::move(all));
  if (!set.ok()) return set.take_status().with_prefix("pass->patterns: ");
  calls.user = pass.user;
  return std::make_shared<const PassPatterns>(
      PassPatterns{std::move(set).value(), std::move(texts), digest_of(keyed.bytes())});
}

Result<uint64_t> apply_patterns(kiln_pass_call &call) {
  const patterns::PatternSet &set = call.pass->pass->patterns->set;
  call.edit->view.views.clear();
  const auto rewrite = [&](size_t number, const patterns::Place &place) -> Result<std::vector<ValueId>> {
    const patterns::Pattern &pattern = set.patterns()[number];
    if (call.callback.is_cancelled()) return error(Code::cancelled, "the host cancelled the compile");
    if (!pattern.replacement) return ask_pass(call, number, place);
    return patterns::make_replacement(pattern, place, call.pass->edit);
  };
  Result<uint64_t> rewrites = set.apply(call.pass->edit, rewrite, call.pass->matches);
  call.edit->view.views.clear();
  return rewrites;
}

}  // namespace kiln::abi

using namespace kiln;
using namespace kiln::abi;

kiln_error *kiln_pass_apply_patterns(kiln_pass_call *call, uint64_t *out_rewrites) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    if (!call->pass) return check.fail("a fingerprint changes no graph");
    if (!call->pass->pass->patterns) return check.fail("the pass has no patterns (pass->patterns)");
    if (call->pass->done) return check.fail("the pass has said that it is done (kiln_pass_done)");
    if (call->match) return check.fail("a match is being rewritten");
    KILN_ASSIGN(const uint64_t rewrites, apply_patterns(*call));
    if (out_rewrites) *out_rewrites = rewrites;
    return {};
  });
}

kiln_error *kiln_pass_match_value(kiln_pass_call *call, const char *name, uint64_t name_size, kiln_value *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const Match *match, match_of(check, call));
    KILN_TRY(check.pointer(out, "out"));
    KILN_ASSIGN(const size_t term, term_named(check, *match, name, name_size));
    *out = match->place.values[term].packed();
    return {};
  });
}

kiln_error *kiln_pass_match_number(kiln_pass_call *call, const char *name, uint64_t name_size, double *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const Match *match, match_of(check, call));
    KILN_TRY(check.pointer(out, "out"));
    KILN_ASSIGN(const size_t term, term_named(check, *match, name, name_size));
    const ValueId value = match->place.values[term];
    const auto number = value ? patterns::number_of(call->pass->edit.view(), value) : std::nullopt;
    if (!number)
      return error(Code::type_mismatch, check.function(), ": '", match->pattern.terms[term].name,
                   "' is no scalar that the graph itself holds");
    *out = *number;
    return {};
  });
}

kiln_error *kiln_pass_match_replace(kiln_pass_call *call, const kiln_value *values, uint64_t count) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(Match * found, match_of(check, call));
    Match &match = *found;
    KILN_ASSIGN(const std::span<const kiln_value> given, check.array(values, count, "values"));
    if (!match.by.empty()) return check.fail("the match is replaced already");
    if (count != match.pattern.outputs.size())
      return check.fail(count, " values, and pattern '", match.pattern.name, "' has ", match.pattern.outputs.size(),
                        " outputs");
    std::vector<ValueId> by;
    for (const kiln_value value : given) by.push_back(ValueId::unpack(value));
    for (const ValueId value : by)
      if (!call->pass->edit.view().has(value)) return check.fail("a value is not of the edit's graph");
    match.by = std::move(by);
    return {};
  });
}
