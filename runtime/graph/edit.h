// Builder and rewriter in one vocabulary: begins empty or from a graph, ends in a new immutable graph. The graph that
// it began from never changes, so giving an edit up is the rollback; nor is it copied before the first change, so that
// an edit which only looks costs nothing. Threads: one at a time.
#pragma once
#include <compare>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/graph/graph.h"

namespace kiln {

class Edit {
 public:
  explicit Edit(GraphPtr from = nullptr);

  // Says of an input of a nested graph whether it is always given a parameter or a constant (Node::given_fixed).
  void set_given_fixed(uint32_t input, bool fixed) { begin().writable(input).given_fixed = fixed; }
  // Declares a symbol's properties; a symbol that is only used in shapes needs none.
  Status declare_symbol(std::string_view name, const SymbolInfo &info);
  // Names must be new in the graph, UTF-8, without control characters and ':'; a node that has one because it was given
  // none gets another. type.layout becomes exact (row-major unless strides are given).
  Result<ValueId> input(std::string_view name, TensorType type);
  Result<ValueId> parameter(std::string_view name, TensorType type);
  Result<ValueId> constant(TensorPtr data, std::string_view name = {});
  // Checks arity, dtypes and attributes against the schema, fills in defaults, infers; fails at once, naming the op and
  // what is wrong. `name` empty: one is made. `annotations` are joined with those of open scopes (inner wins).
  Result<uint32_t> add(const OpSchema *op, std::span<const ValueId> inputs, AttrMap attrs = {},
                       std::string_view name = {}, AttrMap annotations = {});
  Status annotate(uint32_t node, std::string_view key, AttrValue value);  // see annotations.h
  // What it has of that name, if anything; nor does it inherit one then.
  Status remove_annotation(uint32_t node, std::string_view key);
  // Gives an op node's attribute another value, and infers again: a failure, or results of another type, or another
  // symbol that it resolves, changes nothing.
  Status set_attr(uint32_t node, std::string_view name, AttrValue value);
  // `name` is put before the names that are made for nodes, with a dot.
  void push_scope(AttrMap annotations, std::string_view name = {}) {
    scopes_.push_back({std::move(annotations), std::string(name)});
  }
  Status pop_scope();
  // All uses of `from`, by nodes and outputs, become uses of `to`. Same dtype and dims, else an error; so is a user of
  // `from` that `to` depends on, for that would close a cycle. When `to`'s node was added by this edit it inherits the
  // annotations of from's node; two different values for one key are an error unless the added node set it itself. In
  // the finished graph so do the nodes that it was made of: those that the edit added after from's node, down to others
  // that replace something; each by the first replacement that it is part of. A failure changes nothing. A node whose
  // tokens are all replaced is not kept for its effect.
  Status replace(ValueId from, ValueId to);
  // Others take the node's place: it is not kept for its effect.
  void release(uint32_t node) {
    begin();
    released_.insert(node);
  }
  // For an op node whose place others are about to take: its name, and the symbols that it resolves, are free for them.
  void retire(uint32_t node);
  Status set_outputs(std::vector<GraphOutput> outputs);
  // Names and layouts are kept where there are some, else "output0", ...
  Status set_output_values(std::span<const ValueId> values);
  Status add_output(GraphOutput output);  // appends
  // type_mismatch: an output, as it is to be, is of another dtype or dims than whoever declares it takes it for.
  Status check_output_type(const GraphOutput &output, const TensorType &type) const;

  bool has_open_scope() const { return !scopes_.empty(); }

  // The nodes as they stand: the original's order first, then additions (after a replace, a user may stand before what
  // it uses). References into it are valid until the next change; the
  // first one also ends those to the graph itself.
  const Graph &view() const { return changed_ ? graph_ : *from_; }
  // Whether something was changed, or begun to be: until then what it stands for is the graph that it began from.
  bool has_changed() const { return changed_; }
  Graph &begin();  // what a change does first
  // A new graph, in order: inputs, parameters, constants, then op nodes, each after its operands and otherwise where it
  // stood, a new node just before its first user, copy_ last. Op nodes and constants that nothing uses are left out,
  // unless they have an effect. With `verify_all`, verify()s. The edit stands as before.
  Result<GraphPtr> finish(bool verify_all = true);

 private:
  // Where a node stands in a topological order that new nodes enter without renumbering: behind its operands and before
  // all that was behind them. Compared as a pair.
  struct Rank {
    uint32_t base = 0, sub = 0;  // position in the order when it was last made; steps behind it
    auto operator<=>(const Rank &) const = default;
  };

  struct Scope {
    AttrMap annotations;
    std::string name;
  };

  struct Replaced {
    std::string name;
    AttrMap annotations;
    uint32_t by;    // an added op node
    uint32_t node;  // that was replaced
  };

  Status check_new_name(std::string_view name) const;
  bool is_pinned(const Node &node) const;  // used or not
  Result<ValueId> placeholder(Node::Kind kind, std::string_view name, TensorType type);
  uint32_t append(Node node);
  std::string fresh_name(std::string_view stem);
  std::string name_in_scope(std::string_view stem);  // a fresh one
  std::string fresh_symbol(std::string_view stem) const;
  bool is_bound(const std::string &symbol) const;        // by an input or a node
  std::vector<size_t> sorted_ops(bool live_only) const;  // positions
  void renumber();
  Status check_no_cycle(ValueId from, ValueId to);
  Result<AttrMap> in_scopes(AttrMap own) const;
  Status check_annotatable(uint32_t node, std::string_view key) const;
  void drop_unmarks(uint32_t added);
  bool inherits(const AttrMap &from, std::string_view key, const Node &to) const;  // whether `to` inherits it
  Status inherit_annotations(const Replaced &from, Node &to);
  void hand_down_annotations(Graph &finished) const;

  GraphPtr from_;                                                      // null: it began empty
  bool changed_;                                                       // false: graph_ is not there yet
  Graph graph_;                                                        // being edited
  uint32_t first_new_id_ = 1;                                          // nodes from here on were added by this edit
  std::vector<Scope> scopes_;                                          // innermost last
  std::map<std::string, uint32_t, std::less<>> name_counters_;         // by stem
  std::set<std::pair<uint32_t, std::string>, std::less<>> inherited_;  // annotations that replace() gave: (node, key)
  std::set<std::pair<uint32_t, std::string>, std::less<>> unmarked_;   // those that are not to be inherited
  std::vector<Replaced> replaced_;                                     // in order
  std::set<uint32_t> replacing_;                                       // added op nodes that replace another's
  std::set<uint32_t> released_;                                        // nodes that are not kept for their effects
  std::set<ValueId> replaced_tokens_;
  std::vector<Rank> ranks_;  // by position
  bool ranks_hold_ = true;   // false: a replace has turned an edge against them
};

}  // namespace kiln
