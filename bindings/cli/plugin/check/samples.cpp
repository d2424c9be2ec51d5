// Samples of ops as graphs: an op's schema tells them as JSON (kiln_op_describe), here they become JSON of graphs.
#include <cstdlib>
#include <optional>

#include "../../json.h"
#include "corpus.h"

namespace kiln::cli::plugin_check {
namespace {

// What lies at a path of a report, as JSON again. Graphs in graphs lie in place there, and by name in a graph's JSON.
class Rewriter {
 public:
  explicit Rewriter(const Report &report) : report_(report) {}

  std::string json(const std::string &path) {
    if (std::optional<std::string> value = scalar(path)) return *std::move(value);
    return is_object(path) ? object(path) : list(path);
  }

  // The members of "graphs", each with what it needs before it.
  const std::string &graphs() const { return graphs_; }

 private:
  bool is_object(const std::string &path) const {
    try {
      return report_.count(path) == 0 ? path.ends_with("attrs") : !report_.key(path, 0).empty();
    } catch (const Failure &) {
      return false;
    }
  }

  // What kind there was last is tried first: lists are long, and each wrong guess costs an error.
  std::optional<std::string> scalar(const std::string &path) {
    const size_t begin = last_kind_;
    for (size_t i = 0; i < 4; ++i) {
      last_kind_ = (begin + i) % 4;
      if (std::optional<std::string> value = scalar_of_kind(path, last_kind_)) return value;
    }
    last_kind_ = 0;
    return std::nullopt;
  }

  std::optional<std::string> scalar_of_kind(const std::string &path, size_t kind) const {
    kiln_text text = {};
    int64_t integer = 0;
    double number = 0;
    uint32_t truth = 0;
    switch (kind) {
      case 0:
        return got(kiln_report_get_text, path, &text) ? std::optional(json_text(view(text))) : std::nullopt;
      case 1:
        if (!got(kiln_report_get_i64, path, &integer)) return std::nullopt;
        return std::abs(integer) >> 53 ? json_text(std::to_string(integer)) : std::to_string(integer);
      case 2:
        if (!got(kiln_report_get_f64, path, &number)) return std::nullopt;
        return json_number(number);
      default:
        if (!got(kiln_report_get_bool, path, &truth)) return std::nullopt;
        return truth ? "true" : "false";
    }
  }

  template <class Function, class T>
  bool got(Function function, const std::string &path, T *out) const {
    kiln_error *error = function(report_.get(), path.data(), path.size(), out);
    kiln_error_destroy(error);
    return error == nullptr;
  }

  std::string list(const std::string &path) {
    std::string text = "[";
    for (size_t i = 0; i < report_.count(path); ++i) text += (i ? ", " : "") + json(path_of(path, i));
    return text + "]";
  }

  std::string object(const std::string &path) {
    bool is_graph = false;
    std::string text;
    for (size_t i = 0; i < report_.count(path); ++i) {
      const std::string key = report_.key(path, i);
      if (key == "kiln") continue;
      is_graph = is_graph || key == "outputs";
      last_kind_ = 0;  // a text of digits may be read as a number, too
      text += (text.empty() ? "" : ", ") + json_text(key) + ": " + json(path + "." + key);
    }
    if (!is_graph) return "{" + text + "}";
    const std::string name = json_text("g" + std::to_string(count_++));
    graphs_ += (graphs_.empty() ? "" : ", ") + name + ": {" + text + "}";
    return name;
  }

  const Report &report_;
  std::string graphs_;
  size_t count_ = 0, last_kind_ = 0;
};

bool takes_token(const Report &op) {
  const size_t args = op.count("args");
  if (args == 0) return false;
  const std::string dtypes = path_of("args", args - 1, "dtypes");
  return op.count(dtypes) == 1 && op.text(path_of(dtypes, 0)) == "token";
}

// With the value that is its output.
Item item_of(const Report &op, size_t sample, const std::string &output) {
  Rewriter rewriter(op);
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
