#include "runtime/graph/annotations.h"

#include <algorithm>
#include <array>

#include "jit/base/utf8.h"
#include "runtime/graph/rounding.h"

namespace kiln {
namespace {

// Its first two are taken: of an option of a region that stands for one phase of it.
Status check_region(std::string_view region) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  if (std::ranges::all_of(region, fits) && region != "forward" && region != "backward") return {};
  return invalid("annotation 'kiln.region' is '", region,
                 "'; expected letters, digits, '_' and '-', other than forward and backward, or nothing: in no region");
}

Status check_backend(std::string_view backend) {
  return backend.empty() ? invalid("annotation 'kiln.region.backend' is '', expected a backend's name") : Status();
}

Status check_phase(std::string_view phase) {
  if (phase == "backward" || phase == "recompute") return {};
  return invalid("annotation 'kiln.phase' is '", phase, "'; expected 'backward' or 'recompute', or none for forward");
}

Status check_decompose(std::string_view when) {
  if (when == "backend" || when == "keep" || when == "always") return {};
  return invalid("annotation 'kiln.decompose' is '", when, "'; expected 'backend', 'keep' or 'always'");
}

Status check_rounding(std::string_view rounding) {
  Status status = which_of(rounding, rounding_names).status();
  return status.ok() ? Status() : std::move(status).with_prefix("annotation 'kiln.region.rounding' ");
}

struct Definition {
  std::string_view name;
  AttrKind kind;
  Status (*check_text)(std::string_view) = nullptr;
  bool on_inputs = false;  // and on no others; else on op nodes
};

// One line each, in the order of their names.
constexpr std::array definitions = {
    // A piece ends after the node, of a call after all of it; only what takes its place itself inherits it.
    Definition{"kiln.cut", AttrKind::boolean},
    // Whether the node is computed as what its op is made of: as its backend does it, never, or by fallbacks, too.
    Definition{"kiln.decompose", AttrKind::text, check_decompose},
    // A call may use the input's memory as its own: what it holds afterwards is not defined.
    Definition{"kiln.donate", AttrKind::boolean, nullptr, true},
    // Not to be compiled with others, nor with what is around it; of a call: nothing of its graph. Beats a region.
    Definition{"kiln.fallback", AttrKind::boolean},
    // A function of the host's runs the node, under every mode; "": none does. Beats a region.
    Definition{function_annotation, AttrKind::text},
    // Of a graph that was differentiated: what the node is for.
    Definition{"kiln.phase", AttrKind::text, check_phase},
    // The region that a node is marked for; "": none, whatever an outer scope says.
    Definition{"kiln.region", AttrKind::text, check_region},
    // How the region is compiled (runtime/regions/region_options.h); its nodes have one value.
    Definition{"kiln.region.backend", AttrKind::text, check_backend},
    Definition{"kiln.region.fuse", AttrKind::boolean},
    Definition{"kiln.region.rounding", AttrKind::text, check_rounding},
    // The stage of a host's own schedule that the node is of: nothing but a name to cut a part out by.
    Definition{"kiln.stage", AttrKind::text},
};

// Of the options of a registered backend, which the compile knows: any kind, of a region's nodes.
bool is_backend_option(std::string_view name) {
  return name.starts_with(backend_annotations) && name.size() > backend_annotations.size();
}

const Definition *find(std::string_view name) {
  const auto *known = std::ranges::find(definitions, name, &Definition::name);
  return known == definitions.end() ? nullptr : known;
}

bool is_annotation_kind(AttrKind kind) {
  return kind == AttrKind::i64 || kind == AttrKind::f64 || kind == AttrKind::text || kind == AttrKind::dtype ||
         kind == AttrKind::boolean;
}

}  // namespace

Status check_annotation_name(std::string_view name) {
  if (name.empty() || !is_utf8(name)) return invalid("an annotation's key is empty or not UTF-8");
  if (!name.starts_with("kiln.") || find(name) || is_backend_option(name)) return {};
  return error(Code::unknown_name, "annotation '", name, "' is not known; under 'kiln.' there are: ",
               join(definitions, ", ", [](const Definition &d) { return d.name; }), ", ", backend_annotations,
               "OPTION");
}

Status check_annotation(std::string_view name, const AttrValue &value) {
  KILN_TRY(check_annotation_name(name));
  if (!is_annotation_kind(value.kind()))
    return invalid("annotation '", name, "' is ", name_of(value.kind()), "; expected i64, f64, text, dtype or bool");
  const Definition *known = find(name);
  if (!known) return {};
  if (value.kind() != known->kind || value.is_list)
    return error(Code::type_mismatch, "annotation '", name, "' is ", value.is_list ? "a list of " : "",
                 name_of(value.kind()), "; expected ", name_of(known->kind));
  return known->check_text ? known->check_text(value.text_value()) : Status();
}

bool is_for_inputs(std::string_view name) {
  const Definition *known = find(name);
  return known && known->on_inputs;
}

Status check_op_annotations(const AttrMap &annotations) {
  for (const auto &[key, value] : annotations) {
    KILN_TRY(check_annotation(key, value));
    if (is_for_inputs(key)) return invalid("annotation '", key, "' is for inputs, not for op nodes");
  }
  return {};
}

bool unmarks(std::string_view name, const AttrValue &value) {
  if (name == "kiln.region" || name == function_annotation)
    return value.kind() == AttrKind::text && value.text_value().empty();
  if (name == "kiln.decompose") return value.kind() == AttrKind::text && value.text_value() == "backend";
  return (name == "kiln.fallback" || name == "kiln.cut" || name == "kiln.donate") &&
         value.kind() == AttrKind::boolean && !value.boolean();
}

bool may_pass_on(std::string_view name, const AttrMap &from, const AttrMap &to) {
  constexpr std::string_view region = "kiln.region";
  if (!name.starts_with("kiln.region.")) return true;
  const auto own = to.find(region), others = from.find(region);
  return own == to.end() || others == from.end() || own->second == others->second;
}

bool marks_an_end(std::string_view name) { return name == "kiln.cut"; }

// Both maps are sorted, so one walk does.
bool same_annotations(const AttrMap &a, const AttrMap &b) {
  const auto skip = [](AttrMap::const_iterator at, const AttrMap &map) {
    while (at != map.end() && is_for_people(at->first)) ++at;
    return at;
  };
  auto i = skip(a.begin(), a), j = skip(b.begin(), b);
  while (i != a.end() && j != b.end() && *i == *j) i = skip(++i, a), j = skip(++j, b);
  return i == a.end() && j == b.end();
}

}  // namespace kiln
