// For passes that put values in the place of others: what they must keep of storage and marks, and how they go through
// a graph.
#pragma once
#include <functional>
#include <optional>
#include <set>

#include "runtime/graph/edit.h"
#include "runtime/passes/pass.h"

namespace kiln {

// The storage that a graph's outputs lie in. Those that had storage of their own keep it, and none becomes an argument
// or a constant itself. Of an edit whose changes it is told.
class OutputStorage {
 public:
  explicit OutputStorage(const Edit &edit);
  // Whether `to` may take `from`'s place.
  bool allows(ValueId from, ValueId to) const;
  void replaced(ValueId from, ValueId to);
  bool is_output(ValueId value) const { return outputs_.contains(value); }
  // Whether an output lies in the value's storage.
  bool holds(ValueId value) const { return roots_.contains(edit_.view().storage_of(value)); }

 private:
  const Edit &edit_;
  std::set<ValueId> outputs_, roots_;  // and the storage that they lie in
  std::set<uint32_t> written_;         // inputs that the graph overwrites in the end
};

// Whether the node may leave the graph, with what its annotations say, where `other` has its place: but for what is for
// people they say nothing, or what those of the other say, which then is an op node, too.
bool may_go(const Node &node, const Node &other);

// Offers each op node of one result that may be replaced, in order, with the operands that it has by then: no function
// of the host's runs it, no mark holds it, and no call must check sizes for it. What `make` returns takes its place;
// nothing: it stays. Returns how many were replaced.
using MakeReplacement = std::function<Result<ValueId>(const Node &node, const OutputStorage &outputs)>;
Result<uint64_t> replace_each(Edit &edit, const MakeReplacement &make);

// The pass of stage post_grad that does that; `begin` makes what it offers nodes to, once a run.
Pass replacing_pass(std::string_view name, int32_t priority, MakeReplacement (*begin)(PassContext &context));

// Adds the node that takes the place of an op node of one result, of the same name.
Result<ValueId> replacement(Edit &edit, const Node &of, const OpSchema *op, std::span<const ValueId> inputs,
                            AttrMap attrs);

}  // namespace kiln
