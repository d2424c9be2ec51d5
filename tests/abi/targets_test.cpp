// One executable for several targets: joined, as bytes, and opened where one of them fits.
#include <gmock/gmock.h>

#include "host.h"
#include "tests/standin/standin.h"

namespace {

using testing::ElementsAre;

host::Executable compiled_for(kiln_context *context, std::string_view target, std::string_view json,
                              std::string_view backend = "cpu") {
  host::Compiled compiled = host::compile(context, host::parse(context, json).get(), [&](kiln_options *options) {
    EXPECT_OK(kiln_options_set_text(options, "backend", 7, backend.data(), backend.size()));
    const std::string_view option = backend == "cpu" ? "cpu" : "arch";
    EXPECT_OK(kiln_options_set_text(options, option.data(), option.size(), target.data(), target.size()));
  });
  EXPECT_EQ(compiled.error, host::Error());
  return std::move(compiled.executable);
}

kiln_error *join(std::initializer_list<const kiln_executable *> all, host::Executable &out) {
  kiln_executable *made = nullptr;
  kiln_error *error = kiln_executable_join(all.begin(), all.size(), &made);
  out.reset(made);
  return error;
}

std::string target_of(const host::Executable &executable) {
  return host::text(host::describe(executable.get()), "target");
}
std::vector<std::string> targets_of(const host::Executable &executable) {
  const host::Report report = host::describe(executable.get());
  std::vector<std::string> targets;
  uint64_t count = 0;
  kiln_error_destroy(kiln_report_count(report.get(), "targets", 7, &count));
  for (uint64_t i = 0; i < count; ++i) targets.push_back(host::text(report, "targets." + std::to_string(i)));
  return targets;
}

// Every machine that tests run on has v3.
TEST(Targets, TheOneForTheMostThatTheMachineHasRuns) {
  const host::Context context = host::make_context();
  const host::Executable least = compiled_for(context.get(), "x86-64", host::scaled(3)),
                         more = compiled_for(context.get(), "v3", host::scaled(3));
  for (const auto &all : {std::array{least.get(), more.get()}, std::array{more.get(), least.get()}}) {
    host::Executable joined;
    ASSERT_OK(join({all[0], all[1]}, joined));
    EXPECT_EQ(target_of(joined), "v3");
    EXPECT_THAT(targets_of(joined), testing::UnorderedElementsAre("x86-64", "v3"));
    host::expect_scaled(joined.get(), 3);

    const host::Context other = host::make_context();
    host::Executable opened;
    EXPECT_EQ(host::open_bytes(other.get(), host::bytes_of(joined), opened), host::Error());
    EXPECT_EQ(target_of(opened), "v3");
    EXPECT_THAT(targets_of(opened), testing::UnorderedElementsAre("x86-64", "v3"));
    host::expect_scaled(opened.get(), 3);

    host::Executable again;
    EXPECT_EQ(host::open_bytes(other.get(), host::bytes_of(opened), again), host::Error());
    EXPECT_THAT(targets_of(again), ElementsAre()) << "what was loaded is what is written again";
    EXPECT_EQ(target_of(again), "v3");
  }
}

TEST(Targets, OfOneAloneAreThatExecutable) {
  const host::Context context = host::make_context();
  const host::Executable one = compiled_for(context.get(), "x86-64", host::scaled(3));
  host::Executable joined, opened;
  ASSERT_OK(join({one.get()}, joined));
  EXPECT_EQ(host::open_bytes(context.get(), host::bytes_of(joined), opened), host::Error());
  EXPECT_EQ(target_of(opened), "x86-64");
  host::expect_scaled(opened.get(), 3);
}

TEST(Targets, OfTwoGraphsOrTwiceTheSameAreRefused) {
  const host::Context context = host::make_context();
  const host::Executable one = compiled_for(context.get(), "x86-64", host::scaled(3)),
                         twin = compiled_for(context.get(), "x86-64", host::scaled(3)),
                         other = compiled_for(context.get(), "v3", host::small_graph),
                         oracle = compiled_for(context.get(), "native", host::scaled(3), "reference");
  host::Executable joined, out;
  EXPECT_FAILS(join({}, out), KILN_INVALID_ARGUMENT, "count is 0");
  EXPECT_FAILS(join({one.get(), nullptr}, out), KILN_INVALID_ARGUMENT, "executables[1]");
  EXPECT_FAILS(join({one.get(), twin.get()}, out), KILN_INVALID_ARGUMENT,
               "executables[1] is for x86-64, as one before it is");
  EXPECT_FAILS(join({one.get(), other.get()}, out), KILN_INVALID_ARGUMENT, "inputs, parameters or outputs differ");
  EXPECT_FAILS(join({one.get(), oracle.get()}, out), KILN_INVALID_ARGUMENT, "different backends");
  EXPECT_EQ(host::take(kiln_executable_join(nullptr, 1, nullptr)).code, KILN_INVALID_ARGUMENT);
  const host::Executable more = compiled_for(context.get(), "v3", host::scaled(3));
  ASSERT_OK(join({one.get(), more.get()}, joined));
  EXPECT_FAILS(join({joined.get(), more.get()}, out), KILN_INVALID_ARGUMENT, "is of several targets already");
}

TEST(Targets, DamagedBytesAreRefused) {
  const host::Context context = host::make_context();
  const host::Executable one = compiled_for(context.get(), "x86-64", host::scaled(3)),
                         more = compiled_for(context.get(), "v3", host::scaled(3));
  host::Executable joined, out;
  ASSERT_OK(join({one.get(), more.get()}, joined));
  const std::string bytes = host::bytes_of(joined);
  for (size_t at = 0; at < bytes.size(); at += 97) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    const uint32_t code = host::open_bytes(context.get(), damaged, out).code;
    EXPECT_TRUE(code == KILN_CORRUPT || code == KILN_INCOMPATIBLE) << "byte " << at << ": " << code;
    EXPECT_EQ(host::open_bytes(context.get(), bytes.substr(0, at), out).code, KILN_CORRUPT);
  }
}

class TargetsOfAGpu : public kiln::standin::OnStandins {
 protected:
  void SetUp() override {
    OnStandins::SetUp();
    if (!is_set_up()) return;
    context = host::make_context();
    const host::Executable old = compiled_for(context.get(), "sm_80", host::scaled(3), "cuda"),
                           exact = compiled_for(context.get(), "sm_90a", host::scaled(3), "cuda"),
                           newer = compiled_for(context.get(), "sm_86", host::scaled(3), "cuda");
    host::Executable joined;
    ASSERT_OK(join({old.get(), exact.get(), newer.get()}, joined));
    bytes = host::bytes_of(joined);
  }
  // On a GPU of that compute capability.
  host::Error open(int major, int minor) {
    kiln::standin::DriverControl::Settings settings;
    settings.major = major;
    settings.minor = minor;
    control->reset(settings);
    context = host::make_context();
    return host::open_bytes(context.get(), bytes, opened);
  }

  std::string bytes;
  host::Context context;
  host::Executable opened;
};

TEST_F(TargetsOfAGpu, AreThoseOfItsMajorVersionFromTheirMinorOneOn) {
  EXPECT_EQ(open(8, 0), host::Error());
  EXPECT_EQ(target_of(opened), "sm_80");
  EXPECT_EQ(open(8, 9), host::Error());
  EXPECT_EQ(target_of(opened), "sm_86");
  EXPECT_EQ(open(9, 0), host::Error());
  EXPECT_EQ(target_of(opened), "sm_90a");
  const host::Error none = open(12, 0);
  EXPECT_EQ(none.code, KILN_INCOMPATIBLE);
  EXPECT_NE(none.message.find("code for sm_80 does not run on this GPU, sm_120"), std::string::npos) << none.message;
}

}  // namespace
