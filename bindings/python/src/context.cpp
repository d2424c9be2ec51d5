#include "context.h"

#include "attrs.h"
#include "events.h"
#include "executable.h"
#include "graph.h"

namespace kiln_python {
namespace {
std::string text_at(const kiln_report *report, const std::string &path) {
  kiln_text value;
  check(kiln_report_get_text(report, path.data(), path.size(), &value));
  return std::string(view(value));
}

bool bool_at(const kiln_report *report, const std::string &path) {
  uint32_t value = 0;
  check(kiln_report_get_bool(report, path.data(), path.size(), &value));
  return value;
}

uint64_t count_at(const kiln_report *report, std::string_view path) {
  uint64_t count = 0;
  check(kiln_report_count(report, path.data(), path.size(), &count));
  return count;
}

ReportHandle describe_op(kiln_context *context, kiln_op op, bool with_samples) {
  kiln_report *report = nullptr;
  check((with_samples ? kiln_op_describe : kiln_op_schema)(context, op, &report));
  return ReportHandle(report);
}

kiln_op find_op(kiln_context *context, std::string_view name) {
  kiln_op op = 0;
  check(kiln_op_find(context, name.data(), name.size(), &op));
  return op;
}

nb::list op_names(kiln_context *context) {
  nb::list names;
  for (uint64_t i = 0; i < kiln_op_count(context); ++i) {
    kiln_op op = 0;
    kiln_text name;
    check(kiln_op_at(context, i, &op));
    check(kiln_op_name(context, op, &name));
    names.append(str(name));
  }
  return names;
}
}  // namespace

const OpInfo::Attr *OpInfo::find(std::string_view name) const {
  for (const Attr &attr : attrs)
    if (attr.name == name) return &attr;
  return nullptr;
}

Context::Context(OptionsHandle options, nb::object on_event) {
  Events events(std::move(on_event));
  kiln_context *context = nullptr;
  check(kiln_context_create(options.get(), events.sink(), &context));
  events.taken();
  handle_.reset(context);
}

Context::~Context() = default;

void Context::close() {
  kiln_error *error = nullptr;
  {
    nb::gil_scoped_release unlocked;
    error = kiln_context_close(get());
  }
  check(error);
}

const OpInfo &Context::op(std::string_view name) {
  auto found = ops_.find(name);
  if (found != ops_.end()) return found->second;
  OpInfo info;
  info.number = find_op(get(), name);
  const ReportHandle report = describe_op(get(), info.number, false);
  for (uint64_t i = 0; i < count_at(report.get(), "args"); ++i) {
    const std::string at = "args." + std::to_string(i);
    info.same_dtype.push_back(bool_at(report.get(), at + ".same_dtype"));
    info.variadic = text_at(report.get(), at + ".arity") == "variadic";
  }
  for (uint64_t i = 0; i < count_at(report.get(), "attrs"); ++i) {
    const std::string at = "attrs." + std::to_string(i);
    info.attrs.push_back({text_at(report.get(), at + ".name"), attr_kind(text_at(report.get(), at + ".kind")),
                          bool_at(report.get(), at + ".list")});
  }
  info.results = count_at(report.get(), "results");
  return ops_.emplace(name, std::move(info)).first->second;
}

nb::object default_context() { return package("kiln").attr("default_context")(); }

Context &context_or_default(nb::handle object, nb::object &owner) {
  owner = object.is_valid() && !object.is_none() ? nb::borrow(object) : default_context();
  if (!nb::isinstance<Context>(owner))
    raise(KILN_TYPE_MISMATCH, std::string("a kiln.Context was expected, this is a ") + Py_TYPE(owner.ptr())->tp_name);
  return *nb::inst_ptr<Context>(owner);
}

void add_context(nb::module_ &module) {
  nb::class_<Context>(module, "Context",
                      "Threads, a cache, passes, ops and plugins; what is compiled is compiled in one.")
      .def(
          "__init__",
          [](Context *self, const nb::object &options, nb::object on_event, const nb::kwargs &keywords) {
            new (self) Context(to_options(options, keywords), std::move(on_event));
          },
          nb::arg("options").none() = nb::none(), nb::kw_only(), nb::arg("on_event").none() = nb::none(),
          nb::arg("keywords"),
          "Options of a context (`kiln options`) as keywords or a dict: threads, cache, ... `on_event` is given each "
          "event's kind and text; what it returns, if true, ends the compile or run.")
      .def("close", &Context::close, "Waits for background work. What was compiled still runs; more cannot be.")
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", [](Context &self, const nb::args &) { self.close(); })
      .def(
          "report",
          [](Context &self) {
            kiln_report *report = nullptr;
            check(kiln_context_report(self.get(), &report));
            return to_python(ReportHandle(report));
          },
          "Threads, cache, compiles, passes, ops, plugins and handles, as a dict.")
      .def(
          "cache",
          [](Context &self, const std::string &verb) {
            kiln_report *report = nullptr;
            kiln_error *error = nullptr;
            {
              nb::gil_scoped_release unlocked;
              error = kiln_cache_command(self.get(), verb.data(), verb.size(), nullptr, &report);
            }
            check(error);
            return to_python(ReportHandle(report));
          },
          nb::arg("verb"), "\"ls\", \"stats\", \"clear\" or \"verify\", as a dict.")
      .def(
          "load_plugin",
          [](Context &self, nb::handle path, const nb::object &options, const nb::kwargs &keywords) {
            const auto text = nb::cast<std::string>(package("os").attr("fspath")(path));
            OptionsHandle owned = to_options(options, keywords);
            check(kiln_plugin_load(self.get(), text.data(), text.size(), owned.get()));
          },
          nb::arg("path"), nb::arg("options").none() = nb::none(), nb::arg("keywords"),
          "Loads a plugin, with options of its passes: PASS.OPTION.")
      .def(
          "add", [](nb::handle self, nb::handle what) { return what.attr("add_to")(self); }, nb::arg("what"),
          "Makes a pass, an op or a function known; of a pass and a function it returns what takes it away.")
      .def(
          "set_fact",
          [](Context &self, const std::string &name, const nb::object &value) {
            Attrs fact(self.get());
            fact.add(name, value);
            check(kiln_fact_set(self.get(), fact.data()));
          },
          nb::arg("name"), nb::arg("value").none(),
          "What passes may ask for (`call.query(\"host.rank\")`) as \"host.NAME\". None takes it back.")
      .def_prop_ro(
          "op_names", [](Context &self) { return op_names(self.get()); }, "All ops, by name.")
      .def(
          "describe_op",
          [](Context &self, const std::string &name, bool samples) {
            return to_python(describe_op(self.get(), find_op(self.get(), name), samples));
          },
          nb::arg("name"), nb::kw_only(), nb::arg("samples") = true,
          "The op's schema, as a dict; and samples of its operands, which take far longer to make than the rest.")
      .def(
          "passes",
          [](Context &self, Graph &graph, const nb::object &options, const nb::kwargs &keywords) {
            kiln_report *report = nullptr;
            check(kiln_compile_passes(self.get(), graph.finished(), to_options(options, keywords).get(), &report));
            return to_python(ReportHandle(report));
          },
          nb::arg("graph"), nb::arg("options").none() = nb::none(), nb::arg("keywords"),
          "What a compile would run, in order, as a dict.")
      .def("compile", &compile, nb::arg("graph"), nb::arg("options").none() = nb::none(), nb::arg("keywords"),
           "Compiles a graph, or takes it from the cache. Options of a compile (`kiln options`) as keywords or a dict.")
      .def("load", &load, nb::arg("source"), nb::kw_only(), nb::arg("expect_key") = "",
           "An executable of a file, a folder, or bytes. Opening one is running its code: open what you trust.")
      .def("__reduce__", [](Context &) -> nb::object {
        raise(KILN_INVALID_ARGUMENT,
              "a kiln.Context cannot be pickled: it has threads and callbacks. Make one where it is needed");
      });
  module.def(
      "options",
      [] {
        kiln_report *report = nullptr;
        check(kiln_options_describe(&report));
        return to_python(ReportHandle(report));
      },
      "All options there are, of contexts and compiles, as a dict.");
  module.def(
      "build_report",
      [] {
        kiln_report *report = nullptr;
        check(kiln_build_report(&report));
        return to_python(ReportHandle(report));
      },
      "Version, build id and target of the library, as a dict.");
  module.def(
      "inspect_plugin",
      [](nb::handle path) {
        const auto text = nb::cast<std::string>(package("os").attr("fspath")(path));
        kiln_report *report = nullptr;
        check(kiln_plugin_inspect(text.data(), text.size(), &report));
        return to_python(ReportHandle(report));
      },
      nb::arg("path"), "What a plugin brings, as a dict.");
}
}  // namespace kiln_python
