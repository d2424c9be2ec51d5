// The graph: immutable, functional, nodes in topological order. Made by Edit (edit.h) or read from JSON (json.h).
// Threads: a Graph may be read from any thread.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jit/base/bytes.h"
#include "jit/base/hash.h"
#include "jit/base/status.h"
#include "runtime/graph/attr.h"
#include "runtime/graph/schema.h"
#include "runtime/graph/type.h"

namespace kiln {

// Set once, by any thread; a copy begins without.
class OnceSet {
 public:
  OnceSet() = default;
  OnceSet(const OnceSet &) noexcept {}
  OnceSet &operator=(const OnceSet &) noexcept {
    set_.store(false, std::memory_order_relaxed);
    return *this;
  }
  void set() { set_.store(true, std::memory_order_relaxed); }
  explicit operator bool() const { return set_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> set_ = false;
};

struct Node {
  enum class Kind : uint8_t { input, parameter, constant, op };
  uint32_t id = 0;  // 1 .. 2^32-1, never reused inside a graph and its edits
  Kind kind = Kind::op;
  std::string name;              // unique in its graph; part of the signature for inputs and parameters
  const OpSchema *op = nullptr;  // kind op
  std::vector<ValueId> inputs;
  AttrMap attrs;  // complete: defaults are filled in
  AttrMap annotations;
  TensorPtr constant;  // kind constant
  // An input of a nested graph that is always given a parameter or a constant. Made when passes visit the graph
  // (passes/nested_graphs.h): no part of what the graph is.
  bool given_fixed = false;
  bool is_name_made = false;  // by an Edit: it gives way to others that are told
  std::vector<TensorType> results;
  std::vector<Equality> equalities;  // to be checked at each call
  std::vector<ResolvedSymbol> symbols;
  // verify() found nothing against what it and the types of its operands say. It holds in all graphs that share the
  // node: in a graph and those that are edited from it, a value keeps its type.
  mutable OnceSet checked = {};
};

struct SymbolInfo {
  int64_t min = 0, max = INT64_MAX, divisor = 1, hint = 0;  // hint 0: none
  bool operator==(const SymbolInfo &) const = default;
};

struct GraphOutput {
  std::string name;
  ValueId value;
  OutputLayout layout = {};
};

class Graph {
 public:
  // A range of const Node &, with size() and []. A node stays where it is for as long as a graph holds it.
  auto nodes() const {
    return std::views::transform(nodes_, [](const std::shared_ptr<Node> &node) -> const Node & { return *node; });
  }
  std::span<const uint32_t> inputs() const { return inputs_; }  // node ids, in order of the signature
  std::span<const uint32_t> parameters() const { return parameters_; }
  std::span<const GraphOutput> outputs() const { return outputs_; }
  const std::map<std::string, SymbolInfo> &symbols() const { return symbols_; }

  const Node *find(uint32_t id) const;  // null: none
  const Node *find(std::string_view name) const;
  size_t position(uint32_t id) const;           // index into nodes(); of a node that is there
  const TensorType &type(ValueId value) const;  // of a value that is there
  bool has(ValueId value) const;
  // Uses by op nodes, counted per operand; outputs count too.
  uint32_t use_count(ValueId value) const;
  std::vector<uint32_t> users(ValueId value) const;  // ids of op nodes, ascending position, distinct
  // The value whose storage `value` lies in, through all views (and copy_): itself when it has its own.
  ValueId storage_of(ValueId value) const;
  // The node that resolves a symbol; null: an input binds it, or nothing does.
  const Node *resolver(const std::string &symbol) const;
  // Those that a run resolves and that shapes or attributes of the node speak of; its own aside.
  std::vector<const Node *> resolvers_for(const Node &node) const;
  uint32_t next_id() const { return next_id_; }
  bool has_effects() const { return has_effects_; }  // some node of it has one
  bool is_verified() const { return verified_; }     // verify() found nothing when it was made

 private:
  friend class Edit;
  // Nodes are shared between a graph and what is edited from it; a shared one is copied before it is written.
  void append(Node node);
  void append_shared(const Graph &from, size_t position);
  void index(const Node &node);  // the last one: its place in what follows
  Node &writable(uint32_t id);
  void share_all() { shared_.assign(nodes_.size(), true); }
  void use_instead(ValueId from, ValueId to);
  void rename(uint32_t id, std::string name);
  void retire(uint32_t id, std::string name);  // it resolves nothing any more

  std::vector<std::shared_ptr<Node>> nodes_;
  std::vector<bool> shared_;  // by position: perhaps in another graph, too
  std::vector<uint32_t> inputs_, parameters_;
  std::vector<GraphOutput> outputs_;
  std::map<std::string, SymbolInfo> symbols_;
  std::map<std::string, uint32_t> resolvers_;  // ids, by symbol
  uint32_t next_id_ = 1;
  bool verified_ = false, has_effects_ = false;
  std::vector<uint32_t> position_;                          // by id; absent: none
  std::unordered_map<std::string_view, uint32_t> by_name_;  // the names lie in the nodes
  std::vector<std::vector<uint32_t>> users_;                // by position: op nodes that read one of its values
};

// Whether a run of the node does something besides making its results: so its op says, or a graph that it carries has a
// node of which that is so. It is never left out, merged with another, or run a second time.
bool has_effect(const Node &node);
// Whether others come after it for a token's sake. No backend makes code of such nodes.
bool makes_token(const Node &node);

// The symbols that shapes of its results and dims among its attributes speak of.
std::set<std::string> symbols_of(const Node &node);
// Canonical bytes for keys: nodes renumbered in stored order, names of the signature in, other names and debug.* out.
// Constants and nested graphs stand in it by their digests.
void hash_bytes(const Graph &graph, ByteWriter &out);
Digest digest_of(const Graph &graph);  // of its hash_bytes

// For people; stable. One line a node.
std::string print(const Graph &graph);
std::string print_dot(const Graph &graph);
std::string text_of(const Graph &graph, ValueId value);  // "split:1"

// All invariants: schema of each op, recorded type = inferred type, order, acyclic, unique names, no mutation but the
// copy_ epilogue, storage sharing, symbols bound once, outputs. The error says which invariant, and at which node.
Status verify(const Graph &graph);
// For passes: names, types and order of inputs, parameters and outputs, and the symbols, are what they were.
Status verify_same_signature(const Graph &before, const Graph &after);
// For passes: what tokens say of the order of effects that both graphs have, by name and op, holds still. Unless
// `may_leave_out`, all that were there are.
Status verify_same_effects(const Graph &before, const Graph &after, bool may_leave_out);
// The outputs, by index, that share storage with an input, a parameter, a constant or an output before them, and did
// not before. Of graphs of one signature.
std::vector<size_t> outputs_that_came_to_share(const Graph &before, const Graph &after);

}  // namespace kiln
