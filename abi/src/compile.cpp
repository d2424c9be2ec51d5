// Compiling, and executables.
#include "abi/src/options.h"
#include "jit/base/file.h"
#include "runtime/cache/artifact_bytes.h"
#include "runtime/report/describe.h"
#include "runtime/report/list_text.h"

namespace kiln::abi {

namespace {

constexpr uint32_t most_compiles = 8;  // in one another

kiln_executable *make_executable(const std::shared_ptr<Context> &context,
                                 std::shared_ptr<const Executable> executable) {
  return new kiln_executable{
      .magic = {}, .live = {context, &LiveCounts::executables}, .executable = std::move(executable)};
}

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

Bytes bytes_of(const Executable &general) { return write_artifact(general.artifact(), general.made_entries()); }

Status check_open(const Checks &check, const kiln_context *context, const kiln_options *options, const void *out) {
  KILN_TRY(check.handle(context, "context"));
  KILN_TRY(check.optional_handle(options, "options"));
  return check.pointer(out, "out");
}

Result<kiln_executable *> open_artifact(const std::shared_ptr<Context> &context, std::span<const uint8_t> bytes,
                                        const kiln_options *options) {
  KILN_ASSIGN(const AttrMap given, check_options("open", {{"expect_key", std::string()}}, values_of(options)));
  KILN_ASSIGN(Artifact read, read_artifact(bytes));
  const auto artifact = std::make_shared<const Artifact>(std::move(read));
  const std::string &expected = given.find("expect_key")->second.text_value();
  const std::string key = artifact->components.empty() ? "" : artifact->graph_key.hex();
  if (!expected.empty() && expected != key)
    return error(Code::incompatible, "the artifact has ", key.empty() ? "no key" : str_cat("key ", key),
                 ", and option 'expect_key' is ", expected);
  KILN_ASSIGN(const BackendInfo *backend, find_backend(artifact->backend));
  KILN_ASSIGN(std::shared_ptr<const Executable> loaded,
              Executable::load(
                  artifact, context->ops(), context->pool(), build_id(),
                  [modules = context->modules(), backend](uint32_t index) { return modules->device(*backend, index); },
                  *context->functions(), *context->backends()));
  return make_executable(context, std::move(loaded));
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

kiln_error *kiln_executable_save(const kiln_executable *executable, const char *path, uint64_t path_size,
                                 const kiln_options *options) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(executable, "executable"));
    KILN_ASSIGN(const std::string file, check.path(path, path_size, "path"));
    KILN_TRY(check.optional_handle(options, "options"));
    KILN_TRY(no_options("save", options));
    return write_file(file, bytes_of(*executable->executable));
  });
}

kiln_error *kiln_executable_bytes(const kiln_executable *executable, const kiln_options *options, kiln_blob **out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(executable, "executable"));
    KILN_TRY(check.optional_handle(options, "options"));
    KILN_TRY(check.pointer(out, "out"));
    KILN_TRY(no_options("bytes", options));
    const Bytes bytes = bytes_of(*executable->executable);
    *out = make_blob(std::string(bytes.begin(), bytes.end()));
    return {};
  });
}

kiln_error *kiln_executable_open(kiln_context *context, const char *path, uint64_t path_size,
                                 const kiln_options *options, kiln_executable **out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check_open(check, context, options, out));
    KILN_ASSIGN(const std::string file, check.path(path, path_size, "path"));
    KILN_ASSIGN(const MappedFile mapped, MappedFile::open(file));
    Result<kiln_executable *> opened = open_artifact(share(context), mapped.bytes(), options);
    if (!opened.ok()) return opened.take_status().with_prefix(str_cat(file, ": "));
    *out = *opened;
    return {};
  });
}

kiln_error *kiln_executable_open_bytes(kiln_context *context, const void *bytes, uint64_t size,
                                       const kiln_options *options, kiln_executable **out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check_open(check, context, options, out));
    KILN_TRY(check.pointer(bytes, "bytes"));
    KILN_ASSIGN(*out, open_artifact(share(context), {static_cast<const uint8_t *>(bytes), size}, options));
    return {};
  });
}

kiln_error *kiln_executable_describe(const kiln_executable *executable, kiln_report **out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(executable, "executable"));
    KILN_TRY(check.pointer(out, "out"));
    *out = make_report(describe(*executable->executable)).release();
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
