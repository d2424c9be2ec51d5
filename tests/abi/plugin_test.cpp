// Loading plugins: one that is right, and the ends of its life. Those that are refused: tests/error/plugin.
#include <dlfcn.h>

#include <fstream>

#include "host.h"
#include "tests/paths.h"
#include "tests/temporary_folder.h"

namespace {

std::string variant(std::string_view name) {
  return kiln::test::binary_dir + "/test_plugins/" + std::string(name) + ".so";
}

class PluginTest : public testing::Test {
 protected:
  host::Error load(const std::string &path, const kiln_options *options = nullptr) {
    return host::take(kiln_plugin_load(context.get(), path.data(), path.size(), options));
  }
  // A counter of a plugin that is in this process.
  int count(std::string_view plugin, const char *counter) {
    void *library = dlopen(variant(plugin).c_str(), RTLD_NOW | RTLD_NOLOAD);
    const void *symbol = library ? dlsym(library, counter) : nullptr;
    return symbol ? *static_cast<const int *>(symbol) : -1;
  }
  uint64_t plugin_passes() {
    const host::Report report = host::context_report(context.get());
    uint64_t all = 0, registered = 0;
    EXPECT_OK(kiln_report_count(report.get(), "passes", 6, &all));
    for (uint64_t i = 0; i < all; i++)
      registered += host::text(report, "passes." + std::to_string(i) + ".plugin") == "variant";
    return registered;
  }
  host::Context context = host::make_context();
};

TEST_F(PluginTest, ItsPassRunsWithItsOptions) {
  kiln_options *made = nullptr;
  ASSERT_OK(kiln_options_create(&made));
  const host::Options options(made);
  EXPECT_OK(kiln_options_set_i64(made, "counting.step", 13, 5));
  ASSERT_EQ(load(variant("good"), made).message, "");
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  const host::Compiled compiled = host::compile(context.get(), graph.get());
  ASSERT_EQ(compiled.error.code, KILN_OK) << compiled.error.message;
  EXPECT_EQ(host::i64(compiled.report, "passes_run.counting"), 5);
}

TEST_F(PluginTest, OptionsOfNoPassAreRefused) {
  kiln_options *made = nullptr;
  ASSERT_OK(kiln_options_create(&made));
  const host::Options options(made);
  EXPECT_OK(kiln_options_set_i64(made, "count.step", 10, 5));
  const host::Error error = load(variant("good"), made);
  EXPECT_EQ(error.code, KILN_UNKNOWN_NAME);
  EXPECT_NE(error.message.find("no pass for option 'count.step'; options are PASS.OPTION, its passes: counting"),
            std::string::npos)
      << error.message;
  EXPECT_EQ(plugin_passes(), 0u);
}

TEST_F(PluginTest, CloseEndsPassesThenThePlugin) {
  ASSERT_EQ(load(variant("good")).message, "");
  const int destroys = count("good", "variant_destroys"), teardowns = count("good", "variant_teardowns");
  EXPECT_OK(kiln_context_close(context.get()));
  EXPECT_EQ(count("good", "variant_destroys"), destroys + 1);
  EXPECT_EQ(count("good", "variant_teardowns"), teardowns + 1);
  EXPECT_EQ(count("good", "variant_order_kept"), 1);
}

TEST_F(PluginTest, SetUpOncePerContext) {
  ASSERT_EQ(load(variant("good")).message, "");
  const int setups = count("good", "variant_setups");
  const host::Context second = host::make_context();
  const std::string path = variant("good");
  EXPECT_OK(kiln_plugin_load(second.get(), path.data(), path.size(), nullptr));
  EXPECT_EQ(count("good", "variant_setups"), setups + 1);
}

TEST_F(PluginTest, LoadingTwiceIsRefusedByTheNameOfItsPass) {
  ASSERT_EQ(load(variant("good")).message, "");
  EXPECT_NE(load(variant("good")).message.find("pass 'counting' of variant: the name is taken"), std::string::npos);
  EXPECT_EQ(plugin_passes(), 1u);
}

TEST_F(PluginTest, InspectTellsItsPassesAndIdentities) {
  kiln_report *made = nullptr;
  const std::string path = variant("good");
  ASSERT_OK(kiln_plugin_inspect(path.data(), path.size(), &made));
  const host::Report report(made);
  EXPECT_EQ(host::text(report, "name"), "variant");
  EXPECT_EQ(host::text(report, "digest").size(), 64u);
  EXPECT_EQ(host::text(report, "passes.0.name"), "counting");
  EXPECT_EQ(host::text(report, "passes.0.uuid"), "07070700-0000-0000-0000-000000000000");
  EXPECT_EQ(host::text(report, "passes.0.identity"), "uuid and file");
  EXPECT_EQ(plugin_passes(), 0u) << "it looked in a context of its own";
}

TEST_F(PluginTest, AFailedSetupDestroysWhatItRegisteredButIsNotTornDown) {
  const host::Error error = load(variant("setup_fails"));
  EXPECT_EQ(error.plugin, "variant");
  EXPECT_EQ(plugin_passes(), 0u);
  EXPECT_GE(count("setup_fails", "variant_destroys"), 1);
  EXPECT_EQ(count("setup_fails", "variant_teardowns"), 0);
}

TEST_F(PluginTest, SetupThatLacksMemoryIsNoFailureOfThePlugin) {
  const host::Error error = load(variant("setup_lacks_memory"));
  EXPECT_EQ(error.code, KILN_OUT_OF_MEMORY);
  EXPECT_EQ(error.plugin, "variant");
}

TEST_F(PluginTest, FilesThatAreNoPluginsAreRefused) {
  EXPECT_EQ(load("/nonexistent/plugin.so").code, KILN_IO);
  const kiln::test::TemporaryFolder folder;
  const std::string path = folder.file("plugin");
  for (const std::string &content : {std::string(), std::string("#!/bin/sh\n"),
                                     std::string("\x7f"
                                                 "ELF"),
                                     std::string("\x7f"
                                                 "ELF\x02\x01\x01") +
                                         std::string(200, '\xff')}) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
    const host::Error error = load(path);
    EXPECT_EQ(error.code, KILN_INCOMPATIBLE) << error.message;
    EXPECT_NE(error.message.find("not a Kiln plugin"), std::string::npos) << error.message;
  }
}

TEST_F(PluginTest, ACutPluginIsRefusedBeforeItsCodeIsMapped) {
  std::ifstream in(variant("good"), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  const kiln::test::TemporaryFolder folder;
  const std::string path = folder.file("cut");
  for (size_t size = 0; size < 0x2a0; size += 7) {
    std::ofstream(path, std::ios::binary | std::ios::trunc).write(whole.data(), static_cast<std::streamsize>(size));
    EXPECT_EQ(load(path).code, KILN_INCOMPATIBLE) << "cut at " << size;
  }
}

}  // namespace
