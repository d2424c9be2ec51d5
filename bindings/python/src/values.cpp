// Values and nodes, and how a node is added: what operators and kiln.ops come down to.
#include "arrays.h"
#include "attrs.h"
#include "dims.h"
#include "dtypes.h"
#include "graph.h"
#include "numpy.h"

namespace kiln_python {
namespace {
// The graph that a `with` is about, of this thread; operands tell theirs, ops without operands need it.
nb::object graph_of_operands(nb::handle graph, PyObject *const *operands, size_t count) {
  if (!graph.is_none()) return nb::borrow(graph);
  for (size_t i = 0; i < count; ++i) {
    if (nb::isinstance<Value>(operands[i])) return nb::inst_ptr<Value>(operands[i])->graph_object;
    if (PyList_Check(operands[i]) || PyTuple_Check(operands[i])) {
      nb::object items = nb::steal(PySequence_Fast(operands[i], ""));
      const auto size = static_cast<size_t>(PySequence_Fast_GET_SIZE(items.ptr()));
      nb::object found = graph_of_operands(graph, PySequence_Fast_ITEMS(items.ptr()), size);
      if (!found.is_none()) return found;
    }
  }
  return nb::none();
}

kiln_dtype dtype_of_value(Graph &graph, kiln_value value) {
  kiln_dtype dtype = 0;
  check(kiln_value_dtype(graph.view(), value, &dtype));
  return dtype;
}

bool is_number(PyObject *object) { return PyFloat_Check(object) || PyLong_Check(object); }

// The operands of a node. Numbers are constants of the dtype that the others have; arrays are constants of their own.
class Operands {
 public:
  Operands(nb::handle graph, const OpInfo &info, std::string_view op) : object_(graph), info_(info), op_(op) {}

  void add(PyObject *operand) {
    if (PyList_Check(operand) || PyTuple_Check(operand)) {
      nb::object items = nb::steal(PySequence_Fast(operand, ""));
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i)
        add(PySequence_Fast_GET_ITEM(items.ptr(), i));
    } else {
      objects_.push_back(operand);
    }
  }

  const std::vector<kiln_value> &values() {
    while (!objects_.empty() && objects_.back() == Py_None) objects_.pop_back();
    for (PyObject *object : objects_)
      if (nb::isinstance<Value>(object) && has_common_dtype(static_cast<size_t>(&object - objects_.data())))
        note_dtype(object);
    for (size_t i = 0; i < objects_.size(); ++i) values_.push_back(value_of(i));
    return values_;
  }

 private:
  bool has_common_dtype(size_t index) const {
    return info_.same_dtype.empty() || info_.same_dtype[std::min(index, info_.same_dtype.size() - 1)];
  }
  void note_dtype(PyObject *object) {
    if (!dtype_) dtype_ = dtype_of_value(*nb::inst_ptr<Graph>(object_), nb::inst_ptr<Value>(object)->number);
  }
  std::string place(size_t index) const { return "[" + std::string(op_) + "] operand " + std::to_string(index); }

  kiln_value value_of(size_t index) {
    PyObject *object = objects_[index];
    if (nb::isinstance<Value>(object)) {
      const Value &value = *nb::inst_ptr<Value>(object);
      if (!value.graph_object.is(object_)) raise(KILN_INVALID_ARGUMENT, place(index) + " is a value of another graph");
      return value.number;
    }
    if (object == Py_None) raise(KILN_TYPE_MISMATCH, place(index) + " is None, but a later one is given");
    BorrowedArray array(object, is_number(object) && has_common_dtype(index) ? dtype_ : 0, place(index));
    kiln_value value = 0;
    check(kiln_edit_constant(nb::inst_ptr<Graph>(object_)->edit(), nullptr, 0, &array.tensor(), &value));
    return value;
  }

  nb::handle object_;
  const OpInfo &info_;
  std::string_view op_;
  std::vector<PyObject *> objects_;  // borrowed of the caller
  std::vector<kiln_value> values_;
  kiln_dtype dtype_ = 0;
};

void add_attrs(Attrs &attrs, const OpInfo &info, std::string_view op, nb::handle given) {
  if (given.is_none()) return;
  for (auto [key, value] : nb::borrow<nb::dict>(given)) {
    if (value.is_none()) continue;
    std::string_view name = utf8(key, "an attribute's name");
    const OpInfo::Attr *attr = info.find(name);
    if (!attr && name.ends_with('_')) attr = info.find(name.substr(0, name.size() - 1));  // Python's keywords
    if (!attr) raise(KILN_UNKNOWN_NAME, "[" + std::string(op) + "] has no attribute '" + std::string(name) + "'");
    attrs.add(attr->name, value, attr->kind, attr->list);
  }
}

nb::object unary(nb::handle self, std::string_view op) {
  PyObject *operands[] = {self.ptr()};
  return add_node(nb::none(), op, operands, 1, nb::none(), nb::none());
}

bool is_operand(nb::handle object) {
  return nb::isinstance<Value>(object) || is_number(object.ptr()) || numpy::is_array(Py_TYPE(object.ptr())) ||
         nb::hasattr(object, "__dlpack__");
}

nb::object binary(nb::handle a, nb::handle b, std::string_view op) {
  if (!is_operand(a) || !is_operand(b)) return nb::borrow(Py_NotImplemented);
  PyObject *operands[] = {a.ptr(), b.ptr()};
  return add_node(nb::none(), op, operands, 2, nb::none(), nb::none());
}

// Bits of integers, and truth of bools, are different ops.
std::string_view bits_or_truth(nb::handle value, std::string_view bits, std::string_view truth) {
  const Value &one = *nb::inst_ptr<Value>(value);
  return dtype_of_value(one.graph(), one.number) == KILN_BOOL ? truth : bits;
}

nb::object attr_of(const Node &node, const std::string &name) {
  kiln_attr attr;
  check(kiln_node_attr(node.graph().view(), node.number, name.data(), name.size(), &attr));
  return from_attr(node.graph().context_object(), attr);
}

using ListAttrs = kiln_error *(*)(const kiln_graph *, kiln_node, kiln_attr *, uint64_t, uint64_t *);
nb::dict attrs_of(const Node &node, ListAttrs read) {
  nb::dict all;
  for (const kiln_attr &attr : list<kiln_attr>(read, node.graph().view(), node.number))
    all[str(std::string_view(attr.name, attr.name_size))] = from_attr(node.graph().context_object(), attr);
  return all;
}

void annotate(nb::handle graph, kiln_node node, nb::handle annotations) {
  Graph &owner = *nb::inst_ptr<Graph>(graph);
  Attrs attrs(owner.context().get());
  attrs.add_all(annotations);
  check(kiln_edit_annotate(owner.edit(), node, attrs.data(), attrs.size()));
}

nb::object op_of(const Node &node) {
  const kiln_op op = kiln_node_op(node.graph().view(), node.number);
  if (!op) return nb::none();
  kiln_text name;
  check(kiln_op_name(node.graph().context().get(), op, &name));
  return str(name);
}

const char *kind_of(const Node &node) {
  constexpr const char *names[] = {"", "input", "parameter", "constant", "op"};
  const uint32_t kind = kiln_node_kind(node.graph().view(), node.number);
  return kind < std::size(names) ? names[kind] : "";
}

nb::str name_of(const Node &node) {
  kiln_text name;
  check(kiln_node_name(node.graph().view(), node.number, &name));
  return str(name);
}

Node node_of(const Value &value) { return {value.graph_object, value.node()}; }

std::string repr(const Value &value) {
  nb::tuple shape =
      from_dims(value.graph().context().get(), list<kiln_dim>(kiln_value_dims, value.graph().view(), value.number));
  std::string sizes;
  for (nb::handle size : shape) sizes += (sizes.empty() ? "" : ", ") + nb::cast<std::string>(nb::str(size));
  const uint32_t index = static_cast<uint32_t>(value.number);
  return "<kiln.Value '" + nb::cast<std::string>(name_of(node_of(value))) + (index ? ":" + std::to_string(index) : "") +
         "' " + dtype_of(dtype_of_value(value.graph(), value.number)).name + "[" + sizes + "]>";
}

void add_operators(nb::class_<Value> &type) {
#define BINARY(NAME, OP)                                                                                    \
  type.def("__" NAME "__", [](nb::handle a, nb::handle b) { return binary(a, b, OP); }, nb::is_operator()); \
  type.def("__r" NAME "__", [](nb::handle a, nb::handle b) { return binary(b, a, OP); }, nb::is_operator())
#define LOGIC(NAME, BITS, TRUTH)                                                                               \
  type.def(                                                                                                    \
      "__" NAME "__", [](nb::handle a, nb::handle b) { return binary(a, b, bits_or_truth(a, BITS, TRUTH)); },  \
      nb::is_operator());                                                                                      \
  type.def(                                                                                                    \
      "__r" NAME "__", [](nb::handle a, nb::handle b) { return binary(b, a, bits_or_truth(a, BITS, TRUTH)); }, \
      nb::is_operator())
#define COMPARE(NAME, OP) \
  type.def("__" NAME "__", [](nb::handle a, nb::handle b) { return binary(a, b, OP); }, nb::is_operator())
  BINARY("add", "add");
  BINARY("sub", "sub");
  BINARY("mul", "mul");
  BINARY("truediv", "div");
  BINARY("floordiv", "floor_divide");
  BINARY("mod", "remainder");
  BINARY("pow", "pow");
  BINARY("matmul", "matmul");
  BINARY("lshift", "shift_left");
  BINARY("rshift", "shift_right");
  LOGIC("and", "bit_and", "and");
  LOGIC("or", "bit_or", "or");
  LOGIC("xor", "bit_xor", "xor");
  COMPARE("lt", "lt");
  COMPARE("le", "le");
  COMPARE("gt", "gt");
  COMPARE("ge", "ge");
  COMPARE("eq", "eq");
  COMPARE("ne", "ne");
#undef BINARY
#undef LOGIC
#undef COMPARE
  type.def("__neg__", [](nb::handle self) { return unary(self, "neg"); })
      .def("__pos__", [](nb::handle self) { return nb::borrow(self); })
      .def("__abs__", [](nb::handle self) { return unary(self, "abs"); })
      .def("__invert__", [](nb::handle self) { return unary(self, bits_or_truth(self, "bit_not", "not")); })
      .def(
          "__getitem__",
          [](nb::handle self, nb::handle key) { return package("kiln._index").attr("getitem")(self, key); },
          nb::arg("key").none())
      .def("__len__",
           [](const Value &self) -> size_t {
             const auto dims = list<kiln_dim>(kiln_value_dims, self.graph().view(), self.number);
             if (dims.empty() || dims[0].expr) raise(KILN_TYPE_MISMATCH, repr(self) + " has no length that is known");
             return static_cast<size_t>(dims[0].value);
           })
      .def("__bool__",
           [](const Value &self) -> bool {
             raise(
                 KILN_TYPE_MISMATCH,
                 repr(self) +
                     " is known when the program runs: it is neither true nor false here; see kiln.ops.where and cond");
           })
      .def("__hash__", [](const Value &self) {
        return nb::hash(nb::make_tuple(reinterpret_cast<uintptr_t>(self.graph_object.ptr()), self.number));
      });
  type.attr("__array_ufunc__") = nb::none();  // NumPy's operators leave it to ours
}
}  // namespace

nb::object value_object(nb::handle graph, kiln_value number) { return nb::cast(Value{nb::borrow(graph), number}); }

nb::object add_node(nb::handle graph, std::string_view op, PyObject *const *operands, size_t count, nb::handle attrs,
                    nb::handle name) {
  nb::object object = graph_of_operands(graph, operands, count);
  if (object.is_none()) object = package("kiln._graph").attr("current")(str(op));
  Graph &owner = *nb::inst_ptr<Graph>(object);
  const OpInfo &info = owner.context().op(op);
  Operands all(object, info, op);
  for (size_t i = 0; i < count; ++i) all.add(operands[i]);
  const std::vector<kiln_value> &values = all.values();
  Attrs made(owner.context().get());
  add_attrs(made, info, op, attrs);
  const std::string_view called = name.is_none() ? std::string_view() : utf8(name, "name");
  kiln_node node = 0;
  check(kiln_edit_add(owner.edit(), info.number, called.data(), called.size(), values.data(), values.size(),
                      made.data(), made.size(), &node));
  const uint32_t results = kiln_node_output_count(owner.view(), node);
  if (results == 1 && info.results) return value_object(object, node << 32);
  nb::object tuple = nb::steal(PyTuple_New(results));
  for (uint32_t i = 0; i < results; ++i)
    PyTuple_SET_ITEM(tuple.ptr(), i, value_object(object, node << 32 | i).release().ptr());
  return tuple;
}

void add_values(nb::module_ &module) {
  nb::class_<Value> value(module, "Value", nb::is_final(), "A tensor of a graph, which is known when a program runs.");
  value.def_prop_ro(
           "graph", [](const Value &self) { return self.graph_object; }, "Its graph.")
      .def_prop_ro("node", &node_of, "What makes it.")
      .def_prop_ro(
          "index", [](const Value &self) { return static_cast<uint32_t>(self.number); },
          "Which result of its node it is.")
      .def_prop_ro(
          "name", [](const Value &self) { return name_of(node_of(self)); }, "Its node's.")
      .def_prop_ro(
          "dtype", [](const Value &self) { return dtype_object(dtype_of_value(self.graph(), self.number)); },
          "Element type.")
      .def_prop_ro(
          "shape",
          [](const Value &self) {
            return from_dims(self.graph().context().get(),
                             list<kiln_dim>(kiln_value_dims, self.graph().view(), self.number));
          },
          "Sizes: ints, and Dims.")
      .def_prop_ro(
          "ndim",
          [](const Value &self) { return list<kiln_dim>(kiln_value_dims, self.graph().view(), self.number).size(); },
          "How many dims it has.")
      .def_prop_ro(
          "strides",
          [](const Value &self) {
            return from_dims(self.graph().context().get(),
                             list<kiln_dim>(kiln_value_strides, self.graph().view(), self.number));
          },
          "In elements; of inputs, parameters and constants.")
      .def_prop_ro(
          "view_of",
          [](const Value &self) {
            const kiln_value of = kiln_value_view_of(self.graph().view(), self.number);
            return of ? value_object(self.graph_object, of) : nb::object(nb::none());
          },
          "The value in whose memory it lies, or None.")
      .def_prop_ro(
          "users",
          [](const Value &self) {
            nb::list all;
            for (kiln_node node : list<kiln_node>(kiln_value_users, self.graph().view(), self.number))
              all.append(Node{self.graph_object, node});
            return nb::tuple(all);
          },
          "The nodes that use it, each once.")
      .def_prop_ro(
          "use_count", [](const Value &self) { return kiln_value_use_count(self.graph().view(), self.number); },
          "How often it is an operand or an output.")
      .def(
          "same_as",
          [](const Value &self, const Value &other) {
            return self.number == other.number && self.graph_object.is(other.graph_object);
          },
          nb::arg("other"), "Whether both are one value; == adds a node that compares elements.")
      .def(
          "annotate",
          [](const Value &self, nb::handle annotations) { annotate(self.graph_object, self.node(), annotations); },
          nb::arg("annotations"), "Sets annotations of its node; None takes one away.")
      .def("__repr__", &repr);
  add_operators(value);

  nb::class_<Node>(module, "Node", nb::is_final(),
                   "What makes values: an input, a parameter, a constant, or an op at its operands.")
      .def_prop_ro(
          "graph", [](const Node &self) { return self.graph_object; }, "Its graph.")
      .def_prop_ro(
          "id", [](const Node &self) { return self.number; }, "Its number, which no other node of the graph gets.")
      .def_prop_ro("name", &name_of, "Its name, unique in the graph.")
      .def_prop_ro("kind", &kind_of, "\"input\", \"parameter\", \"constant\" or \"op\".")
      .def_prop_ro("op", &op_of, "The op's name; None unless it is an op's.")
      .def_prop_ro(
          "inputs",
          [](const Node &self) {
            nb::list all;
            for (uint32_t i = 0; i < kiln_node_input_count(self.graph().view(), self.number); ++i)
              all.append(value_object(self.graph_object, kiln_node_input(self.graph().view(), self.number, i)));
            return nb::tuple(all);
          },
          "Its operands.")
      .def_prop_ro(
          "outputs",
          [](const Node &self) {
            nb::list all;
            for (uint32_t i = 0; i < kiln_node_output_count(self.graph().view(), self.number); ++i)
              all.append(value_object(self.graph_object, self.number << 32 | i));
            return nb::tuple(all);
          },
          "Its values.")
      .def("attr", &attr_of, nb::arg("name"), "One attribute, defaults included.")
      .def_prop_ro(
          "attrs", [](const Node &self) { return attrs_of(self, kiln_node_attrs); },
          "Those that differ from their defaults.")
      .def_prop_ro(
          "annotations", [](const Node &self) { return attrs_of(self, kiln_node_annotations); }, "All of them.")
      .def(
          "annotate",
          [](const Node &self, nb::handle annotations) { annotate(self.graph_object, self.number, annotations); },
          nb::arg("annotations"), "Sets annotations; None takes one away.")
      .def_prop_ro(
          "constant",
          [](const Node &self) {
            const DLTensor *tensor = nullptr;
            check(kiln_node_constant(self.graph().view(), self.number, &tensor));
            return copy_of(*tensor);
          },
          "Of a constant: its elements.")
      .def(
          "__eq__",
          [](const Node &self, nb::handle other) {
            return nb::isinstance<Node>(other) && nb::inst_ptr<Node>(other)->number == self.number &&
                   nb::inst_ptr<Node>(other)->graph_object.is(self.graph_object);
          },
          nb::arg("other").none())
      .def("__hash__", [](const Node &self) { return self.number; })
      .def("__repr__", [](const Node &self) {
        nb::object op = op_of(self);
        return "<kiln.Node '" + nb::cast<std::string>(name_of(self)) + "' " +
               (op.is_none() ? kind_of(self) : nb::cast<std::string>(op)) + ">";
      });
  module.def(
      "add_node",
      [](const std::string &op, const nb::tuple &operands, const nb::object &attrs, const nb::object &name,
         const nb::object &graph) {
        return add_node(graph, op, &PyTuple_GET_ITEM(operands.ptr(), 0), operands.size(), attrs, name);
      },
      nb::arg("op"), nb::arg("operands"), nb::arg("attrs").none() = nb::none(), nb::arg("name").none() = nb::none(),
      nb::arg("graph").none() = nb::none(),
      "Adds a node to the graph of its operands, or to the one that is being built.");
}
}  // namespace kiln_python
