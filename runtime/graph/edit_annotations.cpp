// Edit: annotations that are set, that scopes give, and that are inherited.
#include "runtime/graph/annotations.h"
#include "runtime/graph/edit.h"

namespace kiln {

Result<AttrMap> Edit::in_scopes(AttrMap own) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    own.insert(scope->annotations.begin(), scope->annotations.end());
  for (const auto &[key, value] : own) KILN_TRY(check_annotation(key, value));
  return own;
}

void Edit::drop_unmarks(uint32_t added) {
  std::erase_if(graph_.writable(added).annotations, [&](const auto &annotation) {
    const bool drops = unmarks(annotation.first, annotation.second);
    if (drops) unmarked_.emplace(added, annotation.first);
    return drops;
  });
}

Status Edit::annotate(uint32_t id, std::string_view key, AttrValue value) {
  const Node *found = graph_.find(id);
  if (!found || found->kind != Node::Kind::op)
    return invalid("annotation '", key, "': node ", id, " is no op node of this graph");
  KILN_TRY(check_annotation(key, value));
  if (unmarks(key, value)) return remove_annotation(id, key);
  graph_.writable(id).annotations.insert_or_assign(std::string(key), std::move(value));
  inherited_.erase({id, std::string(key)});
  return {};
}

Status Edit::remove_annotation(uint32_t id, std::string_view key) {
  const Node *found = graph_.find(id);
  if (!found || found->kind != Node::Kind::op)
    return invalid("annotation '", key, "': node ", id, " is no op node of this graph");
  AttrMap &annotations = graph_.writable(id).annotations;
  if (const auto at = annotations.find(key); at != annotations.end()) annotations.erase(at);
  inherited_.erase({id, std::string(key)});
  unmarked_.emplace(id, key);
  return {};
}

Status Edit::inherit_annotations(const std::string &from, const AttrMap &annotations, Node &to) {
  for (const auto &[key, value] : annotations) {
    auto mine = to.annotations.find(key);
    if (mine == to.annotations.end() || mine->second == value || is_for_people(key)) continue;
    if (inherited_.contains({to.id, key}))
      return invalid("annotation '", key, "' of '", to.name, "' would be ", mine->second.text(), " and, from '", from,
                     "', ", value.text(), "; set it on the new node");
  }
  for (const auto &[key, value] : annotations)
    if (!unmarked_.contains({to.id, key}) && to.annotations.emplace(key, value).second) inherited_.emplace(to.id, key);
  return {};
}

Status Edit::hand_down_annotations() {
  for (const Replaced &replaced : replaced_) {
    std::set<uint32_t> seen;
    std::vector<uint32_t> open{replaced.by};
    while (!open.empty()) {
      const uint32_t id = open.back();
      open.pop_back();
      for (const ValueId &input : graph_.find(id)->inputs) {
        const Node &node = *graph_.find(input.node);
        const bool is_heir = node.id >= first_new_id_ && node.kind == Node::Kind::op && !replacing_.contains(node.id);
        if (!is_heir || !seen.insert(node.id).second) continue;
        KILN_TRY(inherit_annotations(replaced.name, replaced.annotations, graph_.writable(node.id)));
        open.push_back(node.id);
      }
    }
  }
  return {};
}

}  // namespace kiln
