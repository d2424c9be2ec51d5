// Builder and rewriter in one vocabulary: begins empty or from a graph, ends in a new immutable graph. The graph that
// it began from never changes, so giving an edit up is the rollback. Threads: one at a time.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace kiln {

class Edit {
 public:
  explicit Edit(GraphPtr from = nullptr);

  // Declares a symbol's properties; a symbol that is only used in shapes needs none.
  Status declare_symbol(std::string_view name, const SymbolInfo &info);
  // Names must be new in the graph; type.layout becomes exact (row-major unless strides are given).
  Result<ValueId> input(std::string_view name, TensorType type);
  Result<ValueId> parameter(std::string_view name, TensorType type);
  Result<ValueId> constant(TensorPtr data, std::string_view name = {});
  // Checks arity, dtypes and attributes against the schema, fills in defaults, infers; fails at once, naming the op and
  // what is wrong. `name` empty: one is made. `annotations` are joined with those of open scopes (inner wins).
  Result<uint32_t> add(const OpSchema *op, std::span<const ValueId> inputs, AttrMap attrs = {},
                       std::string_view name = {}, AttrMap annotations = {});
  Status annotate(uint32_t node, std::string_view key, AttrValue value);
  void push_scope(AttrMap annotations) { scopes_.push_back(std::move(annotations)); }
  Status pop_scope();
  // All uses of `from` (by nodes and outputs, except by nodes that `to` depends on and that would close a cycle: that
  // is an error) become uses of `to`. Same dtype and dims, else an error. When `to`'s node was added by this edit it
  // inherits the annotations of from's node; two different values for one key are an error unless the added node set it
  // itself.
  Status replace(ValueId from, ValueId to);
  Status set_outputs(std::vector<GraphOutput> outputs);
  Status set_output_values(std::span<const ValueId> values);  // names kept where there are some, else "output0", ...

  // The nodes as they stand: the original's order first, then additions. Valid until the next change.
  const Graph &view() const;
  // Sorts topologically (stable), drops op nodes and constants that nothing uses. With `verify_all`, verify()s.
  Result<GraphPtr> finish(bool verify_all = true);

 private:
  Node *find(uint32_t id);
  std::string fresh_name(std::string_view stem) const;
  bool depends_on(uint32_t node, uint32_t on) const;

  GraphPtr from_;
  mutable Graph graph_;  // being edited; index refreshed lazily
  mutable bool indexed_ = false;
  uint32_t first_new_id_ = 1;
  std::vector<AttrMap> scopes_;
};

}  // namespace kiln
