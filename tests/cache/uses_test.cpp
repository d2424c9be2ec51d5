// What an artifact was made with: ops that passes and lowering used or only asked for. Another one is a miss.
#include <algorithm>

#include "runtime/graph/edit.h"
#include "tests/cache/compiling.h"

namespace kiln {
namespace {

using test::f32_graph;

// The built-in ops as a later build, or a plugin, could have them: one has another identity, or one more is there.
class OtherOps final : public OpTable {
 public:
  OtherOps(std::string name, std::string identity) : name_(std::move(name)), identity_(std::move(identity)) {}
  const OpSchema *find(std::string_view name) const override { return builtin_ops().find(name); }
  std::string suggest(std::string_view name) const override { return builtin_ops().suggest(name); }
  std::string identity(std::string_view name) const override {
    return name == name_ ? identity_ : builtin_ops().identity(name);
  }

 private:
  const std::string name_, identity_;
};

// Asks for an op, and does nothing else.
std::shared_ptr<Pass> asking_pass(std::string op) {
  auto pass = std::make_shared<Pass>();
  pass->name = "asks";
  pass->plugin = "test.so";
  pass->uuid = Uuid{9};
  pass->run = [op = std::move(op)](PassContext &context) -> Status {
    context.done = true;
    (void)context.ops.find(op);
    return {};
  };
  return pass;
}

class Uses : public test::Compiling {
 protected:
  void expect_again(Outcome outcome, std::string_view reason_part) { expect(outcome, reason_part, graph_, options_); }
  std::string graph_ = f32_graph("x", R"("n")", R"({"name":"y","op":"silu","inputs":["x"]})", "y");
  CompileOptions options_;
};

TEST_F(Uses, AreTheOpsOfTheGraphAndOfItsDecompositionsAndTheBackend) {
  const std::string graph = f32_graph("x", "4", R"({"name":"y","op":"log_softmax","inputs":["x"]})", "y");
  Result<Compiled> compiled = compile(graph);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  const std::vector<Use> &uses = compiled->executable->artifact().uses;
  for (const Use &use :
       {Use{"backend", "cpu", "built in"}, Use{"op", "log_softmax", "version 1"}, Use{"op", "max", "version 1"}})
    EXPECT_EQ(std::ranges::count(uses, use), 1) << use.name;
  EXPECT_TRUE(std::ranges::is_sorted(uses, {}, [](const Use &use) { return std::pair(use.kind, use.name); }));
}

TEST_F(Uses, OfAnotherOpUnderTheSameNameMakeAMissThatNamesIt) {
  expect_again(Outcome::miss, "no record");
  const OtherOps later("silu", "version 2");
  ops_ = &later;
  expect_again(Outcome::miss, "op 'silu' is version 2, and the record was made with version 1");
  EXPECT_TRUE(ran("cse"));
  expect_again(Outcome::hit, "hit");
  ops_ = &builtin_ops();
  expect_again(Outcome::miss, "op 'silu' is version 1, and the record was made with version 2");
}

TEST_F(Uses, HoldWhatAPassAskedForInVain) {
  ASSERT_TRUE(passes_.add(asking_pass("acme_fma")).ok());
  expect_again(Outcome::miss, "no record");
  expect_again(Outcome::hit, "hit");
  const OtherOps more("acme_fma", "uuid 1");
  ops_ = &more;
  expect_again(Outcome::miss, "op 'acme_fma' (uuid 1) is there, and the record was made without one");
  expect_again(Outcome::hit, "hit");
  ops_ = &builtin_ops();
  expect_again(Outcome::reject, "op 'acme_fma' (uuid 1), which the record was made with, is not there");
}

TEST_F(Uses, OfAPieceThatIsFoundAreTheWholesToo) {
  graph_ = f32_graph("x", R"("n")", R"({"name":"h","op":"silu","inputs":["x"]},{"name":"y","op":"sin","inputs":["h"]})",
                     "y");
  options_.split_at = {"silu"};
  expect_again(Outcome::miss, "no record");
  options_.disable_passes = {"cse"};  // another whole, of the same pieces
  Result<Compiled> compiled = compile(graph_, options_);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  ASSERT_EQ(report_.pieces.size(), 2u);
  EXPECT_EQ(report_.pieces[0].lookup, Outcome::hit) << report_.pieces[0].reason;
  EXPECT_EQ(std::ranges::count(compiled->executable->artifact().uses, Use{"op", "silu", "version 1"}), 1);

  const OtherOps later("silu", "version 2");
  ops_ = &later;
  expect_again(Outcome::miss, "op 'silu' is version 2");
  EXPECT_EQ(report_.pieces[0].lookup, Outcome::miss);
  EXPECT_EQ(report_.pieces[1].lookup, Outcome::hit) << report_.pieces[1].reason;
}

TEST_F(Uses, OfAnEntryMakeItAnew) {
  options_.specialize = {"n=4"};
  expect_again(Outcome::miss, "no record");
  const OtherOps later("silu", "version 2");
  ops_ = &later;
  expect_again(Outcome::miss, "op 'silu' is version 2");
  ASSERT_EQ(report_.entries.size(), 1u);
  EXPECT_EQ(report_.entries[0].made->lookup, Outcome::miss) << report_.entries[0].made->reason;
  EXPECT_NE(report_.entries[0].made->reason.find("op 'silu'"), std::string::npos) << report_.entries[0].made->reason;
}

TEST_F(Uses, OfWhatAnotherCompileHasMadeAndNotYetSavedAreComparedToo) {
  Cache cache(folder_.path(), 0);
  std::vector<std::function<Status()>> unsaved;
  const auto again = [&](const OpTable &ops) {
    CompileEnvironment env{.ops = ops,
                           .passes = passes_,
                           .cache = &cache,
                           .pool = std::make_shared<ThreadPool>(2),
                           .in_background = [&](auto task) { unsaved.push_back(std::move(task)); }};
    report_ = {};
    ASSERT_TRUE(kiln::compile(env, test::graph_of(graph_), {}, report_).ok());
  };
  again(builtin_ops());
  EXPECT_EQ(report_.lookup, Outcome::miss);
  again(builtin_ops());
  EXPECT_EQ(report_.lookup, Outcome::hit);
  EXPECT_EQ(report_.reason, "in flight");
  again(OtherOps("silu", "version 2"));
  EXPECT_EQ(report_.lookup, Outcome::miss);
  EXPECT_EQ(report_.reason, "in flight: op 'silu' is version 2, and the record was made with version 1");
  EXPECT_TRUE(ran("cse"));
}

}  // namespace
}  // namespace kiln
