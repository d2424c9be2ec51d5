// Samples of ops as graphs: an op's schema tells them as JSON (kiln_op_describe), here they become JSON of graphs.
#include "../../json.h"
#include "corpus.h"
#include "report_json.h"

namespace kiln::cli::plugin_check {
namespace {

bool takes_token(const Report &op) {
  const size_t args = op.count("args");
  if (args == 0) return false;
  const std::string dtypes = path_of("args", args - 1, "dtypes");
  return op.count(dtypes) == 1 && op.text(path_of(dtypes, 0)) == "token";
}

// With the value that is its output.
Item item_of(const Report &op, size_t sample, const std::string &output) {
  ReportJson rewriter(op);
  const std::string at = path_of("samples", sample), inputs = at + ".inputs", name = op.text("name");
  std::string operands, given, constants;
  for (size_t i = 0; i < op.count(inputs); ++i) {
    const std::string input = path_of(inputs, i), x = json_text("x" + std::to_string(i));
    const bool has_data = op.has(input + ".data");
    std::string &side = has_data ? constants : given;
    side += (side.empty() ? "" : ", ") + ("{\"name\": " + x) + ", \"type\": " + rewriter.json(input + ".type") +
            (has_data ? ", \"data\": " + rewriter.json(input + ".data") : "") + "}";
    operands += (i ? ", " : "") + x;
  }
  const bool token = takes_token(op);
  if (token) operands += operands.empty() ? "\"t\"" : ", \"t\"";
  const std::string attrs = rewriter.json(at + ".attrs");
  Item item;
  item.name = "sample " + name + "/" + op.text(at + ".name");
  item.json = "{\"kiln\": 1, \"inputs\": [" + given + "], \"constants\": [" + constants + "], \"nodes\": [" +
              (token ? "{\"name\": \"t\", \"op\": \"token\"}, " : "") + "{\"name\": \"y\", \"op\": " + json_text(name) +
              ", \"inputs\": [" + operands + "], \"attrs\": " + attrs +
              "}], \"outputs\": [{\"name\": \"y\", \"value\": \"" + output + "\"}], \"graphs\": {" + rewriter.graphs() +
              "}}";
  item.range = Range{op.f64(at + ".range.0"), op.f64(at + ".range.1"), op.i64(at + ".integer_range.0"),
                     op.i64(at + ".integer_range.1")};
  return item;
}

bool parses(const Context &context, const Item &item) {
  try {
    parse(context, item.json);
  } catch (const Failure &) {
    return false;
  }
  return true;
}

}  // namespace

std::vector<Item> samples_of(const Context &context, kiln_op op, size_t most) {
  const Report report = report_of(kiln_op_describe, context.get(), op);
  std::vector<Item> items;
  if (takes_token(report) && report.count("results") == 1) return items;  // a token alone, which is no output
  for (size_t i = 0; i < report.count("samples") && i < most; ++i) {
    Item item = item_of(report, i, "y");
    if (!parses(context, item)) item = item_of(report, i, "y:0");  // of several results the first
    if (!parses(context, item)) continue;  // one that means something with symbols, or in a graph, alone
    items.push_back(std::move(item));
  }
  return items;
}

std::vector<Item> samples(const Context &context, bool registered, size_t most) {
  std::vector<Item> all;
  for (uint64_t i = 0; i < kiln_op_count(context.get()); ++i) {
    kiln_op op = 0;
    check(kiln_op_at(context.get(), i, &op));
    const Report report = report_of(kiln_op_describe, context.get(), op);
    if ((report.text("family") == "registered") != registered) continue;
    for (Item &item : samples_of(context, op, most)) all.push_back(std::move(item));
  }
  return all;
}

}  // namespace kiln::cli::plugin_check
