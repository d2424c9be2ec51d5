// kiln ops: the ops that a graph may use, from their records.
#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "commands.h"
#include "op_samples.h"
#include "session.h"

namespace kiln::cli {
namespace {

constexpr Flag ops_flags[] = {
    json_flag,
    plugin_flag,
    {"--test", "",
     "run the samples of the ops of plugins, or of NAME, on cpu and reference, and compare; exit "
     "code 1 at the first that differs"},
    {"--samples", "", "with --json: also the samples on which the op is tested"},
    {"--family", "NAME", "only ops of this family: pointwise, reduction, shape, ..."},
    {"--search", "TEXT", "only ops with this text in name or doc, in any case"},
    {"--markdown", "", "write a page of documentation"}};

// The report as JSON, without its samples (which are its last member and many) unless they were asked for.
std::string json_of(const Args &args, const Report &op) {
  std::string text = op.json();
  const size_t samples = args.has("--samples") ? text.npos : text.find(",\n\t\"samples\":");
  return samples == text.npos ? text : text.substr(0, samples) + "\n}";
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

// "by a rule for x, weight", or why there is none.
std::string gradient_of(const Report &op, std::string_view quote) {
  const std::string kind = op.text("gradient.kind"), why = op.text("gradient.why"), ties = op.text("gradient.ties"),
                    given = op.text("gradient.given");
  if (!why.empty() && given.empty()) return kind + ": " + why;
  std::string text = kind == "rule" ? "by a rule for " : "through the decomposition for ";
  for (size_t i = 0; i < op.count("gradient.operands"); ++i)
    text.append(i ? ", " : "").append(quote).append(op.text(path_of("gradient.operands", i))).append(quote);
  if (!given.empty())
    return text.append(" where ").append(quote).append(given).append(quote).append(" is given; else none: ") + why;
  if (ties == "even") return text + "; equal elements share it";
  return ties == "none" ? text : text + "; of equal elements the " + ties + " gets it";
}

std::string described(const Report &op) {
  std::string text =
      op.text("name") + ", " + op.text("family") + ", version " + op.shown("version") + ", " + op.text("kind");
  for (size_t i = 0; i < op.count("flags"); ++i) text += ", " + op.text(path_of("flags", i));
  text += "\n" + printable(op.text("doc")) + "\n";
  append_args(text, op);
  append_attrs(text, op);
  for (size_t i = 0; i < op.count("results"); ++i) text += (i ? ", " : "results\n  ") + op.text(path_of("results", i));
  if (op.count("results")) text += "\n";
  return text + "gradient\n  " + gradient_of(op, "") + "\n";
}

// "floats, integers, bool": those of a set that are there as a whole go by its name.
std::string types_of(const Report &op, const std::string &list) {
  std::vector<std::string> types;
  for (size_t d = 0; d < op.count(list); ++d) types.push_back(op.text(path_of(list, d)));
  const auto named = [&](const char *name, const std::vector<std::string> &set) {
    const auto has = [&](const std::string &type) { return std::ranges::find(types, type) != types.end(); };
    if (!std::ranges::all_of(set, has)) return;
    std::erase_if(types, [&](const std::string &type) { return std::ranges::find(set, type) != set.end(); });
    types.insert(types.begin(), name);
  };
  named("integers", {"i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8"});
  named("floats", {"f64", "f32", "f16", "bf16"});
  std::string text;
  for (const std::string &type : types) text += (text.empty() ? "" : ", ") + type;
  return text;
}

std::string section_of(const Report &op) {
  std::string text = "### `" + op.text("name") + "`\n\n" + printable(op.text("doc")) + "\n\n";
  for (size_t i = 0; i < op.count("args"); ++i) {
    const auto shown = [&](std::string_view member) { return op.shown(path_of("args", i, member)); };
    const std::string arity = shown("arity") == "one" ? "" : " (" + shown("arity") + ")";
    text += "- `" + shown("name") + "`" + arity + ": " + shown("doc") + " — " +
            types_of(op, path_of("args", i, "dtypes")) + "\n";
  }
  for (size_t i = 0; i < op.count("attrs"); ++i) {
    const auto shown = [&](std::string_view member) { return op.shown(path_of("attrs", i, member)); };
    const std::string kind = shown("kind") + (op.boolean(path_of("attrs", i, "list")) ? "[]" : "");
    const bool required = op.boolean(path_of("attrs", i, "required"));
    text += "- attribute `" + shown("name") + "`, " + kind +
            (required ? ", required" : ", default `" + shown("default") + "`") + ": " + shown("doc") + "\n";
  }
  if (op.count("results") > 1) {
    text += "- results:";
    for (size_t i = 0; i < op.count("results"); ++i) text += (i ? ", `" : " `") + op.text(path_of("results", i)) + "`";
    text += "\n";
  }
  return text + "- gradient " + gradient_of(op, "`") + "\n\n";
}

std::vector<std::string> families_of(const std::vector<Report> &ops) {
  std::set<std::string> families;
  for (const Report &op : ops) families.insert(op.text("family"));
  return {families.begin(), families.end()};
}

// A page: ops by family.
std::string page_of(const std::vector<Report> &ops) {
  const std::vector<std::string> families = families_of(ops);
  std::string text =
      "# Ops\n\nWritten by `kiln ops --markdown` from the ops' records; `kiln ops NAME` tells the same. Floats: `f64`, "
      "`f32`,\n"
      "`f16`, `bf16`. Integers: of 64, 32, 16 and 8 bits, with a sign and without. Operands of one op have one dtype "
      "unless\n"
      "their lists differ. What types mean is told in [element-types.md](element-types.md).\n\n";
  for (const std::string &family : families) {
    text += "## " + family + "\n\n";
    for (const Report &op : ops)
      if (op.text("family") == family) text += section_of(op);
  }
  text.pop_back();
  return text;
}

std::string lowered(std::string text) {
  for (char &c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// Those that --family and --search let through.
std::vector<Report> chosen(const Args &args, const Session &session) {
  std::vector<Report> all, ops;
  for (uint64_t i = 0; i < kiln_op_count(session.context()); ++i) {
    kiln_op op = 0;
    check(kiln_op_at(session.context(), i, &op));
    all.push_back(report_of(kiln_op_describe, session.context(), op));
  }
  const std::vector<std::string> families = families_of(all);
  const std::optional<std::string> family = args.get("--family");
  if (family && std::ranges::find(families, *family) == families.end()) {
    std::string known;
    for (const std::string &name : families) known += (known.empty() ? "" : ", ") + name;
    throw Usage("there is no family '" + *family + "'; there are " + known);
  }
  const std::string searched = lowered(args.get("--search").value_or(""));
  for (Report &op : all)
    if ((!family || op.text("family") == *family) &&
        lowered(op.text("name") + "\n" + op.text("doc")).find(searched) != std::string::npos)
      ops.push_back(std::move(op));
  return ops;
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

// Built-in ops, whose samples Kiln's own tests run, have operands of other kinds, too.
int test(const Args &args, const Session &session) {
  const auto is_of_plugin = [](const Report &op) { return op.text("family") == "registered"; };
  std::vector<Report> ops;
  if (args.operands().empty()) {
    ops = chosen(args, session);
    std::erase_if(ops, [&](const Report &op) { return !is_of_plugin(op); });
    if (ops.empty()) throw Usage("--test: there is no op of a plugin; give --plugin P.so");
  } else {
    const std::string &name = args.operands()[0];
    ops.push_back(report_of(kiln_op_describe, session.context(), find_op(session, name)));
    if (!is_of_plugin(ops[0])) throw Usage("--test: '" + name + "' is a built-in op; the samples of plugins' are run");
  }
  size_t samples = 0;
  for (const Report &op : ops) {
    if (op.count("samples") == 0) print(printable(op.text("name")) + ": no samples\n");
    samples += op.count("samples");
    if (!test_samples(session, op)) return 1;
  }
  if (samples == 0) throw Failure("no op of these has samples");
  return 0;
}

int ops_main(const Args &args) {
  if (args.has("--markdown") && (args.has("--json") || !args.operands().empty()))
    throw Usage("--markdown writes the page of all ops, or of those that --family and --search choose");
  if (!args.operands().empty() && (args.has("--family") || args.has("--search")))
    throw Usage("--family and --search choose among all ops, and '" + args.operands()[0] + "' is named");
  if (args.has("--samples") && !args.has("--json")) throw Usage("--samples is given without --json");
  for (const char *flag : {"--json", "--markdown", "--samples", "--family", "--search"})
    if (args.has("--test") && args.has(flag)) throw Usage(std::string("--test is given with ") + flag);
  const Session session(args);
  session.load_plugins();
  if (args.has("--test")) return test(args, session);
  if (!args.operands().empty()) {
    const std::string &name = args.operands()[0];
    const Report report = report_of(kiln_op_describe, session.context(), find_op(session, name));
    print(args.has("--json") ? json_of(args, report) + "\n" : described(report));
    return 0;
  }
  const std::vector<Report> ops = chosen(args, session);
  if (args.has("--markdown")) return print(page_of(ops)), 0;
  std::string text = args.has("--json") ? "[" : "";
  size_t width = 0;
  for (const Report &op : ops) width = std::max(width, op.text("name").size());
  for (size_t i = 0; i < ops.size(); ++i)
    text += args.has("--json") ? (i ? ",\n" : "\n") + json_of(args, ops[i])
                               : padded(ops[i].text("name"), width) + " " + ops[i].text("doc") + "\n";
  print(args.has("--json") ? text + "\n]\n" : text);
  return 0;
}

}  // namespace

const Command ops_command{"ops", "[NAME]", "Lists the ops, or explains one.", 0, 1, ops_flags, ops_main};

}  // namespace kiln::cli
