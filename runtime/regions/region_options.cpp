#include "runtime/regions/region_options.h"

#include <algorithm>
#include <set>

#include "runtime/backends/backend.h"
#include "runtime/graph/annotations.h"
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

constexpr std::string_view of_regions = "region.", of_backend = "backend.";
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

bool names_backend_option(std::string_view option) {
  return option.starts_with(of_backend) && option.size() > of_backend.size();
}

// The texts that nodes have as that annotation, and the first node of each.
using Names = std::map<std::string, std::string, std::less<>>;
void collect(std::string_view annotation, const Graph &graph, std::set<const Graph *> &seen, Names &names) {
  if (!seen.insert(&graph).second) return;
  for (const Node &node : graph.nodes()) {
    if (node.kind != Node::Kind::op) continue;
    const auto mark = node.annotations.find(annotation);
    if (mark != node.annotations.end()) names.try_emplace(mark->second.text_value(), node.name);
    for (const auto &[name, nested] : nested_graphs(node)) collect(annotation, *nested, seen, names);
  }
}

}  // namespace

std::string RegionOptions::backend_text() const {
  std::string text = str_cat(backend, "\n", kiln::name_of(rounding));
  for (const auto &[name, value] : backend_options)
    str_append(text, str_cat("\n", name, "=", kiln::name_of(value.kind()), value.is_list ? "[] " : " ", value.text()));
  return text;
}

std::strong_ordering RegionOptions::operator<=>(const RegionOptions &other) const {
  const auto shorter = std::tie(fuse, rounding, backend) <=> std::tie(other.fuse, other.rounding, other.backend);
  if (shorter != 0 || (backend_options.empty() && other.backend_options.empty())) return shorter;
  return backend_text() <=> other.backend_text();
}

std::vector<std::string> differences(const RegionOptions &options, const RegionOptions &base) {
  std::vector<std::string> texts;
  for (const Row &row : rows) {
    const AttrValue value = row.get(options);
    if (value == row.get(base) || row.name == "backend") continue;
    texts.push_back(str_cat(row.name, "=", value.kind() == AttrKind::text ? value.text_value() : value.text()));
  }
  for (const auto &[name, value] : options.backend_options)
    texts.push_back(str_cat(of_backend, name, "=", value.text()));
  return texts;
}

bool is_of_regions(std::string_view option) { return std::ranges::find(rows, option, &Row::name) != rows.end(); }

std::string_view phase_named_by(std::string_view option) { return parse(option).phase; }

Status check_region_option(std::string_view name, const AttrValue &value) {
  const Parsed parsed = parse(name);
  if (!parsed.region.empty() && names_backend_option(parsed.option)) return {};  // the backend tells, once it is known
  const auto *row = std::ranges::find(rows, parsed.option, &Row::name);
  if (parsed.region.empty() || row == rows.end())
    return error(Code::unknown_name, "compile has no option '", name,
                 "'; of a region there are region.NAME.OPTION and region.NAME.PHASE.OPTION, of the phases forward and "
                 "backward and the options ",
                 join(rows, ", ", [](const Row &r) { return r.name; }), ", and backend.NAME of a registered backend's");
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

std::map<std::string, std::string> backends_named(const Graph &graph, const NamedRegionOptions &named) {
  std::set<const Graph *> seen;
  Names nodes;
  collect("kiln.region.backend", graph, seen, nodes);
  std::map<std::string, std::string> names;
  for (const auto &[name, node] : nodes) names[name] = str_cat("node '", node, "' [annotation 'kiln.region.backend']");
  for (const auto &[name, value] : named)
    if (parse(name).option == "backend") names[value.text_value()] = str_cat("option '", name, "'");
  return names;
}

Status check_regions_named(const Graph &before, const Graph &after, const NamedRegionOptions &named) {
  if (named.empty()) return {};
  std::set<const Graph *> seen;
  Names names;
  for (const Graph *graph : {&before, &after}) collect("kiln.region", *graph, seen, names);
  for (const auto &[name, value] : named) {
    const std::string_view region = parse(name).region;
    if (names.contains(region)) continue;
    const std::string there = join(names, ", ", [](const auto &known) { return str_cat("'", known.first, "'"); });
    return error(Code::unknown_name, "option '", name, "': no node is marked for region '", region, "'; ",
                 there.empty() ? "none is marked for any" : str_cat("there are ", there));
  }
  return {};
}

namespace {

// What the compile says of an option of a region's nodes of that phase, or null.
const AttrValue *said(const NamedRegionOptions &named, const std::string &region, bool backward,
                      std::string_view option) {
  if (named.empty()) return nullptr;
  for (const std::string &phase : {str_cat(".", phase_of(backward)), std::string()})
    if (const auto at = named.find(str_cat(of_regions, region, phase, ".", option)); at != named.end())
      return &at->second;
  return nullptr;
}

}  // namespace

Result<RegionChoices> RegionChoices::of(const Graph &graph, const Modes &modes, const RegionOptions &base,
                                        const NamedRegionOptions &named) {
  RegionChoices choices;
  choices.base_ = base;
  std::map<std::pair<Place, std::string_view>, const Node *> marked;  // the first node of a place with the annotation
  for (const Node &node : graph.nodes()) {
    if (node.kind != Node::Kind::op) continue;
    const std::optional<std::string> region = region_of(node, modes);
    if (!region || region->empty()) continue;
    const Place place(*region, is_backward(node));
    RegionOptions &options = choices.places_.try_emplace(place, base).first->second;
    const auto check_same = [&](const std::string &annotation, const AttrValue &value) -> Status {
      const Node &first = *marked.try_emplace({place, annotation}, &node).first->second;
      const AttrValue &before = first.annotations.find(annotation)->second;
      if (before == value) return {};
      return invalid("region '", *region, "': annotation '", annotation, "' is ", before.text(), " on node '",
                     first.name, "' and ", value.text(), " on node '", node.name,
                     "'; the nodes of a region and phase have one value");
    };
    for (const Row &row : rows) {
      if (const AttrValue *value = said(named, *region, place.second, row.name)) {
        KILN_TRY(row.set(options, *value));
        continue;
      }
      const auto own = node.annotations.find(str_cat("kiln.region.", row.name));
      if (own == node.annotations.end()) continue;
      KILN_TRY(check_same(own->first, own->second));
      KILN_TRY(row.set(options, own->second));
    }
    for (const auto &[annotation, value] : node.annotations) {
      if (!annotation.starts_with(backend_annotations)) continue;
      const std::string option = annotation.substr(backend_annotations.size());
      if (said(named, *region, place.second, str_cat(of_backend, option))) continue;
      KILN_TRY(check_same(annotation, value));
      options.backend_options.insert_or_assign(option, value);
    }
  }
  for (auto &[place, options] : choices.places_)
    for (const auto &[name, unused] : named) {
      const Parsed parsed = parse(name);
      if (parsed.region != place.first || !names_backend_option(parsed.option)) continue;
      if (const AttrValue *value = said(named, place.first, place.second, parsed.option))
        options.backend_options.insert_or_assign(std::string(parsed.option.substr(of_backend.size())), *value);
    }
  return choices;
}

Status RegionChoices::check(const ChosenBackends &chosen) const {
  for (const auto &[place, options] : places_)
    for (const auto &[name, value] : options.backend_options) {
      const std::string what = str_cat("region '", place.first, "': option '", of_backend, name, "'");
      const auto backend = chosen.find(options.backend);
      if (backend == chosen.end())
        return invalid(what, " is given, and no registered backend is chosen for the region");
      KILN_TRY(check_option(*backend->second.backend, what, name, value));
    }
  return {};
}

const RegionOptions &RegionChoices::at(const Node &node, const std::string &name) const {
  const auto found = places_.find({name, is_backward(node)});
  return found == places_.end() ? base_ : found->second;
}

}  // namespace kiln
