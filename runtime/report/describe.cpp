#include "runtime/report/describe.h"

#include <algorithm>
#include <memory>

#include "jit/base/json_writer.h"
#include "runtime/graph/json.h"
#include "runtime/ops/families.h"
#include "runtime/ops/registered.h"
#include "runtime/ops/sample_forms.h"
#include "runtime/report/compile_report.h"

namespace kiln {

namespace {

void write_shape(std::span<const Dim> dims, JsonWriter &json) {
  json.begin_list();
  for (const Dim &dim : dims) {
    if (dim.is_integer()) {
      json.value(dim.integer());
    } else {
      json.value(dim.text());
    }
  }
  json.end_list();
}

// Strides that are not row-major are told. The object stays open for what else is to be told.
void begin_tensor(std::string_view name, DType dtype, const Shape &dims, const Shape &strides, JsonWriter &json) {
  json.begin_object().member("name", name).member("dtype", name_of(dtype)).key("shape");
  write_shape(dims, json);
  if (!strides.empty() && strides != row_major_strides(dims)) {
    json.key("strides");
    write_shape(strides, json);
  }
}

void write_outputs(const Plan &plan, JsonWriter &json) {
  using Kind = Plan::Presented::Kind;
  json.key("outputs").begin_list();
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const Plan::Argument &a = plan.outputs[i];
    const Plan::Presented *as = plan.presented_as(i);
    begin_tensor(a.name, a.dtype, a.dims, as ? as->strides : Shape(), json);
    if (as && as->kind == Kind::any) json.member("strides", "any");
    if (as && as->kind == Kind::view) json.member("view_of", plan.inputs[as->input].name);
    json.end_object();
  }
  json.end_list();
}

void write_inputs(const Plan &plan, JsonWriter &json) {
  json.key("inputs").begin_list();
  for (uint32_t i = 0; i < plan.inputs.size(); ++i) {
    const Plan::Argument &a = plan.inputs[i];
    begin_tensor(a.name, a.dtype, a.dims, a.strides, json);
    if (std::ranges::find(plan.donated_inputs, i) != plan.donated_inputs.end()) json.member("donated", true);
    json.end_object();
  }
  json.end_list();
}

// With those that the executable's file has.
void write_parameters(const Executable &executable, JsonWriter &json) {
  const std::vector<Plan::Argument> &parameters = executable.plan().parameters;
  const WeightsTable none, &table = executable.weights() ? executable.weights()->table() : none;
  json.key("parameters").begin_list();
  for (uint32_t p = 0; p < parameters.size(); ++p) {
    begin_tensor(parameters[p].name, parameters[p].dtype, parameters[p].dims, parameters[p].strides, json);
    const auto stored = std::ranges::find(table.parameters, p, &WeightsTable::Parameter::number);
    if (stored != table.parameters.end()) json.member("stored_bytes", stored->bytes);
    json.end_object();
  }
  json.end_list();
  if (!executable.weights()) return;
  json.key("weights").begin_object().member("path", executable.weights()->path());
  json.member("bytes", executable.weights()->bytes().size()).key("prepared").begin_list();
  for (const WeightsTable::Part &part : table.parts) {
    json.begin_object().key("parameters").begin_list();
    for (const uint32_t number : part.parameters)
      if (number < parameters.size()) json.value(parameters[number].name);
    json.end_list().member("bytes", part.bytes).end_object();
  }
  json.end_list().end_object();
}

std::string_view name_of(Arity arity) {
  switch (arity) {
    case Arity::one:
      return "one";
    case Arity::optional:
      return "optional";
    case Arity::variadic:
      return "variadic";
  }
  return "unknown";
}

void write_args(const Op &op, JsonWriter &json) {
  json.key("args").begin_list();
  for (const ArgDef &arg : op.args) {
    json.begin_object().member("name", arg.name).member("doc", arg.doc).member("arity", name_of(arg.arity));
    json.member("same_dtype", arg.same_dtype).key("dtypes").begin_list();
    for (int number = 1; number <= last_dtype; number++)
      if (const auto dtype = static_cast<DType>(number); arg.dtypes & dtypes(dtype)) json.value(kiln::name_of(dtype));
    json.end_list().end_object();
  }
  json.end_list();
}

void write_attrs(const Op &op, JsonWriter &json) {
  json.key("attrs").begin_list();
  for (const AttrDef &attr : op.attrs) {
    json.begin_object().member("name", attr.name).member("doc", attr.doc).member("kind", kiln::name_of(attr.kind));
    json.member("list", attr.is_list).member("required", attr.required);
    if (!attr.required) json.member("default", default_of(attr).text());
    json.end_object();
  }
  json.end_list();
}

std::string_view name_of(Gradient::Kind kind) {
  switch (kind) {
    case Gradient::Kind::undeclared:
      break;
    case Gradient::Kind::rule:
      return "rule";
    case Gradient::Kind::decomposition:
      return "decomposition";
    case Gradient::Kind::zero:
      return "zero";
    case Gradient::Kind::none:
      return "none";
  }
  return "unknown";
}

std::string_view name_of(Ties ties) {
  switch (ties) {
    case Ties::none:
      return "none";
    case Ties::even:
      return "even";
    case Ties::first:
      return "first";
    case Ties::last:
      return "last";
  }
  return "unknown";
}

void write_gradient(const Op &op, JsonWriter &json) {
  json.key("gradient").begin_object().member("kind", name_of(op.gradient.kind)).key("operands").begin_list();
  for (std::string_view name : differentiable_operands(op)) json.value(name);
  json.end_list().member("ties", name_of(op.gradient.ties)).member("given", op.gradient.given);
  json.member("why", op.gradient.why).end_object();
}

// An operand: what it is given, or the stream from which its elements are drawn.
void write_operand(const Op &op, const Sample &sample, size_t operand, JsonWriter &json) {
  const auto given = sample.given.find(operand);
  if (given != sample.given.end()) {
    json.raw(write_json(AttrValue(std::make_shared<const TensorData>(given->second))));
    return;
  }
  const TensorType &type = sample.inputs[operand];
  json.begin_object().key("type").begin_object().member("dtype", name_of(type.dtype)).key("shape");
  write_shape(type.dims, json);
  json.end_object().member("stream", str_cat(op.name, "/", sample.name, "/", operand)).end_object();
}

void write_sample(const Op &op, const Sample &symbolic, JsonWriter &json) {
  const Sample sample = at_sizes(symbolic);
  json.begin_object().member("name", sample.name).key("inputs").begin_list();
  for (size_t k = 0; k < sample.inputs.size(); ++k) write_operand(op, sample, k, json);
  json.end_list().key("attrs").begin_object();
  for (const auto &[name, value] : sample.attrs) json.key(name).raw(write_json(value));
  json.end_object().key("sizes").begin_object();
  for (const auto &[symbol, size] : symbolic.sizes) json.member(symbol, size);
  json.end_object().key("range").begin_list().value(sample.low).value(sample.high).end_list();
  json.key("integer_range").begin_list().value(sample.int_low).value(sample.int_high).end_list();
  json.member("tolerance", sample.tolerance).key("other_types").begin_list();
  for (DType type : other_types_of(op, sample)) json.value(name_of(type));
  json.end_list().end_object();
}

void write_samples(const Op &op, JsonWriter &json) {
  json.key("samples").begin_list();
  for (const Sample &sample : samples_of(op)) write_sample(op, sample, json);
  json.end_list();
}

}  // namespace

std::string describe(const Op &op, bool with_samples) {
  JsonWriter json;
  json.begin_object().member("name", op.name).member("family", family_of(op)).member("doc", op.doc);
  json.member("version", op.version);
  json.member("kind", op.view ? "view" : op.lower ? "kernel" : op.decompose ? "composite" : "function");
  write_args(op, json);
  json.key("results").begin_list();
  for (std::string_view name : op.result_names) json.value(name);
  json.end_list();
  write_attrs(op, json);
  json.key("flags").begin_list();
  if (op.flags & op_flags::random) json.value("random");
  if (op.flags & op_flags::effect) json.value("effect");
  if (op.flags & op_flags::changes_numerics) json.value("changes_numerics");
  if (op.flags & op_flags::mutates) json.value("mutates");
  if (op.flags & op_flags::commutes) json.value("commutes");
  json.end_list();
  write_gradient(op, json);
  if (with_samples) write_samples(op, json);
  return json.end_object().take();
}

std::string describe(const Graph &graph) {
  JsonWriter json;
  json.begin_object().key("symbols").begin_object();
  for (const auto &[name, info] : graph.symbols()) {
    json.key(name).begin_object().member("min", info.min).member("max", info.max);
    json.member("divisor", info.divisor).member("hint", info.hint).end_object();
  }
  json.end_object();
  auto arguments = [&](std::string_view side, std::span<const uint32_t> ids) {
    json.key(side).begin_list();
    for (uint32_t id : ids) {
      const Node &node = *graph.find(id);
      const TensorType &type = node.results[0];
      begin_tensor(node.name, type.dtype, type.dims, type.strides, json);
      if (node.annotations.contains("kiln.donate")) json.member("donated", true);
      json.end_object();
    }
    json.end_list();
  };
  arguments("inputs", graph.inputs());
  arguments("parameters", graph.parameters());
  json.key("outputs").begin_list();
  for (const GraphOutput &output : graph.outputs()) {
    const TensorType &type = graph.type(output.value);
    begin_tensor(output.name, type.dtype, type.dims, output.layout.strides, json);
    if (output.layout.kind == OutputLayout::Kind::any) json.member("strides", "any");
    if (output.layout.kind == OutputLayout::Kind::view)
      json.member("view_of", graph.find(graph.storage_of(output.value).node)->name);
    json.end_object();
  }
  json.end_list();
  size_t ops = 0, constants = 0;
  for (const Node &node : graph.nodes()) {
    ops += node.kind == Node::Kind::op;
    constants += node.kind == Node::Kind::constant;
  }
  json.member("nodes", ops).member("constants", constants).end_object();
  return json.take();
}

std::string describe_part(const Graph &whole, const Region &part) {
  const Graph &graph = *part.graph;
  JsonWriter json;
  const auto write = [&](std::string_view name, const ValueId *from) {
    json.begin_object().member("name", name);
    if (from) {
      json.member("from", text_of(whole, *from));
    } else {
      json.member("size", graph.find(name)->results[0].dims[0].symbol_name());
    }
    json.end_object();
  };
  const auto arguments = [&](std::string_view side, std::span<const uint32_t> ids, std::span<const ValueId> from) {
    json.key(side).begin_list();
    for (size_t i = 0; i < ids.size(); ++i) write(graph.find(ids[i])->name, i < from.size() ? &from[i] : nullptr);
    json.end_list();
  };
  json.begin_object();
  arguments("inputs", graph.inputs(), part.inputs);
  arguments("parameters", graph.parameters(), part.parameters);
  json.key("outputs").begin_list();
  for (size_t i = 0; i < part.outputs.size(); ++i) write(graph.outputs()[i].name, &part.outputs[i]);
  json.end_list().end_object();
  return json.take();
}

namespace {

void write_program(const Executable &executable, JsonWriter &json) {
  write_inputs(executable.plan(), json);
  write_outputs(executable.plan(), json);
  const Digest &key = executable.artifact().graph_key;
  json.member("key", key == Digest() ? "" : key.hex()).member("kernels", executable.artifact().images.size());
}

// The general program first.
void write_entries(const Executable &executable, JsonWriter &json) {
  static constexpr std::string_view states[] = {"later", "later", "made", "failed"};
  json.key("entries").begin_list().begin_object().member("name", "general");
  write_guards({}, json);
  json.member("state", "made");
  write_program(executable, json);
  json.end_object();
  const Entries &entries = executable.entries();
  for (size_t i = 0; i < entries.count(); ++i) {
    const Entries::State state = entries[i].state();
    json.begin_object().member("name", entries[i].name());
    write_guards(entries[i].sizes(), json);
    json.member("state", states[static_cast<size_t>(state)]);
    if (state == Entries::State::made) write_program(*entries[i].executable(), json);
    json.end_object();
  }
  json.end_list();
}

}  // namespace

std::string describe(const Executable &executable, std::span<const std::string> targets) {
  const Artifact &artifact = executable.artifact();
  const Plan &plan = executable.plan();
  JsonWriter json;
  json.begin_object().member("backend", artifact.backend).member("target", artifact.target);
  if (!targets.empty()) {
    json.key("targets").begin_list();
    for (const std::string &target : targets) json.value(target);
    json.end_list();
  }
  json.member("build_id", artifact.build_id)
      .member("key", artifact.graph_key == Digest() ? "" : artifact.graph_key.hex());
  json.key("symbols").begin_object();
  for (const Plan::Symbol &symbol : plan.symbols) {
    json.key(symbol.name).begin_object().member("min", symbol.min).member("max", symbol.max);
    json.member("divisor", symbol.divisor).end_object();
  }
  json.end_object();
  write_inputs(plan, json);
  write_parameters(executable, json);
  write_outputs(plan, json);
  write_components(artifact.components, json);
  json.key("uses").begin_list();
  for (const Use &use : artifact.uses) {
    json.begin_object().member("kind", use.kind).member("name", use.name).member("identity", use.identity);
    json.end_object();
  }
  json.end_list();
  write_answers(artifact.answers, json);
  if (!artifact.edited.empty()) {
    json.key("edited").begin_list();
    for (const std::string &path : artifact.edited) json.value(path);
    json.end_list();
  }
  json.member("kernels", artifact.images.size());
  write_device_kernels(device_kernels(artifact), json);
  json.member("prepare_steps", plan.prepare.size()).member("steps", plan.steps.size());
  auto storage = [&](std::string_view name, std::span<const Plan::Storage> parts) {
    Expr total;
    for (const Plan::Storage &part : parts) total += part.size_bytes;
    json.member(name, total.text());
  };
  storage("arena_bytes", plan.arena);
  storage("prepared_bytes", plan.prepared);
  write_entries(executable, json);
  json.key("compile").raw(artifact.report_json.empty() ? "{}" : artifact.report_json).end_object();
  return json.take();
}

}  // namespace kiln
