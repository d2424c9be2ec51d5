// kiln ops: the ops that a graph may use, from their records.
#include <algorithm>

#include "commands.h"
#include "session.h"

namespace kiln::cli {
namespace {

constexpr Flag flags[] = {json_flag, {"--samples", "", "with --json: also the samples on which the op is tested"}};

// The report as JSON, without its samples (which are its last member and many) unless they were asked for.
std::string json_of(const Args &args, const Report &op) {
  std::string text = op.json();
  const size_t samples = args.has("--samples") ? text.npos : text.find(",\n\t\"samples\":");
  return samples == text.npos ? text : text.substr(0, samples) + "\n}";
}

std::string padded(std::string text, size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');  // what follows does not touch it
  return text;
}

// One line a member: name, what else there is, doc.
void append_args(std::string &text, const Report &op) {
  for (size_t i = 0; i < op.count("args"); ++i) {
    const auto shown = [&](std::string_view member) { return op.shown(path_of("args", i, member)); };
    std::string dtypes;
    const std::string list = path_of("args", i, "dtypes");
    for (size_t d = 0; d < op.count(list); ++d) dtypes.append(d ? "|" : "").append(op.text(path_of(list, d)));
    const std::string arity = shown("arity") == "one" ? "" : shown("arity") + ", ";
    text += (i ? "  " : "operands\n  ") + padded(shown("name"), 14) + padded(arity + dtypes, 24) + shown("doc") + "\n";
  }
}

void append_attrs(std::string &text, const Report &op) {
  for (size_t i = 0; i < op.count("attrs"); ++i) {
    const auto shown = [&](std::string_view member) { return op.shown(path_of("attrs", i, member)); };
    const bool required = op.boolean(path_of("attrs", i, "required"));
    const std::string kind = shown("kind") + (op.boolean(path_of("attrs", i, "list")) ? "[]" : "");
    text += (i ? "  " : "attributes\n  ") + padded(shown("name"), 14) +
            padded(kind + (required ? ", required" : " = " + shown("default")), 24) + shown("doc") + "\n";
  }
}

std::string described(const Report &op) {
  std::string text =
      op.text("name") + ", version " + op.shown("version") + ", " + op.text("kind") + "\n" + op.text("doc") + "\n";
  append_args(text, op);
  append_attrs(text, op);
  for (size_t i = 0; i < op.count("results"); ++i) text += (i ? ", " : "results\n  ") + op.text(path_of("results", i));
  return text + "\n";
}

kiln_op find_op(const Session &session, const std::string &name) {
  kiln_op op = 0;
  try {
    check(kiln_op_find(session.context(), name.data(), name.size(), &op));
  } catch (const Failure &failure) {
    throw Usage(failure.what());
  }
  return op;
}

int run(const Args &args) {
  if (args.has("--samples") && !args.has("--json")) throw Usage("--samples is given without --json");
  const Session session(args);
  if (!args.operands().empty()) {
    const std::string &name = args.operands()[0];
    const Report report = report_of(kiln_op_describe, session.context(), find_op(session, name));
    print(args.has("--json") ? json_of(args, report) + "\n" : described(report));
    return 0;
  }
  std::string text = args.has("--json") ? "[" : "";
  for (uint64_t i = 0; i < kiln_op_count(session.context()); ++i) {
    kiln_op op = 0;
    check(kiln_op_at(session.context(), i, &op));
    const Report report = report_of(kiln_op_describe, session.context(), op);
    if (args.has("--json")) {
      text += (i ? ",\n" : "\n") + json_of(args, report);
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
