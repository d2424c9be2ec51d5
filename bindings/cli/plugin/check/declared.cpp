#include "declared.h"

#include <algorithm>
#include <cmath>

#include "../../json.h"
#include "report_json.h"

namespace kiln::cli::plugin_check {
namespace {

std::vector<std::string> texts(const Report &report, const std::string &path) {
  std::vector<std::string> all;
  for (size_t i = 0; i < report.count(path); ++i) all.push_back(report.text(path_of(path, i)));
  return all;
}

// A text, or a list of them; none where there is no such member.
std::vector<std::string> text_or_texts(const Report &report, const std::string &object, const char *member) {
  const std::string path = object + "." + member;
  if (!report.has_member(object, member)) return {};
  const std::string json = json_at(report, path);
  return json.starts_with('[') ? texts(report, path) : std::vector<std::string>{report.text(path)};
}

bool truth(const Report &report, const std::string &object, const char *member) {
  return report.has_member(object, member) && report.boolean(object + "." + member);
}

void read_shape(const Report &report, const std::string &path, Declared::Capture &capture) {
  capture.sizes.emplace();
  for (size_t i = 0; i < report.count(path); ++i) {
    const std::string size = report.shown(path_of(path, i));
    if (size == "...")
      capture.leading = true;
    else if (!size.empty() && std::ranges::all_of(size, [](char c) { return c >= '0' && c <= '9'; }))
      capture.sizes->push_back({"", std::stoll(size)});
    else
      capture.sizes->push_back({size == "?" ? "" : size, 0});
  }
}

Declared::Capture read_capture(const Report &report, const std::string &path) {
  Declared::Capture capture;
  capture.name = report.text(path + ".name");
  if (report.has_member(path, "from")) capture.from = report.text(path + ".from");
  capture.dtypes = text_or_texts(report, path, "dtype");
  if (report.has_member(path, "shape")) read_shape(report, path + ".shape", capture);
  if (report.has_member(path, "number")) {
    const std::string number = json_at(report, path + ".number");
    capture.number = number == "\"any\"" ? "0.5" : number;
  }
  capture.optional = truth(report, path, "optional");
  return capture;
}

// What an attribute may be of which the pattern asks nothing.
std::vector<std::string> some_values(const std::string &kind, bool is_list) {
  static const std::map<std::string, std::vector<std::string>> values = {{"i64", {"0", "1", "-1", "2"}},
                                                                         {"dim", {"4", "1", "2"}},
                                                                         {"f64", {"0.5", "2.0"}},
                                                                         {"bool", {"true", "false"}},
                                                                         {"dtype", {"\"f32\"", "\"i32\""}}};
  const auto found = values.find(kind);
  std::vector<std::string> all;
  if (found == values.end()) return all;
  for (const std::string &value : found->second) all.push_back(is_list ? "[" + value + "]" : value);
  if (is_list) all.push_back("[" + found->second[0] + ", " + found->second[1] + "]");
  return all;
}

// Numbers in an interval whose ends may be infinite, the middle first.
std::vector<std::string> between(const Report &report, const std::string &path, bool is_integer) {
  const auto end = [&](const char *member, double absent) {
    return report.has_member(path, member) ? report.f64(path + "." + member) : absent;
  };
  double least = end("least", -INFINITY), most = end("most", INFINITY);
  if (std::isinf(least)) least = std::isinf(most) ? 0 : most - 1;
  if (std::isinf(most)) most = least + 1;
  if (is_integer) least = std::ceil(least), most = std::floor(most);
  const double middle = is_integer ? std::floor((least + most) / 2) : (least + most) / 2;
  std::vector<std::string> all;
  for (const double value : {middle, least, most})
    all.push_back(is_integer ? std::to_string(static_cast<int64_t>(value)) : json_number(value));
  return all;
}

// Axes from either side, of one value or of a list: those that are said, and of each rank the same from the front.
std::vector<std::string> axes(const Report &report, const std::string &path, bool is_list) {
  std::vector<std::string> all;
  for (int64_t rank = 0; rank <= 4; ++rank) {
    std::string text;
    for (size_t i = 0; i < report.count(path); ++i) {
      const int64_t axis = report.i64(path_of(path, i));
      text += (i ? ", " : "") + std::to_string(axis < 0 ? axis + rank : axis);
    }
    all.push_back(is_list ? "[" + text + "]" : text);
  }
  return all;
}

Declared::Attr read_attr(const Report &report, const std::string &path, const std::string &name, const Report &op) {
  Declared::Attr attr{.name = name, .values = {}};
  std::string kind;
  bool is_list = false, is_required = false;
  for (size_t i = 0; i < op.count("attrs"); ++i) {
    const std::string known = path_of("attrs", i);
    if (op.text(known + ".name") != name) continue;
    kind = op.text(known + ".kind");
    is_list = op.boolean(known + ".list");
    is_required = op.boolean(known + ".required");
  }
  const std::string json = json_at(report, path);
  const auto says = [&](const char *member) { return json.starts_with('{') && report.has_member(path, member); };
  if (says("any") || (json == "\"any\"" && kind != "text")) {
    if (!is_required) attr.values.emplace_back();
    for (std::string &value : some_values(kind, is_list)) attr.values.push_back(std::move(value));
  } else if (says("among")) {
    for (size_t i = 0; i < report.count(path + ".among"); ++i)
      attr.values.push_back(json_at(report, path_of(path + ".among", i)));
  } else if (says("axes")) {
    attr.values = axes(report, path + ".axes", is_list);
  } else if (says("least") || says("most")) {
    attr.values = between(report, path, kind == "i64");
  } else {
    attr.values.push_back(json);
  }
  return attr;
}

Declared::Node read_node(const Context &context, const Report &report, const std::string &path) {
  Declared::Node node;
  node.name = report.text(path + ".name");
  node.ops = text_or_texts(report, path, "op");
  node.operands = texts(report, path + ".inputs");
  node.optional = truth(report, path, "optional");
  node.keeps = report.has_member(path, "uses") && report.text(path + ".uses") == "anywhere";
  kiln_op number = 0;
  check(kiln_op_find(context.get(), node.ops[0].data(), node.ops[0].size(), &number));
  const Report op = report_of(kiln_op_schema, context.get(), number);
  const std::vector<std::string> flags = texts(op, "flags");
  node.commutes = node.operands.size() == 2 && std::ranges::find(flags, "commutes") != flags.end();
  node.has_results = op.count("results") > 1;
  if (report.has_member(path, "attrs"))
    for (size_t i = 0; i < report.count(path + ".attrs"); ++i) {
      const std::string name = report.key(path + ".attrs", i);
      node.attrs.push_back(read_attr(report, path + ".attrs." + name, name, op));
    }
  return node;
}

Declared read_pattern(const Context &context, const Report &report, const std::string &path) {
  Declared pattern;
  pattern.name = report.text(path + ".pattern");
  if (report.has_member(path, "captures"))
    for (size_t i = 0; i < report.count(path + ".captures"); ++i)
      pattern.captures.push_back(read_capture(report, path_of(path + ".captures", i)));
  for (size_t i = 0; i < report.count(path + ".nodes"); ++i)
    pattern.nodes.push_back(read_node(context, report, path_of(path + ".nodes", i)));
  pattern.outputs = texts(report, path + ".outputs");
  size_t blanks = 0;  // each "_" is a value of its own
  for (Declared::Node &node : pattern.nodes)
    for (std::string &operand : node.operands)
      if (operand == "_") {
        operand = "blank_" + std::to_string(blanks++);
        pattern.captures.push_back({.name = operand, .from = "", .number = "", .dtypes = {}, .sizes = {}});
      }
  return pattern;
}

}  // namespace

std::vector<Declared> declared_patterns(const Context &context, const Registered &registered) {
  std::vector<Declared> all;
  const Report &report = registered.report;
  for (size_t i = 0; i < report.count("passes"); ++i) {
    const std::string pass = path_of("passes", i);
    if (!report.has_member(pass, "patterns")) continue;
    for (size_t k = 0; k < report.count(pass + ".patterns"); ++k) {
      Declared &pattern = all.emplace_back(read_pattern(context, report, path_of(pass + ".patterns", k)));
      pattern.pass = report.text(pass + ".name");
      pattern.number = k;
    }
  }
  return all;
}

}  // namespace kiln::cli::plugin_check
