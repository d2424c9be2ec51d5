#include "runtime/compile_options.h"

#include <algorithm>
#include <array>

#include "jit/base/json_writer.h"
#include "runtime/graph/json.h"
#include "runtime/graph/json_values.h"

namespace kiln {
namespace {

// `names` are those of the enumerators, in their order.
template <class Enum>
Status choose(const AttrValue &value, std::span<const std::string_view> names, Enum &out) {
  KILN_ASSIGN(const size_t which, which_of(value.text_value(), names));
  out = static_cast<Enum>(which);
  return {};
}

}  // namespace

AttrValue to_attr(Rounding rounding) { return std::string(name_of(rounding)); }
Status from_attr(const AttrValue &value, Rounding &out) { return choose(value, rounding_names, out); }

AttrValue to_attr(Mode mode) { return std::string(name_of(mode)); }
Status from_attr(const AttrValue &value, Mode &out) { return choose(value, mode_names, out); }
AttrValue to_attr(const std::optional<Mode> &mode) { return mode ? to_attr(*mode) : AttrValue(std::string()); }
Status from_attr(const AttrValue &value, std::optional<Mode> &out) {
  if (!value.text_value().empty()) return from_attr(value, out.emplace());
  out.reset();
  return {};
}

namespace {

constexpr std::array<std::string_view, 3> when_names = {"ahead", "background", "lazy"};

}  // namespace

AttrValue to_attr(SpecializeWhen when) { return std::string(when_names[static_cast<size_t>(when)]); }
Status from_attr(const AttrValue &value, SpecializeWhen &out) { return choose(value, when_names, out); }

AttrValue to_attr(Fallback fallback) { return std::string(fallback_names[static_cast<size_t>(fallback)]); }
Status from_attr(const AttrValue &value, Fallback &out) { return choose(value, fallback_names, out); }

namespace {

constexpr std::string_view in_target = "the component 'target' has what comes of it";
constexpr std::string_view in_passes = "each pass that runs late is a component";
constexpr std::string_view of_lookup = "it says how to look up, not what to make";

using O = CompileOptions;
const std::array compile_rows = {
    option_row<&O::backend>("backend", "it is a component of its own",
                            "what runs the graph: cpu, cuda, reference, or a registered one by its name, "
                            "before cpu"),
    option_row<&O::cpu>("cpu", in_target,
                        "of cpu and reference: the processor to make code for: native (all that this machine has), "
                        "x86-64, v3, v4, then +FEATURE and -FEATURE"),
    option_row<&O::arch>("arch", in_target,
                         "of cuda: the GPU to make code for: native (the one that is there), sm_80, sm_90, ..."),
    option_row<&O::code>("code", "without code the cache is not used",
                         "false: kernels are made, but not compiled; the executable can be looked at, not called"),
    option_row<&O::use_cache>("cache", of_lookup, "whether to use the context's cache"),
    option_row<&O::strict>("strict", of_lookup,
                           "a cache that is off, or that is bypassed because of a pass, is an error"),
    option_row<&O::require_hit>("require_hit", of_lookup, "all but a hit is an error, NOT_CACHED, with the report"),
    option_row<&O::verify>("verify", of_lookup,
                           "a hit is made again, and is an error where a pass, or what kernels are made of it, gives "
                           "something else: the pass is named"),
    option_row<&O::passes>("passes", in_passes,
                           "exact names of the registered passes to run; not given: all; an empty list: none"),
    option_row<&O::disable_passes>("disable_passes", in_passes,
                                   "exact names of passes to leave out, built-in ones, too"),
    option_row<&O::fuse>("fuse", "", "whether ops may share kernels"),
    option_row<&O::mode>("mode", "",
                         "which nodes are compiled together: all, whatever they are marked for; marked: those that are "
                         "marked for a region, by region; except_fallback: all but those that are marked to fall back; "
                         "none"),
    option_row<&O::mode_forward>("mode.forward", "", "the mode of nodes of the forward pass; empty: as mode says"),
    option_row<&O::mode_backward>("mode.backward", "",
                                  "the mode of nodes whose phase is backward or recompute; empty: as mode says"),
    option_row<&O::fallback>("fallback", "",
                             "what runs a node that no region has: kernel, one of its own; reference, its reference "
                             "kernel, which is slow; error: a node that should be in a region and cannot is an error"),
    option_row<&O::split_at>(
        "split_at", "",
        "names of ops: a piece of the graph, which is looked up and compiled by itself, ends after "
        "each of their nodes"),
    option_row<&O::rounding>(
        "rounding", "",
        "strict: each 16-bit value is rounded where its op ends, and sums have one order, however "
        "the graph is cut, fused and run; relaxed: values that only ops read may stay f32, sums are "
        "as it is fastest, and on cpu convolutions of floats by windows of 3 by 3 may be products of "
        "transformed tiles, which take more memory for weights and have larger errors (docs/accuracy.md)"),
    option_row<&O::algebra>("algebra", "",
                            "whether the pass `algebra` runs, which makes fewer and cheaper operations of arithmetic "
                            "with constants, in f32 and f64: results are rounded otherwise"),
    option_row<&O::specialize>("specialize", "each entry has a key of its own",
                               "sizes of symbols that get a program of their own beside the one for all sizes, as "
                               "batch=1,length=128, each text an entry; a call picks it by the shapes of its inputs"),
    option_row<&O::specialize_when>(
        "specialize_when", "it says when to make entries, not what",
        "when entries are made: ahead, by the compile; background, after it; lazy, in the background when a run "
        "first meets the sizes, which goes on with the program for all sizes"),
    option_row<&O::compile_threads>("compile_threads", "it says how fast to compile",
                                    "threads that compile kernels; 0: one per usable core"),
    option_row<&O::dump>("dump", "with it the cache is not asked for the graph",
                         "a folder, in which the compile makes one with what each pass made of the graph: as text, "
                         "JSON and DOT, and as the difference to the graph before"),
    option_row<&O::report_html>("report_html", "with it the cache is not asked for the graph",
                                "a file that becomes a page which shows the whole compile, and how a lookup ends now"),
};

}  // namespace

std::span<const OptionRow<CompileOptions>> compile_option_rows() { return compile_rows; }

std::string keyed_text(const CompileOptions &options) {
  std::string text;
  for (const auto &row : compile_rows)
    if (row.unkeyed.empty())
      str_append(text, str_cat(text.empty() ? "" : ", ", row.name, "=", row.get(options).text()));
  for (const auto *named : {&options.of_regions, &options.of_backends})
    for (const auto &[name, value] : *named) str_append(text, str_cat(", ", name, "=", value.text()));
  return text;
}

std::string to_json(const CompileOptions &options) {
  static const CompileOptions defaults;
  JsonWriter json;
  json.begin_object();
  for (const auto &row : compile_rows) {
    const bool is_made = row.unkeyed.empty() || (row.name == "backend" && !options.registered_backend().empty());
    if (const AttrValue value = row.get(options); is_made && !(value == row.get(defaults)))
      json.key(row.name).raw(write_json(value));
  }
  for (const auto *named : {&options.of_regions, &options.of_backends})
    for (const auto &[name, value] : *named) {
      json.key(name).begin_object().member("kind", name_of(value.kind())).member("list", value.is_list);
      json.key("value").raw(write_json(value)).end_object();
    }
  return json.end_object().take();
}

namespace {

Status read_named(const json::View &option, CompileOptions &out) {
  KILN_ASSIGN(const json::View kind, option.required("kind"));
  KILN_ASSIGN(const json::View list, option.required("list"));
  KILN_ASSIGN(const json::View value, option.required("value"));
  if (!list.is_boolean()) return list.expected("true or false");
  for (int number = 1; number <= static_cast<int>(AttrKind::boolean); ++number) {
    const auto known = static_cast<AttrKind>(number);
    if (!kind.is_text() || kind.text() != name_of(known) || known == AttrKind::graph || known == AttrKind::tensor)
      continue;
    KILN_ASSIGN(AttrValue read, json::read_attr(value, known, list.boolean()));
    (names_a_region(option.key()) ? out.of_regions : out.of_backends).emplace(option.key(), std::move(read));
    return {};
  }
  return kind.expected("a kind of option");
}

Status read_option(const json::View &option, CompileOptions &out) {
  const auto row = std::ranges::find(compile_rows, option.key(), &OptionRow<CompileOptions>::name);
  if (row == compile_rows.end()) return read_named(option, out);
  const AttrValue known = row->get(out);
  KILN_ASSIGN(const AttrValue value, json::read_attr(option, known.kind(), known.is_list));
  return row->set(out, value);
}

}  // namespace

Result<CompileOptions> read_compile_options(const json::View &object) {
  CompileOptions options;
  KILN_ASSIGN(const std::vector<json::View> members, object.as_object());
  for (const json::View &member : members)
    if (const Status status = read_option(member, options); !status.ok())
      return error(Code::corrupt, "option '", member.key(), "': ", status.message());
  return options;
}

}  // namespace kiln
