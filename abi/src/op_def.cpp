// Ops of hosts and plugins: a kiln_op_def as a RegisteredOp, and what its functions call.
#include "abi/src/op_def.h"

#include <algorithm>

#include "abi/src/convert.h"
#include "abi/src/identity.h"
#include "abi/src/passing.h"
#include "abi/src/run_tensors.h"
#include "runtime/ops/read_schema.h"

namespace kiln::abi {

namespace {

using Call = Passing<kiln_op_call>;

// An op as messages name it.
struct Name {
  std::string_view op, plugin;
  Status of_plugin(Status status) const {
    if (!status.ok() && status.info()->plugin.empty()) status.info()->plugin = plugin;
    return status;
  }
  // With the op's name before it, too; what kiln_op_call_require_equal fails with has it already.
  Status blame(Status status) const {
    if (status.ok()) return status;
    const std::string prefix = str_cat("[", op, "] ");
    status = of_plugin(std::move(status));
    return status.message().starts_with(prefix) ? status : std::move(status).with_prefix(prefix);
  }
};

// One node's state of one call object, and its arrays in C form.
class Run final : public OpRun {
 public:
  Run(const kiln_op_def &def, Name name, Context &context, void *state)
      : def_(def), name_(name), context_(context), state_(state) {}
  ~Run() override {
    if (!state_ || !def_.close) return;
    std::string thrown = thrown_by([&] { def_.close(def_.user, state_); }, str_cat("close of op '", name_.op, "'"));
    if (!thrown.empty()) context_.add_end_failure(std::move(thrown));
  }

  void resize(std::span<const RunArray> arrays) override { tensors_.resize(arrays); }
  Status run(std::span<void *const> data) override {
    tensors_.place(data);
    return name_.blame(call_back([this] {
      static constexpr kiln_run_options options{.struct_size = sizeof options, .flags = 0, .stream = 0};
      return def_.run(def_.user, state_, tensors_.data(), tensors_.size(), &options);
    }));
  }

 private:
  const kiln_op_def &def_;
  const Name name_;
  Context &context_;
  void *const state_;
  RunTensors tensors_;
};

class Functions final : public OpFunctions {
 public:
  Functions(const kiln_op_def &def, const RegisteredOp &op, Context &context, std::shared_ptr<PluginInContext> plugin)
      : def_(def), op_(op), context_(context), plugin_(std::move(plugin)) {}
  ~Functions() override {
    // The context is gone, and nobody is left to be told what this throws.
    if (owned && def_.destroy) (void)thrown_by([&] { def_.destroy(def_.user); }, "");
  }

  Status infer(InferContext &c) const override {
    TensorType untold;
    untold.dtype = DType::none;
    c.results.assign(op_.result_names.size(), untold);
    if (op_.flags & op_flags::effect) c.results.back() = make_type(DType::token, {});
    const Call call(context_, op_, c);
    KILN_TRY(name().blame(call_back([&] { return def_.infer(def_.user, call.get()); })));
    for (size_t k = 0; k < c.results.size(); ++k) {
      const DType told = c.results[k].dtype;
      const auto which = [&] { return str_cat("result ", k, ", '", op_.result_names[k], "'"); };
      if (told == DType::none)
        return name().blame(error(Code::plugin_failed, "infer told no type of ", which(), " (kiln_op_call_result)"));
      const bool is_token = op_.flags & op_flags::effect && k + 1 == c.results.size();
      if (is_token != (told == DType::token))
        return name().blame(error(Code::plugin_failed, "infer told ", name_of(told), " of ", which(),
                                  "; tokens are the last results of ops with KILN_OP_EFFECT, and no other"));
    }
    return {};
  }
  Status decompose(DecomposeContext &c) const override {
    c.results.assign(op_.result_names.size(), ValueId());
    const Call call(context_, op_, c);
    return name().of_plugin(call_back([&] { return def_.decompose(def_.user, call.get()); }));
  }
  Result<std::unique_ptr<OpRun>> open(const Node &node, std::vector<TensorType> operands) const override {
    void *state = nullptr;
    if (def_.open) {
      const Call call(context_, op_, node.attrs, std::move(operands));
      KILN_TRY(name().blame(call_back([&] { return def_.open(def_.user, call.get(), &state); })));
    }
    return std::unique_ptr<OpRun>(std::make_unique<Run>(def_, name(), context_, state));
  }

  mutable bool owned = false;

 private:
  Name name() const { return {op_.name, op_.plugin}; }

  const kiln_op_def def_;
  const RegisteredOp &op_;
  Context &context_;
  const std::shared_ptr<PluginInContext> plugin_;  // whose code runs
};

GivenIdentity given_identity(const kiln_op_def &def) {
  return {"op", "KILN_OP_UUID_SUFFICES", def.uuid, (def.flags & KILN_OP_UUID_SUFFICES) != 0};
}

// "version 1, uuid 5c01…" and, of a plugin's, its name and file.
std::string identity_of(const RegisteredOp &op, const kiln_op_def &def, const PluginInContext *plugin) {
  const std::string version = str_cat("version ", op.version);
  if (!plugin) return version + identity_text(given_identity(def), {});
  return str_cat(version, " of plugin ", plugin->library.name,
                 identity_text(given_identity(def), plugin->library.identity()));
}

Status check_def(const Checks &check, const kiln_op_def &def, bool of_plugin) {
  if (def.flags & ~(KILN_OP_UUID_SUFFICES | KILN_OP_RANDOM | KILN_OP_ANY_THREAD | KILN_OP_EFFECT))
    return check.fail("op->flags has unknown bits: ", def.flags);
  KILN_TRY(check_identity(check, given_identity(def), of_plugin));
  KILN_TRY(check.pointer(reinterpret_cast<const void *>(def.infer), "op->infer"));
  if (!def.run && !def.decompose) return check.fail("op->run and op->decompose are NULL; one of them is needed");
  if (def.flags & KILN_OP_ANY_THREAD && !def.run)
    return check.fail("op->flags: KILN_OP_ANY_THREAD has no effect without op->run");
  if (def.flags & KILN_OP_EFFECT && def.decompose)
    return check.fail("op->decompose is not NULL; an op with KILN_OP_EFFECT has op->run alone");
  if (def.flags & KILN_OP_EFFECT && def.flags & KILN_OP_RANDOM)
    return check.fail("op->flags: KILN_OP_RANDOM has no effect beside KILN_OP_EFFECT; each of its nodes runs");
  if (def.open && !def.run) return check.fail("op->open has no effect without op->run");
  if (def.close && !def.open) return check.fail("op->close has no effect without op->open");
  return {};
}

// An op with an effect takes a token last; nothing else takes one.
Status check_tokens(const Checks &check, const RegisteredOp &op, bool has_effect) {
  constexpr DTypes token = dtypes(DType::token);
  const auto fail = [&](const auto &...what) { return check.fail("op->schema: op '", op.name, "' ", what...); };
  const ArgDef *last = has_effect && !op.args.empty() ? &op.args.back() : nullptr;
  for (const ArgDef &arg : op.args)
    if (arg.dtypes & token && &arg != last)
      return fail("takes a token as '", arg.name, "'; expected one as the last argument of an op with KILN_OP_EFFECT");
  if (!has_effect || (last && last->dtypes == token && last->arity == Arity::one)) return {};
  return fail("has KILN_OP_EFFECT; expected as its last argument one token, \"dtypes\": [\"token\"], ",
              last ? str_cat("not '", last->name, "'") : "and it has none");
}

}  // namespace

Result<std::unique_ptr<RegisteredOp>> make_op(const Checks &check, Context &context, const kiln_op_def *given,
                                              std::shared_ptr<PluginInContext> plugin) {
  KILN_ASSIGN(const kiln_op_def in, check.request(given, "op"));
  KILN_TRY(check_def(check, in, plugin != nullptr));
  KILN_ASSIGN(const std::string_view schema, check.text(in.schema, in.schema_size, "op->schema"));
  Result<std::unique_ptr<RegisteredOp>> read = read_schema(schema);
  if (!read.ok()) return read.take_status().with_prefix(str_cat(check.function(), ": op->schema: "));
  std::unique_ptr<RegisteredOp> op = std::move(read).value();
  op->identity = identity_of(*op, in, plugin.get());
  op->has_uuid = in.uuid != nullptr;
  op->runs = in.run != nullptr;
  op->decomposes = in.decompose != nullptr;
  op->any_thread = in.flags & KILN_OP_ANY_THREAD;
  if (in.flags & KILN_OP_RANDOM) op->flags |= op_flags::random;
  if (in.flags & KILN_OP_EFFECT) op->flags |= op_flags::effect;
  KILN_TRY(check_tokens(check, *op, in.flags & KILN_OP_EFFECT));
  if (plugin) op->plugin = plugin->library.name;
  complete(*op);
  op->functions = std::make_unique<Functions>(in, *op, context, std::move(plugin));
  return op;
}

void own_user(const RegisteredOp &op) { static_cast<const Functions &>(*op.functions).owned = true; }

kiln_error *add_op(kiln_context *context, const kiln_op_def *op) {
  return deep_entry("add_op", [&](const Checks &check) -> Status {
    KILN_ASSIGN(PluginInContext * plugin, plugin_in_setup(check, context, "ops"));
    KILN_ASSIGN(std::unique_ptr<RegisteredOp> made, make_op(check, context->context, op, plugin->shared_from_this()));
    own_user(*made);
    plugin->ops.push_back(std::move(made));
    return {};
  });
}

namespace {

Status find_operand(const Checks &check, const kiln_op_call *call, uint32_t operand) {
  KILN_TRY(check.handle(call, "call"));
  if (operand < call->operands.size()) return {};
  return error(Code::out_of_range, check.function(), ": operand ", operand, " of ", call->operands.size());
}

Status find_result(const Checks &check, const kiln_op_call *call, uint32_t index) {
  const size_t count = call->op.result_names.size();
  return index < count ? Status() : error(Code::out_of_range, check.function(), ": result ", index, " of ", count);
}

// Whether a decomposition's result can be what was inferred: it may know a size as a number that is a symbol there.
bool may_stand_for(const TensorType &given, const TensorType &told) {
  if (given.dtype != told.dtype || given.dims.size() != told.dims.size()) return false;
  for (size_t d = 0; d < told.dims.size(); ++d)
    if (told.dims[d].is_integer() && given.dims[d] != told.dims[d]) return false;
  return given.dims == told.dims || !std::ranges::is_permutation(given.dims, told.dims);
}

bool is_usable(const kiln_op_call *call) { return call && call->magic.ok() && call->callback.is_here(); }

}  // namespace

}  // namespace kiln::abi

using namespace kiln;
using namespace kiln::abi;

kiln_error *kiln_op_register(kiln_context *context, const kiln_op_def *op, kiln_op *out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    KILN_ASSIGN(std::unique_ptr<RegisteredOp> made, make_op(check, context->context, op, nullptr));
    const RegisteredOp &record = *made;
    KILN_TRY(context->context.add_op(std::move(made)));
    own_user(record);
    if (out) *out = record.number;
    return {};
  });
}

kiln_context *kiln_op_call_context(kiln_op_call *call) { return is_usable(call) ? &call->context : nullptr; }

uint32_t kiln_op_call_operand_count(kiln_op_call *call) {
  return is_usable(call) ? static_cast<uint32_t>(call->operands.size()) : 0;
}

kiln_error *kiln_op_call_dtype(kiln_op_call *call, uint32_t operand, kiln_dtype *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(find_operand(check, call, operand));
    KILN_TRY(check.pointer(out, "out"));
    *out = static_cast<kiln_dtype>(call->operands[operand].dtype);
    return {};
  });
}

kiln_error *kiln_op_call_dims(kiln_op_call *call, uint32_t operand, kiln_dim *buffer, uint64_t capacity,
                              uint64_t *out_rank) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(find_operand(check, call, operand));
    return write_dims(check, call->context.context, call->operands[operand].dims, buffer, capacity, out_rank);
  });
}

kiln_error *kiln_op_call_attr(kiln_op_call *call, const char *name, uint64_t name_size, kiln_attr *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    return give_attr(check, call->attrs, {name, name_size}, str_cat("op '", call->op.name, "' has no attribute"),
                     call->views, share(&call->context), out);
  });
}

kiln_error *kiln_op_call_result(kiln_op_call *call, uint32_t index, const kiln_type *type) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    if (!call->infer) return check.fail("types of results are told inside infer");
    KILN_TRY(find_result(check, call, index));
    KILN_ASSIGN(TensorType read, read_type(check, call->context.context, type));
    if (type->layout != KILN_LAYOUT_ROW_MAJOR) return check.fail("type->layout is not KILN_LAYOUT_ROW_MAJOR");
    if (!call->told.insert(index).second) return check.fail("the type of result ", index, " was told already");
    call->infer->results[index] = make_type(read.dtype, std::move(read.dims));
    return {};
  });
}

kiln_error *kiln_op_call_require_equal(kiln_op_call *call, const kiln_dim *a, const kiln_dim *b, const char *what,
                                       uint64_t what_size) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    if (!call->infer) return check.fail("sizes are required to be equal inside infer");
    KILN_TRY(check.pointer(a, "a"));
    KILN_TRY(check.pointer(b, "b"));
    KILN_ASSIGN(const std::string_view text, check.line(what, what_size, "what"));
    KILN_ASSIGN(const Expr left, read_dim(call->context.context, *a));
    KILN_ASSIGN(const Expr right, read_dim(call->context.context, *b));
    return call->infer->require_equal(left, right, text);
  });
}

kiln_edit *kiln_op_call_edit(kiln_op_call *call) { return is_usable(call) && call->edit ? &*call->edit : nullptr; }

kiln_value kiln_op_call_operand(kiln_op_call *call, uint32_t index) {
  if (!is_usable(call) || !call->decompose || index >= call->decompose->node.inputs.size()) return 0;
  return call->decompose->node.inputs[index].packed();
}

kiln_error *kiln_op_call_yield(kiln_op_call *call, uint32_t index, kiln_value value) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    if (!call->decompose) return check.fail("results are yielded inside decompose");
    KILN_TRY(find_result(check, call, index));
    const ValueId id = ValueId::unpack(value);
    if (!call->decompose->edit.view().has(id)) return check.fail("the value is not of the edit's graph");
    const TensorType &told = call->decompose->node.results[index], &given = call->decompose->edit.view().type(id);
    if (!may_stand_for(given, told))
      return check.fail("result '", call->op.result_names[index], "' is ", given.text(), ", infer told ", told.text());
    if (call->decompose->results[index] != ValueId())
      return check.fail("result '", call->op.result_names[index], "' was yielded already");
    call->decompose->results[index] = id;
    return {};
  });
}
