// Records of one key that were made after other answers.
#include "runtime/cache/variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "runtime/cache/cache.h"
#include "tests/paths.h"
#include "tests/temporary_folder.h"
#include "tests/unit/runtime/example_artifact.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Variants : public testing::Test {
 protected:
  static Questions with(AttrMap facts) {
    return Questions({.facts = std::make_shared<const AttrMap>(std::move(facts))});
  }
  // An artifact of the one key that was made after `facts` were asked.
  static Artifact made_after(const AttrMap &facts, const Asked &more = {}) {
    Questions questions = with(facts);
    Asked asked = more;
    for (const auto &[name, value] : facts) asked.insert(name);
    Artifact artifact = example::add(4);
    artifact.answers = questions.answers(asked).value();
    return artifact;
  }
  static AttrMap rank(int64_t number) { return {{"host.rank", number}}; }
  Lookup find(AttrMap facts) {
    Questions questions = with(std::move(facts));
    const Artifact a = example::add(4);
    return cache_.find(a.graph_key, a.components, example::build, "x86-64", &questions);
  }
  fs::path folder() const { return fs::path(folder_.path()) / "a" / example::add(4).graph_key.hex(); }
  std::vector<fs::path> files(const std::string &ending) const {
    std::vector<fs::path> found;
    for (const auto &entry : fs::directory_iterator(folder()))
      if (entry.path().extension() == ending) found.push_back(entry.path());
    return found;
  }
  // As if it had been used so long ago.
  static void age(const fs::path &path, std::chrono::minutes by) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - by);
  }

  const test::TemporaryFolder folder_;
  Cache cache_{folder_.path(), 0};
};

TEST_F(Variants, EachIsFoundByItsAnswers) {
  ASSERT_TRUE(cache_.publish(made_after(rank(0))).ok());
  ASSERT_TRUE(cache_.publish(made_after(rank(1))).ok());
  for (const int64_t number : {0, 1}) {
    const Lookup found = find(rank(number));
    ASSERT_EQ(found.outcome, Outcome::hit) << found.reason;
    EXPECT_EQ(found.artifact->answers, made_after(rank(number)).answers);
  }
  const Lookup other = find(rank(2));
  EXPECT_EQ(other.outcome, Outcome::miss);
  EXPECT_THAT(other.reason, HasSubstr("question 'host.rank' is answered 2, and the nearest record was made after "));
  EXPECT_EQ(files(".questions").size(), 1u);
  const Artifact a = example::add(4);
  EXPECT_EQ(cache_.find(a.graph_key, a.components, example::build, "x86-64").outcome, Outcome::miss)
      << "nobody answers";
}

TEST_F(Variants, OfEquallyManyDifferencesTheNearestHasMostInCommon) {
  const auto facts = [](int64_t a) { return AttrMap{{"host.a", a}, {"host.rank", int64_t{1}}}; };
  ASSERT_TRUE(cache_.publish(made_after({}, {"host.rank"})).ok());  // of which no rank is told, and nothing else asked
  ASSERT_TRUE(cache_.publish(made_after(facts(5))).ok());
  for (const int64_t other : {6, 7, 8})
    EXPECT_THAT(find(facts(other)).reason, HasSubstr(str_cat("question 'host.a' is answered ", other,
                                                             ", and the nearest record was made after 5")));
}

TEST_F(Variants, OneThatAskedNothingComesFirst) {
  ASSERT_TRUE(cache_.publish(made_after(rank(0))).ok());
  ASSERT_TRUE(cache_.publish(example::add(4)).ok());
  const Lookup found = find(rank(0));
  ASSERT_EQ(found.outcome, Outcome::hit);
  EXPECT_TRUE(found.artifact->answers.empty());
}

TEST_F(Variants, OfMoreThanSixteenTheLeastRecentlyUsedGo) {
  for (int64_t number = 0; number < 16; ++number) {
    ASSERT_TRUE(cache_.publish(made_after(rank(number))).ok());
    age(folder() / record_name(made_after(rank(number)).answers), std::chrono::minutes(100 - number));
  }
  ASSERT_EQ(find(rank(0)).outcome, Outcome::hit);  // which is a use
  ASSERT_TRUE(cache_.publish(made_after(rank(16))).ok());
  EXPECT_EQ(files(".kiln").size(), max_variants);
  EXPECT_EQ(find(rank(0)).outcome, Outcome::hit);
  EXPECT_EQ(find(rank(16)).outcome, Outcome::hit);
  EXPECT_EQ(find(rank(1)).outcome, Outcome::miss);
  EXPECT_EQ(find(rank(2)).outcome, Outcome::hit);
}

TEST_F(Variants, OfMoreThanEightSetsOfQuestionsTheLeastRecentlyUsedGo) {
  const auto asking = [](int number) { return AttrMap{{str_cat("host.fact", number), AttrValue(1)}}; };
  std::set<fs::path> before;
  for (int number = 0; number < 9; ++number) {
    ASSERT_TRUE(cache_.publish(made_after(asking(number))).ok());
    for (const fs::path &path : files(".questions"))
      if (before.insert(path).second) age(path, std::chrono::minutes(100 - number));
  }
  EXPECT_EQ(files(".questions").size(), max_question_sets);
  EXPECT_EQ(find(asking(0)).outcome, Outcome::miss);
  EXPECT_EQ(find(asking(1)).outcome, Outcome::hit);
  EXPECT_EQ(find(asking(8)).outcome, Outcome::hit);
  ASSERT_TRUE(cache_.publish(made_after(asking(0))).ok());
  EXPECT_EQ(find(asking(0)).outcome, Outcome::hit) << "its record was still there, and is found again";
}

TEST_F(Variants, AFileIsAskedByItsStampAndReadOnlyWhereThatIsNew) {
  const std::string path = test::source_dir + "/tests/unit/README.md";  // written long ago
  const Asked asked = {"file." + path};
  Questions first({});
  Artifact artifact = example::add(4);
  artifact.answers = first.answers(asked).value();
  EXPECT_EQ(first.files().files_read(), 1u);
  ASSERT_TRUE(cache_.publish(artifact, first.settled_files(asked)).ok());
  Questions second({});
  EXPECT_EQ(cache_.find(artifact.graph_key, artifact.components, example::build, "x86-64", &second).outcome,
            Outcome::hit);
  EXPECT_EQ(second.files().files_read(), 0u);
}

TEST_F(Variants, ADamagedSetOfQuestionsIsPutAsideAndWrittenAgain) {
  ASSERT_TRUE(cache_.publish(made_after(rank(0))).ok());
  const fs::path set = files(".questions").at(0);
  fs::permissions(set, fs::perms::owner_all);
  std::fstream(set, std::ios::in | std::ios::out | std::ios::binary).seekp(70).put('x');
  EXPECT_EQ(cache_.verify()->size(), 1u);
  EXPECT_EQ(find(rank(0)).outcome, Outcome::miss);
  EXPECT_TRUE(files(".questions").empty());
  ASSERT_TRUE(cache_.publish(made_after(rank(0))).ok());
  EXPECT_EQ(find(rank(0)).outcome, Outcome::hit);
}

TEST_F(Variants, QuestionsThatLedToARecordAreKnownToTheProcess) {
  for (const int64_t number : {0, 1}) ASSERT_TRUE(cache_.publish(made_after(rank(number))).ok());
  ASSERT_EQ(find(rank(0)).outcome, Outcome::hit);
  const fs::path questions = files(".questions").at(0);
  const auto hour_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  age(questions, std::chrono::minutes(90));
  EXPECT_EQ(find(rank(1)).outcome, Outcome::hit) << "of other answers to the same questions";
  EXPECT_GT(fs::last_write_time(questions), hour_ago) << "it was used";
  fs::remove(questions);
  EXPECT_EQ(find(rank(0)).outcome, Outcome::hit);
  EXPECT_EQ(find(rank(2)).outcome, Outcome::miss);
  Cache of_another_process(folder_.path(), 0);
  Questions same = with(rank(0));
  const Artifact a = example::add(4);
  EXPECT_EQ(of_another_process.find(a.graph_key, a.components, example::build, "x86-64", &same).outcome, Outcome::miss);
}

TEST_F(Variants, ARecordOfOtherAnswersUnderItsNameIsRejected) {
  ASSERT_TRUE(cache_.publish(made_after(rank(0))).ok());
  ASSERT_TRUE(cache_.publish(made_after(rank(1))).ok());
  fs::copy_file(folder() / record_name(made_after(rank(0)).answers),
                folder() / record_name(made_after(rank(1)).answers), fs::copy_options::overwrite_existing);
  const Lookup found = find(rank(1));
  EXPECT_EQ(found.outcome, Outcome::reject);
  EXPECT_THAT(found.reason, HasSubstr("section 'answers': they are not the file's"));
}

TEST_F(Variants, AreListedAndClearedWithTheirQuestions) {
  ASSERT_TRUE(cache_.publish(made_after(rank(0))).ok());
  const auto listed = cache_.list();
  ASSERT_TRUE(listed.ok());
  ASSERT_EQ(listed->size(), 2u);
  std::set<std::string> kinds;
  for (const Cache::Entry &entry : *listed) {
    kinds.insert(entry.kind);
    EXPECT_EQ(entry.key, example::add(4).graph_key.hex());
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"artifact", "questions"}));
  EXPECT_TRUE(cache_.verify()->empty());
  EXPECT_EQ(cache_.clear().value(), 2u);
  EXPECT_FALSE(fs::exists(folder()));
}

TEST_F(Variants, AnswersOfOneTextAndOtherKindsDiffer) {
  const auto name = [](AttrValue value) { return record_name(made_after({{"host.f", std::move(value)}}).answers); };
  const std::set<std::string> names = {name(1),
                                       name("1"),
                                       name(true),
                                       name(1.0),
                                       name(std::vector<int64_t>{1}),
                                       record_name(made_after({}, {"host.f"}).answers)};
  EXPECT_EQ(names.size(), 6u);
}

}  // namespace
}  // namespace kiln
