// JSON to a pattern, member by member as docs/patterns.md has them: captures, nodes, outputs.
#include "runtime/patterns/read.h"

#include <algorithm>
#include <charconv>

#include "jit/base/utf8.h"
#include "runtime/graph/json_values.h"

namespace kiln::patterns {
namespace {

constexpr std::array<std::string_view, 6> source_names = {"any", "input", "parameter", "constant", "op", "fixed"};

Result<bool> read_flag(const View &v, std::string_view name) {
  const std::optional<View> member = v.member(name);
  if (!member) return false;
  if (!member->is_boolean()) return member->expected("true or false");
  return member->boolean();
}

}  // namespace

bool Term::commutes() const {
  return operands.size() == 2 &&
         std::ranges::all_of(ops, [](const OpSchema *op) { return (op->flags & op_flags::commutes) != 0; });
}

const Term *Pattern::find(std::string_view wanted) const {
  const auto found = std::ranges::find(terms, wanted, &Term::name);
  return found == terms.end() ? nullptr : &*found;
}

Result<std::pair<std::string_view, uint32_t>> split_operand(const View &v) {
  KILN_ASSIGN(const std::string_view text, v.as_text());
  const size_t colon = text.find(':');
  uint32_t output = 0;
  if (colon != text.npos) {
    const char *begin = text.data() + colon + 1, *end = text.data() + text.size();
    const auto [at, failure] = std::from_chars(begin, end, output);
    if (failure != std::errc() || at != end) return v.fail("expected NODE or NODE:K, found '", text, "'");
  }
  return std::pair(text.substr(0, colon), output);
}

Result<const AttrDef *> find_attr(const View &v, const OpSchema &op) {
  if (const AttrDef *def = op.find_attr(v.key())) return def;
  return v.fail(Code::unknown_name, "op '", op.name, "' has no attribute '", v.key(), "'; it has ",
                op.attrs.empty() ? "none" : join(op.attrs, ", ", [](const AttrDef &a) { return a.name; }));
}

Result<std::string> Reader::read_new_name(const View &v) const {
  KILN_ASSIGN(const View name_view, v.required("name"));
  KILN_ASSIGN(const std::string_view name, name_view.as_text());
  if (name.empty() || name == "_" || name.find(':') != name.npos)
    return name_view.fail("'", name, "' is no name: one is not empty, not '_' and has no ':'");
  if (pattern_.find(name)) return name_view.fail("'", name, "' is the name of another capture or node");
  return std::string(name);
}

Result<const OpSchema *> Reader::read_op(const View &v) const {
  KILN_ASSIGN(const std::string_view name, v.as_text());
  const OpSchema *op = ops_.find(name);
  if (!op) return v.fail(Code::unknown_name, "unknown op '", name, "'", ops_.suggest(name));
  if (op->flags & (op_flags::effect | op_flags::mutates))
    return v.fail("op '", name, "' does more than make its results; patterns are of ops that do not");
  return op;
}

Status Reader::read_capture(const View &v) {
  KILN_TRY(v.allow_members({"name", "from", "dtype", "shape", "number", "optional"}));
  Term term;
  KILN_ASSIGN(term.name, read_new_name(v));
  KILN_ASSIGN(term.optional, read_flag(v, "optional"));
  KILN_TRY(read_type(v, term.type));
  if (const std::optional<View> from = v.member("from")) {
    KILN_ASSIGN(const std::string_view text, from->as_text());
    const Result<size_t> which = which_of(text, source_names);
    if (!which.ok()) return from->fail(which.status().message());
    term.source = static_cast<Term::Source>(*which);
  }
  if (const std::optional<View> number = v.member("number")) {
    term.is_number = true;
    if (!number->is_text() || number->text() != "any") {
      KILN_ASSIGN(const AttrValue value, json::read_attr(*number, AttrKind::f64, false));
      term.number = value.f64();
    }
  }
  pattern_.terms.push_back(std::move(term));
  return {};
}

Result<Operand> Reader::read_operand(const View &v) {
  KILN_ASSIGN(const auto parts, split_operand(v));
  const auto [name, output] = parts;
  if (++operand_count_ > most_operands) return v.fail("nodes of a pattern have ", most_operands, " operands at most");
  if (name == "_") {
    pattern_.terms.emplace_back();
    return Operand{static_cast<uint32_t>(pattern_.terms.size() - 1), 0};
  }
  const Term *term = name.empty() ? nullptr : pattern_.find(name);
  if (!term)
    return v.fail(Code::unknown_name, "no capture, and no node before this one, is named '", name,
                  "'; a node uses earlier ones only, so there can be no cycle");
  const size_t results = term->is_node() ? term->ops.front()->result_names.size() : 1;
  if (output >= results) return v.fail("'", name, "' has ", results, " results, '", name, ":", output, "' is none");
  return Operand{static_cast<uint32_t>(term - pattern_.terms.data()), output};
}

Status Reader::read_node(const View &v) {
  KILN_TRY(v.allow_members({"name", "op", "inputs", "attrs", "dtype", "shape", "uses", "optional"}));
  Term node;
  KILN_ASSIGN(node.name, read_new_name(v));
  KILN_ASSIGN(node.optional, read_flag(v, "optional"));
  KILN_ASSIGN(const View op_view, v.required("op"));
  std::vector<View> names{op_view};
  if (op_view.is_list()) {
    KILN_ASSIGN(names, op_view.as_list());
  }
  if (names.empty()) return op_view.fail("the list of ops is empty");
  for (const View &name : names) {
    KILN_ASSIGN(const OpSchema *op, read_op(name));
    if (op->result_names.size() != (node.ops.empty() ? op : node.ops.front())->result_names.size())
      return name.fail("ops of one node have as many results as each other");
    node.ops.push_back(op);
  }
  if (const std::optional<View> list = v.member("inputs")) {
    KILN_ASSIGN(const std::vector<View> elements, list->as_list());
    for (const View &element : elements) {
      KILN_ASSIGN(const Operand operand, read_operand(element));
      node.operands.push_back(operand);
    }
  }
  for (const OpSchema *op : node.ops)
    if (!op->takes(node.operands.size()))
      return v.fail("op '", op->name, "' never has ", node.operands.size(), " operands");
  if (node.optional && (node.operands.empty() || node.ops.front()->result_names.size() != 1))
    return v.fail("a node that may be missing has one result, and an operand that it then stands for");
  if (const std::optional<View> uses = v.member("uses")) {
    KILN_ASSIGN(const std::string_view text, uses->as_text());
    constexpr std::array<std::string_view, 2> rules = {"inside", "anywhere"};
    const Result<size_t> which = which_of(text, rules);
    if (!which.ok()) return uses->fail(which.status().message());
    node.keeps = *which == 1;
  }
  KILN_TRY(read_type(v, node.type));
  if (const std::optional<View> attrs = v.member("attrs")) KILN_TRY(read_attrs(*attrs, node));
  for (const OpSchema *op : node.ops)
    for (const AttrDef &def : op->attrs)
      if (def.required && std::ranges::find(node.attrs, def.name, &AttrCondition::name) == node.attrs.end())
        return v.fail("attribute '", def.name, "' of op '", op->name,
                      "' has no default, which is what one that is not named has to have; say {\"any\": true}");
  pattern_.terms.push_back(std::move(node));
  return {};
}

Status Reader::read_outputs(const View &v) {
  KILN_ASSIGN(const std::vector<View> elements, v.as_list());
  if (elements.empty()) return v.fail("a pattern has an output, which its replacement takes the place of");
  for (const View &element : elements) {
    KILN_ASSIGN(const Operand output, read_operand(element));
    const Term &term = pattern_.terms[output.term];
    if (!term.is_node() || term.optional) return element.fail("an output is of a node that is always there");
    for (const Operand &other : pattern_.outputs)
      if (other.term == output.term && other.output == output.output) return element.fail("is an output already");
    pattern_.outputs.push_back(output);
  }
  return {};
}

// Every node is met from the first output: down through operands, or by a value that it shares with what was met.
Status Reader::check_reach(const View &v) {
  const std::vector<Term> &terms = pattern_.terms;
  std::vector<bool> met(terms.size()), sure(terms.size());  // sure: also where optional nodes are missing
  const auto meet = [&](uint32_t first) {
    std::vector<std::pair<uint32_t, bool>> open{{first, true}};
    while (!open.empty()) {
      const auto [at, surely] = open.back();
      open.pop_back();
      if (met[at] && (sure[at] || !surely)) continue;
      met[at] = true;
      if (surely && !terms[at].optional) sure[at] = true;
      for (size_t i = 0; i < terms[at].operands.size(); ++i)  // the first is there with the node and without
        open.emplace_back(terms[at].operands[i].term, surely && (i == 0 || !terms[at].optional));
    }
  };
  meet(pattern_.root());
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t at = 0; at < terms.size(); ++at) {
      if (met[at] || terms[at].optional) continue;
      const auto &operands = terms[at].operands;
      const auto known = std::ranges::find_if(operands, [&](const Operand &o) { return bool{sure[o.term]}; });
      if (known == operands.end()) continue;
      pattern_.joins.push_back({at, static_cast<uint32_t>(known - operands.begin())});
      meet(at);
      changed = true;
    }
  }
  for (uint32_t at = 0; at < terms.size(); ++at)
    if (!met[at])
      return v.fail("nothing leads to '", terms[at].name, "' from output '", terms[pattern_.root()].name,
                    "': no node uses it, or shares a value with what does");
  return {};
}

Result<Pattern> Reader::read(const View &v) {
  KILN_TRY(v.allow_members(
      {"kiln", "pattern", "captures", "nodes", "outputs", "replacement", "annotations", "expected_matches"}));
  KILN_ASSIGN(const View version_view, v.required("kiln"));
  KILN_ASSIGN(const int64_t version, version_view.as_integer());
  if (version != 1) return error(Code::incompatible, "kiln: schema version ", version, "; this build reads version 1");
  KILN_ASSIGN(const View name_view, v.required("pattern"));
  KILN_ASSIGN(pattern_.name, name_view.as_text());
  if (pattern_.name.empty() || printable(pattern_.name) != pattern_.name)
    return name_view.fail("the name of a pattern is not empty, and one line");
  for (const auto &[member, read_one] : {std::pair("captures", &Reader::read_capture), {"nodes", &Reader::read_node}}) {
    const std::optional<View> list = v.member(member);
    if (!list) continue;
    KILN_ASSIGN(const std::vector<View> elements, list->as_list());
    for (const View &element : elements) {
      if (pattern_.terms.size() >= most_terms)
        return element.fail("a pattern has ", most_terms, " captures and nodes at most");
      KILN_TRY((this->*read_one)(element));
    }
  }
  KILN_ASSIGN(const View outputs, v.required("outputs"));
  KILN_TRY(read_outputs(outputs));
  KILN_TRY(check_reach(v));
  if (const std::optional<View> annotations = v.member("annotations")) {
    KILN_ASSIGN(const std::string_view text, annotations->as_text());
    constexpr std::array<std::string_view, 2> rules = {"same", "any"};
    const Result<size_t> which = which_of(text, rules);
    if (!which.ok()) return annotations->fail(which.status().message());
    pattern_.any_annotations = *which == 1;
  }
  if (const std::optional<View> expected = v.member("expected_matches")) {
    KILN_ASSIGN(const int64_t count, expected->as_integer());
    if (count < 0) return expected->expected("how many matches there are at least");
    pattern_.expected = static_cast<uint64_t>(count);
  }
  if (const std::optional<View> replacement = v.member("replacement")) KILN_TRY(read_replacement(*replacement));
  return std::move(pattern_);
}

Result<Pattern> read_pattern(std::string_view text, const OpTable &ops) {
  KILN_ASSIGN(const json::Document document, json::parse(text));
  Result<Pattern> pattern = Reader(ops).read(View(document.get(), ""));
  if (!pattern.ok()) pattern.status().info()->message = printable(pattern.status().message());
  return pattern;
}

}  // namespace kiln::patterns
