// Graph passes of Python's.
#include "attrs.h"
#include "callbacks.h"
#include "graph.h"

namespace kiln_python {
namespace {
// What a pass is told and asked inside one run; refused by Kiln afterwards.
struct PassCall {
  kiln_pass_call *call = nullptr;
  PyObject *context = nullptr;
};

void note(PassCall &self, const std::string &text) { check(kiln_pass_note(self.call, text.data(), text.size())); }
void warn(PassCall &self, const std::string &text) { check(kiln_pass_warn(self.call, text.data(), text.size())); }

kiln_error *run_pass(void *user, kiln_pass_call *call) {
  return callback([&] {
    auto &owner = *static_cast<Callback *>(user);
    auto made = std::make_unique<Graph>(nb::borrow(owner.context), EditHandle(kiln_pass_edit(call)));
    nb::object graph = nb::cast(std::move(made)), told = nb::cast(PassCall{call, owner.context});
    package("kiln._graph").attr("enter")(graph);
    nb::object rewrites;
    try {
      rewrites = nb::handle(owner.object).attr("run")(graph, told);
    } catch (...) {
      package("kiln._graph").attr("leave")(graph);
      throw;
    }
    package("kiln._graph").attr("leave")(graph);
    check(kiln_pass_done(call, nb::cast<uint64_t>(rewrites)));
  });
}

kiln_error *fingerprint(void *user, kiln_pass_call *call) {
  return callback([&] {
    auto &owner = *static_cast<Callback *>(user);
    nb::object bytes = nb::handle(owner.object).attr("fingerprint")();
    nb::bytes owned(bytes);
    check(kiln_pass_fingerprint_add(call, owned.c_str(), owned.size()));
  });
}

uint64_t register_pass(nb::handle context, nb::handle object) {
  const auto text_of = [&](const char *name) { return nb::cast<std::string>(object.attr(name)); };
  const auto number_of = [&](const char *name) { return nb::cast<int64_t>(object.attr(name)); };
  const std::string name = text_of("name"), version = text_of("version");
  const nb::object uuid = object.attr("uuid_bytes");
  Attrs options(nb::inst_ptr<Context>(context)->get());
  options.add_all(object.attr("options"));
  auto owner = std::make_unique<Callback>(context, object);
  kiln_pass pass{};
  pass.struct_size = sizeof pass;
  pass.stage = static_cast<uint32_t>(number_of("stage_number"));
  pass.timing = static_cast<uint32_t>(number_of("timing_number"));
  pass.priority = static_cast<int32_t>(number_of("priority"));
  pass.name = name.data();
  pass.name_size = name.size();
  pass.version = version.data();
  pass.version_size = version.size();
  if (!uuid.is_none()) {
    pass.uuid = reinterpret_cast<const uint8_t *>(PyBytes_AsString(uuid.ptr()));
    pass.flags = KILN_PASS_UUID_SUFFICES;
  }
  pass.options = options.data();
  pass.option_count = options.size();
  pass.user = owner.get();
  pass.run = run_pass;
  if (!object.attr("fingerprint").is_none()) pass.fingerprint = fingerprint;
  pass.destroy = Callback::destroy;
  uint64_t id = 0;
  check(kiln_pass_register(nb::inst_ptr<Context>(context)->get(), &pass, nullptr, &id));
  (void)owner.release();
  return id;
}
}  // namespace

void add_passes(nb::module_ &module) {
  nb::class_<PassCall>(module, "PassCall", nb::is_final(), "What a pass is told inside a run.")
      .def(
          "option",
          [](PassCall &self, const std::string &name) {
            kiln_attr attr;
            check(kiln_pass_option(self.call, name.data(), name.size(), &attr));
            return from_attr(self.context, attr);
          },
          nb::arg("name"), "The value of an option that the pass declared.")
      .def(
          "query",
          [](PassCall &self, const std::string &question) -> nb::object {
            kiln_attr answer;
            check(kiln_pass_query(self.call, question.data(), question.size(), &answer));
            return answer.kind == KILN_ATTR_NONE ? nb::none() : from_attr(self.context, answer);
          },
          nb::arg("question"),
          "What neither graph nor key has (\"env.HOME\", \"file./etc/hosts\": its digest, \"host.rank\", "
          "\"device.kind\"), so "
          "that the result may depend on it. None: there is none.")
      .def(
          "uncacheable",
          [](PassCall &self, const std::string &why) {
            check(kiln_pass_uncacheable(self.call, why.data(), why.size()));
          },
          nb::arg("why"), "What the pass makes is for this compile alone, and why.")
      .def("note", &note, nb::arg("text"), "A line for the report, and an event.")
      .def("warn", &warn, nb::arg("text"), "The same of what is likely not meant.");
  module.def("register_pass", &register_pass, nb::arg("context"), nb::arg("pass_"), "Its id.");
  module.def(
      "unregister_pass", [](Context &context, uint64_t id) { check(kiln_pass_unregister(context.get(), id)); },
      nb::arg("context"), nb::arg("id"), "Compiles that have begun keep it.");
}
}  // namespace kiln_python
