// Passes: a kiln_pass as a Pass, and what it calls while it runs.
#include "abi/src/pass.h"

#include "abi/src/convert.h"
#include "abi/src/options.h"
#include "abi/src/passing.h"
#include "jit/base/utf8.h"

namespace kiln::abi {

namespace {

// The callbacks of a pass with what they need. Runs `destroy` at its end, once the context owns `user`.
struct Callbacks {
  kiln_pass pass;
  std::shared_ptr<PluginInContext> plugin;  // null: the host's
  Context &context;
  std::string described;
  PatternCalls patterns = {};
  bool owned = false;
  Callbacks(const kiln_pass &given, std::shared_ptr<PluginInContext> from, Context &in, std::string name)
      : pass(given), plugin(std::move(from)), context(in), described(std::move(name)) {}
  Callbacks(const Callbacks &) = delete;
  Callbacks &operator=(const Callbacks &) = delete;
  ~Callbacks() {
    if (!owned || !pass.destroy) return;
    std::string thrown = thrown_by([&] { pass.destroy(pass.user); }, str_cat("destroy of ", described));
    if (!thrown.empty()) context.add_end_failure(std::move(thrown));
  }
};

// What the pass tells whoever compiles.
Status tell(kiln_pass_call &call, bool warns, std::string_view text) {
  PassContext &pass = *call.pass;
  (warns ? pass.warnings : pass.notes).emplace_back(text);
  const auto *host = pass.host;
  const auto *receiver = !host ? nullptr : warns ? &host->warning : &host->progress;
  if (!receiver || !*receiver || !(*receiver)(str_cat(described(*pass.pass), ": ", text))) return {};
  pass.cancelled = true;
  return error(Code::cancelled, "the host cancelled the compile");
}

kiln_error *tell(const char *function, kiln_pass_call *call, bool warns, const char *text, uint64_t text_size) {
  return entry(function, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    KILN_ASSIGN(const std::string_view told, check.line(text, text_size, "text"));
    if (told.empty()) return check.fail("text is empty");
    if (!call->pass) return check.fail("a fingerprint tells nothing; only a pass's run does");
    return tell(*call, warns, told);
  });
}

Status check_numbers(const Checks &check, const kiln_pass &pass) {
  if (pass.stage < KILN_STAGE_PRE_GRAD || pass.stage > KILN_STAGE_LOWER)
    return check.fail("pass->stage: no stage has number ", pass.stage);
  if (pass.stage == KILN_STAGE_JOINT)
    return error(Code::unimplemented,
                 "pass->stage: passes of stage joint do not run yet; those of pre_grad, post_grad and lower do");
  if (pass.timing > KILN_TIMING_EARLY) return check.fail("pass->timing: no timing has number ", pass.timing);
  if (pass.timing == KILN_TIMING_EARLY && pass.stage != KILN_STAGE_PRE_GRAD)
    return check.fail("pass->timing: only passes of stage pre_grad can be early");
  constexpr uint32_t known = KILN_PASS_UUID_SUFFICES | KILN_PASS_ANY_THREAD | KILN_PASS_NUMERICS | KILN_PASS_TOP_ONLY;
  if (pass.flags & ~known) return check.fail("pass->flags has unknown bits: ", pass.flags);
  if (pass.flags & KILN_PASS_ANY_THREAD)
    return error(Code::unimplemented,
                 "pass->flags: KILN_PASS_ANY_THREAD has no effect yet; passes run on the thread that called compile");
  if (pass.flags & KILN_PASS_UUID_SUFFICES && !pass.uuid)
    return check.fail("pass->flags: KILN_PASS_UUID_SUFFICES has no effect without pass->uuid");
  if (pass.reserved0) return check.fail("pass->reserved0 is not 0");
  if (!pass.run && !pass.pattern_count) return check.fail("pass->run is NULL, and there are no patterns");
  return {};
}

// What is true of this run alone, or else what the compile answers.
Result<const std::optional<AttrValue> *> ask(kiln_pass_call &call, std::string_view question) {
  const PassContext *pass = call.pass;
  if (pass && (question == question_of_stage || question == question_of_region)) {
    std::optional<AttrValue> &answer = call.own_answers.emplace_back();
    if (question == question_of_stage) {
      answer = std::string(name_of(pass->pass->stage));
    } else if (pass->region) {
      answer = *pass->region;
    }
    return &answer;
  }
  KILN_ASSIGN(const std::optional<AttrValue> *answer, call.questions->ask(question));
  if (pass && pass->host->asked && Questions::is_guarded(question)) pass->host->asked->emplace(question);
  return answer;
}

}  // namespace

Result<std::shared_ptr<Pass>> make_pass(const Checks &check, Context &context, const kiln_pass *given,
                                        const AttrMap &options, std::shared_ptr<PluginInContext> plugin) {
  KILN_ASSIGN(const kiln_pass in, check.request(given, "pass"));
  KILN_TRY(check_numbers(check, in));
  auto pass = std::make_shared<Pass>();
  KILN_ASSIGN(pass->name, check.line(in.name, in.name_size, "pass->name"));
  KILN_ASSIGN(pass->version, check.line(in.version, in.version_size, "pass->version"));
  KILN_ASSIGN(pass->label, check.line(in.label, in.label_size, "pass->label"));
  if (!pass->name.empty() && !pass->label.empty()) pass->name = str_cat(pass->name, ":", pass->label);
  pass->numerics = in.flags & KILN_PASS_NUMERICS;
  pass->top_only = in.flags & KILN_PASS_TOP_ONLY;
  pass->stage = static_cast<Stage>(in.stage);
  pass->timing = static_cast<Timing>(in.timing);
  pass->priority = in.priority;
  pass->plugin = plugin ? plugin->library.name : "the host";
  if (in.uuid) {
    pass->uuid.emplace();
    std::copy_n(in.uuid, pass->uuid->size(), pass->uuid->begin());
    if (!(in.flags & KILN_PASS_UUID_SUFFICES)) {
      if (!plugin)
        return check.fail("pass '", pass->name,
                          "' has a UUID but no file to hash: set KILN_PASS_UUID_SUFFICES, or "
                          "give no UUID");
      pass->file = plugin->library.identity();
    }
  }
  KILN_ASSIGN(const AttrMap schema, read_option_schema(check, context, "pass", in.options, in.option_count));
  KILN_ASSIGN(pass->options, check_options(str_cat("pass '", pass->name, "'"), schema, options));

  PatternCalls patterns;
  KILN_ASSIGN(pass->patterns, read_patterns(check, context, plugin.get(), in, patterns));
  auto callbacks = std::make_shared<Callbacks>(in, std::move(plugin), context, described(*pass));
  callbacks->patterns = std::move(patterns);
  pass->run = [callbacks, &context](PassContext &running) -> Status {
    const Passing<kiln_pass_call> call(context, running);
    call->patterns = &callbacks->patterns;
    if (callbacks->pass.run) return call_pass([&] { return callbacks->pass.run(callbacks->pass.user, call.get()); });
    KILN_ASSIGN(running.rewrites, apply_patterns(*call.get()));
    running.done = true;
    return {};
  };
  if (in.fingerprint) {
    pass->fingerprint = [callbacks, &context, options = pass->options](Fingerprint &key) {
      const Passing<kiln_pass_call> call(context, options, key);
      return call_back([&] { return callbacks->pass.fingerprint(callbacks->pass.user, call.get()); });
    };
  }
  pass->keep = callbacks;
  return pass;
}

std::string_view Callback::cancelled_by() const {
  constexpr auto pause = std::chrono::milliseconds(20);
  constexpr std::string_view by_host = "the host cancelled the compile", by_budget = "the pass has taken too long";
  if (!pass) return "";
  if (pass->cancelled || pass->took_too_long) return pass->cancelled ? by_host : by_budget;
  if (!pass->ends_by && (!pass->host || !pass->host->progress)) return "";
  const auto now = std::chrono::steady_clock::now();
  if (pass->ends_by && now > *pass->ends_by) {
    pass->took_too_long = true;
    return by_budget;
  }
  if (!pass->host || !pass->host->progress || now - asked < pause) return "";
  asked = now;
  pass->cancelled = pass->host->progress(str_cat("inside ", described(*pass->pass)));
  return pass->cancelled ? by_host : "";
}

void own_user(const Pass &pass) { static_cast<Callbacks *>(pass.keep.get())->owned = true; }

}  // namespace kiln::abi

using namespace kiln;
using namespace kiln::abi;

kiln_error *kiln_pass_register(kiln_context *context, const kiln_pass *pass, const kiln_options *options,
                               uint64_t *out_id) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    KILN_TRY(check.optional_handle(options, "options"));
    KILN_ASSIGN(const std::shared_ptr<Pass> made,
                make_pass(check, context->context, pass, values_of(options), nullptr));
    std::vector<uint64_t> ids;
    KILN_TRY(context->context.add_passes({made}, &ids));
    own_user(*made);
    if (out_id) *out_id = ids.front();
    return {};
  });
}

kiln_error *kiln_pass_unregister(kiln_context *context, uint64_t id) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    return context->context.remove_pass(id);
  });
}

kiln_edit *kiln_pass_edit(kiln_pass_call *call) {
  return call && call->magic.ok() && call->callback.is_here() && call->edit ? &*call->edit : nullptr;
}

kiln_context *kiln_pass_context(kiln_pass_call *call) {
  return call && call->magic.ok() && call->callback.is_here() ? &call->context : nullptr;
}

kiln_error *kiln_pass_note(kiln_pass_call *call, const char *text, uint64_t text_size) {
  return tell(__func__, call, false, text, text_size);
}

kiln_error *kiln_pass_warn(kiln_pass_call *call, const char *text, uint64_t text_size) {
  return tell(__func__, call, true, text, text_size);
}

kiln_error *kiln_pass_option(kiln_pass_call *call, const char *name, uint64_t name_size, kiln_attr *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    return give_attr(check, call->options, {name, name_size}, "the pass declared no option", call->views,
                     share(&call->context), out);
  });
}

kiln_error *kiln_pass_fingerprint_add(kiln_pass_call *call, const void *bytes, uint64_t size) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    KILN_ASSIGN(const ByteSpan given, check.array(static_cast<const uint8_t *>(bytes), size, "bytes"));
    if (!call->fingerprint) return check.fail("only a pass's fingerprint adds to the key, not its run");
    call->fingerprint->key.blob(given);
    return {};
  });
}

kiln_error *kiln_pass_query(kiln_pass_call *call, const char *question, uint64_t question_size, kiln_attr *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    KILN_ASSIGN(const std::string_view asked, check.text(question, question_size, "question"));
    KILN_TRY(check.pointer(out, "out"));
    if (!call->questions) return check.fail("nothing can be asked here");
    KILN_ASSIGN(const std::optional<AttrValue> *answer, ask(*call, asked));
    kiln_attr given{};
    if (*answer) given = call->views.attr(share(&call->context), asked, **answer);
    given.name = question;
    given.name_size = question_size;
    *out = given;
    return {};
  });
}

kiln_error *kiln_pass_uncacheable(kiln_pass_call *call, const char *why, uint64_t why_size) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    KILN_ASSIGN(const std::string_view reason, check.line(why, why_size, "why"));
    if (reason.empty()) return check.fail("why is empty");
    if (call->fingerprint) {
      if (call->fingerprint->uncacheable.empty()) call->fingerprint->uncacheable = reason;
      return {};
    }
    std::string *of_compile = call->pass->host ? call->pass->host->uncacheable : nullptr;
    if (of_compile && of_compile->empty())
      *of_compile = str_cat(described(*call->pass->pass), ": uncacheable because ", reason);
    return {};
  });
}

kiln_error *kiln_pass_replace_graph(kiln_pass_call *call, kiln_graph *graph) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    KILN_TRY(check.own_graph(graph, call->context.context, "graph"));
    if (!call->pass) return check.fail("a fingerprint changes no graph");
    if (!graph->live) return check.fail("graph is a view; finish its edit");
    if (call->pass->done) return check.fail("the pass has said that it is done (kiln_pass_done)");
    if (call->pass->replacement) return check.fail("the pass has given a graph already");
    call->pass->replacement = graph->graph;
    kiln_graph_destroy(graph);
    return {};
  });
}

kiln_error *kiln_pass_done(kiln_pass_call *call, uint64_t rewrites) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    if (!call->pass) return check.fail("a fingerprint needs no done");
    if (call->pass->done) return check.fail("the pass has said so before");
    call->pass->done = true;
    call->pass->rewrites = rewrites;
    return {};
  });
}
