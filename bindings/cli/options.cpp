// kiln options: the options of contexts and compiles, from their tables.
#include <algorithm>

#include "commands.h"
#include "session.h"

namespace kiln::cli {
namespace {

constexpr Flag options_flags[] = {json_flag, {"--markdown", "", "write a page of documentation"}};

struct Row {
  std::string name, kind, fallback, unkeyed, doc;
  bool of_regions = false;
};

std::vector<Row> rows_of(const Report &report, std::string_view what) {
  std::vector<Row> rows;
  for (size_t i = 0; i < report.count(what); ++i) {
    const auto text = [&](std::string_view member) { return report.text(path_of(what, i, member)); };
    const bool list = report.boolean(path_of(what, i, "list"));
    rows.push_back({text("name"), text("kind") + (list ? "[]" : ""), list ? "" : text("default"), text("unkeyed"),
                    text("doc"), report.boolean(path_of(what, i, "of_regions"))});
  }
  return rows;
}

std::string listed(const std::vector<Row> &rows) {
  std::string text;
  for (const Row &row : rows) {
    std::string left = "  " + row.name + " " + row.kind + (row.fallback.empty() ? "" : " = " + row.fallback);
    left.resize(std::max<size_t>(left.size() + 1, 30), ' ');
    text += left + row.doc + "\n";
  }
  return text;
}

std::string table_of(const std::vector<Row> &rows) {
  std::string text = "| option | kind | default | what it says | in the key of a graph |\n|---|---|---|---|---|\n";
  for (const Row &row : rows)
    text += "| `" + row.name + "` | " + row.kind + " | " + (row.fallback.empty() ? "" : "`" + row.fallback + "`") +
            " | " + row.doc + " | " + (row.unkeyed.empty() ? "yes" : "no: " + row.unkeyed) + " |\n";
  return text;
}

// "`fuse` and `rounding`".
std::string of_regions(const std::vector<Row> &rows) {
  std::string names;
  for (const Row &row : rows)
    if (row.of_regions) names += (names.empty() ? "`" : " and `") + row.name + "`";
  return names;
}

int options_main(const Args &args) {
  if (args.has("--markdown") && args.has("--json")) throw Usage("--markdown and --json exclude each other");
  const Report report = report_of(kiln_options_describe);
  if (args.has("--json")) return print(report.json() + "\n"), 0;
  const std::vector<Row> context = rows_of(report, "context"), compile = rows_of(report, "compile");
  if (args.has("--markdown")) {
    print(
        "# Options\n\nWritten by `kiln options --markdown` from the tables that they are checked against. They are set "
        "by\n"
        "name with `kiln_options_set`, those of a compile also with `kiln run --option NAME=VALUE`; lists are "
        "separated by\n"
        "commas there. There is also `region.NAME.OPTION`, for one region (regions.md), of " +
        of_regions(compile) +
        ",\n"
        "and `region.NAME.backend.OPTION`, an option of the registered backend that is chosen for it.\n"
        "An option that can change what is compiled is part of the key under which it is cached.\n\n"
        "## Of a context\n\n" +
        table_of(context) + "\n## Of a compile\n\n" + table_of(compile));
    return 0;
  }
  print("of a context\n" + listed(context) + "of a compile\n" + listed(compile));
  return 0;
}

}  // namespace

const Command options_command{"options",     "",          "Lists the options of contexts and compiles.", 0, 0,
                              options_flags, options_main};

}  // namespace kiln::cli
