// kiln ops: the ops that a graph may use, from their records.
#include <algorithm>

#include "commands.h"
#include "session.h"

namespace kiln::cli {
namespace {

constexpr Flag flags[] = {json_flag};

std::string padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

// "  x  the operand"
void append_members(std::string &text, const Report &op, std::string_view list, std::string_view title) {
  for (size_t i = 0; i < op.count(list); ++i) {
    if (i == 0) text.append("\n").append(title).append("\n");
    const auto shown = [&](std::string_view member) { return op.shown(path_of(list, i, member)); };
    text += "  " + padded(shown("name"), 16);
    if (list == "attrs") {
      text += padded(shown("kind") + (op.boolean(path_of(list, i, "list")) ? "[]" : ""), 8);
      if (op.boolean(path_of(list, i, "required"))) text += "required  ";
    }
    text += shown("doc") + "\n";
  }
}

std::string described(const Report &op) {
  std::string text = op.text("name") + ", version " + op.shown("version") + "\n" + op.text("doc") + "\n";
  append_members(text, op, "args", "operands");
  append_members(text, op, "results", "results");
  append_members(text, op, "attrs", "attributes");
  return text;
}

int run(const Args &args) {
  const Session session(args);
  if (!args.operands().empty()) {
    const std::string &name = args.operands()[0];
    kiln_op op = 0;
    check(kiln_op_find(session.context(), name.data(), name.size(), &op));
    const Report report = report_of(kiln_op_describe, session.context(), op);
    print(args.has("--json") ? report.json() + "\n" : described(report));
    return 0;
  }
  std::string text = args.has("--json") ? "[" : "";
  for (uint64_t i = 0; i < kiln_op_count(session.context()); ++i) {
    kiln_op op = 0;
    check(kiln_op_at(session.context(), i, &op));
    const Report report = report_of(kiln_op_describe, session.context(), op);
    if (args.has("--json")) {
      text += (i ? ",\n" : "\n") + report.json();
    } else {
      text += padded(report.text("name"), 16) + " " + report.text("doc") + "\n";
    }
  }
  print(args.has("--json") ? text + "\n]\n" : text);
  return 0;
}

}  // namespace

const Command ops_command{"ops", "[NAME]", "Lists the ops, or explains one.", 0, 1, flags, run};

}  // namespace kiln::cli
