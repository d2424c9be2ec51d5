// Graphs and their values.
#pragma once
#include "context.h"

namespace kiln_python {
/// A graph that grows: an edit, and the finished graph of how it stands, made when it is asked for.
class Graph {
 public:
  Graph(nb::object context, GraphHandle from);
  /// Of an edit that a callback was given.
  Graph(nb::object context, EditHandle edit);

  Context &context() const { return *nb::inst_ptr<Context>(context_); }
  const nb::object &context_object() const { return context_; }
  /// To be changed. What was finished before stays what it was.
  kiln_edit *edit();
  /// As it stands, to be read.
  const kiln_graph *view();
  /// As it stands, verified. It lives until the next change at least.
  const kiln_graph *finished() { return shared().get(); }
  /// The same for calls that unlock the interpreter, while another thread may change the graph.
  std::shared_ptr<const kiln_graph> shared();

 private:
  nb::object context_;
  EditHandle edit_;
  std::shared_ptr<const kiln_graph> finished_;  // null once the edit has changed
};

/// A value of a graph, which it keeps alive.
struct Value {
  nb::object graph_object;
  kiln_value number = 0;
  Graph &graph() const { return *nb::inst_ptr<Graph>(graph_object); }
  kiln_node node() const { return number >> 32; }
};

/// A node of a graph.
struct Node {
  nb::object graph_object;
  kiln_node number = 0;
  Graph &graph() const { return *nb::inst_ptr<Graph>(graph_object); }
};

nb::object value_object(nb::handle graph, kiln_value number);
/// A copy of a nested graph.
nb::object graph_of(nb::handle context, const kiln_graph *graph);

/// Adds a node; a Value, or a tuple of them. `operands` are Values, numbers, arrays and sequences of them; `graph` may
/// be None where a Value tells it, or where one is being built (kiln.Graph.__enter__).
nb::object add_node(nb::handle graph, std::string_view op, PyObject *const *operands, size_t count, nb::handle attrs,
                    nb::handle name);
}  // namespace kiln_python
