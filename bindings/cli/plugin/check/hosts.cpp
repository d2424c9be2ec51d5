// The plugin in hosts of other ages. Its setup gets tables as Kiln's own, of the functions that kiln.h exports, but cut
// off behind the slots of ABI 1.0, where reading on is a fault, or longer than this header knows.
#include <dlfcn.h>
#include <kiln/plugin.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests.h"

namespace kiln::cli::plugin_check {
namespace {

// A request as this header knows it, of a plugin whose header may be older or newer.
template <class Request>
Request own(const Request *given) {
  Request request = {};
  uint32_t size = 0;
  std::memcpy(&size, given, sizeof size);
  std::memcpy(&request, given, size < sizeof request ? size : sizeof request);
  request.struct_size = sizeof request;
  return request;
}

// There is no file here that could be part of an identity.
kiln_error *add_pass(kiln_context *context, const kiln_pass *given) {
  kiln_pass pass = own(given);
  if (pass.uuid) pass.flags |= KILN_PASS_UUID_SUFFICES;
  return kiln_pass_register(context, &pass, nullptr, nullptr);
}
kiln_error *add_op(kiln_context *context, const kiln_op_def *given) {
  kiln_op_def op = own(given);
  if (op.uuid) op.flags |= KILN_OP_UUID_SUFFICES;
  return kiln_op_register(context, &op, nullptr);
}
kiln_error *add_file(kiln_context *, const char *, uint64_t) { return nullptr; }
kiln_error *add_function(kiln_context *context, const kiln_function *function) {
  return kiln_function_register(context, function, nullptr);
}
kiln_error *add_backend(kiln_context *context, const kiln_backend *given) {
  kiln_backend backend = own(given);
  if (backend.uuid) backend.flags |= KILN_BACKEND_UUID_SUFFICES;
  return kiln_backend_register(context, &backend, nullptr);
}

// Slot NAME of table GROUP is the export kiln_GROUP_NAME. The compiler tells which one is left out.
#define SLOT(group, name) .name = kiln_##group##_##name
constexpr kiln_host_error error_table = {.struct_size = 0,
                                         .reserved0 = 0,
                                         SLOT(error, create),
                                         SLOT(error, code),
                                         SLOT(error, message),
                                         SLOT(error, plugin),
                                         SLOT(error, cause),
                                         SLOT(error, destroy)};
constexpr kiln_host_op op_table = {.struct_size = 0, .reserved0 = 0, SLOT(op, find), SLOT(op, name)};
constexpr kiln_host_dim dim_table = {
    .struct_size = 0, .reserved0 = 0, SLOT(dim, parse), SLOT(dim, text), SLOT(dim, evaluate)};
constexpr kiln_host_graph graph_table = {.struct_size = 0,
                                         .reserved0 = 0,
                                         SLOT(graph, nodes),
                                         SLOT(graph, signature),
                                         SLOT(graph, output_name),
                                         SLOT(graph, find),
                                         SLOT(graph, destroy)};
constexpr kiln_host_node node_table = {.struct_size = 0,
                                       .reserved0 = 0,
                                       SLOT(node, kind),
                                       SLOT(node, name),
                                       SLOT(node, op),
                                       SLOT(node, input_count),
                                       SLOT(node, input),
                                       SLOT(node, output_count),
                                       SLOT(node, attr),
                                       SLOT(node, attrs),
                                       SLOT(node, annotations),
                                       SLOT(node, constant)};
constexpr kiln_host_value value_table = {.struct_size = 0,
                                         .reserved0 = 0,
                                         SLOT(value, use_count),
                                         SLOT(value, users),
                                         SLOT(value, dtype),
                                         SLOT(value, dims),
                                         SLOT(value, strides),
                                         SLOT(value, view_of)};
constexpr kiln_host_edit edit_table = {.struct_size = 0,
                                       .reserved0 = 0,
                                       SLOT(edit, begin),
                                       SLOT(edit, view),
                                       SLOT(edit, symbol),
                                       SLOT(edit, input),
                                       SLOT(edit, parameter),
                                       SLOT(edit, constant),
                                       SLOT(edit, add),
                                       SLOT(edit, annotate),
                                       SLOT(edit, scope),
                                       SLOT(edit, replace),
                                       SLOT(edit, outputs),
                                       SLOT(edit, finish),
                                       SLOT(edit, destroy),
                                       SLOT(edit, output)};
constexpr kiln_host_pass pass_table = {.struct_size = 0,
                                       .reserved0 = 0,
                                       SLOT(pass, edit),
                                       SLOT(pass, context),
                                       SLOT(pass, option),
                                       SLOT(pass, fingerprint_add),
                                       SLOT(pass, replace_graph),
                                       SLOT(pass, done),
                                       SLOT(pass, note),
                                       SLOT(pass, warn),
                                       SLOT(pass, query),
                                       SLOT(pass, uncacheable),
                                       SLOT(pass, apply_patterns),
                                       SLOT(pass, match_value),
                                       SLOT(pass, match_number),
                                       SLOT(pass, match_replace)};
constexpr kiln_host_context context_table = {.struct_size = 0,
                                             .reserved0 = 0,
                                             .add_pass = add_pass,
                                             .add_op = add_op,
                                             .add_file = add_file,
                                             .add_function = add_function,
                                             .add_backend = add_backend};
constexpr kiln_host_op_call op_call_table = {.struct_size = 0,
                                             .reserved0 = 0,
                                             SLOT(op_call, context),
                                             SLOT(op_call, operand_count),
                                             SLOT(op_call, dtype),
                                             SLOT(op_call, dims),
                                             SLOT(op_call, attr),
                                             SLOT(op_call, result),
                                             SLOT(op_call, require_equal),
                                             SLOT(op_call, edit),
                                             SLOT(op_call, operand),
                                             SLOT(op_call, yield)};
constexpr kiln_host_backend backend_table = {.struct_size = 0,
                                             .reserved0 = 0,
                                             SLOT(backend, context),
                                             SLOT(backend, option),
                                             SLOT(backend, key),
                                             SLOT(backend, blob),
                                             SLOT(backend, refuse)};
#undef SLOT

[[noreturn]] void unknown_slot() {
  std::fputs("the plugin called a slot that it cannot know\n", stderr);
  std::abort();
}

enum class Age { older, newer };

// A copy that lives as long as the process: of an older host its first `old_size` bytes, with a page behind that nobody
// may read; of a newer one with slots behind that nobody knows.
template <class Table>
const Table *placed(const Table &table, size_t old_size, Age age) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void *pages = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw Failure("no memory for a table");
  auto *at = static_cast<std::byte *>(pages);
  if (age == Age::older) {
    mprotect(at + page, page, PROT_NONE);
    at += page - old_size;
    std::memcpy(at, &table, old_size);
  } else {
    std::memcpy(at, &table, sizeof table);
    void (*const unknown)() = unknown_slot;
    for (size_t i = 0; i < 16; ++i) std::memcpy(at + sizeof table + i * sizeof unknown, &unknown, sizeof unknown);
    old_size = sizeof table + 16 * sizeof unknown;
  }
  const auto size = static_cast<uint32_t>(old_size);
  std::memcpy(at, &size, sizeof size);
  return reinterpret_cast<const Table *>(at);
}

// The last slot of ABI 1.0 ends there.
#define UNTIL(table, last) (offsetof(table, last) + sizeof(void *))
const kiln_host *host_of(Age age, uint64_t features) {
  kiln_host host = {};
  host.abi_minor = age == Age::older ? 0 : KILN_ABI_MINOR + 3;
  host.features = age == Age::older ? features : UINT64_MAX;
  host.error = placed(error_table, UNTIL(kiln_host_error, destroy), age);
  host.op = placed(op_table, UNTIL(kiln_host_op, name), age);
  host.dim = placed(dim_table, UNTIL(kiln_host_dim, evaluate), age);
  host.graph = placed(graph_table, UNTIL(kiln_host_graph, destroy), age);
  host.node = placed(node_table, UNTIL(kiln_host_node, constant), age);
  host.value = placed(value_table, UNTIL(kiln_host_value, view_of), age);
  host.edit = placed(edit_table, UNTIL(kiln_host_edit, output), age);
  host.pass = placed(pass_table, UNTIL(kiln_host_pass, match_replace), age);
  host.context = placed(context_table, UNTIL(kiln_host_context, add_backend), age);
  host.op_call = placed(op_call_table, UNTIL(kiln_host_op_call, yield), age);
  host.backend = placed(backend_table, UNTIL(kiln_host_backend, refuse), age);
  return placed(host, UNTIL(kiln_host, backend), age);
}
#undef UNTIL

const kiln_plugin &table_of(const std::string &path) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw Failure(dlerror());
  const auto entry = reinterpret_cast<const kiln_plugin *(*)()>(dlsym(library, "kiln_plugin_entry_v1"));
  if (!entry) throw Failure("there is no kiln_plugin_entry_v1");
  return *entry();
}

void expect_same(const Checked &subject, Age age) {
  const kiln_plugin &plugin = table_of(subject.path);
  const std::string which = age == Age::older ? "in a host of ABI 1.0 " : "in a host of a later ABI ";
  const Registered registered(subject.path);
  const std::vector<Item> items = some_graphs(subject, 12);
  const std::string expected = all_texts(context_of(subject), registered, items);
  void *state = nullptr;
  {
    const Context context = plain_context();
    prepare(context, subject);
    try {
      check(plugin.setup(host_of(age, plugin.features_needed), context.get(), &state));
    } catch (const Failure &failure) {
      throw Failure(which + "its setup fails: " + failure.what());
    }
    if (const std::string at = parting(expected, all_texts(context, registered, items)); !at.empty())
      throw Failure(which + "it makes something else of " + at);
  }
  if (plugin.teardown) plugin.teardown(state);
}

}  // namespace

void test_hosts(const Checked &subject) {
  if (table_of(subject.path).host_minor_needed == 0) expect_same(subject, Age::older);
  expect_same(subject, Age::newer);
}

}  // namespace kiln::cli::plugin_check
