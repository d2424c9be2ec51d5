#include "graph.h"

#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "attrs.h"
#include "dims.h"
#include "dtypes.h"

namespace kiln_python {
namespace {
kiln_type type_of(kiln_dtype dtype, const std::vector<kiln_dim> &dims, const std::vector<kiln_dim> *strides) {
  kiln_type type{};
  type.struct_size = sizeof type;
  type.dtype = dtype;
  type.rank = static_cast<uint32_t>(dims.size());
  type.dims = dims.data();
  if (strides) {
    type.layout = KILN_LAYOUT_STRIDED;
    type.strides = strides->data();
  }
  return type;
}

using AddArgument = kiln_error *(*)(kiln_edit *, const char *, uint64_t, const kiln_type *, kiln_value *);

nb::object add_argument(nb::handle self, AddArgument add, const std::string &name, nb::handle dtype, nb::handle shape,
                        nb::handle strides) {
  Graph &graph = *nb::inst_ptr<Graph>(self);
  const auto dims = to_dims(graph.context().get(), shape);
  std::vector<kiln_dim> steps;
  if (!strides.is_none()) steps = to_dims(graph.context().get(), strides);
  if (!strides.is_none() && steps.size() != dims.size())
    raise(KILN_TYPE_MISMATCH,
          "[" + name + "] " + std::to_string(steps.size()) + " strides of " + std::to_string(dims.size()) + " dims");
  const kiln_type type = type_of(to_dtype(dtype), dims, strides.is_none() ? nullptr : &steps);
  kiln_value value = 0;
  check(add(graph.edit(), name.data(), name.size(), &type, &value));
  return value_object(self, value);
}

nb::object add_constant(nb::handle self, nb::handle array, nb::handle dtype, const std::string &name) {
  Graph &graph = *nb::inst_ptr<Graph>(self);
  BorrowedArray borrowed(array, dtype.is_none() ? 0 : to_dtype(dtype), "a constant");
  if (!dtype.is_none() && dtype_of(borrowed.tensor().dtype) != &dtype_of(to_dtype(dtype)))
    raise(KILN_TYPE_MISMATCH, "the constant's array is of another dtype than " + dtype_of(to_dtype(dtype)).name);
  kiln_value value = 0;
  check(kiln_edit_constant(graph.edit(), name.data(), name.size(), &borrowed.tensor(), &value));
  return value_object(self, value);
}

void add_output(nb::handle self, const Value &value, nb::handle name, nb::handle strides, bool is_view) {
  Graph &graph = *nb::inst_ptr<Graph>(self);
  if (!value.graph_object.is(self)) raise(KILN_INVALID_ARGUMENT, "an output is a value of another graph");
  const auto count = list<kiln_value>(kiln_graph_signature, graph.view(), uint32_t{KILN_SIDE_OUTPUTS}).size();
  const std::string made = name.is_none() ? "output" + std::to_string(count) : std::string(utf8(name, "name"));
  kiln_output output{};
  output.struct_size = sizeof output;
  output.flags = is_view ? KILN_OUTPUT_VIEW : 0;
  output.value = value.number;
  output.name = made.data();
  output.name_size = made.size();
  kiln_type type{};
  std::vector<kiln_dim> dims, steps;
  if (!strides.is_none()) {
    kiln_dtype dtype = 0;
    check(kiln_value_dtype(graph.view(), value.number, &dtype));
    dims = list<kiln_dim>(kiln_value_dims, graph.view(), value.number);
    const bool any = PyUnicode_Check(strides.ptr()) && utf8(strides, "strides") == "any";
    if (!any) steps = to_dims(graph.context().get(), strides);
    type = type_of(dtype, dims, any ? nullptr : &steps);
    if (any) type.layout = KILN_LAYOUT_ANY;
    output.type = &type;
  }
  check(kiln_edit_output(graph.edit(), &output));
}

nb::tuple values_of(nb::handle self, uint32_t side) {
  nb::list all;
  for (kiln_value value : list<kiln_value>(kiln_graph_signature, nb::inst_ptr<Graph>(self)->view(), side))
    all.append(value_object(self, value));
  return nb::tuple(all);
}

nb::str written(const kiln_graph *graph, std::string_view format) {
  kiln_blob *blob = nullptr;
  check(kiln_graph_write(graph, format.data(), format.size(), &blob));
  return str(view(BlobHandle(blob)));
}

nb::str to_json(Graph &graph) { return written(graph.finished(), "json"); }

// For people, who print a graph to see what is wrong with it, too: one that cannot be finished as it stands, after a
// line that says why.
nb::object printed(Graph &graph, std::string_view format, const char *comment) {
  nb::str why("");
  try {
    return written(graph.finished(), format);
  } catch (nb::python_error &error) {
    if (!error.matches(package("kiln._errors").attr("Error"))) throw;
    why = nb::str(nb::str(error.value()).attr("replace")("\n", " "));  // one line, as a comment is
  }
  return nb::str("{} not finished: {}\n{}").format(comment, why, written(graph.view(), format));
}
nb::object to_text(Graph &graph) { return printed(graph, "text", "#"); }

void parse(Graph *self, const std::string &json, const nb::object &context) {
  nb::object owner;
  Context &in = context_or_default(context, owner);
  kiln_graph *graph = nullptr;
  check(kiln_graph_parse(in.get(), json.data(), json.size(), &graph));
  new (self) Graph(std::move(owner), GraphHandle(graph));
}
}  // namespace

Graph::Graph(nb::object context, GraphHandle from) : context_(std::move(context)), finished_(std::move(from)) {}

Graph::Graph(nb::object context, EditHandle edit) : context_(std::move(context)), edit_(std::move(edit)) {}

kiln_edit *Graph::edit() {
  if (!edit_) {
    kiln_edit *edit = nullptr;
    check(kiln_edit_begin(context().get(), finished_.get(), &edit));
    edit_.reset(edit);
  }
  finished_.reset();
  return edit_.get();
}

const kiln_graph *Graph::view() {
  if (!edit_ && !finished_) edit();
  return edit_ ? kiln_edit_view(edit_.get()) : finished_.get();
}

std::shared_ptr<const kiln_graph> Graph::shared() {
  if (!finished_) {
    if (!edit_) edit();
    kiln_graph *graph = nullptr;
    check(kiln_edit_finish(edit_.get(), &graph));
    finished_ = GraphHandle(graph);
  }
  return finished_;
}

nb::object graph_of(nb::handle context, const kiln_graph *graph) {
  if (!graph) return nb::none();
  kiln_edit *edit = nullptr;
  check(kiln_edit_begin(nb::inst_ptr<Context>(context)->get(), graph, &edit));
  EditHandle owned(edit);
  kiln_graph *copy = nullptr;
  check(kiln_edit_finish(edit, &copy));
  return nb::cast(std::make_unique<Graph>(nb::borrow(context), GraphHandle(copy)));
}

namespace {
std::vector<uint32_t> plan_parts(const std::vector<uint32_t> &colors, const std::vector<std::vector<uint32_t>> &uses) {
  if (colors.size() != uses.size())
    raise(KILN_INVALID_ARGUMENT, "[plan_parts] " + std::to_string(colors.size()) + " colors, and uses of " +
                                     std::to_string(uses.size()) + " nodes");
  std::vector<uint64_t> begins = {0};
  std::vector<uint32_t> all, parts(colors.size());
  for (const std::vector<uint32_t> &of_node : uses) {
    all.insert(all.end(), of_node.begin(), of_node.end());
    begins.push_back(all.size());
  }
  uint32_t count = 0;
  check(kiln_parts_plan(colors.size(), colors.data(), begins.data(), all.data(), parts.data(), &count));
  return parts;
}
}  // namespace

void add_graph(nb::module_ &module) {
  nb::class_<Graph>(module, "Graph", nb::is_weak_referenceable(),
                    "A graph of tensors that grows: inputs, parameters, constants and what ops make of them.")
      .def(
          "__init__",
          [](Graph *self, const nb::object &context) {
            nb::object owner;
            context_or_default(context, owner);
            new (self) Graph(std::move(owner), GraphHandle());
          },
          nb::arg("context").none() = nb::none(), "Empty; of the context, or of the default one.")
      .def_prop_ro(
          "context", [](Graph &self) { return self.context_object(); }, "The context that it belongs to.")
      .def(
          "input",
          [](nb::handle self, const std::string &name, nb::handle dtype, nb::handle shape, nb::handle strides,
             bool donate) {
            nb::object value = add_argument(self, kiln_edit_input, name, dtype, shape, strides);
            if (donate) {
              nb::dict annotation;
              annotation["kiln.donate"] = true;
              nb::handle(value).attr("annotate")(annotation);
            }
            return value;
          },
          nb::arg("name"), nb::arg("dtype"), nb::arg("shape") = nb::tuple(), nb::kw_only(),
          nb::arg("strides").none() = nb::none(), nb::arg("donate") = false,
          "Adds an input. Sizes are ints, Dims, or texts such as \"n\" or \"2*n + 1\"; strides are in elements. "
          "`donate`: "
          "a run may use its memory as its own.")
      .def(
          "parameter",
          [](nb::handle self, const std::string &name, nb::handle dtype, nb::handle shape, nb::handle strides) {
            return add_argument(self, kiln_edit_parameter, name, dtype, shape, strides);
          },
          nb::arg("name"), nb::arg("dtype"), nb::arg("shape") = nb::tuple(), nb::kw_only(),
          nb::arg("strides").none() = nb::none(),
          "Adds a parameter: a weight, bound once, whose value is not in the key.")
      .def("constant", &add_constant, nb::arg("array"), nb::arg("dtype").none() = nb::none(), nb::kw_only(),
           nb::arg("name") = "",
           "Adds a constant: an array (copied), or a number of `dtype`. It is in the key: meant for small things.")
      .def(
          "symbol",
          [](Graph &self, const std::string &name, int64_t min, nb::handle max, int64_t divisor, nb::handle hint) {
            kiln_symbol symbol{};
            symbol.struct_size = sizeof symbol;
            symbol.min = min;
            symbol.max = max.is_none() ? 0 : nb::cast<int64_t>(max);
            symbol.divisor = divisor;
            symbol.hint = hint.is_none() ? 0 : nb::cast<int64_t>(hint);
            check(kiln_edit_symbol(self.edit(), name.data(), name.size(), &symbol));
            return Dim{name};
          },
          nb::arg("name"), nb::kw_only(), nb::arg("min") = 0, nb::arg("max").none() = nb::none(),
          nb::arg("divisor") = 1, nb::arg("hint").none() = nb::none(),
          "Says what is known of a size: its bounds (both inclusive), what divides it, a likely value.")
      .def(
          "add",
          [](nb::handle self, const std::string &op, const nb::args &operands, nb::handle name, nb::handle attrs) {
            return add_node(self, op, &PyTuple_GET_ITEM(operands.ptr(), 0), operands.size(), attrs, name);
          },
          nb::arg("op"), nb::arg("operands"), nb::kw_only(), nb::arg("name").none() = nb::none(),
          nb::arg("attrs").none() = nb::none(),
          "Adds a node of an op by its name; a value, or a tuple of them where the op has several.")
      .def("output", &add_output, nb::arg("value"), nb::arg("name").none() = nb::none(), nb::kw_only(),
           nb::arg("strides").none() = nb::none(), nb::arg("view") = false,
           "Adds an output; without a name it is \"output0\", ... `strides` are in elements, or \"any\"; a `view` lies "
           "in "
           "the input that it is a view of.")
      .def(
          "clear_outputs", [](Graph &self) { check(kiln_edit_outputs(self.edit(), nullptr, nullptr, 0)); },
          "Takes all outputs away.")
      .def(
          "replace",
          [](Graph &self, const Value &from, const Value &to) {
            check(kiln_edit_replace(self.edit(), from.number, to.number));
          },
          nb::arg("from_"), nb::arg("to"), "Makes every use of a value a use of another one.")
      .def(
          "scope",
          [](nb::handle self, const nb::object &annotations, const nb::kwargs &named) {
            nb::dict all;
            if (!annotations.is_none()) all.update(nb::borrow<nb::dict>(annotations));
            all.update(nb::borrow<nb::dict>(named));
            return package("kiln._graph").attr("Scope")(self, all);
          },
          nb::arg("annotations").none() = nb::none(), nb::arg("named"),
          "`with`: nodes that are added inside get these annotations.")
      .def("__enter__",
           [](nb::handle self) {
             package("kiln._graph").attr("enter")(self);
             return nb::borrow(self);
           })
      .def("__exit__", [](nb::handle self, const nb::args &) { package("kiln._graph").attr("leave")(self); })
      .def(
          "push_scope",
          [](Graph &self, nb::handle annotations) {
            Attrs attrs(self.context().get());
            attrs.add_all(annotations);
            if (!attrs.size()) raise(KILN_INVALID_ARGUMENT, "a scope has at least one annotation");
            check(kiln_edit_scope(self.edit(), attrs.data(), attrs.size()));
          },
          nb::arg("annotations"), "Opens a scope: nodes that are added inside get these annotations.")
      .def(
          "pop_scope", [](Graph &self) { check(kiln_edit_scope(self.edit(), nullptr, 0)); },
          "Closes the innermost scope.")
      .def_prop_ro(
          "inputs", [](nb::handle self) { return values_of(self, KILN_SIDE_INPUTS); }, "Its inputs, in order.")
      .def_prop_ro(
          "parameters", [](nb::handle self) { return values_of(self, KILN_SIDE_PARAMETERS); },
          "Its parameters, in order.")
      .def_prop_ro(
          "outputs", [](nb::handle self) { return values_of(self, KILN_SIDE_OUTPUTS); }, "Its outputs, in order.")
      .def_prop_ro(
          "output_names",
          [](Graph &self) {
            nb::list names;
            const size_t count =
                list<kiln_value>(kiln_graph_signature, self.view(), uint32_t{KILN_SIDE_OUTPUTS}).size();
            for (uint64_t i = 0; i < count; ++i) {
              kiln_text name;
              check(kiln_graph_output_name(self.view(), i, &name));
              names.append(str(name));
            }
            return nb::tuple(names);
          },
          "Their names.")
      .def_prop_ro(
          "nodes",
          [](nb::handle self) {
            nb::list all;
            for (kiln_node node : list<kiln_node>(kiln_graph_nodes, nb::inst_ptr<Graph>(self)->view()))
              all.append(Node{nb::borrow(self), node});
            return nb::tuple(all);
          },
          "All nodes, each after those that it uses.")
      .def(
          "node",
          [](nb::handle self, const std::string &name) {
            kiln_node node = 0;
            check(kiln_graph_find(nb::inst_ptr<Graph>(self)->view(), name.data(), name.size(), &node));
            return Node{nb::borrow(self), node};
          },
          nb::arg("name"), "The node of that name.")
      .def(
          "extract",
          [](Graph &self, const std::string &key, const std::string &value) {
            kiln_graph *graph = nullptr;
            kiln_report *map = nullptr;
            check(kiln_graph_extract(self.context().get(), self.finished(), key.data(), key.size(), value.data(),
                                     value.size(), &graph, &map));
            nb::object made = nb::cast(std::make_unique<Graph>(self.context_object(), GraphHandle(graph)));
            return nb::make_tuple(made, to_python(ReportHandle(map)));
          },
          nb::arg("key"), nb::arg("value"),
          "The nodes with the annotation as a graph of its own, and which of its arguments is what.")
      .def(
          "finish", [](Graph &self) { self.finished(); }, "Verifies it as it stands; a compile does so, too.")
      .def(
          "describe",
          [](Graph &self) {
            kiln_report *report = nullptr;
            check(kiln_graph_describe(self.finished(), &report));
            return to_python(ReportHandle(report));
          },
          "Symbols, inputs, parameters and outputs, as a dict.")
      .def("to_json", to_json, "As JSON, which from_json reads back to an equal graph.")
      .def("to_text", to_text,
           "A line a node, for people. Of a graph that cannot be finished as it stands, the first line says why.")
      .def(
          "_repr_html_",
          [](Graph &self) {
            return "<pre>" + nb::cast<std::string>(package("html").attr("escape")(to_text(self))) + "</pre>";
          },
          "For notebooks.")
      .def(
          "to_dot", [](Graph &self) { return printed(self, "dot", "//"); }, "For Graphviz.")
      .def_static(
          "from_json",
          [](const std::string &json, const nb::object &context) {
            nb::object made = nb::inst_alloc(nb::type<Graph>());
            parse(nb::inst_ptr<Graph>(made), json, context);
            nb::inst_mark_ready(made);
            return made;
          },
          nb::arg("json"), nb::arg("context").none() = nb::none(), "Reads JSON, strictly. Errors say where.")
      .def("__str__", to_text)
      .def("__getstate__", to_json)
      .def("__setstate__", [](Graph *self, const std::string &json) { parse(self, json, nb::none()); });
  module.def(
      "plan_parts", plan_parts, nb::arg("colors"), nb::arg("uses"),
      "For each node of some graph, in an order in which it can run, the part that it belongs to. uses: of each, the\n"
      "numbers of those that it comes after. Nodes of one color go into as few parts as can be run one after\n"
      "another, by whose numbers they can run; one of color 0 is a part by itself.");
}
}  // namespace kiln_python
