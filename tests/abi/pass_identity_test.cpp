// What passes say of themselves: that nothing of theirs can be kept, labels, that they change numerics, that they want
// no nested graphs; and a hit that is made again to see whether all of it is true.
#include <memory>

#include "asking_pass.h"
#include "tests/temporary_folder.h"

namespace {

using host::TestPass;

class PassIdentity : public testing::Test {
 protected:
  TestPass &make(std::function<kiln_error *(kiln_pass_call *)> body, std::string_view name = "test") {
    TestPass &pass = *passes.emplace_back(std::make_unique<TestPass>(std::move(body), name));
    pass.identify();
    return pass;
  }
  void open() {
    context = host::make_context(folder.path(), &sink);
    graph = host::parse(context.get(), host::scaled(3));
  }
  host::Error add(TestPass &pass) {
    return host::take(kiln_pass_register(context.get(), &pass.pass, nullptr, nullptr));
  }
  host::Compiled compile() { return host::compile(context.get(), graph.get()); }
  static host::Compiled compile_with(const host::Context &context, const host::Graph &graph, std::string_view option) {
    return host::compile(context.get(), graph.get(), [&](kiln_options *options) {
      EXPECT_OK(kiln_options_set_bool(options, option.data(), option.size(), 1));
    });
  }
  host::Compiled compile_with(std::string_view option) { return compile_with(context, graph, option); }
  void close() {
    EXPECT_OK(kiln_context_close(context.get()));
    graph = nullptr;
    context = nullptr;  // before the passes, which it owns
  }
  ~PassIdentity() override {
    graph = nullptr;
    context = nullptr;
  }

  const kiln::test::TemporaryFolder folder;
  std::vector<std::string> warnings;
  kiln_event_sink sink = host::warnings_into(warnings);
  std::vector<std::unique_ptr<TestPass>> passes;
  host::Context context;
  host::Graph graph;
};

kiln_error *uncacheable(kiln_pass_call *call) { return kiln_pass_uncacheable(call, "it reads the clock", 18); }

constexpr std::string_view reason = "pass 'test' of the host: uncacheable because it reads the clock";

TEST_F(PassIdentity, AFingerprintThatThereCannotBeBypassesTheCacheWithItsReason) {
  for (int i = 0; i < 2; i++) {
    open();
    TestPass &pass = make(host::nothing);
    pass.pass.fingerprint = [](void *, kiln_pass_call *call) { return uncacheable(call); };
    ASSERT_EQ(add(pass), host::Error());
    const host::Compiled compiled = compile();
    EXPECT_EQ(host::text(compiled.report, "lookup"), "BYPASS");
    EXPECT_EQ(host::text(compiled.report, "reason"), reason);
    EXPECT_EQ(host::text(compiled.report, "key"), "");
    EXPECT_EQ(host::i64(compiled.report, "passes_run.test"), 0);
    EXPECT_EQ(host::run_scaled(compiled), 3);
    const host::Error strict = compile_with("strict").error;
    EXPECT_NE(strict.message.find(std::string(reason) + ", and strict mode"), std::string::npos) << strict.message;
    close();
  }
}

TEST_F(PassIdentity, WhatIsUncacheableIsNeitherSavedNorShared) {
  int runs = 0;
  open();
  TestPass &pass = make([&](kiln_pass_call *call) {
    runs++;
    kiln_error *error = uncacheable(call);
    return error ? error : host::scale_output(call, static_cast<float>(runs));
  });
  ASSERT_EQ(add(pass), host::Error());
  for (int i = 1; i <= 2; i++) {
    const host::Compiled compiled = compile();
    EXPECT_EQ(host::text(compiled.report, "lookup"), "MISS");
    EXPECT_EQ(host::text(compiled.report, "warnings.0"), "not saved: " + std::string(reason));
    EXPECT_EQ(host::run_scaled(compiled), static_cast<float>(3 * i)) << "made anew, not taken of the first";
  }
  EXPECT_EQ(warnings, (std::vector<std::string>(2, "not saved: " + std::string(reason))));
  EXPECT_EQ(runs, 2);
  const host::Error strict = compile_with("strict").error;
  EXPECT_NE(strict.message.find("strict mode needs a result that can be cached"), std::string::npos) << strict.message;
  close();
}

TEST_F(PassIdentity, ALabelTellsTwoOfOneNameAndUuidApartAndIsInTheKey) {
  const auto labelled = [&](std::string_view label, float factor) -> TestPass & {
    TestPass &pass = make([factor](kiln_pass_call *call) { return host::scale_output(call, factor); });
    pass.pass.label = label.data();
    pass.pass.label_size = label.size();
    return pass;
  };
  for (const char *lookup : {"MISS", "HIT"}) {
    open();
    ASSERT_EQ(add(labelled("first", 2)), host::Error());
    ASSERT_EQ(add(labelled("second", 5)), host::Error());
    EXPECT_NE(add(labelled("first", 2)).message.find("pass 'test:first' of the host: the name is taken"),
              std::string::npos);
    TestPass &other = make(host::nothing, "other");
    other.pass.label = "second";
    other.pass.label_size = 6;
    EXPECT_NE(add(other).message.find("its UUID is that of pass 'test:second'"), std::string::npos);
    const host::Compiled compiled = compile();
    EXPECT_EQ(host::text(compiled.report, "lookup"), lookup);
    EXPECT_EQ(host::run_scaled(compiled), 30);
    EXPECT_EQ(host::text(compiled.report, "made.passes.1.name"), "test:first") << "a hit tells which passes shaped it";
    EXPECT_EQ(host::text(compiled.report, "made.passes.2.name"), "test:second");
    close();
  }
  open();
  ASSERT_EQ(add(labelled("third", 2)), host::Error());
  ASSERT_EQ(add(labelled("second", 5)), host::Error());
  EXPECT_EQ(host::text(compile().report, "lookup"), "MISS");
  close();
}

TEST_F(PassIdentity, OneThatChangesNumericsIsWarnedOfOnceAContext) {
  for (const char *lookup : {"MISS", "HIT"}) {
    warnings.clear();
    open();
    TestPass &pass = make([](kiln_pass_call *call) { return host::scale_output(call, 2); });
    pass.pass.flags |= KILN_PASS_NUMERICS;
    ASSERT_EQ(add(pass), host::Error());
    const host::Compiled compiled = compile();
    EXPECT_EQ(host::text(compiled.report, "lookup"), lookup);
    uint32_t numerics = 0;
    EXPECT_OK(kiln_report_get_bool(compiled.report.get(), "made.passes.1.numerics", 22, &numerics));
    EXPECT_EQ(numerics, 1u);
    (void)compile();
    EXPECT_EQ(warnings, std::vector<std::string>{"pass 'test' of the host changes what is computed "
                                                 "(KILN_PASS_NUMERICS)"});
    close();
  }
}

TEST_F(PassIdentity, OneThatIsForTheTopAloneVisitsNoNestedGraph) {
  for (const uint32_t flag : {0u, KILN_PASS_TOP_ONLY}) {
    int runs = 0;
    open();
    TestPass &pass = make([&](kiln_pass_call *call) { return runs++, host::nothing(call); });
    pass.pass.flags |= flag;
    ASSERT_EQ(add(pass), host::Error());
    graph = host::parse(context.get(), host::doubles);
    EXPECT_EQ(host::text(compile().report, "lookup"), "MISS") << "the flag is in the key";
    EXPECT_EQ(runs, flag ? 1 : 3);
    close();
  }
}

TEST_F(PassIdentity, AnUndeclaredReadIsFoundByVerifyAndNamed) {
  float read = 2;  // which the key does not have
  const auto begin = [&] {
    open();
    ASSERT_EQ(add(make([](kiln_pass_call *call) { return host::scale_output(call, 1); }, "honest")), host::Error());
    TestPass &pass = make([&](kiln_pass_call *call) { return host::scale_output(call, read); }, "reads");
    static constexpr uint8_t uuid[16] = {9};
    pass.pass.uuid = uuid;
    ASSERT_EQ(add(pass), host::Error());
  };
  begin();
  EXPECT_EQ(host::text(compile().report, "lookup"), "MISS");
  close();

  begin();
  const host::Compiled same = compile_with("verify");
  EXPECT_EQ(same.error, host::Error());
  EXPECT_EQ(host::text(same.report, "lookup"), "HIT");
  EXPECT_EQ(host::i64(same.report, "passes_run.reads"), 1) << "all is run again";
  uint32_t verified = 0;
  EXPECT_OK(kiln_report_get_bool(same.report.get(), "verified", 8, &verified));
  EXPECT_EQ(verified, 1u);
  read = 5;
  EXPECT_EQ(host::run_scaled(compile()), 6) << "a stale hit";
  const host::Error error = compile_with("verify").error;
  EXPECT_EQ(error.code, KILN_INVARIANT);
  EXPECT_EQ(error.message.find("pass 'reads' of the host: it made another graph than when the record was made"), 0u)
      << error.message;
  EXPECT_EQ(error.plugin, "the host");
  close();
}

TEST_F(PassIdentity, VerifyComparesThePiecesThatAreFoundWhereTheWholeIsNot) {
  int runs = 0;
  TestPass pass([&](kiln_pass_call *call) { return host::scale_output(call, static_cast<float>(++runs)); });
  pass.identify();
  pass.pass.stage = KILN_STAGE_LOWER;
  host::Context context = host::make_context(folder.path());
  ASSERT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, nullptr));
  const auto cut = [&](const std::string &last, bool verify) {
    const host::Graph graph = host::parse(
        context.get(),
        R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":[4]}}],"nodes":[{"name":"a","op":"exp","inputs":["x"]},
          {"name":"y","op":")" +
            last + R"(","inputs":["a"]}],"outputs":[{"name":"y","value":"y"}]})");
    return host::compile(context.get(), graph.get(), [&](kiln_options *options) {
      const kiln_text exp{"exp", 3};
      const kiln_attr split = host::attr("split_at", KILN_ATTR_TEXT | KILN_ATTR_LIST, 1, &exp);
      EXPECT_OK(kiln_options_set(options, &split));
      EXPECT_OK(kiln_options_set_bool(options, "verify", 6, verify));
    });
  };
  EXPECT_EQ(cut("neg", false).error, host::Error());
  const host::Compiled other = cut("abs", false);
  EXPECT_EQ(host::text(other.report, "pieces.0.lookup"), "HIT");
  const host::Error error = cut("sin", true).error;
  EXPECT_EQ(error.code, KILN_INVARIANT);
  EXPECT_NE(error.message.find("it made another graph than when the record was made"), std::string::npos)
      << error.message;
  context = nullptr;
}

TEST_F(PassIdentity, ANondeterministicPassOfStageLowerIsFoundByVerify) {
  int runs = 0;
  open();
  TestPass &pass = make([&](kiln_pass_call *call) { return host::scale_output(call, static_cast<float>(++runs)); });
  pass.pass.stage = KILN_STAGE_LOWER;
  ASSERT_EQ(add(pass), host::Error());
  EXPECT_EQ(host::text(compile().report, "lookup"), "MISS");
  const host::Error error = compile_with("verify").error;
  EXPECT_EQ(error.code, KILN_INVARIANT);
  EXPECT_NE(error.message.find("pass 'test' of the host"), std::string::npos) << error.message;
  close();
}

}  // namespace
