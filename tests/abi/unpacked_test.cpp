// Artifacts as folders: what a host saves and opens so, and what it hears of edits.
#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "test_backend.h"
#include "test_op.h"
#include "tests/temporary_folder.h"

namespace {

using kiln::test::TemporaryFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

host::Options layout(bool packed) {
  kiln_options *options = nullptr;
  EXPECT_OK(kiln_options_create(&options));
  EXPECT_OK(kiln_options_set_bool(options, "packed", 6, packed));
  return host::Options(options);
}
host::Error unpack(const host::Executable &executable, const std::string &path) {
  return host::take(kiln_executable_save(executable.get(), path.data(), path.size(), layout(false).get()));
}
host::Error open(kiln_context *context, const std::string &path, host::Executable &out,
                 const kiln_options *options = nullptr) {
  kiln_executable *made = nullptr;
  host::Error error = host::take(kiln_executable_open(context, path.data(), path.size(), options, &made));
  out.reset(made);
  return error;
}
host::Executable compiled_scale(kiln_context *context, int factor) {
  return std::move(host::compile(context, host::parse(context, host::scaled(factor)).get()).executable);
}

void edit(const std::string &path, const std::string &old, const std::string &now) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::string all = text.str();
  const size_t at = all.find(old);
  ASSERT_NE(at, all.npos) << all;
  std::ofstream(path) << all.replace(at, old.size(), now);
}

TEST(Unpacked, AFolderIsOpenedAsTheArtifactThatItIsOf) {
  const TemporaryFolder folder;
  const host::Context context = host::make_context(folder.file("cache"));
  const host::Executable made = compiled_scale(context.get(), 3);
  EXPECT_EQ(unpack(made, folder.file("unpacked")), host::Error());
  std::vector<std::string> warnings;
  const kiln_event_sink sink = host::warnings_into(warnings);
  const host::Context other = host::make_context("off", &sink);
  host::Executable opened;
  ASSERT_EQ(open(other.get(), folder.file("unpacked"), opened), host::Error());
  host::expect_scaled(opened.get(), 3);
  EXPECT_EQ(host::text(host::describe(opened.get()), "key"), host::text(host::describe(made.get()), "key"));
  EXPECT_FALSE(host::text(host::describe(opened.get()), "key").empty());
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(Unpacked, ItIsHeldToTheKeyThatIsExpected) {
  const TemporaryFolder folder;
  const host::Context context = host::make_context(folder.file("cache"));
  const host::Executable made = compiled_scale(context.get(), 3);
  const std::string key = host::text(host::describe(made.get()), "key");
  EXPECT_EQ(unpack(made, folder.file("unpacked")), host::Error());
  kiln_options *options = nullptr;
  ASSERT_OK(kiln_options_create(&options));
  const host::Options expected(options);
  ASSERT_OK(kiln_options_set_text(options, "expect_key", 10, key.data(), key.size()));
  host::Executable opened;
  EXPECT_EQ(open(context.get(), folder.file("unpacked"), opened, options), host::Error());
  edit(folder.file("unpacked/graph.json"), "\"data\":[3]", "\"data\":[5]");
  const host::Error error = open(context.get(), folder.file("unpacked"), opened, options);
  EXPECT_EQ(error.code, uint32_t{KILN_INCOMPATIBLE});
  EXPECT_THAT(error.message, HasSubstr("the artifact has no key, and option 'expect_key' is " + key));
}

TEST(Unpacked, AnEditIsMadeToldAndKeptOutOfTheCache) {
  const TemporaryFolder folder;
  const host::Context context = host::make_context(folder.file("cache"));
  const host::Executable made = compiled_scale(context.get(), 3);
  EXPECT_EQ(unpack(made, folder.file("unpacked")), host::Error());
  edit(folder.file("unpacked/graph.json"), "\"data\":[3]", "\"data\":[5]");

  std::vector<std::string> warnings;
  const kiln_event_sink sink = host::warnings_into(warnings);
  const host::Context other = host::make_context(folder.file("other cache"), &sink);
  host::Executable opened, packed;
  ASSERT_EQ(open(other.get(), folder.file("unpacked"), opened), host::Error());
  host::expect_scaled(opened.get(), 5);
  EXPECT_THAT(warnings, ElementsAre("the artifact was edited: graph.json"));
  EXPECT_EQ(host::text(host::describe(opened.get()), "edited.0"), "graph.json");
  EXPECT_EQ(host::text(host::describe(opened.get()), "key"), "");

  ASSERT_EQ(host::open_bytes(other.get(), host::bytes_of(opened), packed), host::Error());
  host::expect_scaled(packed.get(), 5);
  EXPECT_EQ(warnings.size(), 2u);
  EXPECT_EQ(host::text(host::describe(packed.get()), "edited.0"), "graph.json");

  EXPECT_OK(kiln_context_close(other.get()));
  const host::Context third = host::make_context(folder.file("other cache"));
  const host::Compiled again = host::compile(third.get(), host::parse(third.get(), host::scaled(5)).get());
  EXPECT_EQ(host::text(again.report, "lookup"), "MISS");
  EXPECT_EQ(host::i64(again.report, "kernels_from_cache"), 0);
}

// x -> an op of the host's -> neg, which the backend takes -> y: 10 * factor times what x is, and its sign turned.
const std::string own_op_and_backend = R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [3]}}],
  "nodes": [{"name": "s", "op": "host.scale", "inputs": ["x"], "attrs": {"factor": 3}},
            {"name": "n", "op": "neg", "inputs": ["s"]}], "outputs": [{"name": "y", "value": "n"}]})";

void expect_minus(int factor, const host::Executable &executable) {
  const host::Call call = host::make_call(executable);
  host::Array x({3}, {1, 2, 3}), y({3}, {0, 0, 0});
  ASSERT_OK(host::run(call.get(), {&x, &y}));
  const auto times = static_cast<float>(-factor);
  EXPECT_EQ(y.values, (std::vector<float>{times, 2 * times, 3 * times}));
}

TEST(Unpacked, OpsAndBackendsOfTheHostAreFoundAgain) {
  const TemporaryFolder folder;
  constexpr uint32_t has = host::TestOp::runs | host::TestOp::keeps_state | host::TestOp::is_identified;
  host::TestOp op(has), op_again(has);
  host::TestBackend ten, ten_again;
  const host::Context context = host::make_context(), other = host::make_context();
  op.register_in(context.get());
  ten.register_in(context.get());
  op_again.register_in(other.get());
  ten_again.register_in(other.get());
  const host::Compiled made = host::compile(context.get(), own_op_and_backend, "all", "ten");
  ASSERT_EQ(made.error, host::Error());
  expect_minus(30, made.executable);
  EXPECT_EQ(unpack(made.executable, folder.file("unpacked")), host::Error());

  host::Executable opened;
  ASSERT_EQ(open(other.get(), folder.file("unpacked"), opened), host::Error());
  expect_minus(30, opened);
  EXPECT_EQ(ten_again.compiled, 0);
  edit(folder.file("unpacked/graph.json"), "\"factor\":3", "\"factor\":5");
  ASSERT_EQ(open(other.get(), folder.file("unpacked"), opened), host::Error());
  expect_minus(50, opened);
  EXPECT_EQ(ten_again.compiled, 1);

  const host::Context without = host::make_context();
  const host::Error error = open(without.get(), folder.file("unpacked"), opened);
  EXPECT_EQ(error.code, uint32_t{KILN_INCOMPATIBLE});
  EXPECT_THAT(error.message, testing::AllOf(HasSubstr("host.scale"), HasSubstr("version")));
}

TEST(Unpacked, TheHostMayEndTheOpeningOfWhatWasEdited) {
  const TemporaryFolder folder;
  const host::Context context = host::make_context();
  EXPECT_EQ(unpack(compiled_scale(context.get(), 3), folder.file("unpacked")), host::Error());
  edit(folder.file("unpacked/graph.json"), "\"data\":[3]", "\"data\":[5]");
  host::Told told{.texts = {}, .ends_at = 1};
  const kiln_event_sink sink = host::told_into(told, KILN_EVENT_WARNING);
  const host::Context other = host::make_context("off", &sink);
  host::Executable opened;
  EXPECT_EQ(open(other.get(), folder.file("unpacked"), opened).code, uint32_t{KILN_CANCELLED});
  EXPECT_EQ(opened, nullptr);
}

TEST(Unpacked, AMemberThatIsMissingIsNamed) {
  const TemporaryFolder folder;
  const host::Context context = host::make_context();
  EXPECT_EQ(unpack(compiled_scale(context.get(), 3), folder.file("unpacked")), host::Error());
  std::filesystem::remove(folder.file("unpacked/kernels/0.json"));
  host::Executable opened;
  const host::Error error = open(context.get(), folder.file("unpacked"), opened);
  EXPECT_EQ(error.code, uint32_t{KILN_IO});
  EXPECT_THAT(error.message, HasSubstr("member 'kernels/0.json' is missing"));
}

TEST(Unpacked, AnEditForAnotherMachineIsToldHereToo) {
  const TemporaryFolder folder;
  const host::Context context = host::make_context();
  std::vector<host::Executable> made;
  for (const std::string_view cpu : {"x86-64", "v3"})
    made.push_back(std::move(
        host::compile(context.get(), host::parse(context.get(), host::scaled(3)).get(), [&](kiln_options *options) {
          EXPECT_OK(kiln_options_set_text(options, "cpu", 3, cpu.data(), cpu.size()));
        }).executable));
  const kiln_executable *all[] = {made[0].get(), made[1].get()};
  kiln_executable *joined = nullptr;
  ASSERT_OK(kiln_executable_join(all, 2, &joined));
  EXPECT_EQ(unpack(host::Executable(joined), folder.file("unpacked")), host::Error());

  std::vector<std::string> warnings;
  const kiln_event_sink sink = host::warnings_into(warnings);
  const host::Context other = host::make_context("off", &sink);
  host::Executable opened;
  ASSERT_EQ(open(other.get(), folder.file("unpacked"), opened), host::Error());
  EXPECT_THAT(warnings, IsEmpty());
  edit(folder.file("unpacked/targets/0/graph.json"), "\"data\":[3]", "\"data\":[5]");
  ASSERT_EQ(open(other.get(), folder.file("unpacked"), opened), host::Error());
  EXPECT_THAT(warnings,
              ElementsAre("the artifact was edited for x86-64, which is not loaded here: targets/0/graph.json"));
  host::expect_scaled(opened.get(), 3);
}

TEST(Unpacked, TwoOutputsOfOneNameAreRefused) {
  const TemporaryFolder folder;
  const host::Context context = host::make_context();
  const host::Executable made = std::move(host::compile(context.get(), host::parse(context.get(), R"({"kiln": 1,
      "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [3]}}],
      "nodes": [{"name": "a", "op": "neg", "inputs": ["x"]}, {"name": "b", "op": "exp", "inputs": ["x"]}],
      "outputs": [{"name": "first", "value": "a"}, {"name": "second", "value": "b"}]})")
                                                                           .get())
                                              .executable);
  EXPECT_EQ(unpack(made, folder.file("unpacked")), host::Error());
  edit(folder.file("unpacked/plan.json"), "\"second\"", "\"first\"");
  host::Executable opened;
  const host::Error error = open(context.get(), folder.file("unpacked"), opened);
  EXPECT_EQ(error.code, KILN_CORRUPT);
  EXPECT_THAT(error.message, HasSubstr("two outputs are named 'first'"));
}

TEST(Unpacked, WhatIsThereStays) {
  const TemporaryFolder folder;
  const host::Context context = host::make_context();
  const host::Executable made = compiled_scale(context.get(), 3);
  EXPECT_EQ(unpack(made, folder.file("unpacked")), host::Error());
  const host::Error error = unpack(made, folder.file("unpacked/"));
  EXPECT_EQ(error.code, uint32_t{KILN_IO});
  EXPECT_THAT(error.message, HasSubstr("is there already, and not empty"));
  EXPECT_EQ(unpack(made, folder.file("not/there")).code, uint32_t{KILN_IO});
}

TEST(Unpacked, SavingKnowsNoOtherOption) {
  const host::Context context = host::make_context();
  const host::Executable made = compiled_scale(context.get(), 3);
  kiln_options *options = nullptr;
  ASSERT_OK(kiln_options_create(&options));
  const host::Options owned(options);
  ASSERT_OK(kiln_options_set_text(options, "packed", 6, "no", 2));
  EXPECT_EQ(host::take(kiln_executable_save(made.get(), "a", 1, options)).message,
            "option 'packed' of save is of kind bool, not text");
  ASSERT_OK(kiln_options_set_bool(options, "packed", 6, 1));
  ASSERT_OK(kiln_options_set_bool(options, "pack", 4, 1));
  EXPECT_EQ(host::take(kiln_executable_save(made.get(), "a", 1, options)).message,
            "save has no option 'pack'; it has: packed");
}

}  // namespace
