// Edits: building graphs and rewriting them.
#include <algorithm>
#include <utility>

#include "abi/src/convert.h"
#include "runtime/graph/annotations.h"
#include "runtime/graph/verify_part.h"

using namespace kiln;
using namespace kiln::abi;

namespace {

// A change in progress: an edit has one at a time.
class Change {
 public:
  explicit Change(kiln_edit *edit) : edit_(edit) {}
  Change(Change &&other) noexcept : edit_(std::exchange(other.edit_, nullptr)) {}
  ~Change() {
    if (edit_) edit_->changing = false;
  }
  Edit *operator->() const { return &edit_->edit; }
  Edit &operator*() const { return edit_->edit; }

 private:
  kiln_edit *edit_;
};

// Inside a decomposition nodes and constants are added: the rest of the graph is not its own.
enum class By : uint8_t { adding, changing };

// Before a change: views of the graph as it stood become invalid.
Result<Change> begin_change(const Checks &check, kiln_edit *edit, By by = By::changing) {
  KILN_TRY(check.handle(edit, "edit"));
  const Callback *callback = edit->callback;
  if (callback && callback->only_adds && by == By::changing)
    return check.fail("edit is of a decomposition, which adds nodes and constants and changes nothing else");
  if (callback && callback->pass && callback->pass->done)
    return check.fail("the pass has said that it is done (kiln_pass_done), and changes nothing more");
  if (edit->changing.exchange(true)) return error(Code::busy, check.function(), ": edit is in use on another thread");
  Change change(edit);
  edit->view.views.clear();
  return change;
}

Result<uint32_t> node_id(const Checks &check, kiln_node node) {
  if (node == 0 || node > UINT32_MAX) return check.fail("no node has number ", node);
  return static_cast<uint32_t>(node);
}

using AddArgument = Result<ValueId> (Edit::*)(std::string_view, TensorType);

kiln_error *add_argument(const char *function, AddArgument add, kiln_edit *edit, const char *name, uint64_t name_size,
                         const kiln_type *type, kiln_value *out) {
  return deep_entry(function, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const Change changed, begin_change(check, edit));
    KILN_ASSIGN(const std::string_view label, check.text(name, name_size, "name"));
    KILN_TRY(check.pointer(out, "out"));
    KILN_ASSIGN(TensorType checked, read_type(check, *edit->context, type));
    KILN_ASSIGN(const ValueId value, ((*changed).*add)(label, std::move(checked)));
    *out = value.packed();
    return {};
  });
}

// Where the op's schema wants dims, plain integers will do.
void integers_to_dims(const OpSchema &op, AttrMap &attrs) {
  for (auto &[name, value] : attrs) {
    const AttrDef *def = op.find_attr(name);
    const auto *integers = std::get_if<std::vector<int64_t>>(&value.items);
    if (def && def->kind == AttrKind::dim && integers)
      value.items = std::vector<Dim>(integers->begin(), integers->end());
  }
}

}  // namespace

kiln_error *kiln_edit_begin(kiln_context *context, const kiln_graph *from, kiln_edit **out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    if (from) KILN_TRY(check.own_graph(from, context->context, "from"));
    KILN_TRY(check.pointer(out, "out"));
    GraphPtr begun = from ? from->graph : nullptr;
    if (from && !begun) {  // the view of an edit, as it stands
      Edit copy(*from->edit);
      KILN_ASSIGN(begun, copy.finish(false));
    }
    auto made = std::make_unique<kiln_edit>(share(context), std::make_unique<Edit>(std::move(begun)));
    made->is_part = from && from->is_part;
    *out = made.release();
    return {};
  });
}

const kiln_graph *kiln_edit_view(const kiln_edit *edit) {
  return edit && edit->magic.ok() && (!edit->callback || edit->callback->is_here()) ? &edit->view : nullptr;
}

kiln_error *kiln_edit_symbol(kiln_edit *edit, const char *name, uint64_t name_size, const kiln_symbol *symbol) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const Change changed, begin_change(check, edit));
    KILN_ASSIGN(const std::string_view label, check.text(name, name_size, "name"));
    KILN_ASSIGN(const kiln_symbol in, check.request(symbol, "symbol"));
    if (in.reserved0) return check.fail("symbol->reserved0 is not 0");
    SymbolInfo info;
    info.min = in.min;
    if (in.max) info.max = in.max;
    if (in.divisor) info.divisor = in.divisor;
    info.hint = in.hint;
    return changed->declare_symbol(label, info);
  });
}

kiln_error *kiln_edit_input(kiln_edit *edit, const char *name, uint64_t name_size, const kiln_type *type,
                            kiln_value *out) {
  return add_argument(__func__, &Edit::input, edit, name, name_size, type, out);
}

kiln_error *kiln_edit_parameter(kiln_edit *edit, const char *name, uint64_t name_size, const kiln_type *type,
                                kiln_value *out) {
  return add_argument(__func__, &Edit::parameter, edit, name, name_size, type, out);
}

kiln_error *kiln_edit_constant(kiln_edit *edit, const char *name, uint64_t name_size, const DLTensor *tensor,
                               kiln_value *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const Change changed, begin_change(check, edit, By::adding));
    KILN_ASSIGN(const std::string_view label, check.text(name, name_size, "name"));
    KILN_TRY(check.pointer(tensor, "tensor"));
    KILN_TRY(check.pointer(out, "out"));
    KILN_ASSIGN(TensorData data, copy_tensor(*tensor, "tensor"));
    KILN_ASSIGN(const ValueId value, changed->constant(std::make_shared<const TensorData>(std::move(data)), label));
    *out = value.packed();
    return {};
  });
}

kiln_error *kiln_edit_add(kiln_edit *edit, kiln_op op, const char *name, uint64_t name_size, const kiln_value *inputs,
                          uint64_t input_count, const kiln_attr *attrs, uint64_t attr_count, kiln_node *out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const Change changed, begin_change(check, edit, By::adding));
    KILN_ASSIGN(const Op *record, op_numbered(*edit->context, op));
    KILN_ASSIGN(const std::string_view label, check.text(name, name_size, "name"));
    KILN_ASSIGN(const std::span<const kiln_value> given, check.array(inputs, input_count, "inputs"));
    KILN_TRY(check.pointer(out, "out"));
    KILN_ASSIGN(AttrMap checked, read_attrs(check, *edit->context, attrs, attr_count, NoDType::allowed));
    integers_to_dims(*record, checked);
    if (edit->callback && edit->callback->only_adds)
      if (const RegisteredOp *own = registered(*record); (own && !own->decomposes) || record->name == "token")
        return error(Code::unimplemented, "[", record->name, "] ", own ? "a function runs it" : "it orders effects",
                     "; a decomposition is made of ops that are compiled");
    std::vector<ValueId> operands;
    for (kiln_value value : given) operands.push_back(ValueId::unpack(value));
    KILN_ASSIGN(const uint32_t node, changed->add(record, operands, std::move(checked), label));
    *out = node;
    return {};
  });
}

kiln_error *kiln_edit_annotate(kiln_edit *edit, kiln_node node, const kiln_attr *annotations, uint64_t count) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const Change changed, begin_change(check, edit));
    KILN_ASSIGN(const uint32_t id, node_id(check, node));
    KILN_ASSIGN(const std::span<const kiln_attr> given, check.array(annotations, count, "annotations"));
    std::vector<kiln_attr> set;
    std::vector<std::string_view> removed;
    for (const kiln_attr &attr : given) {
      if (attr.kind != KILN_ATTR_NONE) {
        set.push_back(attr);
        continue;
      }
      KILN_ASSIGN(const std::string_view key, check.text(attr.name, attr.name_size, "an annotation's name"));
      if (attr.count || attr.data || attr.reserved0) return check.fail("'", key, "' is taken away, but has a value");
      removed.push_back(key);
    }
    KILN_ASSIGN(AttrMap checked, read_attrs(check, *edit->context, set.data(), set.size()));
    for (const std::string_view key : removed) KILN_TRY(changed->remove_annotation(id, key));
    for (auto &[key, value] : checked) KILN_TRY(changed->annotate(id, key, std::move(value)));
    return {};
  });
}

kiln_error *kiln_edit_scope(kiln_edit *edit, const kiln_attr *annotations, uint64_t count) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const Change changed, begin_change(check, edit));
    if (count == 0) return changed->pop_scope();
    KILN_ASSIGN(AttrMap checked, read_attrs(check, *edit->context, annotations, count));
    KILN_TRY(check_op_annotations(checked));
    changed->push_scope(std::move(checked));
    return {};
  });
}

kiln_error *kiln_edit_replace(kiln_edit *edit, kiln_value from, kiln_value to) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const Change changed, begin_change(check, edit));
    return changed->replace(ValueId::unpack(from), ValueId::unpack(to));
  });
}

kiln_error *kiln_edit_outputs(kiln_edit *edit, const kiln_value *values, const kiln_text *names, uint64_t count) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const Change changed, begin_change(check, edit));
    KILN_ASSIGN(const std::span<const kiln_value> given, check.array(values, count, "values"));
    std::vector<ValueId> ids;
    for (kiln_value value : given) ids.push_back(ValueId::unpack(value));
    if (!names) return changed->set_output_values(ids);
    std::vector<GraphOutput> outputs;
    for (uint64_t i = 0; i < count; i++) {
      KILN_ASSIGN(const std::string_view name, check.text(names[i], "an output's name"));
      outputs.push_back({std::string(name), ids[i]});
      const std::span<const GraphOutput> before = changed->view().outputs();
      if (const auto same = std::ranges::find(before, name, &GraphOutput::name); same != before.end())
        outputs.back().layout = same->layout;
    }
    return changed->set_outputs(std::move(outputs));
  });
}

kiln_error *kiln_edit_output(kiln_edit *edit, const kiln_output *output) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const Change changed, begin_change(check, edit));
    KILN_ASSIGN(const kiln_output in, check.request(output, "output"));
    KILN_ASSIGN(const std::string_view name, check.text(in.name, in.name_size, "output->name"));
    if (in.flags & ~KILN_OUTPUT_VIEW) return check.fail("output->flags has unknown bits: ", in.flags);
    GraphOutput made{std::string(name), ValueId::unpack(in.value)};
    if (in.flags & KILN_OUTPUT_VIEW) {
      if (in.type) return check.fail("output->type is not NULL, and a view has the type and strides that it has");
      made.layout.kind = OutputLayout::Kind::view;
    } else if (in.type) {
      KILN_ASSIGN(auto declared, read_output_type(check, *edit->context, in.type));
      made.layout = std::move(declared.second);
      KILN_TRY(changed->check_output_type(made, declared.first));
    }
    return changed->add_output(std::move(made));
  });
}

kiln_error *kiln_edit_finish(kiln_edit *edit, kiln_graph **out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_ASSIGN(const Change changed, begin_change(check, edit));
    KILN_TRY(check.pointer(out, "out"));
    if (!edit->owned) return check.fail("edit is a pass's own: its host finishes it after kiln_pass_done");
    KILN_ASSIGN(GraphPtr graph, changed->finish(!edit->is_part));
    if (edit->is_part) KILN_TRY(verify_part(*graph));
    *out = make_graph(edit->context, std::move(graph));
    return {};
  });
}

void kiln_edit_destroy(kiln_edit *edit) {
  if (edit && edit->magic.ok() && edit->owned) delete edit;
}
