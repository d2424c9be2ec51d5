#include "executable.h"

#include "attrs.h"
#include "call.h"
#include "graph.h"

namespace kiln_python {
namespace {
BlobHandle listing(kiln_executable *executable, std::string_view what) {
  kiln_blob *blob = nullptr;
  check(kiln_executable_text(executable, what.data(), what.size(), &blob));
  return BlobHandle(blob);
}

nb::object description_of(kiln_executable *executable) {
  kiln_report *report = nullptr;
  check(kiln_executable_describe(executable, &report));
  return to_python(ReportHandle(report));
}

BlobHandle bytes_of(kiln_executable *executable) {
  kiln_blob *blob = nullptr;
  check(kiln_executable_bytes(executable, nullptr, &blob));
  return BlobHandle(blob);
}

// KILN_OPEN of a file's path, or of bytes.
std::shared_ptr<Program> open(nb::handle context, nb::handle source, const std::string &expect_key) {
  OptionsHandle options;
  if (!expect_key.empty()) {
    nb::dict expected;
    expected["expect_key"] = expect_key;
    options = to_options(expected, nb::handle());
  }
  kiln_executable *executable = nullptr;
  kiln_error *error = nullptr;
  forget_exception();
  kiln_context *in = nb::inst_ptr<Context>(context)->get();
  if (PyObject_CheckBuffer(source.ptr())) {
    nb::bytes bytes(nb::borrow(source));
    nb::gil_scoped_release unlocked;
    error = kiln_executable_open_bytes(in, bytes.c_str(), bytes.size(), options.get(), &executable);
  } else {
    const auto path = nb::cast<std::string>(package("os").attr("fspath")(source));
    nb::gil_scoped_release unlocked;
    error = kiln_executable_open(in, path.data(), path.size(), options.get(), &executable);
  }
  check(error);
  return Program::make(nb::borrow(context), ExecutableHandle(executable), ReportHandle());
}

nb::list names(const std::vector<Slot> &slots) {
  nb::list all;
  for (const Slot &slot : slots) all.append(str(slot.name));
  return all;
}

void save(Executable &self, nb::handle path, bool packed) {
  const auto text = nb::cast<std::string>(package("os").attr("fspath")(path));
  nb::dict options;
  options["packed"] = packed;
  OptionsHandle owned = to_options(options, nb::handle());
  kiln_error *error = nullptr;
  {
    nb::gil_scoped_release unlocked;
    error = kiln_executable_save(self.program->handle.get(), text.data(), text.size(), owned.get());
  }
  check(error);
}

nb::object join(const nb::list &executables) {
  std::vector<const kiln_executable *> all;
  for (nb::handle each : executables) all.push_back(nb::cast<Executable &>(each).program->handle.get());
  if (all.empty()) raise(KILN_INVALID_ARGUMENT, "at least one executable was expected");
  kiln_executable *joined = nullptr;
  check(kiln_executable_join(all.data(), all.size(), &joined));
  nb::object context = nb::cast<Executable &>(executables[0]).program->context;
  return make_inline<Executable>(Program::make(context, ExecutableHandle(joined), ReportHandle()));
}
}  // namespace

Program::Program(nb::object in, ExecutableHandle owned, ReportHandle report, nb::handle description)
    : context(std::move(in)), handle(std::move(owned)), signature(description), compile_report(std::move(report)) {
  // Anything but kernels may call back or loop; so may an entry, which is another program.
  may_wait = nb::len(nb::object(description["entries"])) > 1;
  const BlobHandle plan = listing(handle.get(), "plan");
  std::string_view lines = view(plan);
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    constexpr std::string_view writes = "writes input ";
    if (line.starts_with(writes)) written.push_back(static_cast<size_t>(signature.find(line.substr(writes.size()))));
    if (line.starts_with("step ") && line.find(": kernel ") == std::string_view::npos) may_wait = true;
  }
}

std::shared_ptr<Program> Program::make(nb::object context, ExecutableHandle handle, ReportHandle report) {
  const nb::object description = description_of(handle.get());
  return std::make_shared<Program>(std::move(context), std::move(handle), std::move(report), description);
}

nb::object Program::describe() const { return description_of(handle.get()); }

Executable::Executable(std::shared_ptr<Program> of) : vectorcall(call_executable), program(std::move(of)) {}
Executable::~Executable() = default;

nb::object compile(nb::handle context, Graph &graph, const nb::object &options, const nb::kwargs &keywords) {
  OptionsHandle owned = to_options(options, keywords);
  const std::shared_ptr<const kiln_graph> finished = graph.shared();
  kiln_context *in = nb::inst_ptr<Context>(context)->get();
  kiln_executable *executable = nullptr;
  kiln_report *report = nullptr;
  kiln_error *error = nullptr;
  forget_exception();
  {
    nb::gil_scoped_release unlocked;
    error = kiln_compile(in, finished.get(), owned.get(), &executable, &report);
  }
  check(error);
  ExecutableHandle made(executable);
  return make_inline<Executable>(Program::make(nb::borrow(context), std::move(made), ReportHandle(report)));
}

nb::object load(nb::handle context, nb::handle source, const std::string &expect_key) {
  return make_inline<Executable>(open(context, source, expect_key));
}

void add_executable(nb::module_ &module) {
  static const PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)}, {0, nullptr}};
  nb::class_<Executable> type(module, "Executable", nb::is_final(), nb::is_weak_referenceable(), nb::type_slots(slots),
                              "A compiled graph. Calling it with its inputs gives its outputs; any thread may.");
  type.def(
          "bind",
          [](Executable &self, const nb::object &arrays, int64_t device, const nb::kwargs &keywords) {
            nb::object call = make_inline<Call>(self.program, device);
            nb::inst_ptr<Call>(call)->runner.bind_all(arrays, keywords);
            return call;
          },
          nb::arg("arrays").none() = nb::none(), nb::kw_only(), nb::arg("device") = 0, nb::arg("keywords"),
          "A call with parameters, inputs or outputs bound, by their names, as a dict or as keywords. `device`: of the "
          "GPUs, if the program is for one.")
      .def("save", &save, nb::arg("path"), nb::kw_only(), nb::arg("packed") = true,
           "Writes the artifact into a file, or, not packed, into a folder that a person reads and edits.")
      .def(
          "to_bytes", [](Executable &self) { return to_bytes(bytes_of(self.program->handle.get())); },
          "The artifact's bytes.")
      .def(
          "describe", [](Executable &self) { return self.program->describe(); },
          "Backend, target, key, signature, kernels, steps, memory, as a dict.")
      .def(
          "text",
          [](Executable &self, const std::string &what) {
            return str(view(listing(self.program->handle.get(), what)));
          },
          nb::arg("what"), "A listing: \"plan\", \"graph\", \"kernels\", \"llvm\", \"asm\" or \"cuda\".")
      .def_prop_ro(
          "context", [](Executable &self) { return self.program->context; }, "The context that it was compiled in.")
      .def_prop_ro(
          "report", [](Executable &self) { return to_python(self.program->compile_report); },
          "What the compile did: lookup, reason, passes, kernels, phases, ...; None of one that was loaded.")
      .def_prop_ro(
          "input_names", [](Executable &self) { return nb::tuple(names(self.program->signature.inputs)); }, "In order.")
      .def_prop_ro(
          "parameter_names", [](Executable &self) { return nb::tuple(names(self.program->signature.parameters)); },
          "In order.")
      .def_prop_ro(
          "output_names", [](Executable &self) { return nb::tuple(names(self.program->signature.outputs)); },
          "In order.")
      .def("__reduce__",
           [](Executable &self) {
             return nb::make_tuple(package("kiln").attr("load"),
                                   nb::make_tuple(to_bytes(bytes_of(self.program->handle.get()))));
           })
      .def("__repr__", [](Executable &self) {
        const auto joined = [](const std::vector<Slot> &side) {
          std::string all;
          for (const Slot &slot : side) all += (all.empty() ? "" : ", ") + slot.name;
          return all;
        };
        return "<kiln.Executable (" + joined(self.program->signature.inputs) + ") -> (" +
               joined(self.program->signature.outputs) + ")>";
      });
  set_vectorcall(type);
  module.def("join", &join, nb::arg("executables"),
             "What was compiled of one graph for several targets, as one executable, which runs the best that fits.");
}
}  // namespace kiln_python
