#include "runtime/regions/region_options.h"

#include <algorithm>
#include <set>

#include "runtime/backends/backend.h"
#include "runtime/ops/nested.h"

namespace kiln {
namespace {

// One row an option; the annotations of the same names stand in runtime/graph/annotations.cpp.
struct Row {
  std::string_view name;
  AttrKind kind;
  Status (*set)(RegionOptions &, const AttrValue &);
  AttrValue (*get)(const RegionOptions &);
};
Status set_rounding(RegionOptions &out, const AttrValue &value) {
  KILN_ASSIGN(const size_t which, which_of(value.text_value(), rounding_names));
  out.rounding = static_cast<Rounding>(which);
  return {};
}
// One of Kiln's own is the compile's: which it is, is checked where the compile begins.
Status set_backend(RegionOptions &out, const AttrValue &value) {
  out.backend = find_backend(value.text_value()).ok() ? "" : value.text_value();
  return {};
}
constexpr std::array rows = {
    Row{"backend", AttrKind::text, set_backend,
        [](const RegionOptions &options) { return AttrValue(options.backend); }},
    Row{"fuse", AttrKind::boolean,
        [](RegionOptions &out, const AttrValue &value) {
          out.fuse = value.boolean();
          return Status();
        },
        [](const RegionOptions &options) { return AttrValue(options.fuse); }},
    Row{"rounding", AttrKind::text, set_rounding,
        [](const RegionOptions &options) { return AttrValue(std::string(name_of(options.rounding))); }},
};

constexpr std::string_view of_regions = "region.";
constexpr std::string_view phases[] = {"forward", "backward"};

std::string_view phase_of(bool backward) { return phases[backward]; }
bool is_backward(const Node &node) { return node.annotations.contains("kiln.phase"); }

// "region.NAME.OPTION", "region.NAME.PHASE.OPTION": a name has no dots.
struct Parsed {
  std::string_view region, option, phase = {};
};
Parsed parse(std::string_view name) {
  name.remove_prefix(of_regions.size());
  const std::string_view region = name.substr(0, name.find('.'));
  name.remove_prefix(std::min(name.size(), region.size() + 1));
  for (const std::string_view phase : phases)
    if (name.starts_with(phase) && name.substr(phase.size()).starts_with('.'))
      return {region, name.substr(phase.size() + 1), phase};
  return {region, name};
}

// The texts that nodes have as that annotation.
using Names = std::set<std::string, std::less<>>;
void collect(std::string_view annotation, const Graph &graph, std::set<const Graph *> &seen, Names &names) {
  if (!seen.insert(&graph).second) return;
  for (const Node &node : graph.nodes()) {
    if (node.kind != Node::Kind::op) continue;
    const auto mark = node.annotations.find(annotation);
    if (mark != node.annotations.end()) names.insert(mark->second.text_value());
    for (const auto &[name, nested] : nested_graphs(node)) collect(annotation, *nested, seen, names);
  }
}

}  // namespace

std::vector<std::string> differences(const RegionOptions &options, const RegionOptions &base) {
  std::vector<std::string> texts;
  for (const Row &row : rows) {
    const AttrValue value = row.get(options);
    if (value == row.get(base) || row.name == "backend") continue;
    texts.push_back(str_cat(row.name, "=", value.kind() == AttrKind::text ? value.text_value() : value.text()));
  }
  return texts;
}

bool is_of_regions(std::string_view option) { return std::ranges::find(rows, option, &Row::name) != rows.end(); }

std::string_view phase_named_by(std::string_view option) { return parse(option).phase; }

Status check_region_option(std::string_view name, const AttrValue &value) {
  const Parsed parsed = parse(name);
  const auto *row = std::ranges::find(rows, parsed.option, &Row::name);
  if (parsed.region.empty() || row == rows.end())
    return error(Code::unknown_name, "compile has no option '", name,
                 "'; of a region there are region.NAME.OPTION and region.NAME.PHASE.OPTION, of the phases forward and "
                 "backward and the options ",
                 join(rows, ", ", [](const Row &r) { return r.name; }));
  if (value.kind() != row->kind || value.is_list)
    return error(Code::type_mismatch, "option '", name, "' is of kind ", kiln::name_of(row->kind), ", not ",
                 kiln::name_of(value.kind()), value.is_list ? "[]" : "");
  RegionOptions unused;
  Status status = row->set(unused, value);
  return status.ok() ? Status() : std::move(status).with_prefix(str_cat("option '", name, "' "));
}

bool has_regions(const Graph &graph) {
  std::set<const Graph *> seen;
  Names names;
  collect("kiln.region", graph, seen, names);
  return !names.empty();
}

std::set<std::string> backends_named(const Graph &graph, const NamedRegionOptions &named) {
  std::set<const Graph *> seen;
  Names names;
  collect("kiln.region.backend", graph, seen, names);
  for (const auto &[name, value] : named)
    if (parse(name).option == "backend") names.insert(value.text_value());
  return {names.begin(), names.end()};
}

Status check_regions_named(const Graph &before, const Graph &after, const NamedRegionOptions &named) {
  if (named.empty()) return {};
  std::set<const Graph *> seen;
  Names names;
  for (const Graph *graph : {&before, &after}) collect("kiln.region", *graph, seen, names);
  for (const auto &[name, value] : named) {
    const std::string_view region = parse(name).region;
    if (names.contains(region)) continue;
    const std::string there = join(names, ", ", [](const std::string &known) { return str_cat("'", known, "'"); });
    return error(Code::unknown_name, "option '", name, "': no node is marked for region '", region, "'; ",
                 there.empty() ? "none is marked for any" : str_cat("there are ", there));
  }
  return {};
}

Result<RegionChoices> RegionChoices::of(const Graph &graph, const Modes &modes, const RegionOptions &base,
                                        const NamedRegionOptions &named) {
  RegionChoices choices;
  choices.base_ = base;
  std::map<std::pair<Place, std::string_view>, const Node *> marked;  // the first node of a place that says the option
  for (const Node &node : graph.nodes()) {
    if (node.kind != Node::Kind::op) continue;
    const std::optional<std::string> region = region_of(node, modes);
    if (!region || region->empty()) continue;
    const Place place(*region, is_backward(node));
    RegionOptions &options = choices.places_.try_emplace(place, base).first->second;
    for (const Row &row : rows) {
      const auto of_compile = [&](std::string_view between) {
        return named.find(str_cat(of_regions, *region, between, ".", row.name));
      };
      auto said = of_compile(str_cat(".", phase_of(place.second)));
      if (said == named.end()) said = of_compile("");
      if (said != named.end()) {
        KILN_TRY(row.set(options, said->second));
        continue;
      }
      const std::string annotation = str_cat("kiln.region.", row.name);
      const auto own = node.annotations.find(annotation);
      if (own == node.annotations.end()) continue;
      const auto [first, is_first] = marked.try_emplace({place, row.name}, &node);
      const AttrValue &before = first->second->annotations.find(annotation)->second;
      if (before != own->second)
        return invalid("region '", *region, "': annotation '", annotation, "' is ", before.text(), " on node '",
                       first->second->name, "' and ", own->second.text(), " on node '", node.name,
                       "'; the nodes of a region and phase have one value");
      KILN_TRY(row.set(options, own->second));
    }
  }
  return choices;
}

const RegionOptions &RegionChoices::at(const Node &node, const std::string &name) const {
  const auto found = places_.find({name, is_backward(node)});
  return found == places_.end() ? base_ : found->second;
}

}  // namespace kiln
