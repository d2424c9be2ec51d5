// What is no error, given as one: it is told, not followed, and not destroyed either. A row each.
#include <functional>

#include "rows.h"
#include "test_function.h"
#include "tests/temporary_folder.h"

namespace {

using host::chain;
using host::TestFunction;

struct Wild : host::Row {
  kiln_error *(*make)();
};

template <uintptr_t number>
kiln_error *at() {
  return reinterpret_cast<kiln_error *>(number);
}

alignas(16) unsigned char memory[256];  // nothing of Kiln's

const Wild all[] = {
    {"LowAddress", at<0x10>},
    {"HighAddress", at<~uintptr_t{0} - 15>},
    {"BitPattern", at<0xdeadbeefdeadbeef>},
    {"Misaligned", [] { return reinterpret_cast<kiln_error *>(memory + 1); }},
    {"MemoryOfTheHost", [] { return reinterpret_cast<kiln_error *>(memory); }},
    {"Destroyed",
     [] {
       kiln_error *error = kiln_error_create(KILN_IO, "disk", 4, nullptr);
       kiln_error_destroy(error);
       return error;
     }},
    {"CauseOfOneThatWasDestroyed",
     [] {
       kiln_error *error = kiln_error_create(KILN_IO, "a", 1, kiln_error_create(KILN_IO, "b", 1, nullptr));
       auto *cause = const_cast<kiln_error *>(kiln_error_cause(error));
       kiln_error_destroy(error);
       return cause;
     }},
};

class WildError : public testing::TestWithParam<Wild> {};

TEST_P(WildError, AnswersThatItIsNone) {
  kiln_error *const wild = GetParam().make();
  kiln_text text{};
  kiln_error_message(wild, &text);
  EXPECT_EQ(host::text_of(text), "this is no kiln_error, or one that was destroyed");
  EXPECT_EQ(kiln_error_code(wild), KILN_INTERNAL);
  kiln_error_plugin(wild, &text);
  EXPECT_EQ(text.size, 0u);
  kiln_error_node(wild, &text);
  EXPECT_EQ(text.size, 0u);
  EXPECT_EQ(kiln_error_cause(wild), nullptr);
  EXPECT_EQ(kiln_error_report(wild), nullptr);
  kiln_error_destroy(wild);
}

TEST_P(WildError, AsACauseIsTold) {
  const host::Error error = host::take(kiln_error_create(KILN_IO, "above", 5, GetParam().make()));
  EXPECT_EQ(error.message, "above");
  EXPECT_EQ(error.cause, "returned what is not a kiln_error, or one that was destroyed");
}

TEST_P(WildError, ReturnedByACallbackIsTold) {
  TestFunction function("f", host::triple_signature, host::triple);
  function.on_call = GetParam().make;
  const host::Context context = host::make_context();
  function.register_in(context.get());
  const host::Compiled compiled = host::compile(context.get(), chain(host::by("f")));
  ASSERT_EQ(compiled.error, host::Error());
  const host::Call call = host::make_call(compiled.executable);
  const host::Array x({2}, {1, -2}), y({2}, {0, 0});
  EXPECT_FAILS(host::run(call.get(), {&x, &y}), KILN_PLUGIN_FAILED, "returned what is not a kiln_error");
  function.on_call = {};
  host::expect_chain(compiled, 3);
}

INSTANTIATE_TEST_SUITE_P(Abi, WildError, testing::ValuesIn(all), host::name_of_row);

TEST(DestroyedError, IsNotWhereTheNextOneIs) {
  kiln_error *const first = kiln_error_create(KILN_IO, "a", 1, nullptr);
  kiln_error_destroy(first);
  kiln_error *const second = kiln_error_create(KILN_IO, "b", 1, nullptr);
  EXPECT_NE(first, second);
  kiln_error_destroy(first);
  EXPECT_EQ(kiln_error_code(second), KILN_IO);
  kiln_error_destroy(second);
}

TEST(ReportOfAnError, GoesWithItAlone) {
  const kiln::test::TemporaryFolder folder;
  const host::Context context = host::make_context(folder.path());
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  kiln_options *options = nullptr;
  ASSERT_OK(kiln_options_create(&options));
  ASSERT_OK(kiln_options_set_bool(options, "require_hit", 11, 1));
  kiln_executable *executable = nullptr;
  kiln_error *const error = kiln_compile(context.get(), graph.get(), options, &executable, nullptr);
  kiln_options_destroy(options);
  ASSERT_EQ(kiln_error_code(error), KILN_NOT_CACHED);
  const kiln_report *const report = kiln_error_report(error);
  ASSERT_NE(report, nullptr);
  kiln_report_destroy(const_cast<kiln_report *>(report));
  EXPECT_EQ(kiln_error_report(error), report);
  kiln_error_destroy(error);
}

}  // namespace
