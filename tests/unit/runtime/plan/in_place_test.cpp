// What the planner tells of what it could not make in place.
#include "tests/unit/runtime/plan/planned.h"

namespace kiln {
namespace {

using test::f32_graph;
using test::graph_of;
using Why = Plan::Step::Why;

Plan plan_of(const std::string &json) { return test::planned(graph_of(json), true).plan; }

// "'b' [permute], 256: REASON" of each copy.
std::vector<std::string> copies_of(const Plan &plan) {
  std::vector<std::string> copies;
  for (const Plan::Step &step : plan.steps)
    if (step.kind == Plan::Step::Kind::copy)
      copies.push_back(
          str_cat(text_of(step.origins), ", ", plan.slots[step.slots[0]].size_bytes.text(), ": ", why_text(step)));
  return copies;
}
using Texts = std::vector<std::string>;

TEST(InPlace, CountsAnInputThatIsWrittenWhereItLies) {
  const Plan p = plan_of(f32_graph("xg", "\"n\", 8", R"({"name":"b","op":"add","inputs":["x","g"]},
      {"name":"w","op":"copy_","inputs":["x","b"]})",
                                   ""));
  EXPECT_EQ(p.in_place, 1u);
  EXPECT_EQ(copies_of(p), Texts());
}

TEST(InPlace, NamesWhoReadsLaterWhatTheCopyWouldOverwrite) {
  const Plan p = plan_of(f32_graph("x", "\"n\", 8", R"({"name":"b","op":"softmax","inputs":["x"],"attrs":{"dim":1}},
      {"name":"t","op":"permute","inputs":["x"],"attrs":{"dims":[1,0]}},
      {"name":"y","op":"matmul","inputs":["b","t"]},{"name":"w","op":"copy_","inputs":["x","b"]})",
                                   "y"));
  EXPECT_EQ(p.in_place, 0u);
  EXPECT_EQ(copies_of(p), (Texts{"'w' [copy_], 32*n: the step of 't' reads later what it would overwrite"}))
      << print(p);
}

TEST(InPlace, TellsOfAStepThatReadsElsewhereThanItWrites) {
  const Plan p = plan_of(f32_graph("x", "8, 8", R"({"name":"b","op":"permute","inputs":["x"],"attrs":{"dims":[1,0]}},
      {"name":"w","op":"copy_","inputs":["x","b"]})",
                                   ""));
  EXPECT_EQ(copies_of(p),
            (Texts{"'w' [copy_], 256: the step that makes it reads other elements than it would overwrite"}));
}

TEST(InPlace, TellsOfOutputsThatNoStepMakes) {
  const Plan p = plan_of(f32_graph("x", "8", R"({"name":"a","op":"exp","inputs":["x"]})", "x a a"));
  EXPECT_EQ(copies_of(p), (Texts{"'x' [input], 32: it is an argument or a constant",
                                 "'a' [exp], 32: it is made where another output or input lies"}));
}

TEST(InPlace, TellsOfAnInputThatBecomesWhatAnotherWas) {
  const Plan p = plan_of(f32_graph("xy", "8", R"({"name":"s","op":"add","inputs":["x","y"]},
      {"name":"a","op":"copy_","inputs":["x","y"]},{"name":"b","op":"copy_","inputs":["y","s"]})",
                                   "s"));
  const Texts copies = copies_of(p);
  ASSERT_EQ(copies.size(), 2u) << print(p);
  EXPECT_EQ(copies[0], "'a' [copy_], 32: it is what an input was that is written, too");
  EXPECT_EQ(copies[1], "'b' [copy_], 32: the step of 'a' reads later what it would overwrite");
}

// A cache into which one more is written.
Plan plan_written_in_place(std::string_view more, std::string_view outputs, std::string_view write_back = "") {
  return plan_of(str_cat(R"({"kiln":1,"inputs":[{"name":"cache","type":{"dtype":"f32","shape":[4,64,16]}},
      {"name":"k","type":{"dtype":"f32","shape":[4,1,16]}},{"name":"i","type":{"dtype":"i64","shape":[1]}}],
      "nodes":[{"name":"new","op":"index_put","inputs":["cache","k","i"],"attrs":{"dim":1}})",
                         more, write_back, R"(],"outputs":[)", outputs, "]}"));
}
constexpr std::string_view back = R"(,{"name":"w","op":"copy_","inputs":["cache","new"]})";

TEST(InPlace, ACacheThatIsChangedWhereItLiesSparesTwoCopies) {
  const Plan p = plan_written_in_place("", "", back);
  EXPECT_EQ(p.in_place, 2u) << "into the new value, and back";
  EXPECT_EQ(copies_of(p), Texts());
}

TEST(InPlace, WhatChangesAnArgumentBeginsAsACopyOfIt) {
  const Plan p = plan_written_in_place("", R"({"name":"y","value":"new"})");
  EXPECT_EQ(p.in_place, 0u);
  EXPECT_EQ(copies_of(p), (Texts{"'new' [index_put], 16384: it is an argument or a constant"}));
}

TEST(InPlace, ACacheWhoseOldValueIsReadWithTheNewOneIsCopiedTwice) {
  const Plan p = plan_written_in_place(R"(,{"name":"d","op":"sub","inputs":["new","cache"]})",
                                       R"({"name":"d","value":"d"})", back);
  EXPECT_EQ(p.in_place, 0u);
  EXPECT_EQ(copies_of(p), (Texts{"'new' [index_put], 16384: the step of 'd' reads later what it would overwrite",
                                 "'w' [copy_], 16384: the step of 'd' reads later what it would overwrite"}));
}

TEST(InPlace, WhatFollowsFromParametersIsMadeOnceAndCopiedAtEachCall) {
  const Plan p = plan_of(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":[8]}}],
      "parameters":[{"name":"w","type":{"dtype":"f32","shape":[8]}}],
      "nodes":[{"name":"e","op":"exp","inputs":["w"]},{"name":"y","op":"add","inputs":["x","e"]}],
      "outputs":[{"name":"e","value":"e"}]})");
  for (const std::string &copy : copies_of(p)) EXPECT_EQ(copy, "'e' [exp], 32: it is made once for all calls");
}

}  // namespace
}  // namespace kiln
