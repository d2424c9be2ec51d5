// Compiling, and executables.
#include "abi/src/artifacts.h"
#include "abi/src/options.h"
#include "runtime/report/describe.h"
#include "runtime/report/list_text.h"

namespace kiln::abi {

namespace {

constexpr uint32_t most_compiles = 8;  // in one another

// The options of a compile, once all that it is given is checked.
Result<CompileOptions> compile_request(const Checks &check, kiln_context *context, const kiln_graph *graph,
                                       const kiln_options *options, const void *out) {
  KILN_TRY(check.handle(context, "context"));
  KILN_TRY(check.own_graph(graph, context->context, "graph"));
  KILN_TRY(check.optional_handle(options, "options"));
  KILN_TRY(check.pointer(out, "out"));
  if (!graph->graph) return check.fail("graph is the view of an edit; finish that edit first");
  return compile_options(options);
}

// The error with the compile's report on it.
Status with_report(const Status &status, const CompileReport &report) {
  auto info = std::make_shared<ErrorInfo>(*status.info());
  if (info->report.empty()) info->report = to_json(report);
  return Status(std::move(info));
}

}  // namespace
}  // namespace kiln::abi

using namespace kiln;
using namespace kiln::abi;

kiln_error *kiln_compile(kiln_context *context, const kiln_graph *graph, const kiln_options *options,
                         kiln_executable **out, kiln_report **out_report) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const CompileOptions checked, compile_request(check, context, graph, options, out));
    if (Acting::here().compiles == most_compiles)
      return check.fail("passes compile in one another, ", most_compiles,
                        " deep; the compile of a pass runs passes, too");
    const ActingFor acting(Acting::here().thread, Acting::here().compiles + 1);
    const std::shared_ptr<Context> shared = share(context);  // alive even if another thread destroys the handle
    CompileReport report;
    Result<Compiled> compiled = shared->compile(graph->graph, checked, report);
    if (!compiled.ok()) return with_report(compiled.status(), report);
    std::unique_ptr<kiln_report> told = out_report ? make_report(to_json(report)) : nullptr;
    *out = make_executable(shared, compiled->executable);
    if (out_report) *out_report = told.release();
    return {};
  });
}

kiln_error *kiln_compile_passes(kiln_context *context, const kiln_graph *graph, const kiln_options *options,
                                kiln_report **out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const CompileOptions checked, compile_request(check, context, graph, options, out));
    KILN_ASSIGN(std::string order, context->context.compile_order(*graph->graph, checked));
    *out = make_report(std::move(order)).release();
    return {};
  });
}

kiln_error *kiln_pass_explain(kiln_context *context, const kiln_graph *graph, const kiln_options *options,
                              const char *name, uint64_t name_size, kiln_report **out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const std::string_view wanted, check.text(name, name_size, "name"));
    KILN_ASSIGN(const CompileOptions checked, compile_request(check, context, graph, options, out));
    KILN_ASSIGN(std::string told, share(context)->explain_pass(graph->graph, checked, wanted));
    *out = make_report(std::move(told)).release();
    return {};
  });
}

kiln_error *kiln_executable_describe(const kiln_executable *executable, kiln_report **out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(executable, "executable"));
    KILN_TRY(check.pointer(out, "out"));
    *out = make_report(describe(*executable->executable, executable->targets)).release();
    return {};
  });
}

kiln_error *kiln_executable_text(const kiln_executable *executable, const char *what, uint64_t what_size,
                                 kiln_blob **out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(executable, "executable"));
    KILN_ASSIGN(const std::string_view wanted, check.text(what, what_size, "what"));
    KILN_TRY(check.pointer(out, "out"));
    Context &context = *executable->live.context();
    KILN_ASSIGN(std::string listing, list_text(*executable->executable, wanted, context.ops(), *context.modules()));
    *out = make_blob(std::move(listing));
    return {};
  });
}

void kiln_executable_destroy(kiln_executable *executable) {
  if (executable && executable->magic.ok()) delete executable;
}
