// The tables that plugins receive: slot NAME of table GROUP is the export kiln_GROUP_NAME. The compiler checks that
// their signatures agree, and that no slot is left out (-Wmissing-field-initializers).
#include "abi/src/pass.h"

namespace kiln::abi {

kiln_error *add_pass(kiln_context *context, const kiln_pass *pass);                 // plugin.cpp
kiln_error *add_op(kiln_context *context, const kiln_op_def *op);                   // op_def.cpp
kiln_error *add_file(kiln_context *context, const char *path, uint64_t path_size);  // plugin.cpp
kiln_error *add_function(kiln_context *context, const kiln_function *function);     // function.cpp
kiln_error *add_backend(kiln_context *context, const kiln_backend *backend);        // backend.cpp

namespace {

#define KILN_SLOT(group, name) .name = kiln_##group##_##name

constexpr kiln_host_error error_table = {
    .struct_size = sizeof error_table,
    .reserved0 = 0,
    KILN_SLOT(error, create),
    KILN_SLOT(error, code),
    KILN_SLOT(error, message),
    KILN_SLOT(error, plugin),
    KILN_SLOT(error, cause),
    KILN_SLOT(error, destroy),
};
constexpr kiln_host_op op_table = {
    .struct_size = sizeof op_table,
    .reserved0 = 0,
    KILN_SLOT(op, find),
    KILN_SLOT(op, name),
};
constexpr kiln_host_dim dim_table = {
    .struct_size = sizeof dim_table,
    .reserved0 = 0,
    KILN_SLOT(dim, parse),
    KILN_SLOT(dim, text),
    KILN_SLOT(dim, evaluate),
};
constexpr kiln_host_graph graph_table = {
    .struct_size = sizeof graph_table,
    .reserved0 = 0,
    KILN_SLOT(graph, nodes),
    KILN_SLOT(graph, signature),
    KILN_SLOT(graph, output_name),
    KILN_SLOT(graph, find),
    KILN_SLOT(graph, destroy),
};
constexpr kiln_host_node node_table = {
    .struct_size = sizeof node_table,
    .reserved0 = 0,
    KILN_SLOT(node, kind),
    KILN_SLOT(node, name),
    KILN_SLOT(node, op),
    KILN_SLOT(node, input_count),
    KILN_SLOT(node, input),
    KILN_SLOT(node, output_count),
    KILN_SLOT(node, attr),
    KILN_SLOT(node, attrs),
    KILN_SLOT(node, annotations),
    KILN_SLOT(node, constant),
};
constexpr kiln_host_value value_table = {
    .struct_size = sizeof value_table,
    .reserved0 = 0,
    KILN_SLOT(value, use_count),
    KILN_SLOT(value, users),
    KILN_SLOT(value, dtype),
    KILN_SLOT(value, dims),
    KILN_SLOT(value, strides),
    KILN_SLOT(value, view_of),
};
constexpr kiln_host_edit edit_table = {
    .struct_size = sizeof edit_table,
    .reserved0 = 0,
    KILN_SLOT(edit, begin),
    KILN_SLOT(edit, view),
    KILN_SLOT(edit, symbol),
    KILN_SLOT(edit, input),
    KILN_SLOT(edit, parameter),
    KILN_SLOT(edit, constant),
    KILN_SLOT(edit, add),
    KILN_SLOT(edit, annotate),
    KILN_SLOT(edit, scope),
    KILN_SLOT(edit, replace),
    KILN_SLOT(edit, outputs),
    KILN_SLOT(edit, finish),
    KILN_SLOT(edit, destroy),
    KILN_SLOT(edit, output),
};
constexpr kiln_host_pass pass_table = {
    .struct_size = sizeof pass_table,
    .reserved0 = 0,
    KILN_SLOT(pass, edit),
    KILN_SLOT(pass, context),
    KILN_SLOT(pass, option),
    KILN_SLOT(pass, fingerprint_add),
    KILN_SLOT(pass, replace_graph),
    KILN_SLOT(pass, done),
    KILN_SLOT(pass, note),
    KILN_SLOT(pass, warn),
    KILN_SLOT(pass, query),
    KILN_SLOT(pass, uncacheable),
    KILN_SLOT(pass, apply_patterns),
    KILN_SLOT(pass, match_value),
    KILN_SLOT(pass, match_number),
    KILN_SLOT(pass, match_replace),
};
constexpr kiln_host_context context_table = {
    .struct_size = sizeof context_table,
    .reserved0 = 0,
    .add_pass = add_pass,
    .add_op = add_op,
    .add_file = add_file,
    .add_function = add_function,
    .add_backend = add_backend,
};
constexpr kiln_host_op_call op_call_table = {
    .struct_size = sizeof op_call_table,
    .reserved0 = 0,
    KILN_SLOT(op_call, context),
    KILN_SLOT(op_call, operand_count),
    KILN_SLOT(op_call, dtype),
    KILN_SLOT(op_call, dims),
    KILN_SLOT(op_call, attr),
    KILN_SLOT(op_call, result),
    KILN_SLOT(op_call, require_equal),
    KILN_SLOT(op_call, edit),
    KILN_SLOT(op_call, operand),
    KILN_SLOT(op_call, yield),
};

constexpr kiln_host_backend backend_table = {
    .struct_size = sizeof backend_table,
    .reserved0 = 0,
    KILN_SLOT(backend, context),
    KILN_SLOT(backend, option),
    KILN_SLOT(backend, key),
    KILN_SLOT(backend, blob),
    KILN_SLOT(backend, refuse),
};

}  // namespace

constinit const kiln_host host_table = {
    .struct_size = sizeof host_table,
    .abi_minor = KILN_ABI_MINOR,
    .features = KILN_FEATURE_OPS | KILN_FEATURE_BACKENDS | KILN_FEATURE_FUNCTIONS | KILN_FEATURE_PATTERNS,
    .error = &error_table,
    .op = &op_table,
    .dim = &dim_table,
    .graph = &graph_table,
    .node = &node_table,
    .value = &value_table,
    .edit = &edit_table,
    .pass = &pass_table,
    .context = &context_table,
    .op_call = &op_call_table,
    .backend = &backend_table,
};

}  // namespace kiln::abi
