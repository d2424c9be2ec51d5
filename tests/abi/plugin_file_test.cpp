// A plugin's file that changes while a host has it loaded: what runs is what the key says, in this process and in
// others.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "host.h"
#include "tests/paths.h"
#include "tests/temporary_folder.h"

namespace {

namespace fs = std::filesystem;

fs::path build_of(const char *name) { return fs::path(kiln::test::binary_dir) / "test_plugins" / name; }

// negated(x) for x = {1, -2}: {-1, 2}; {1, 2} with the build "abs", {1, 0} with the build "relu". `outputs` names it so
// many times: graphs of different keys.
host::Graph graph_in(const host::Context &context, int outputs = 1) {
  std::string list;
  for (int i = 0; i < outputs; i++)
    list += (i ? ", " : "") + std::string(R"({"name": "y)") + std::to_string(i) + R"(", "value": "shifted)" +
            std::to_string(i) + R"("})";
  std::string nodes = R"({"name": "negated", "op": "neg", "inputs": ["x"]})";
  for (int i = 0; i < outputs; i++)
    nodes += R"(, {"name": "shifted)" + std::to_string(i) + R"(", "op": "mul", "inputs": ["negated", "one"]})";
  return host::parse(context.get(),
                     R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [2]}}],
    "constants": [{"name": "one", "type": {"dtype": "f32", "shape": [2]}, "data": [1, 1]}], "nodes": [)" +
                         nodes + R"(], "outputs": [)" + list + "]}");
}

struct Seen {
  char lookup[8] = {}, error[200] = {};
  char digest[65] = {};
  float y[2] = {};
  int64_t setups = -1;  // of the library that ran; -1: none did
};

void put(char *to, size_t size, const std::string &text) { text.copy(to, size - 1); }

Seen compile_and_run(const host::Context &context, int outputs = 1) {
  Seen seen;
  const host::Graph graph = graph_in(context, outputs);
  const host::Compiled compiled = host::compile(context.get(), graph.get());
  put(seen.error, sizeof seen.error, compiled.error.message);
  if (!compiled.executable) return seen;
  put(seen.lookup, sizeof seen.lookup, host::text(compiled.report, "lookup"));
  if (seen.lookup != std::string("HIT")) seen.setups = host::i64(compiled.report, "passes_run.replace");
  put(seen.digest, sizeof seen.digest, host::text(host::context_report(context.get()), "plugins.0.digest"));
  kiln_call *made = nullptr;
  EXPECT_OK(kiln_call_create(compiled.executable.get(), &made));
  const host::Call call(made);
  const host::Array x({2}, {1, -2});
  std::vector<std::unique_ptr<host::Array>> ys;
  std::vector<const DLTensor *> args = {&x.tensor};
  for (int i = 0; i < outputs; i++)
    args.push_back(&ys.emplace_back(new host::Array({2}, std::vector<float>{9, 9}))->tensor);
  EXPECT_OK(kiln_call_run(made, args.data(), args.size(), nullptr));
  std::copy(ys[0]->values.begin(), ys[0]->values.end(), seen.y);
  return seen;
}

host::Context context_with(const fs::path &plugin, const fs::path &cache) {
  host::Context context = host::make_context(cache.string());
  EXPECT_OK(kiln_plugin_load(context.get(), plugin.c_str(), plugin.string().size(), nullptr));
  return context;
}

// What a context of its own sees, which is closed then: its record is saved.
Seen seen_by_another_context(const fs::path &plugin, const fs::path &cache) {
  const host::Context context = context_with(plugin, cache);
  const Seen seen = compile_and_run(context);
  EXPECT_OK(kiln_context_close(context.get()));
  return seen;
}

// A process that has loaded nothing, and looks when it is asked to.
class AnotherProcess {
 public:
  AnotherProcess(const fs::path &plugin, const fs::path &cache) {
    EXPECT_EQ(pipe2(to_, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(from_, O_CLOEXEC), 0);
    if ((child_ = fork()) != 0) return;
    close(to_[1]);  // or it would wait for itself when the test has died
    char go;
    if (read(to_[0], &go, 1) != 1) _exit(0);
    const Seen seen = seen_by_another_context(plugin, cache);
    _exit(write(from_[1], &seen, sizeof seen) == sizeof seen ? 0 : 1);
  }
  AnotherProcess(const AnotherProcess &) = delete;
  ~AnotherProcess() {
    for (const int end : {to_[0], to_[1], from_[0], from_[1]}) close(end);
    waitpid(child_, nullptr, 0);
  }
  Seen look() {
    Seen seen;
    close(from_[1]);
    from_[1] = -1;
    EXPECT_EQ(write(to_[1], "", 1), 1);
    EXPECT_EQ(read(from_[0], &seen, sizeof seen), static_cast<ssize_t>(sizeof seen));
    return seen;
  }

 private:
  int to_[2] = {-1, -1}, from_[2] = {-1, -1};
  pid_t child_ = -1;
};

struct Way {
  const char *name;
  std::function<void(const fs::path &from, const fs::path &to)> put;
};
void PrintTo(const Way &way, std::ostream *out) { *out << way.name; }

void copy_in_place(const fs::path &from, const fs::path &to) {
  fs::copy_file(from, to, fs::copy_options::overwrite_existing);
}
const Way ways[] = {{"Rename",
                     [](const fs::path &from, const fs::path &to) {
                       copy_in_place(from, to.string() + ".new");
                       fs::rename(to.string() + ".new", to);
                     }},
                    {"UnlinkAndCopy",
                     [](const fs::path &from, const fs::path &to) {
                       fs::remove(to);
                       copy_in_place(from, to);
                     }},
                    {"InPlace", copy_in_place}};

class ReplacedPlugin : public testing::TestWithParam<Way> {
 protected:
  static void expect(const Seen &seen, const std::string &lookup, std::vector<float> y) {
    EXPECT_EQ(std::string(seen.error), "");
    EXPECT_EQ(seen.lookup, lookup);
    EXPECT_EQ((std::vector<float>{seen.y[0], seen.y[1]}), y);
  }
  // Each test's own: a library stays in the process, and is taken again for the same path.
  const kiln::test::TemporaryFolder folder_;
  const fs::path plugin_ = folder_.file("plugin.so"), cache_ = folder_.file("cache");
};

TEST_P(ReplacedPlugin, WhatRunsIsWhatTheKeySays) {
  AnotherProcess other(plugin_, cache_);
  copy_in_place(build_of("replaced_abs.so"), plugin_);
  const host::Context first = context_with(plugin_, cache_);
  const Seen before = compile_and_run(first);
  expect(before, "MISS", {1, 2});

  GetParam().put(build_of("replaced_relu.so"), plugin_);
  const Seen here = seen_by_another_context(plugin_, cache_);
  expect(here, "MISS", {1, 0});
  EXPECT_NE(std::string(here.digest), before.digest);
  EXPECT_EQ(here.setups, 1) << "a fresh library has state of its own";
  const Seen there = other.look();
  expect(there, "HIT", {1, 0});
  EXPECT_EQ(std::string(there.digest), here.digest);

  expect(compile_and_run(first, 2), "MISS", {1, 2});
  expect(compile_and_run(first), "HIT", {1, 2});
}

TEST_P(ReplacedPlugin, IsTheSameForTheKeyWhereItsUuidSuffices) {
  copy_in_place(build_of("replaced_abs_suffices.so"), plugin_);
  expect(seen_by_another_context(plugin_, cache_), "MISS", {1, 2});
  GetParam().put(build_of("replaced_relu_suffices.so"), plugin_);
  const Seen other = seen_by_another_context(plugin_, cache_);
  expect(other, "HIT", {1, 2});
  EXPECT_EQ(other.setups, -1) << "its pass does not run";
}
INSTANTIATE_TEST_SUITE_P(By, ReplacedPlugin, testing::ValuesIn(ways), [](const auto &at) { return at.param.name; });

// What a process of its own sees.
Seen seen_by_another_process(const fs::path &plugin, const fs::path &cache) {
  return AnotherProcess(plugin, cache).look();
}

// A plugin whose pass asks what it links: "abs" and "relu" are builds of that library, of one name.
class LinkingPlugin : public ReplacedPlugin {
 protected:
  void run(const std::string &kind) {
    const fs::path library = folder_.file("libkiln_test_link.so");
    copy_in_place(build_of("linking.so"), plugin_);
    copy_in_place(build_of(("link_abs" + kind + "/libkiln_test_link.so").c_str()), library);
    expect(seen_by_another_process(plugin_, cache_), "MISS", {1, 2});
    expect(seen_by_another_process(plugin_, cache_), "HIT", {1, 2});
    GetParam().put(build_of(("link_relu" + kind + "/libkiln_test_link.so").c_str()), library);
    expect(seen_by_another_process(plugin_, cache_), "MISS", {1, 0});
    expect(seen_by_another_process(plugin_, cache_), "HIT", {1, 0});
  }
};
TEST_P(LinkingPlugin, ALinkedLibraryThatChangesIsAMiss) { run(""); }
TEST_P(LinkingPlugin, SoIsOneWithoutABuildId) { run("_without_id"); }
INSTANTIATE_TEST_SUITE_P(By, LinkingPlugin, testing::ValuesIn(ways), [](const auto &at) { return at.param.name; });

TEST(PluginIdentity, TellsWhatIsLinkedAndWhatSetupAdded) {
  const kiln::test::TemporaryFolder folder;
  const fs::path plugin = folder.file("plugin.so"), data = folder.file("plugin.so.data");
  copy_in_place(build_of("linking.so"), plugin);
  std::vector<std::string> identities;
  for (const std::string kind : {"", "_without_id"}) {
    copy_in_place(build_of(("link_abs" + kind + "/libkiln_test_link.so").c_str()), folder.file("libkiln_test_link.so"));
    for (const char *content : {"one", "two"}) {
      std::ofstream(data) << content;
      // In a process of its own: this one keeps what it has linked.
      int ends[2];
      ASSERT_EQ(pipe(ends), 0);
      const pid_t child = fork();
      if (child == 0) {
        kiln_report *report = nullptr;
        kiln_error *error = kiln_plugin_inspect(plugin.c_str(), plugin.string().size(), &report);
        const host::Report owned(report);
        uint64_t links = 0;  // a sanitizer's library is one, too
        std::string link = "links.0.";
        if (!error) kiln_error_destroy(kiln_report_count(report, "links", 5, &links));
        for (uint64_t i = 0; i < links; ++i)
          if (const std::string at = "links." + std::to_string(i) + ".";
              host::text(owned, at + "name") == "libkiln_test_link.so")
            link = at;
        const std::string told = error ? host::take(error).message
                                       : host::text(owned, link + "name") + " " + host::text(owned, link + "identity") +
                                             " " + host::text(owned, "files.0.digest") + "\n" +
                                             host::text(owned, "identity");
        _exit(write(ends[1], told.data(), told.size()) == static_cast<ssize_t>(told.size()) ? 0 : 1);
      }
      close(ends[1]);
      char buffer[1000];
      const ssize_t size = read(ends[0], buffer, sizeof buffer);
      close(ends[0]);
      waitpid(child, nullptr, 0);
      const std::string told(buffer, static_cast<size_t>(std::max<ssize_t>(size, 0)));
      EXPECT_EQ(told.find(kind.empty() ? "libkiln_test_link.so build id " : "libkiln_test_link.so digest "), 0u)
          << told;
      identities.push_back(told.substr(told.find('\n') + 1));
      EXPECT_EQ(identities.back().size(), 64u) << told;
    }
  }
  std::sort(identities.begin(), identities.end());
  EXPECT_EQ(std::unique(identities.begin(), identities.end()), identities.end());
}

using PluginFile = ReplacedPlugin;
TEST_P(PluginFile, ContextsShareTheLibraryThatHasItsBytes) {
  copy_in_place(build_of("replaced_abs.so"), plugin_);
  const host::Context first = context_with(plugin_, cache_);
  GetParam().put(build_of("replaced_relu.so"), plugin_);
  const host::Context second = context_with(plugin_, cache_), third = context_with(plugin_, cache_);
  GetParam().put(build_of("replaced_abs.so"), plugin_);
  const host::Context fourth = context_with(plugin_, cache_);
  EXPECT_EQ(compile_and_run(first).setups, 2) << "that of the fourth";
  EXPECT_EQ(compile_and_run(third).setups, 2) << "that of the second";
}
INSTANTIATE_TEST_SUITE_P(By, PluginFile, testing::ValuesIn(ways), [](const auto &at) { return at.param.name; });

}  // namespace
