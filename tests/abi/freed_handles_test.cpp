// Handles of every kind that are used after they were destroyed: each use is refused, and reads no memory that is gone
// or another's, among the last that were destroyed.
#include <functional>

#include "host.h"
#include "rows.h"

namespace {

constexpr int destroyed_since = 256;

struct World {
  host::Context context = host::make_context();
  host::Graph graph = host::parse(context.get(), host::small_graph);
  host::Executable executable = host::compile(context.get(), graph.get()).executable;
  std::string artifact = host::bytes_of(executable);
};

kiln_graph *parse(World &world) { return host::parse(world.context.get(), host::small_graph).release(); }

// One kind: makes one, destroys it, and uses it by a function that tells an error.
template <class Handle>
struct UsesOfHandle {
  Handle *(*make)(World &world);
  void (*destroy)(Handle *handle);
  kiln_error *(*use)(World &world, Handle *handle);
};

struct Kind : host::Row {
  const char *words;
  std::function<void(const char *words)> check;
};

// Used at once, and after others of its kind were made and destroyed in the places that it may have left.
template <class Handle>
Kind kind(const char *what, const char *words, UsesOfHandle<Handle> uses) {
  return {{what}, words, [uses](const char *expected) {
            World world;
            Handle *const handle = uses.make(world);
            uses.destroy(handle);
            EXPECT_FAILS(uses.use(world, handle), KILN_INVALID_ARGUMENT, expected);
            for (int i = 0; i < destroyed_since; ++i) {
              Handle *const other = uses.make(world);
              ASSERT_NE(other, handle) << "the place of one that was just destroyed";
              EXPECT_FAILS(uses.use(world, handle), KILN_INVALID_ARGUMENT, expected);
              uses.destroy(other);
            }
            uses.destroy(handle);
          }};
}

const Kind kinds[] = {
    kind<kiln_context>("Context", "context is a handle of another type, or was destroyed",
                       {[](World &) { return host::make_context().release(); }, kiln_context_destroy,
                        [](World &, kiln_context *context) {
                          kiln_graph *out = nullptr;
                          return kiln_graph_parse(context, host::small_graph.data(), host::small_graph.size(), &out);
                        }}),
    kind<kiln_options>("Options", "options is a handle of another type, or was destroyed",
                       {[](World &) {
                          kiln_options *made = nullptr;
                          EXPECT_OK(kiln_options_create(&made));
                          return made;
                        },
                        kiln_options_destroy,
                        [](World &, kiln_options *options) { return kiln_options_set_i64(options, "a", 1, 1); }}),
    kind<kiln_graph>("Graph", "graph is a handle of another type, or was destroyed",
                     {parse, kiln_graph_destroy,
                      [](World &, kiln_graph *graph) {
                        uint64_t count = 0;
                        return kiln_graph_nodes(graph, nullptr, 0, &count);
                      }}),
    kind<kiln_edit>("Edit", "edit is a handle of another type, or was destroyed",
                    {[](World &world) {
                       kiln_edit *made = nullptr;
                       EXPECT_OK(kiln_edit_begin(world.context.get(), world.graph.get(), &made));
                       return made;
                     },
                     kiln_edit_destroy, [](World &, kiln_edit *edit) { return kiln_edit_replace(edit, 1, 2); }}),
    kind<kiln_executable>("Executable", "executable is a handle of another type, or was destroyed",
                          {[](World &world) {
                             host::Executable made;
                             EXPECT_EQ(host::open_bytes(world.context.get(), world.artifact, made), host::Error());
                             return made.release();
                           },
                           kiln_executable_destroy,
                           [](World &, kiln_executable *executable) {
                             kiln_call *out = nullptr;
                             return kiln_call_create(executable, &out);
                           }}),
    kind<kiln_call>(
        "Call", "call is a handle of another type, or was destroyed",
        {[](World &world) {
           kiln_call *made = nullptr;
           EXPECT_OK(kiln_call_create(world.executable.get(), &made));
           return made;
         },
         kiln_call_destroy, [](World &, kiln_call *call) { return kiln_call_run(call, nullptr, 0, nullptr); }}),
    kind<kiln_report>(
        "Report", "report is a handle of another type, or was destroyed",
        {[](World &world) { return host::context_report(world.context.get()).release(); }, kiln_report_destroy,
         [](World &, kiln_report *report) {
           kiln_blob *out = nullptr;
           return kiln_report_json(report, &out);
         }}),
};

class FreedHandle : public testing::TestWithParam<Kind> {};

TEST_P(FreedHandle, IsRefused) { GetParam().check(GetParam().words); }
INSTANTIATE_TEST_SUITE_P(Abi, FreedHandle, testing::ValuesIn(kinds), host::name_of_row);

TEST(FreedHandles, BlobsAndViewsAnswerNothing) {
  World world;
  kiln_blob *blob = nullptr;
  ASSERT_OK(kiln_report_json(host::context_report(world.context.get()).get(), &blob));
  kiln_blob_destroy(blob);
  uint64_t size = 1;
  EXPECT_EQ(kiln_blob_data(blob, &size), nullptr);
  EXPECT_EQ(size, 0u);

  kiln_edit *edit = nullptr;
  ASSERT_OK(kiln_edit_begin(world.context.get(), world.graph.get(), &edit));
  const kiln_graph *view = kiln_edit_view(edit);
  EXPECT_EQ(kiln_node_kind(view, 1), uint32_t{KILN_NODE_INPUT});
  kiln_edit_destroy(edit);
  EXPECT_EQ(kiln_node_kind(view, 1), 0u);
}

}  // namespace
