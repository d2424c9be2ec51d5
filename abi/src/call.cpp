// Calls: binding arrays and running. On the hot path nothing here allocates once the first run has passed.
#include <cstddef>

#include "abi/src/convert.h"
#include "abi/src/options.h"
#include "jit/base/json_writer.h"
#include "runtime/report/step_report.h"

namespace kiln::abi {

namespace {

// What kiln_call_take hands out: the tensor, its shape and strides, and a share of the memory.
struct TakenTensor {
  DLManagedTensorVersioned managed{};
  std::vector<int64_t> shape, strides;
  std::shared_ptr<void> memory;
};

void delete_taken(DLManagedTensorVersioned *tensor) { delete static_cast<TakenTensor *>(tensor->manager_ctx); }

Result<RunRequest> read_run_options(const Checks &check, const kiln_run_options *options) {
  if (!options) return RunRequest();
  KILN_ASSIGN(const kiln_run_options in, check.request(options, "options"));
  if (in.flags & ~(KILN_RUN_ASYNC | KILN_RUN_STEPS)) return check.fail("options->flags has unknown bits: ", in.flags);
  const RunRequest how{
      .async = (in.flags & KILN_RUN_ASYNC) != 0, .stream = in.stream, .steps = (in.flags & KILN_RUN_STEPS) != 0};
  if (how.steps && how.returns_early())
    return check.fail("options->flags: KILN_RUN_STEPS waits for each step, KILN_RUN_ASYNC or a stream for none");
  return how;
}

// What there is of the parameters, part by part.
void write_prepared(const Call &call, JsonWriter &json) {
  const std::vector<Plan::Argument> &parameters = call.executable().plan().parameters;
  uint64_t steps = 0;
  json.key("prepared").begin_list();
  for (const auto &part : call.prepared_parts()) {
    json.begin_object().key("parameters").begin_list();
    for (const uint32_t number : part->parameters) json.value(parameters[number].name);
    json.end_list().member("bytes", part->mapped_bytes + part->private_bytes);
    json.member("lookup", name_of(part->outcome)).member("reason", part->reason).member("steps", part->steps);
    json.end_object();
    steps += part->steps;
  }
  json.end_list().member("prepare_steps", steps);
  const std::shared_ptr<const Weights> &weights = call.executable().weights();
  if (!weights) return;
  json.key("weights").begin_object().member("path", weights->path()).member("mapped_bytes", weights->bytes().size());
  json.member("verified", weights->is_verified()).key("parameters").begin_list();
  for (const uint32_t number : call.stored_parameters()) json.value(parameters[number].name);
  json.end_list().end_object();
}

DLDevice dlpack_device(const ArrayPlace &place) { return {static_cast<DLDeviceType>(place.device_type), place.index}; }

kiln_call *make_call(const std::shared_ptr<Context> &context, std::unique_ptr<Call> call) {
  return new kiln_call{{}, {}, {context, &LiveCounts::calls}, std::move(call), {}};
}

kiln_error *open_call(const char *function, kiln_executable *executable, const kiln_options *options, kiln_call **out) {
  return deep_entry(function, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(executable, "executable"));
    KILN_TRY(check.optional_handle(options, "options"));
    KILN_TRY(check.pointer(out, "out"));
    KILN_ASSIGN(const AttrMap given, check_options("call", {{"device", int64_t{0}}}, values_of(options)));
    uint32_t device = 0;
    if (Status status = from_attr(given.find("device")->second, device); !status.ok())
      return std::move(status).with_prefix("option 'device' ");
    const std::shared_ptr<Context> &context = executable->live.context();
    KILN_ASSIGN(std::unique_ptr<Call> call,
                Call::create(executable->executable, context->tell_of_runs(), device, context->prepared_store()));
    *out = make_call(context, std::move(call));
    return {};
  });
}

}  // namespace
}  // namespace kiln::abi

using namespace kiln;
using namespace kiln::abi;

kiln_error *kiln_call_create(kiln_executable *executable, kiln_call **out) {
  return open_call(__func__, executable, nullptr, out);
}

kiln_error *kiln_call_open(kiln_executable *executable, const kiln_options *options, kiln_call **out) {
  return open_call(__func__, executable, options, out);
}

kiln_error *kiln_call_clone(const kiln_call *call, kiln_call **out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    KILN_TRY(check.pointer(out, "out"));
    KILN_ASSIGN(std::unique_ptr<Call> clone, call->call->clone());
    *out = make_call(call->live.context(), std::move(clone));
    return {};
  });
}

kiln_error *kiln_call_slot(const kiln_call *call, const char *name, uint64_t name_size, uint32_t *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    KILN_ASSIGN(const std::string_view wanted, check.text(name, name_size, "name"));
    KILN_TRY(check.pointer(out, "out"));
    KILN_ASSIGN(*out, call->call->slot(wanted));
    return {};
  });
}

kiln_error *kiln_call_bind(kiln_call *call, uint32_t slot, const DLTensor *tensor) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    if (!tensor) return call->call->bind(slot, ArrayRef(), nullptr);
    KILN_ASSIGN(const ArrayRef array, read_array(*tensor, "tensor"));
    return call->call->bind(slot, array, nullptr);
  });
}

kiln_error *kiln_call_bind_owned(kiln_call *call, uint32_t slot, DLManagedTensorVersioned *tensor) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    KILN_TRY(check.pointer(tensor, "tensor"));
    if (tensor->version.major != DLPACK_MAJOR_VERSION)
      return error(Code::incompatible, "tensor is of DLPack version ", tensor->version.major, ", not ",
                   DLPACK_MAJOR_VERSION);
    KILN_ASSIGN(const ArrayRef array, read_array(tensor->dl_tensor, "tensor"));
    // Owned from here on, but only if the bind succeeds.
    auto owned = std::make_shared<bool>(false);
    std::shared_ptr<void> keep(tensor, [owned](void *managed) {
      auto *dead = static_cast<DLManagedTensorVersioned *>(managed);
      if (!*owned || !dead->deleter) return;
      const HostFloats floats;
      dead->deleter(dead);
    });
    KILN_TRY(call->call->bind(slot, array, keep));
    *owned = true;
    return {};
  });
}

kiln_error *kiln_call_bind_source(kiln_call *call, uint32_t slot, const DLTensor *type, const kiln_source *source) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    KILN_TRY(check.pointer(type, "type"));
    KILN_ASSIGN(const kiln_source in, check.request(source, "source"));
    if (in.reserved0) return check.fail("source->reserved0 is not 0");
    KILN_ASSIGN(const std::string path, check.path(in.path, in.path_size, "source->path"));
    if (type->data || type->byte_offset) return check.fail("type->data is not NULL, or its byte_offset is not 0");
    DLTensor there = *type;
    there.data = call;  // any: what the file has is not known yet
    KILN_ASSIGN(ArrayRef array, read_array(there, "type"));
    if (!array.place.is_host())
      return check.fail("type is on ", text_of(array.place), ", expected ", text_of(ArrayPlace()));
    array.data = nullptr;
    std::optional<Digest> digest;
    if (in.digest && (in.digest_size < 16 || in.digest_size > 64))
      return check.fail("source->digest has ", in.digest_size, " bytes, expected 16 to 64");
    if (!in.digest && in.digest_size) return check.fail("source->digest is NULL, and its size is ", in.digest_size);
    if (in.digest) digest = digest_of(ByteSpan(in.digest, in.digest_size));
    return call->call->bind_source(slot, array, path, in.offset, digest);
  });
}

kiln_error *kiln_call_run(kiln_call *call, const DLTensor *const *args, uint64_t count,
                          const kiln_run_options *options) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    KILN_ASSIGN(const std::span<const DLTensor *const> given, check.array(args, count, "args"));
    KILN_ASSIGN(const RunRequest how, read_run_options(check, options));
    const Call::Use use(*call->call);
    if (!use.held()) return use.status();
    call->args.clear();
    for (const DLTensor *tensor : given) {
      if (!tensor) {
        call->args.emplace_back();
        continue;
      }
      Result<ArrayRef> array = read_array(*tensor, "its tensor");
      if (!array.ok())
        return array.take_status().with_prefix(str_cat(call->call->describe_argument(call->args.size()), ": "));
      call->args.push_back(*array);
    }
    return call->call->run(use, call->args, how);
  });
}

kiln_error *kiln_call_run_data(kiln_call *call, void *const *data, uint64_t count, const kiln_run_options *options) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    KILN_ASSIGN(const std::span<void *const> given, check.array(data, count, "data"));
    KILN_ASSIGN(const RunRequest how, read_run_options(check, options));
    return call->call->run_data(given, how);
  });
}

kiln_error *kiln_call_wait(kiln_call *call) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    return call->call->wait();
  });
}

kiln_error *kiln_call_poll(kiln_call *call, uint32_t *out_done) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    KILN_TRY(check.pointer(out_done, "out_done"));
    KILN_ASSIGN(const bool done, call->call->poll());
    *out_done = done;
    return {};
  });
}

kiln_error *kiln_call_cancel(kiln_call *call) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    call->call->cancel();
    return {};
  });
}

kiln_error *kiln_call_dims(const kiln_call *call, uint32_t slot, int64_t *buffer, uint64_t capacity,
                           uint64_t *out_rank) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    KILN_ASSIGN(const std::span<const int64_t> dims, call->call->dims(slot));
    return write_list(check, dims, buffer, capacity, out_rank);
  });
}

kiln_error *kiln_call_output(const kiln_call *call, uint32_t slot, const DLTensor **out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    KILN_TRY(check.pointer(out, "out"));
    const Call::Use use(*call->call);
    KILN_ASSIGN(const ArrayRef array, call->call->output(use, slot));
    DLTensor &tensor = call->outputs[slot];
    tensor = {};
    tensor.data = array.data;
    tensor.device = dlpack_device(array.place);
    tensor.ndim = static_cast<int32_t>(array.rank);
    tensor.dtype = dlpack_type(array.dtype);
    tensor.shape = const_cast<int64_t *>(array.shape);  // the struct is for reading alone
    tensor.strides = const_cast<int64_t *>(array.strides);
    *out = &tensor;
    return {};
  });
}

kiln_error *kiln_call_take(kiln_call *call, uint32_t slot, DLManagedTensorVersioned **out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    KILN_TRY(check.pointer(out, "out"));
    auto made = std::make_unique<TakenTensor>();
    KILN_ASSIGN(Call::Taken taken, call->call->take(slot));
    made->shape = std::move(taken.shape);
    made->strides = std::move(taken.strides);
    made->memory = std::move(taken.owner);
    made->managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    made->managed.manager_ctx = made.get();
    made->managed.deleter = delete_taken;
    DLTensor &tensor = made->managed.dl_tensor;
    tensor.data = taken.data;
    tensor.device = dlpack_device(taken.place);
    tensor.ndim = static_cast<int32_t>(made->shape.size());
    tensor.dtype = dlpack_type(taken.dtype);
    tensor.shape = made->shape.data();
    tensor.strides = made->strides.data();
    *out = &made.release()->managed;
    return {};
  });
}

kiln_error *kiln_call_report(const kiln_call *call, kiln_report **out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    KILN_TRY(check.pointer(out, "out"));
    KILN_TRY(call->call->check_landed());
    JsonWriter json;
    json.begin_object().member("memory_bytes", call->call->arena_bytes());
    json.member("entry", call->call->ran());
    write_prepared(*call->call, json);
    if (const std::vector<StepTimes::Row> rows = call->call->step_times(); !rows.empty()) {
      json.key("steps").begin_list();
      for (const StepTimes::Row &row : rows) {
        json.begin_object().member("plan", row.plan).member("step", row.step).member("what", row.what);
        json.member("runs", row.runs).member("ns", row.ns);
        if (row.planned->kind == Plan::Step::Kind::launch) {
          json.member("kernel", row.planned->kernel).member("bytes", row.bytes).member("flops", row.flops);
          write_origins(row.planned->origins, json);
        }
        json.end_object();
      }
      json.end_list();
    }
    json.end_object();
    *out = make_report(json.text()).release();
    return {};
  });
}

void kiln_call_destroy(kiln_call *call) {
  if (!call || !call->magic.ok()) return;
  answer(0, [&] {
    const DefaultFloats floats;
    (void)call->call->wait();
    return 0;
  });
  delete call;
}
