#include "regions.h"

namespace kiln::cli {
namespace {

// Of the whole graph. Of a graph that is cut into pieces each has its own.
constexpr std::string_view whole = "compile.partition";
constexpr std::string_view pieces = "compile.pieces";

std::string counted(int64_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

std::string list(const Report &report, const std::string &path) {
  std::string text;
  for (size_t i = 0; i < report.count(path); ++i) text += (i ? ", " : "") + report.text(path_of(path, i));
  return text;
}

std::string at(std::string_view root, std::string_view member) { return std::string(root) + "." + std::string(member); }

std::string part_line(const Report &report, std::string_view root, size_t number) {
  const auto path = [&](std::string_view member) { return path_of(at(root, "regions"), number, member); };
  const std::string name = report.text(path("name"));
  std::string line = "region " + std::to_string(number) + (name.empty() ? "" : " '" + name + "'");
  const std::string backend = report.text(path("backend"));
  if (backend != report.text("backend")) line += " on " + backend;
  if (report.has(path("options"))) line += " (" + list(report, path("options")) + ")";
  line += ": " + counted(static_cast<int64_t>(report.count(path("nodes"))), "node") + ", " +
          counted(static_cast<int64_t>(report.count(path("inputs"))), "input") + ", " +
          counted(static_cast<int64_t>(report.count(path("outputs"))), "output") + ", " +
          counted(report.i64(path("kernels")), "kernel");
  if (report.has(path("same_as"))) line += ", the same as region " + std::to_string(report.i64(path("same_as")));
  return line + ": " + list(report, path("nodes")) + "\n";
}

std::string split_line(const Report &report, std::string_view root, size_t number) {
  const auto text = [&](std::string_view member) { return report.text(path_of(at(root, "splits"), number, member)); };
  const std::string why = text("why"), with = "'" + text("with") + "'";
  return "split '" + text("region") + "' before '" + text("node") + "': " +
         (why == "unmarked"      ? with + " lies between, in no region"
          : why == "name"        ? with + " lies between, in another region"
          : why == "unsupported" ? with + " lies between, which the backend does not take"
          : why == "effect"      ? with + " lies between, which orders effects"
          : why == "call"        ? with + " is a call, which is a region by itself"
          : why == "backend"     ? with + " is another backend's"
          : why == "options"     ? "it is compiled with other options than " + with
                                 : "together with that of " + with + " it would close a cycle with other regions") +
         "\n";
}

std::string declined_line(const Report &report, std::string_view root, size_t number) {
  const auto text = [&](std::string_view member) { return report.text(path_of(at(root, "declined"), number, member)); };
  return "backend " + text("backend") + " does not take '" + text("node") + "' [" + text("op") +
         "]: " + text("reason") + "\n";
}

std::string fallback_line(const Report &report, std::string_view root, size_t number) {
  const auto text = [&](std::string_view member) {
    return report.text(path_of(at(root, "fallbacks"), number, member));
  };
  const std::string by = text("by"), why = text("why");
  const bool is_function = by != "kernel" && by != "reference" && by != "steps";  // of its op or of the host
  const bool refused = report.has(path_of(at(root, "fallbacks"), number, "reason"));
  return "fallback '" + text("node") + "' [" + text("op") + "]: " +
         (by == "kernel"      ? "a kernel of its own"
          : by == "reference" ? "its reference kernel"
          : by == "function"  ? "a function of its op"
          : by == "steps"     ? "steps of the plan"
                              : "function '" + by + "'") +
         (why == "marked"        ? ", marked"
          : why == "mode"        ? ", by the mode"
          : why == "unsupported" ? ""
          : why == "effect"      ? ""
                                 : ", in no region") +
         (is_function ? ""
          : refused   ? ", for the backend does not take it: " + text("reason")
                      : "") +
         "\n";
}

std::string quoted(const std::string &text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// Lines from the nodes that make `inputs` to node `to`, or as far as the border of the cluster that it is in.
std::string edges(const Report &report, const std::string &inputs, const std::string &to,
                  const std::string &cluster = {}) {
  const std::string ends = cluster.empty() ? "" : " [lhead=" + cluster + "]";
  std::string text;
  for (size_t i = 0; i < report.count(inputs); ++i) {
    const std::string value = report.text(path_of(inputs, i));
    text += "  " + quoted(value.substr(0, value.find(':'))) + " -> " + quoted(to) + ends + ";\n";
  }
  return text;
}

std::string partition_lines(const Report &description, std::string_view root) {
  std::string text = "mode " + description.text(at(root, "mode")) + "\n";
  for (size_t i = 0; i < description.count(at(root, "regions")); ++i) text += part_line(description, root, i);
  for (size_t i = 0; i < description.count(at(root, "splits")); ++i) text += split_line(description, root, i);
  for (size_t i = 0; i < description.count(at(root, "fallbacks")); ++i) text += fallback_line(description, root, i);
  if (const std::string counts = at(root, "fallback_counts"); description.count(counts) > 0) {
    text += "fallbacks by op:";
    for (size_t i = 0; i < description.count(counts); ++i) {
      const std::string op = description.key(counts, i);
      text += (i ? ", " : " ") + op + " " + std::to_string(description.i64(at(counts, op)));
    }
    text += "\n";
  }
  for (size_t i = 0; i < description.count(at(root, "declined")); ++i) text += declined_line(description, root, i);
  for (size_t i = 0; i < description.count(at(root, "warnings")); ++i)
    text += "warning: " + description.text(path_of(at(root, "warnings"), i)) + "\n";
  return text;
}

std::string piece_lines(const Report &description, size_t number) {
  const auto path = [&](std::string_view member) { return path_of(pieces, number, member); };
  std::string text = "piece " + std::to_string(number) + ": " +
                     counted(static_cast<int64_t>(description.count(path("nodes"))), "node");
  if (description.has(path("same_as")))
    text += ", the same as piece " + std::to_string(description.i64(path("same_as")));
  text += ": " + list(description, path("nodes")) + "\n";
  if (const std::string root = path("made.partition"); description.has(root))
    text += partition_lines(description, root);
  return text;
}

}  // namespace

std::string regions_dot(const Report &description) {
  std::string text = "digraph regions {\n  compound=true;\n  node [shape=box, fontname=\"monospace\"];\n", arrows;
  const bool has_regions = description.has(whole), has_pieces = description.has(pieces);
  const std::string clusters = has_regions ? at(whole, "regions") : std::string(pieces);
  for (size_t i = 0; (has_regions || has_pieces) && i < description.count(clusters); ++i) {
    const auto path = [&](std::string_view member) { return path_of(clusters, i, member); };
    const std::string cluster = "cluster_" + std::to_string(i);
    const std::string label = has_regions ? description.text(path("name")) : "piece " + std::to_string(i);
    text += "  subgraph " + cluster + " {\n    label=" + quoted(label) + ";\n";
    for (size_t k = 0; k < description.count(path("nodes")); ++k)
      text += "    " + quoted(description.text(path_of(path("nodes"), k))) + ";\n";
    text += "  }\n";
    arrows += edges(description, path("inputs"), description.text(path_of(path("nodes"), 0)), cluster);
  }
  for (size_t i = 0; has_regions && i < description.count(at(whole, "fallbacks")); ++i) {
    const auto path = [&](std::string_view member) { return path_of(at(whole, "fallbacks"), i, member); };
    const std::string node = description.text(path("node"));
    text += "  " + quoted(node) + " [style=dashed, label=" + quoted(node + " [" + description.text(path("op")) + "]") +
            "];\n";
    arrows += edges(description, path("inputs"), node);
  }
  return text + arrows + "}\n";
}

std::string regions_text(const Report &description) {
  if (description.has(whole)) return partition_lines(description, whole);
  if (description.text("backend") == "reference")
    return "backend reference: the graph is run as it is given, node by node; nothing is cut or compiled\n";
  if (!description.has(pieces))
    return "mode all: the whole graph is compiled together, whatever nodes are marked for\n";
  std::string text;
  for (size_t i = 0; i < description.count(pieces); ++i) text += piece_lines(description, i);
  return text;
}

}  // namespace kiln::cli
