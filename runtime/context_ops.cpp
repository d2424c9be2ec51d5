#include "runtime/context_ops.h"

#include <algorithm>

namespace kiln {

const RegisteredOp *ContextOps::find_added(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const OpSchema *ContextOps::find(std::string_view name) const {
  if (const Op *op = find_op(name)) return op;
  const std::shared_lock lock(mutex_);
  return find_added(name);
}

std::string ContextOps::suggest(std::string_view name) const {
  std::vector<const Op *> ops(all_ops().begin(), all_ops().end());
  const std::shared_lock lock(mutex_);
  for (const auto &op : added_) ops.push_back(op.get());
  return suggest_among(name, ops);
}

void ContextOps::write_report(JsonWriter &json) const {
  json.begin_list();
  const std::shared_lock lock(mutex_);
  for (const auto &op : added_) {
    json.begin_object().member("name", op->name).member("plugin", op->plugin).member("version", op->version);
    json.member("identity", op->identity).end_object();
  }
  json.end_list();
}

std::string ContextOps::identity(std::string_view name) const {
  if (find_op(name)) return builtin_ops().identity(name);
  const std::shared_lock lock(mutex_);
  const RegisteredOp *op = find_added(name);
  return op ? op->identity : "";
}

Status ContextOps::add(std::vector<std::unique_ptr<RegisteredOp>> ops) {
  const std::unique_lock lock(mutex_);
  for (size_t i = 0; i < ops.size(); ++i) {
    const RegisteredOp &op = *ops[i];
    const auto is_called_so = [&](const auto &other) { return other->name == op.name; };
    if (find_op(op.name)) return invalid("op '", op.name, "': the name is that of a built-in op");
    if (std::ranges::any_of(added_, is_called_so) ||
        std::any_of(ops.begin(), ops.begin() + static_cast<ptrdiff_t>(i), is_called_so))
      return invalid("op '", op.name, "': the name is taken by another op already");
  }
  for (std::unique_ptr<RegisteredOp> &op : ops) {
    op->number = static_cast<uint32_t>(all_ops().size() + added_.size()) + 1;
    op->table = this;
    by_name_.emplace(op->name, op.get());
    added_.push_back(std::move(op));
  }
  return {};
}

uint32_t ContextOps::count() const {
  const std::shared_lock lock(mutex_);
  return static_cast<uint32_t>(all_ops().size() + added_.size());
}

const Op *ContextOps::at(uint32_t number) const {
  const size_t built_in = all_ops().size();
  if (number == 0) return nullptr;
  if (number <= built_in) return all_ops()[number - 1];
  const std::shared_lock lock(mutex_);
  return number - built_in <= added_.size() ? added_[number - built_in - 1].get() : nullptr;
}

uint32_t ContextOps::number_of(const OpSchema &op) {
  if (const RegisteredOp *own = registered(op)) return own->number;
  const auto ops = all_ops();
  const auto found = std::ranges::lower_bound(ops, op.name, {}, [](const Op *o) { return o->name; });
  return found != ops.end() && *found == &op ? static_cast<uint32_t>(found - ops.begin()) + 1 : 0;
}

}  // namespace kiln
