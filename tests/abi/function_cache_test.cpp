// Functions of the host in keys, records and artifacts: whatever says what they compute is told apart.
#include "test_function.h"
#include "tests/child.h"
#include "tests/temporary_folder.h"

namespace {

using host::by;
using host::chain;
using host::compile;
using host::expect_chain;
using host::TestFunction;

struct Outcome {
  std::string lookup, reason;
};
Outcome look_up(const std::string &cache, TestFunction &function, const std::string &json,
                const std::string &mode = "all", bool falls_back = false) {
  const host::Context context = host::make_context(cache);
  function.register_in(context.get());
  kiln_op neg = 0;
  EXPECT_OK(kiln_op_find(context.get(), "neg", 3, &neg));
  if (falls_back)
    EXPECT_OK(kiln_fallback_register(context.get(), neg, function.name.data(), function.name.size(), nullptr));
  const host::Compiled compiled = compile(context.get(), json, mode);
  EXPECT_EQ(compiled.error, host::Error());
  if (!compiled.executable) return {};
  const host::Call call = host::make_call(compiled.executable);
  const host::Array x({1}, {1}), y({1}, {0});
  EXPECT_OK(host::run(call.get(), {&x, &y}));
  return {host::text(compiled.report, "lookup"), host::text(compiled.report, "reason")};
}

TEST(FunctionCache, WithAUuidWhatIsMadeIsCachedUnderItsIdentity) {
  const kiln::test::TemporaryFolder folder;
  const auto look = [&](const char *version, std::string_view signature, uint8_t first_byte) {
    uint8_t uuid[16] = {first_byte};
    TestFunction triple("triple", signature, host::triple, true, version);
    triple.function.uuid = uuid;
    return look_up(folder.path(), triple, chain(by("triple")));
  };
  const std::string_view other_signature = "error (f32 data x, f32 data y, i64 size x 0, user)";
  EXPECT_EQ(look("1", host::triple_signature, 1).lookup, "MISS");
  EXPECT_EQ(look("1", host::triple_signature, 1).lookup, "HIT");
  for (const Outcome &outcome :
       {look("2", host::triple_signature, 1), look("1", other_signature, 1), look("1", host::triple_signature, 2)}) {
    EXPECT_EQ(outcome.lookup, "MISS");
    EXPECT_NE(outcome.reason.find("function 'triple'"), std::string::npos) << outcome.reason;
  }
  EXPECT_EQ(look("1", host::triple_signature, 1).lookup, "HIT");
}

TEST(FunctionCache, ASecondProcessHitsCompilesNothingAndCallsItsOwn) {
  const kiln::test::TemporaryFolder folder;
  const auto look = [&](const char *version, const std::string &lookup, int64_t compiled_kernels) {
    kiln::test::in_child([&] {
      TestFunction triple("triple", host::triple_signature, host::triple, true, version);
      const host::Context context = host::make_context(folder.path());
      triple.register_in(context.get());
      const host::Compiled compiled = compile(context.get(), chain(by("triple")));
      expect_chain(compiled, 3);
      EXPECT_EQ(triple.called, 2);
      EXPECT_EQ(host::text(compiled.report, "lookup"), lookup);
      EXPECT_EQ(host::i64(compiled.report, "kernels_compiled"), compiled_kernels);
      EXPECT_OK(kiln_context_close(context.get()));
    });
  };
  look("1", "MISS", 2);
  look("1", "HIT", 0);
  look("2", "MISS", 0);  // the kernels are those of before
  look("2", "HIT", 0);
}

TEST(FunctionCache, OfAnOpIsInTheKeyWhereNodesMayFallBack) {
  const kiln::test::TemporaryFolder folder;
  TestFunction one("triple", host::triple_signature, host::triple, true),
      two("triple", host::triple_signature, host::triple, true, "2");
  const auto look = [&](TestFunction &function, const std::string &mode, bool falls_back) {
    return look_up(folder.path(), function, chain(""), mode, falls_back);
  };
  EXPECT_EQ(look(one, "none", false).lookup, "MISS");
  const Outcome with = look(one, "none", true);
  EXPECT_EQ(with.lookup, "MISS");
  EXPECT_NE(with.reason.find("fallback of 'neg'"), std::string::npos) << with.reason;
  EXPECT_EQ(look(one, "none", true).lookup, "HIT");
  EXPECT_EQ(look(two, "none", true).lookup, "MISS");
  EXPECT_EQ(look(one, "none", false).lookup, "HIT");
  EXPECT_EQ(look(one, "all", false).lookup, "MISS");
  EXPECT_EQ(look(one, "all", true).lookup, "HIT") << "nothing falls back";
}

TEST(FunctionCache, WithoutAUuidIsABypassThatNamesIt) {
  const kiln::test::TemporaryFolder folder;
  TestFunction triple("triple", host::triple_signature, host::triple);
  for (int i = 0; i < 2; ++i) {
    const Outcome outcome = look_up(folder.path(), triple, chain(by("triple")));
    EXPECT_EQ(outcome.lookup, "BYPASS");
    EXPECT_EQ(outcome.reason, "function 'triple' has no identity");
  }
  const host::Context context = host::make_context(folder.path());
  triple.register_in(context.get());
  const host::Compiled strict = compile(context.get(), chain(by("triple")), "all", "cpu", true);
  EXPECT_EQ(strict.error.code, KILN_INVALID_ARGUMENT);
  EXPECT_NE(strict.error.message.find("strict mode needs of every function"), std::string::npos) << strict.error;
}

// A pass that has a function run the node that was not marked.
struct Marking : host::TestPass {
  Marking()
      : TestPass(
            [](kiln_pass_call *call) {
              kiln_edit *edit = kiln_pass_edit(call);
              kiln_node node = 0;
              if (kiln_error *error = kiln_graph_find(kiln_edit_view(edit), "b", 1, &node)) return error;
              const kiln_text name{"triple", 6};
              const kiln_attr mark = host::attr("kiln.fallback.function", KILN_ATTR_TEXT, 1, &name);
              if (kiln_error *error = kiln_edit_annotate(edit, node, &mark, 1)) return error;
              return kiln_pass_done(call, 1);
            },
            "mark") {
    identify();
  }
};

TEST(FunctionCache, ThatAPassNamesIsAUseOfTheRecord) {
  const kiln::test::TemporaryFolder folder;
  const auto look = [&](const char *version, bool identified = true) {
    TestFunction triple("triple", host::triple_signature, host::triple, identified, version);
    Marking marking;
    const host::Context context = host::make_context(folder.path());
    EXPECT_OK(kiln_pass_register(context.get(), &marking.pass, nullptr, nullptr));
    triple.register_in(context.get());
    const host::Compiled compiled = compile(context.get(), chain(""));
    expect_chain(compiled, 3);
    return Outcome{host::text(compiled.report, "lookup"), host::text(compiled.report, "reason")};
  };
  EXPECT_EQ(look("1").lookup, "MISS");
  EXPECT_EQ(look("1").lookup, "HIT");
  const Outcome other = look("2");
  EXPECT_EQ(other.lookup, "MISS");
  EXPECT_NE(other.reason.find("function 'triple' is version '2'"), std::string::npos) << other.reason;
  EXPECT_EQ(look("2").lookup, "HIT");
  EXPECT_EQ(look("3", false).lookup, "MISS");
  EXPECT_EQ(look("3", false).lookup, "MISS") << "it is not saved";
}

TEST(FunctionCache, ThatIsGoneMakesARejectThatNamesItsVersion) {
  const kiln::test::TemporaryFolder folder;
  const auto look = [&](bool is_there) {
    TestFunction triple("triple", host::triple_signature, host::triple, true, "7");
    Marking marking;
    const host::Context context = host::make_context(folder.path());
    EXPECT_OK(kiln_pass_register(context.get(), &marking.pass, nullptr, nullptr));
    if (is_there) triple.register_in(context.get());
    host::Compiled compiled = compile(context.get(), chain(""));
    compiled.executable = nullptr;  // before the function, which it uses
    return compiled;
  };
  EXPECT_EQ(host::text(look(true).report, "lookup"), "MISS");
  const host::Compiled without = look(false);
  EXPECT_EQ(without.error.code, KILN_UNKNOWN_NAME) << without.error;
  EXPECT_EQ(without.error.lookup, "REJECT");
  const std::string &reason = without.error.reason;
  EXPECT_NE(reason.find("function 'triple' (version '7'"), std::string::npos) << reason;
  EXPECT_NE(reason.find("is not there"), std::string::npos) << reason;
}

TEST(FunctionCache, WhatTakesTheNodesPlaceIsNotRunByIt) {
  host::TestPass replace([](kiln_pass_call *call) {
    kiln_edit *edit = kiln_pass_edit(call);
    const kiln_graph *graph = kiln_edit_view(edit);
    kiln_node b = 0, again = 0;
    if (kiln_error *error = kiln_graph_find(graph, "b", 1, &b)) return error;
    const kiln_value input = kiln_node_input(graph, b, 0);
    if (kiln_error *error = kiln_edit_add(edit, kiln_node_op(graph, b), nullptr, 0, &input, 1, nullptr, 0, &again))
      return error;
    if (kiln_error *error = kiln_edit_replace(edit, b << 32, again << 32)) return error;
    return kiln_pass_done(call, 1);
  });
  TestFunction triple("triple", host::triple_signature, host::triple);
  const host::Context context = host::make_context();
  ASSERT_OK(kiln_pass_register(context.get(), &replace.pass, nullptr, nullptr));
  triple.register_in(context.get());
  expect_chain(compile(context.get(), chain(by("triple"))), 1);
  EXPECT_EQ(triple.called, 0);
}

TEST(FunctionCache, AnArtifactNeedsTheOneThatItWasMadeWith) {
  std::string bytes;
  {
    TestFunction triple("triple", host::triple_signature, host::triple, true);
    const host::Context context = host::make_context();
    triple.register_in(context.get());
    const host::Compiled compiled = compile(context.get(), chain(by("triple")));
    ASSERT_EQ(compiled.error, host::Error());
    bytes = host::bytes_of(compiled.executable);
  }
  TestFunction same("triple", host::triple_signature, host::triple, true),
      other("triple", host::triple_signature, host::triple, true, "2");
  const host::Context without = host::make_context(), with_other = host::make_context(), with = host::make_context();
  host::Compiled opened;
  host::Error error = host::open_bytes(without.get(), bytes, opened.executable);
  EXPECT_EQ(error.code, KILN_INCOMPATIBLE);
  EXPECT_NE(
      error.message.find("function 'triple', which is not there; none is registered; it was made with version '1'"),
      std::string::npos)
      << error;
  other.register_in(with_other.get());
  error = host::open_bytes(with_other.get(), bytes, opened.executable);
  EXPECT_EQ(error.code, KILN_INCOMPATIBLE);
  EXPECT_NE(error.message.find("function 'triple' is version '2'"), std::string::npos) << error;
  same.register_in(with.get());
  ASSERT_EQ(host::open_bytes(with.get(), bytes, opened.executable), host::Error());
  expect_chain(opened, 3);
}

TEST(FunctionCache, EntriesForSomeSizesKeepTheOneThatTheProgramWasMadeWith) {
  TestFunction triple("triple", host::triple_signature, host::triple);
  const host::Context context = host::make_context();
  const uint64_t id = triple.register_in(context.get());
  const host::Graph graph = host::parse(context.get(), chain(by("triple")));
  host::Compiled compiled = host::compile(context.get(), graph.get(), [](kiln_options *options) {
    const kiln_text sizes{"n=3", 3};
    const kiln_attr attr = host::attr("specialize", KILN_ATTR_TEXT | KILN_ATTR_LIST, 1, &sizes);
    EXPECT_OK(kiln_options_set(options, &attr));
    EXPECT_OK(kiln_options_set_text(options, "specialize_when", 15, "lazy", 4));
  });
  ASSERT_OK(kiln_function_unregister(context.get(), id));
  expect_chain(compiled, 3);  // asks for the entry
  ASSERT_OK(kiln_context_close(context.get()));
  EXPECT_EQ(host::text(host::describe(compiled.executable.get()), "entries.1.state"), "made");
  expect_chain(compiled, 3);
  EXPECT_EQ(triple.destroyed, 0);
  compiled.executable.reset();
  EXPECT_EQ(triple.destroyed, 1);
}

}  // namespace
