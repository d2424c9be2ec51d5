// Ops of Python's.
#include "arrays.h"
#include "attrs.h"
#include "callbacks.h"
#include "dims.h"
#include "dtypes.h"
#include "graph.h"

namespace kiln_python {
namespace {
nb::tuple types_of(kiln_op_call *call) {
  kiln_context *context = kiln_op_call_context(call);
  nb::list types;
  for (uint32_t i = 0; i < kiln_op_call_operand_count(call); ++i) {
    kiln_dtype dtype = 0;
    check(kiln_op_call_dtype(call, i, &dtype));
    const auto dims = list<kiln_dim>(kiln_op_call_dims, call, i);
    types.append(package("kiln._hosts").attr("Type")(dtype_object(dtype), from_dims(context, dims)));
  }
  return nb::tuple(types);
}

nb::dict attrs_of(Callback &owner, kiln_op_call *call) {
  nb::dict attrs;
  for (nb::handle name : nb::object(nb::handle(owner.object).attr("attr_names"))) {
    kiln_attr attr;
    const std::string_view text = utf8(name, "an attribute's name");
    check(kiln_op_call_attr(call, text.data(), text.size(), &attr));
    attrs[name] = from_attr(owner.context, attr);
  }
  return attrs;
}

kiln_error *infer(void *user, kiln_op_call *call) {
  return callback([&] {
    auto &owner = *static_cast<Callback *>(user);
    nb::object results = nb::handle(owner.object).attr("infer_types")(types_of(call), attrs_of(owner, call));
    uint32_t index = 0;
    for (nb::handle result : results) {
      const auto dims = to_dims(kiln_op_call_context(call), result.attr("shape"));
      kiln_type type{};
      type.struct_size = sizeof type;
      type.dtype = to_dtype(result.attr("dtype"));
      type.rank = static_cast<uint32_t>(dims.size());
      type.dims = dims.data();
      check(kiln_op_call_result(call, index++, &type));
    }
  });
}

kiln_error *decompose(void *user, kiln_op_call *call) {
  return callback([&] {
    auto &owner = *static_cast<Callback *>(user);
    nb::object graph =
        nb::cast(std::make_unique<Graph>(nb::borrow(owner.context), EditHandle(kiln_op_call_edit(call))));
    nb::list operands;
    for (uint32_t i = 0; i < kiln_op_call_operand_count(call); ++i)
      operands.append(value_object(graph, kiln_op_call_operand(call, i)));
    nb::object results =
        nb::handle(owner.object).attr("decompose_in")(graph, nb::tuple(operands), attrs_of(owner, call));
    uint32_t index = 0;
    for (nb::handle result : results) check(kiln_op_call_yield(call, index++, nb::cast<Value &>(result).number));
  });
}

// The attributes of the node, which run is not told.
kiln_error *open(void *user, kiln_op_call *call, void **out_state) {
  return callback([&] { *out_state = attrs_of(*static_cast<Callback *>(user), call).release().ptr(); });
}

kiln_error *run(void *user, void *state, const DLTensor *const *arrays, uint64_t count, const kiln_run_options *) {
  return callback([&] {
    auto &owner = *static_cast<Callback *>(user);
    const CallbackArrays lent(arrays, count, nb::cast<uint64_t>(nb::handle(owner.object).attr("result_count")));
    nb::handle(owner.object).attr("run_on")(lent.list(), nb::handle(static_cast<PyObject *>(state)));
    lent.give_back();
  });
}

void close(void *, void *state) {
  if (!Py_IsInitialized()) return;
  nb::gil_scoped_acquire locked;
  Py_DECREF(static_cast<PyObject *>(state));
}

void register_op(nb::handle context, nb::handle object) {
  const auto schema = nb::cast<std::string>(object.attr("schema_json"));
  const nb::object uuid = object.attr("uuid_bytes");
  auto owner = std::make_unique<Callback>(context, object);
  kiln_op_def op{};
  op.struct_size = sizeof op;
  op.schema = schema.data();
  op.schema_size = schema.size();
  if (!uuid.is_none()) {
    op.uuid = reinterpret_cast<const uint8_t *>(PyBytes_AsString(uuid.ptr()));
    op.flags = KILN_OP_UUID_SUFFICES;
  }
  op.user = owner.get();
  op.infer = infer;
  if (nb::cast<bool>(object.attr("has_decomposition"))) op.decompose = decompose;
  if (nb::cast<bool>(object.attr("has_run"))) {
    op.open = open;
    op.run = run;
    op.close = close;
  }
  op.destroy = Callback::destroy;
  check(kiln_op_register(nb::inst_ptr<Context>(context)->get(), &op, nullptr));
  (void)owner.release();
}
}  // namespace

void add_host_ops(nb::module_ &module) {
  module.def("register_op", &register_op, nb::arg("context"), nb::arg("op"), "For good.");
}
}  // namespace kiln_python
