// Functions of Python's that run nodes. Kiln calls them by libffi, with pointers alone: arrays, and attributes by
// address.
#include <array>
#include <utility>

#include "arrays.h"
#include "attrs.h"
#include "callbacks.h"

namespace kiln_python {
namespace {
constexpr size_t kMost = 16;  // arguments

// What the signature says of an argument; arrays come first.
struct Function : Callback {
  using Callback::Callback;
  size_t arrays = 0, results = 0;
  std::vector<uint32_t> kinds;  // of the attributes behind them
};

kiln_error *run(const Function &function, const std::array<const void *, kMost> &arguments) {
  return callback([&] {
    nb::list attrs;
    for (size_t i = 0; i < function.kinds.size(); ++i)
      attrs.append(from_attr(function.context, {"", 0, function.kinds[i], 0, 1, arguments[function.arrays + i]}));
    auto *tensors = reinterpret_cast<const DLTensor *const *>(arguments.data());
    const CallbackArrays lent(tensors, function.arrays, function.results);
    nb::handle(function.object).attr("run_on")(lent.list(), attrs);
    lent.give_back();
  });
}

template <size_t>
using Pointer = const void *;
template <size_t... place>
auto entry_of(std::index_sequence<place...>) {
  return reinterpret_cast<void (*)()>(+[](Pointer<place>... arguments, Callback *user) {
    return run(static_cast<const Function &>(*user), {arguments...});
  });
}
template <size_t... count>
auto entries_of(std::index_sequence<count...>) {
  return std::array{entry_of(std::make_index_sequence<count>())...};
}

uint64_t register_function(nb::handle context, nb::handle object) {
  static const auto entries = entries_of(std::make_index_sequence<kMost + 1>());
  const auto name = nb::cast<std::string>(object.attr("name")), version = nb::cast<std::string>(object.attr("version"));
  const auto signature = nb::cast<std::string>(object.attr("signature"));
  const nb::object uuid = object.attr("uuid_bytes");
  auto owner = std::make_unique<Function>(context, object);
  owner->arrays = nb::cast<size_t>(object.attr("array_count"));
  owner->results = nb::cast<size_t>(object.attr("result_count"));
  for (nb::handle kind : nb::object(object.attr("attr_kinds"))) owner->kinds.push_back(attr_kind(utf8(kind, "kind")));
  const size_t count = owner->arrays + owner->kinds.size();
  if (count > kMost)
    raise(KILN_UNIMPLEMENTED, "'" + name + "' has " + std::to_string(count) + " arguments, at most 16 are passed");
  kiln_function function{};
  function.struct_size = sizeof function;
  function.name = name.data();
  function.name_size = name.size();
  function.version = version.data();
  function.version_size = version.size();
  function.signature = signature.data();
  function.signature_size = signature.size();
  if (!uuid.is_none()) {
    function.uuid = reinterpret_cast<const uint8_t *>(PyBytes_AsString(uuid.ptr()));
    function.flags = KILN_FUNCTION_UUID_SUFFICES;
  }
  function.pointer = entries[count];
  function.user = static_cast<Callback *>(owner.get());
  function.destroy = Callback::destroy;
  uint64_t id = 0;
  check(kiln_function_register(nb::inst_ptr<Context>(context)->get(), &function, &id));
  (void)owner.release();
  return id;
}

uint64_t register_fallback(Context &context, const std::string &op, const std::string &function) {
  kiln_op number = 0;
  uint64_t id = 0;
  check(kiln_op_find(context.get(), op.data(), op.size(), &number));
  check(kiln_fallback_register(context.get(), number, function.data(), function.size(), &id));
  return id;
}
}  // namespace

void add_functions(nb::module_ &module) {
  module.def("register_function", &register_function, nb::arg("context"), nb::arg("function"), "Its id.");
  module.def(
      "unregister_function", [](Context &context, uint64_t id) { check(kiln_function_unregister(context.get(), id)); },
      nb::arg("context"), nb::arg("id"), "Executables that use it keep it.");
  module.def("register_fallback", &register_fallback, nb::arg("context"), nb::arg("op"), nb::arg("function"),
             "From now on the function runs the op's nodes that fall back; the id of that.");
  module.def(
      "unregister_fallback", [](Context &context, uint64_t id) { check(kiln_fallback_unregister(context.get(), id)); },
      nb::arg("context"), nb::arg("id"), "Nodes of the op fall back to what Kiln makes of it.");
}
}  // namespace kiln_python
