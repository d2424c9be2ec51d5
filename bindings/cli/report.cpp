#include "report.h"

#include <algorithm>
#include <vector>

#include "json.h"

namespace kiln::cli {
namespace {

constexpr size_t most_kernels = 400;  // whose code is emitted again: it takes about as long as compiling them

std::string_view listing(const Executable &executable, std::string_view what, Blob &blob) {
  blob = make<Blob>(kiln_executable_text, executable.get(), what.data(), what.size());
  return view(blob);
}

// A listing's parts, each behind a line with "---- kernel N".
std::vector<std::string_view> parts_of(std::string_view text, std::string_view comment) {
  const std::string mark = std::string(comment) + " ---- kernel ";
  std::vector<std::string_view> parts;
  const auto find = [&](size_t from) {
    size_t at = text.find(mark, from);
    while (at != text.npos && at != 0 && text[at - 1] != '\n') at = text.find(mark, at + 1);
    return at;
  };
  for (size_t at = find(0); at != text.npos;) {
    const size_t begin = std::min(text.find('\n', at), text.size() - 1) + 1, next = find(begin);
    parts.push_back(text.substr(begin, next == text.npos ? text.npos : next - begin));
    at = next;
  }
  return parts;
}

std::string kernels_json(const Executable &executable, std::string_view code) {
  Blob ir_blob, code_blob;
  const std::vector<std::string_view> ir = parts_of(listing(executable, "kernels", ir_blob), ";");
  std::vector<std::string_view> texts;
  if (!code.empty() && ir.size() <= most_kernels)
    texts = parts_of(listing(executable, code, code_blob), code == "cuda" ? "//" : ";");
  std::string json = "[";
  for (size_t i = 0; i < ir.size(); ++i) {
    JsonObject row;
    row.add("ir", ir[i]);
    if (i < texts.size()) row.add("code", texts[i]);
    json += (i ? ",\n" : "") + row.text();
  }
  return json + "]";
}

std::string passes_json(const Dumped &dumped) {
  std::string json = "[";
  for (const Dumped::Run &run : dumped.runs) {
    JsonObject row;
    row.add("stage", run.stage)
        .add("pass", run.pass)
        .add("part", run.part)
        .add("before", run.before)
        .add("after", run.after)
        .add("nodes_before", run.nodes_before)
        .add("nodes_after", run.nodes_after)
        .add("changed", run.changed());
    if (run.changed()) row.add("diff", dumped.read(run.after, ".diff"));
    json += (json.size() > 1 ? ",\n" : "") + row.text();
  }
  return json + "]";
}

// The graphs that no diff makes: as it was given, and those that regions begin with.
std::string texts_json(const Dumped &dumped) {
  std::string json = "{" + json_text(given_file) + ": " + json_text(dumped.read(given_file, ".txt"));
  std::vector<std::string> known = {given_file};
  const auto is_known = [&](const std::string &file) { return std::ranges::find(known, file) != known.end(); };
  for (const Dumped::Run &run : dumped.runs) {
    if (!is_known(run.before))
      json += ",\n" + json_text(run.before) + ": " + json_text(dumped.read(run.before, ".txt"));
    known.push_back(run.before);
    known.push_back(run.after);
  }
  return json + "}";
}

// A page ends a script at "</script" and at "<!--", also inside a JSON text, where '<' may be written otherwise.
std::string for_script(std::string_view json) {
  std::string out;
  for (const char c : json)
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  return out;
}

}  // namespace

std::string report_html(const Reported &r) {
  const Report description = report_of(kiln_executable_describe, r.executable.get());
  const Report graph = report_of(kiln_graph_describe, r.graph.get());
  const Report build = report_of(kiln_build_report);
  const Dumped dumped = read_dumped(r.compile.text("dump"));
  const std::string backend = description.text("backend");
  const std::string code = backend == "cpu" ? "llvm" : backend == "cuda" ? "cuda" : "";
  std::string data = "{";
  const auto member = [&](std::string_view name, std::string_view json) {
    data += (data.size() > 1 ? ",\n" : "") + json_text(name) + ": ";
    data += json;
  };
  Blob steps, plan;
  member("graph", json_text(printable(r.name.substr(r.name.rfind('/') + 1))));
  member("version", json_text(build.text("version")));
  member("report", r.compile.json());
  member("lookup", r.lookup);
  member("describe", description.json());
  JsonObject symbols;
  for (size_t i = 0; i < graph.count("symbols"); ++i) {
    const std::string name = graph.key("symbols", i);
    JsonObject facts;
    for (const char *fact : {"min", "divisor", "hint"}) facts.add(fact, graph.i64("symbols." + name + "." + fact));
    symbols.raw(name, facts.text());
  }
  member("symbols", symbols.text());
  member("steps", listing(r.executable, "steps", steps));
  member("plan", json_text(listing(r.executable, "plan", plan)));
  member("code", json_text(code));
  member("kernels", kernels_json(r.executable, code));
  if (const int64_t kernels = description.i64("kernels"); !code.empty() && kernels > static_cast<int64_t>(most_kernels))
    member("left_out", json_text("Of " + std::to_string(kernels) +
                                 " kernels this page has the IR alone; kiln inspect --" + code + " shows their code."));
  member("passes", passes_json(dumped));
  member("texts", texts_json(dumped));
  data += "}";
  constexpr std::string_view mark = "@KILN_DATA@";
  const std::string_view page = report_page();
  const size_t at = page.find(mark);
  return std::string(page.substr(0, at)) + for_script(data) + std::string(page.substr(at + mark.size()));
}

std::string look_up(const Session &session, const Graph &graph, Options &options) {
  options.set("require_hit", true);
  kiln_executable *out = nullptr;
  kiln_report *out_report = nullptr;
  kiln_error *error = kiln_compile(session.context(), graph.get(), options.get(), &out, &out_report);
  const Executable found(out);
  const Report report(out_report);
  if (!error)
    return JsonObject()
        .raw("report", report.json())
        .raw("found", report_of(kiln_executable_describe, found.get()).json())
        .text();
  const kiln_report *explains = kiln_error_report(error);
  if (!explains) check(error);  // it is no miss
  kiln_blob *json = nullptr;
  kiln_error *failure = kiln_report_json(explains, &json);
  const Blob text(json);
  kiln_error_destroy(error);
  check(failure);
  return JsonObject().raw("report", view(text)).text();
}

}  // namespace kiln::cli
