// Edit: annotations that are set, that scopes give, and that are inherited.
#include <algorithm>

#include "runtime/graph/annotations.h"
#include "runtime/graph/edit.h"

namespace kiln {

Result<AttrMap> Edit::in_scopes(AttrMap own) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    for (const auto &[key, value] : scope->annotations)
      if (may_pass_on(key, scope->annotations, own)) own.emplace(key, value);
  KILN_TRY(check_op_annotations(own));
  return own;
}

void Edit::drop_unmarks(uint32_t added) {
  std::erase_if(graph_.writable(added).annotations, [&](const auto &annotation) {
    const bool drops = unmarks(annotation.first, annotation.second);
    if (drops) unmarked_.emplace(added, annotation.first);
    return drops;
  });
}

Status Edit::check_annotatable(uint32_t id, std::string_view key) const {
  const Node *found = graph_.find(id);
  const bool for_inputs = is_for_inputs(key);
  if (found && found->kind == (for_inputs ? Node::Kind::input : Node::Kind::op)) return {};
  return invalid("annotation '", key, "': node ", id, found ? str_cat(", '", found->name, "',") : "", " is no ",
                 for_inputs ? "input" : "op node", " of this graph");
}

Status Edit::annotate(uint32_t id, std::string_view key, AttrValue value) {
  begin();
  KILN_TRY(check_annotatable(id, key));
  KILN_TRY(check_annotation(key, value));
  if (unmarks(key, value)) return remove_annotation(id, key);
  graph_.writable(id).annotations.insert_or_assign(std::string(key), std::move(value));
  inherited_.erase({id, std::string(key)});
  return {};
}

Status Edit::remove_annotation(uint32_t id, std::string_view key) {
  begin();
  KILN_TRY(check_annotation_name(key));
  KILN_TRY(check_annotatable(id, key));
  AttrMap &annotations = graph_.writable(id).annotations;
  if (const auto at = annotations.find(key); at != annotations.end()) annotations.erase(at);
  inherited_.erase({id, std::string(key)});
  unmarked_.emplace(id, key);
  return {};
}

bool Edit::inherits(const AttrMap &from, std::string_view key, const Node &to) const {
  const bool is_option = key.starts_with("kiln.region.");
  return !unmarked_.contains({to.id, std::string(key)}) && may_pass_on(key, from, to.annotations) &&
         !is_of_one_node(key) && !(is_option && unmarked_.contains({to.id, "kiln.region"}));
}

Status Edit::inherit_annotations(const Replaced &from, Node &to) {
  for (const auto &[key, value] : from.annotations) {
    auto mine = to.annotations.find(key);
    if (mine == to.annotations.end() || mine->second == value || is_for_people(key)) continue;
    if (inherited_.contains({to.id, key}))
      return invalid("annotation '", key, "' of '", to.name, "' would be ", mine->second.text(), " and, from '",
                     from.name, "', ", value.text(), "; set it on the new node");
  }
  for (const auto &[key, value] : from.annotations)
    if (inherits(from.annotations, key, to) && to.annotations.emplace(key, value).second)
      inherited_.emplace(to.id, key);
  return {};
}

// Replacements of nodes without annotations count, too, as do those that nothing uses any more: what they are made of
// is not another's.
void Edit::hand_down_annotations(Graph &finished) const {
  if (std::ranges::all_of(replaced_, [](const Replaced &replaced) { return replaced.annotations.empty(); })) return;
  std::set<uint32_t> spoken_for = replacing_;
  const auto give = [&](const AttrMap &annotations, uint32_t id) {
    for (const auto &[key, value] : annotations)
      if (!marks_an_end(key) && inherits(annotations, key, *finished.find(id)) &&
          !finished.find(id)->annotations.contains(key))
        finished.writable(id).annotations.emplace(key, value);
  };
  for (const Replaced &replaced : replaced_) {
    std::vector<uint32_t> open{replaced.by};
    while (!open.empty()) {
      const Node &user = *graph_.find(open.back());
      open.pop_back();
      for (const auto &[id, output] : user.inputs) {
        const bool is_heir = id >= first_new_id_ && id > replaced.node && graph_.find(id)->kind == Node::Kind::op;
        if (!is_heir || !spoken_for.insert(id).second) continue;
        if (finished.find(id)) give(replaced.annotations, id);
        open.push_back(id);
      }
    }
  }
}

}  // namespace kiln
