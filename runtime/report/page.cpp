#include "runtime/report/page.h"

#include <set>

#include "jit/base/json_writer.h"
#include "runtime/report/describe.h"
#include "runtime/report/list_text.h"
#include "runtime/report/step_report.h"

namespace kiln {
namespace {

constexpr size_t most_kernels = 400;  // whose code is emitted again: it takes about as long as compiling them

// What the backend's module emits of its kernels, "llvm" or "cuda"; empty: there is no module.
std::string_view code_listing(const Artifact &artifact) {
  const Result<const BackendInfo *> backend = find_backend(artifact.backend);
  return backend.ok() && !(*backend)->listings.empty() ? (*backend)->listings.front().name : "";
}

Status write_kernels(const Executable &executable, std::string_view code, Modules &modules, JsonWriter &json) {
  KILN_ASSIGN(const std::vector<std::string> ir, list_kernels(executable, "kernels", modules));
  std::vector<std::string> texts;
  if (!code.empty() && ir.size() <= most_kernels) {
    KILN_ASSIGN(texts, list_kernels(executable, code, modules));
  }
  json.key("kernels").begin_list();
  for (size_t i = 0; i < ir.size(); ++i) {
    json.begin_object().member("ir", ir[i]);
    if (i < texts.size()) json.member("code", texts[i]);
    json.end_object();
  }
  json.end_list();
  if (!code.empty() && ir.size() > most_kernels)
    json.member("left_out", str_cat("Of ", ir.size(), " kernels this page has the IR alone; kiln inspect --", code,
                                    " shows their code."));
  return {};
}

void write_passes(const Dump &dump, JsonWriter &json) {
  json.key("passes").begin_list();
  for (const Dump::Row &row : dump.rows()) {
    json.begin_object().member("stage", row.stage).member("pass", row.pass).member("part", row.part);
    json.member("before", row.before->stem).member("after", row.after->stem);
    json.member("nodes_before", row.nodes_before).member("nodes_after", row.nodes_after);
    json.member("changed", row.changed());
    if (row.changed()) json.member("diff", row.after->diff);
    json.end_object();
  }
  json.end_list();
}

// The graphs that no difference makes: as it was given, and those that regions begin with.
void write_texts(const Dump &dump, JsonWriter &json) {
  std::set<std::string_view> known;
  const auto write = [&](const Dump::File &file) {
    if (known.insert(file.stem).second) json.member(file.stem, file.text);
  };
  json.key("texts").begin_object();
  write(dump.given());
  for (const Dump::Row &row : dump.rows()) {
    write(*row.before);
    known.insert(row.after->stem);
  }
  json.end_object();
}

// A page ends a script at "</script" and at "<!--", also inside a JSON text, where '<' may be written otherwise.
std::string for_script(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json)
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  return out;
}

}  // namespace

Result<std::string> page_of(const PageContent &content, Modules &modules) {
  const Artifact &artifact = content.executable.artifact();
  const std::string_view code = code_listing(artifact);
  JsonWriter json;
  json.begin_object().member("title", content.title);
  json.key("report").raw(to_json(content.compile)).key("lookup").raw(content.lookup);
  json.key("describe").raw(describe(content.executable)).key("graph").raw(describe(content.given));
  json.key("steps").raw(list_steps(artifact)).member("plan", print(artifact.plan)).member("code", code);
  KILN_TRY(write_kernels(content.executable, code, modules, json));
  write_passes(content.passes, json);
  write_texts(content.passes, json);
  json.end_object();
  constexpr std::string_view mark = "@KILN_DATA@";
  const std::string_view page = page_template();
  const size_t at = page.find(mark);
  return str_cat(page.substr(0, at), for_script(json.text()), page.substr(at + mark.size()));
}

}  // namespace kiln
