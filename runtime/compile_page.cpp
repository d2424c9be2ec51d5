#include "runtime/compile_page.h"

#include <filesystem>

#include "jit/base/file.h"
#include "jit/base/json_writer.h"
#include "jit/base/utf8.h"
#include "runtime/report/describe.h"
#include "runtime/report/page.h"

namespace kiln {
namespace {

// How a compile that asks the cache would have ended; it compiles nothing. Its warnings are the other compile's to
// tell.
Result<std::string> look_up(const CompileEnvironment &env, const GraphPtr &graph, CompileOptions options) {
  options.report_html.clear();
  options.dump.clear();
  options.use_cache = options.require_hit = true;
  options.verify = false;
  CompileEnvironment quiet = env;
  quiet.warning = {};
  quiet.is_news = [](const Pass &) { return false; };
  CompileReport report;
  const Result<Compiled> found = compile(quiet, graph, options, report);
  if (!found.ok() && found.status().code() != Code::not_cached) return found.status();
  JsonWriter json;
  json.begin_object().key("report").raw(to_json(report));
  if (found.ok()) json.key("found").raw(describe(*found->executable));
  return json.end_object().take();
}

}  // namespace

Result<Compiled> compile_with_page(const CompileEnvironment &env, GraphPtr graph, const CompileOptions &options,
                                   CompileReport &report) {
  KILN_ASSIGN(const std::string lookup, look_up(env, graph, options));
  KILN_ASSIGN(Compiled compiled, compile(env, graph, options, report));
  const std::shared_ptr<const Dump> passes = std::exchange(report.passes_seen, nullptr);
  const PageContent content{.title = printable(std::filesystem::path(options.report_html).stem().string()),
                            .given = *graph,
                            .executable = *compiled.executable,
                            .compile = report,
                            .passes = *passes,
                            .lookup = lookup};
  KILN_ASSIGN(const std::string page, page_of(content, *env.modules));
  const ByteSpan bytes(reinterpret_cast<const uint8_t *>(page.data()), page.size());
  if (Status status = write_file(options.report_html, bytes); !status.ok())
    return std::move(status).with_prefix("option 'report_html': ");
  return compiled;
}

}  // namespace kiln
