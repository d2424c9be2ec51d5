// What a pass asks of its compile's surroundings: the answers, and which record is whose.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "asking_pass.h"
#include "tests/temporary_folder.h"

namespace {

using Questions = std::vector<std::string>;

class Query : public testing::Test {
 protected:
  struct Seen {
    std::string lookup;
    int runs = 0;
    float y = 0;
    bool operator==(const Seen &) const = default;
    friend void PrintTo(const Seen &seen, std::ostream *out) {
      *out << seen.lookup << " " << seen.runs << " " << seen.y;
    }
  };
  // What a context of its own sees, which is then closed.
  template <class Set>
  Seen look(const Questions &questions, Set set) {
    host::AskingPass pass(questions);
    pass.pass.stage = stage;
    pass.pass.timing = timing;
    host::Context context = host::make_context(folder.path());
    for (const auto &[name, value] : facts) host::set_fact(context, name, value);
    EXPECT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, nullptr));
    const host::Graph graph = host::parse(context.get(), host::scaled(3));
    const host::Compiled compiled = host::compile(context.get(), graph.get(), set);
    EXPECT_EQ(compiled.error, host::Error());
    if (!compiled.executable) return {};
    reason = host::text(compiled.report, "reason");
    description = host::describe(compiled.executable.get());
    report = json_of(compiled.report);
    Seen seen{host::text(compiled.report, "lookup"), pass.runs, host::run_scaled(compiled)};
    EXPECT_OK(kiln_context_close(context.get()));
    context = nullptr;  // before the pass, which it owns
    return seen;
  }
  Seen look(const Questions &questions) {
    return look(questions, [](kiln_options *) {});
  }
  static std::string json_of(const host::Report &report) {
    kiln_blob *json = nullptr;
    EXPECT_OK(kiln_report_json(report.get(), &json));
    return host::bytes_of(json);
  }
  // How many files of the cache have this ending.
  size_t files(const std::string &ending) const {
    size_t count = 0;
    for (const auto &entry : std::filesystem::recursive_directory_iterator(folder.path()))
      count += entry.path().extension() == ending;
    return count;
  }

  const kiln::test::TemporaryFolder folder;
  std::map<std::string, int64_t> facts;
  uint32_t stage = KILN_STAGE_POST_GRAD, timing = 0;
  std::string reason, report;
  host::Report description;
};

TEST_F(Query, AnotherRankIsAnotherVariantAndBothThenHit) {
  const Questions rank = {"host.rank"};
  facts["host.rank"] = 5;
  EXPECT_EQ(look(rank), (Seen{"MISS", 1, 15}));
  facts["host.rank"] = 7;
  EXPECT_EQ(look(rank), (Seen{"MISS", 1, 21}));
  EXPECT_EQ(reason, "question 'host.rank' is answered 7, and the nearest record was made after 5");
  facts["host.rank"] = 5;
  EXPECT_EQ(look(rank), (Seen{"HIT", 0, 15}));
  EXPECT_EQ(host::text(description, "questions.0.question"), "host.rank");
  EXPECT_EQ(host::text(description, "questions.0.answer"), "5");
  facts["host.rank"] = 7;
  EXPECT_EQ(look(rank), (Seen{"HIT", 0, 21}));
  facts.clear();
  EXPECT_EQ(look(rank), (Seen{"MISS", 1, 3})) << "that there is none is an answer, too";
  EXPECT_EQ(look(rank), (Seen{"HIT", 0, 3}));
  EXPECT_EQ(files(".kiln"), 3u);
  EXPECT_EQ(files(".questions"), 1u);
}

TEST_F(Query, AFactThatNobodyAskedForChangesNothing) {
  facts["host.rank"] = 2;
  EXPECT_EQ(look({"host.world"}), (Seen{"MISS", 1, 3}));
  facts["host.rank"] = 4;
  EXPECT_EQ(look({"host.world"}), (Seen{"HIT", 0, 3}));
}

TEST_F(Query, APassThatAsksNothingHasOneRecordAndNoQuestions) {
  EXPECT_EQ(look({}), (Seen{"MISS", 1, 3}));
  EXPECT_EQ(look({}), (Seen{"HIT", 0, 3}));
  EXPECT_EQ(files(".questions"), 0u);
  EXPECT_EQ(report.find("questions"), std::string::npos) << report;
}

TEST_F(Query, TheEnvironmentIsAskedAtEachLookup) {
  const Questions questions = {"env.KILN_TEST_FACTOR"};
  ASSERT_EQ(setenv("KILN_TEST_FACTOR", "4", 1), 0);
  EXPECT_EQ(look(questions), (Seen{"MISS", 1, 12}));
  EXPECT_EQ(look(questions), (Seen{"HIT", 0, 12}));
  EXPECT_EQ(host::text(description, "questions.0.answer").find("digest "), 0u) << "values may be secret";
  ASSERT_EQ(setenv("KILN_TEST_FACTOR", "6", 1), 0);
  EXPECT_EQ(look(questions), (Seen{"MISS", 1, 18}));
  ASSERT_EQ(unsetenv("KILN_TEST_FACTOR"), 0);
  EXPECT_EQ(look(questions), (Seen{"MISS", 1, 3}));
  ASSERT_EQ(setenv("KILN_TEST_FACTOR", "4", 1), 0);
  EXPECT_EQ(look(questions), (Seen{"HIT", 0, 12}));
  unsetenv("KILN_TEST_FACTOR");
}

TEST_F(Query, AFileIsItsContentWhereverItsBytesLie) {
  const std::string path = folder.file("factors");
  const auto write = [&](const std::string &text) {
    std::filesystem::remove(path);
    std::ofstream(path) << text;
  };
  const Questions questions = {"file." + path};
  write("one");
  const Seen first = look(questions);
  EXPECT_EQ(first.lookup, "MISS");
  write("another");
  const Seen second = look(questions);
  EXPECT_EQ(second.lookup, "MISS");
  EXPECT_NE(second.y, first.y);
  write("one");
  EXPECT_EQ(look(questions), (Seen{"HIT", 0, first.y}));
  std::filesystem::remove(path);
  EXPECT_EQ(look(questions), (Seen{"MISS", 1, 3}));
  EXPECT_EQ(look(questions), (Seen{"HIT", 0, 3}));
}

TEST_F(Query, WhichQuestionsThereAreMayFollowFromAnswers) {
  const Questions questions = {"host.kind", "host.size"};  // kind 2 asks for no size
  facts = {{"host.kind", 2}, {"host.size", 10}};
  EXPECT_EQ(look(questions), (Seen{"MISS", 1, 6}));
  facts["host.size"] = 11;
  EXPECT_EQ(look(questions), (Seen{"HIT", 0, 6}));
  facts["host.kind"] = 3;
  EXPECT_EQ(look(questions), (Seen{"MISS", 1, 99}));
  facts["host.size"] = 10;
  EXPECT_EQ(look(questions), (Seen{"MISS", 1, 90}));
  EXPECT_EQ(files(".questions"), 2u);
  for (const auto &[kind, size, y] : {std::tuple(2, 12, 6.0f), std::tuple(3, 10, 90.0f), std::tuple(3, 11, 99.0f)}) {
    facts = {{"host.kind", kind}, {"host.size", size}};
    EXPECT_EQ(look(questions), (Seen{"HIT", 0, y}));
  }
}

TEST_F(Query, AnEarlyPassIsKeyedByWhatItMadeOfTheAnswer) {
  stage = KILN_STAGE_PRE_GRAD;
  timing = KILN_TIMING_EARLY;
  for (const char *lookup : {"MISS", "HIT"})
    for (const int64_t rank : {5, 7}) {
      facts["host.rank"] = rank;
      EXPECT_EQ(look({"host.rank"}), (Seen{lookup, 1, static_cast<float>(3 * rank)}));
    }
  EXPECT_EQ(files(".questions"), 0u);
}

TEST_F(Query, APassOfStageLowerAsksForPiecesAndEntries) {
  stage = KILN_STAGE_LOWER;
  const auto cut = [](kiln_options *options) {
    const kiln_text mul{"mul", 3}, size{"n=1", 3};
    kiln_attr split = host::attr("split_at", KILN_ATTR_TEXT | KILN_ATTR_LIST, 1, &mul);
    EXPECT_OK(kiln_options_set(options, &split));
    split = host::attr("specialize", KILN_ATTR_TEXT | KILN_ATTR_LIST, 1, &size);
    EXPECT_OK(kiln_options_set(options, &split));
  };
  for (const char *lookup : {"MISS", "HIT"})
    for (const int64_t rank : {5, 7}) {
      facts["host.rank"] = rank;
      const Seen seen = look({"host.rank"}, cut);
      EXPECT_EQ(seen.lookup, lookup);
      EXPECT_EQ(seen.y, static_cast<float>(3 * rank));
      EXPECT_EQ(seen.runs > 0, seen.lookup == "MISS");
      EXPECT_EQ(host::text(description, "questions.0.answer"), std::to_string(rank));
    }
}

TEST_F(Query, AnArtifactOutsideOfTheCacheKeepsItsQuestions) {
  facts["host.rank"] = 5;
  host::AskingPass pass({"host.rank"});
  host::Context context = host::make_context();
  host::set_fact(context, "host.rank", 5);
  ASSERT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, nullptr));
  const host::Graph graph = host::parse(context.get(), host::scaled(3));
  const host::Compiled compiled = host::compile(context.get(), graph.get());
  ASSERT_EQ(compiled.error, host::Error());
  host::set_fact(context, "host.rank", 6);
  host::Compiled opened;
  EXPECT_EQ(host::open_bytes(context.get(), host::bytes_of(compiled.executable), opened.executable), host::Error());
  EXPECT_EQ(host::text(host::describe(opened.executable.get()), "questions.0.answer"), "5");
  EXPECT_EQ(host::run_scaled(opened), 15);
  context = nullptr;
}

TEST_F(Query, WhatIsCompiledRightAfterAnotherFactHasARecordToo) {
  host::AskingPass pass({"host.rank"});
  host::Context context = host::make_context(folder.path());
  ASSERT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, nullptr));
  const host::Graph graph = host::parse(context.get(), host::scaled(3));
  for (const int64_t rank : {5, 7}) {
    host::set_fact(context, "host.rank", rank);
    EXPECT_EQ(host::text(host::compile(context.get(), graph.get()).report, "lookup"), "MISS");
  }
  EXPECT_OK(kiln_context_close(context.get()));
  context = nullptr;
  EXPECT_EQ(pass.runs, 2);
  for (const int64_t rank : {5, 7}) {
    facts["host.rank"] = rank;
    EXPECT_EQ(look({"host.rank"}), (Seen{"HIT", 0, static_cast<float>(3 * rank)}));
  }
}

TEST_F(Query, EachOfSeveralAnswersIsFoundAgainWhileAllOfThemWaitToBeWritten) {
  host::AskingPass pass({"host.rank"});
  host::Context context = host::make_context(folder.path());
  ASSERT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, nullptr));
  const host::Graph graph = host::parse(context.get(), host::scaled(3));
  for (const char *lookup : {"MISS", "HIT", "HIT"})
    for (const int64_t rank : {2, 5, 7}) {
      host::set_fact(context, "host.rank", rank);
      const host::Compiled compiled = host::compile(context.get(), graph.get());
      EXPECT_EQ(host::text(compiled.report, "lookup"), lookup) << rank;
      EXPECT_EQ(host::run_scaled(compiled), static_cast<float>(3 * rank));
    }
  EXPECT_EQ(pass.runs, 3);
  context = nullptr;
}

// Where a graph is cut is in no piece's key.
TEST_F(Query, APieceIsToldOfNoCuts) {
  std::vector<std::string> told;
  host::TestPass pass([&](kiln_pass_call *call) {
    kiln_attr answer{};
    if (kiln_error *error = kiln_pass_query(call, "compile.option.split_at", 23, &answer)) return error;
    told.push_back(std::to_string(answer.count));
    return host::nothing(call);
  });
  pass.identify();
  pass.pass.stage = KILN_STAGE_LOWER;
  host::Context context = host::make_context(folder.path());
  ASSERT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, nullptr));
  const host::Graph graph = host::parse(
      context.get(),
      R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":[4]}}],"nodes":[{"name":"a","op":"exp","inputs":["x"]},
          {"name":"y","op":"neg","inputs":["a"]}],"outputs":[{"name":"y","value":"y"}]})");
  const host::Compiled compiled = host::compile(context.get(), graph.get(), [](kiln_options *options) {
    const kiln_text exp{"exp", 3};
    const kiln_attr split = host::attr("split_at", KILN_ATTR_TEXT | KILN_ATTR_LIST, 1, &exp);
    EXPECT_OK(kiln_options_set(options, &split));
  });
  EXPECT_EQ(compiled.error, host::Error());
  EXPECT_EQ(told, (std::vector<std::string>{"0", "0"}));
  context = nullptr;
}

TEST_F(Query, FactsAreThoseOfTheCompilesBeginning) {
  host::Context context = host::make_context();
  host::set_fact(context, "host.rank", 5);
  host::TestPass pass([&](kiln_pass_call *call) {
    host::set_fact(context, "host.rank", 7);
    kiln_attr answer{};
    if (kiln_error *error = kiln_pass_query(call, "host.rank", 9, &answer)) return error;
    return host::scale_output(call, host::number_of(answer));
  });
  ASSERT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, nullptr));
  const host::Graph graph = host::parse(context.get(), host::scaled(1));
  EXPECT_EQ(host::run_scaled(host::compile(context.get(), graph.get())), 5);
  EXPECT_EQ(host::run_scaled(host::compile(context.get(), graph.get())), 7);
  context = nullptr;
}

// What passes of each stage are told of the compile, by question.
TEST_F(Query, TheCompileItselfAnswers) {
  std::map<std::string, std::string> told;
  const auto ask = [&](kiln_pass_call *call, const std::string &question) {
    kiln_attr answer{};
    EXPECT_OK(kiln_pass_query(call, question.data(), question.size(), &answer));
    EXPECT_EQ(std::string(answer.name, answer.name_size), question);
    if (answer.kind == KILN_ATTR_NONE) return std::string("none");
    if (answer.kind == KILN_ATTR_BOOL) return std::to_string(*static_cast<const uint8_t *>(answer.data));
    if (answer.kind == KILN_ATTR_I64) return std::string(*static_cast<const int64_t *>(answer.data) > 0 ? "some" : "0");
    return host::text_of(*static_cast<const kiln_text *>(answer.data));
  };
  host::TestPass pass([&](kiln_pass_call *call) {
    for (const char *question : {"compile.backend", "compile.stage", "compile.region", "compile.option.fuse",
                                 "device.kind", "device.cores", "host.nothing"})
      told[question] = ask(call, question);
    return host::nothing(call);
  });
  pass.pass.stage = KILN_STAGE_LOWER;
  host::Context context = host::make_context();
  ASSERT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, nullptr));
  std::string json = host::scaled(3);
  json.insert(json.find(R"("op": "mul",)"), R"("annotations": {"kiln.region": {"text": "first"}}, )");
  const host::Graph graph = host::parse(context.get(), json);
  const host::Compiled compiled = host::compile(context.get(), graph.get(), [](kiln_options *options) {
    EXPECT_OK(kiln_options_set_text(options, "mode", 4, "marked", 6));
    EXPECT_OK(kiln_options_set_bool(options, "fuse", 4, 0));
  });
  EXPECT_EQ(compiled.error, host::Error());
  const std::map<std::string, std::string> expected = {
      {"compile.backend", "cpu"}, {"compile.stage", "lower"}, {"compile.region", "first"}, {"compile.option.fuse", "0"},
      {"device.kind", "cpu"},     {"device.cores", "some"},   {"host.nothing", "none"}};
  EXPECT_EQ(told, expected);
  context = nullptr;
}

struct Refused {
  std::string question, words;
  uint32_t code;
};

TEST_F(Query, WhatIsNoQuestionIsRefusedWithWhatThereIs) {
  host::Context context = host::make_context();
  const Refused refused[] = {
      {"rank", "'rank' is no question: expected env.NAME, file.PATH, host.NAME", KILN_UNKNOWN_NAME},
      {"host.", "'host.' is no question", KILN_UNKNOWN_NAME},
      {"device.colour", "'device.colour': the device has device.arch, device.cores", KILN_UNKNOWN_NAME},
      {"compile.option.threads", "the compile has compile.backend, compile.option.algebra, compile.option.fallback",
       KILN_UNKNOWN_NAME},
      {"compile.colour", "compile.target and, inside of a run, compile.region, compile.stage", KILN_UNKNOWN_NAME},
      {"file." + folder.path(), folder.path(), KILN_IO}};
  host::TestPass pass([&](kiln_pass_call *call) {
    for (const Refused &each : refused) {
      kiln_attr answer{};
      EXPECT_FAILS(kiln_pass_query(call, each.question.data(), each.question.size(), &answer), each.code, each.words);
    }
    return host::nothing(call);
  });
  ASSERT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, nullptr));
  const host::Graph graph = host::parse(context.get(), host::scaled(1));
  EXPECT_EQ(host::compile(context.get(), graph.get()).error, host::Error());
  context = nullptr;
}

TEST_F(Query, FactsAreNamedHostAndOfKindsThatOptionsHave) {
  const host::Context context = host::make_context();
  const int64_t three = 3;
  kiln_attr fact = host::attr("rank", KILN_ATTR_I64, 1, &three);
  EXPECT_FAILS(kiln_fact_set(context.get(), &fact), KILN_INVALID_ARGUMENT, "fact->name is 'rank', expected host.NAME");
  fact = host::attr("host.shape", KILN_ATTR_DIM, 1, &three);
  EXPECT_FAILS(kiln_fact_set(context.get(), &fact), KILN_INVALID_ARGUMENT, "not number 5");
  EXPECT_FAILS(kiln_fact_set(context.get(), nullptr), KILN_INVALID_ARGUMENT, "fact is NULL");
  host::set_fact(context, "host.rank", 3);
  EXPECT_EQ(host::text(host::context_report(context.get()), "facts.host.rank"), "3");
  fact = host::attr("host.rank", KILN_ATTR_NONE, 0, nullptr);
  EXPECT_OK(kiln_fact_set(context.get(), &fact));
  uint64_t left = 9;
  EXPECT_OK(kiln_report_count(host::context_report(context.get()).get(), "facts", 5, &left));
  EXPECT_EQ(left, 0u);
}

}  // namespace
