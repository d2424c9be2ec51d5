// Plugins that are refused when they are loaded, or whose pass fails: plugins/ has one each, CASE.txt says how.
#include <algorithm>

#include "tests/error/expect.h"
#include "tests/temporary_folder.h"

namespace refused {
namespace {

// y = -(-x) + w and z = -x.
constexpr std::string_view graph_json = R"({"kiln": 1,
  "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
  "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
  "nodes": [{"name": "once", "op": "neg", "inputs": ["x"]},
            {"name": "twice", "op": "neg", "inputs": ["once"]},
            {"name": "sum", "op": "add", "inputs": ["twice", "w"]}],
  "outputs": [{"name": "y", "value": "sum"}, {"name": "z", "value": "once"}]})";

std::vector<std::string> plugins() {
  std::vector<std::string> names;
  for (const auto &file : std::filesystem::directory_iterator(folder() / "plugin/plugins"))
    names.push_back(file.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

void run(kiln_executable *executable) {
  kiln_call *made = nullptr;
  ASSERT_OK(kiln_call_create(executable, &made));
  const host::Call call(made);
  const host::Array x({1, 2}, {1, 2}), w({2}, {10, 20}), y({1, 2}, {0, 0}), z({1, 2}, {0, 0});
  ASSERT_OK(kiln_call_bind(made, 1, &w.tensor));
  const DLTensor *args[] = {&x.tensor, &y.tensor, &z.tensor};
  ASSERT_OK(kiln_call_run(made, args, 3, nullptr));
  EXPECT_EQ(y.values, (std::vector<float>{11, 22}));
  EXPECT_EQ(z.values, (std::vector<float>{-1, -2}));
}

class RefusedPlugin : public testing::TestWithParam<std::string> {
 protected:
  host::Compiled compile_without(const char *pass) {
    return host::compile(context.get(), graph.get(), [pass](kiln_options *options) {
      if (!pass) return;
      const kiln_text name{pass, std::strlen(pass)};
      const kiln_attr without = host::attr("disable_passes", KILN_ATTR_TEXT | KILN_ATTR_LIST, 1, &name);
      EXPECT_OK(kiln_options_set(options, &without));
    });
  }
  int passes_of_the_plugin() const {
    const host::Report report = host::context_report(context.get());
    uint64_t count = 0;
    int found = 0;
    EXPECT_OK(kiln_report_count(report.get(), "passes", 6, &count));
    for (uint64_t i = 0; i < count; i++)
      found += host::text(report, "passes." + std::to_string(i) + ".plugin") == "case";
    return found;
  }
  const kiln::test::TemporaryFolder folder;
  const std::string cache = folder.path();
  host::Context context = host::make_context(cache);
  host::Graph graph = host::parse(context.get(), graph_json);
};

TEST_P(RefusedPlugin, IsNamedAndTheGraphIsAsBefore) {
  const std::string before = host::write(graph.get(), "json");
  const std::string path = kiln::test::binary_dir + "/error_plugins/" + GetParam() + ".so";
  host::Error error = host::take(kiln_plugin_load(context.get(), path.data(), path.size(), nullptr));
  const bool loaded = error.code == KILN_OK;
  EXPECT_EQ(passes_of_the_plugin(), loaded ? 1 : 0);
  if (loaded) {
    error = host::compile(context.get(), graph.get()).error;
    EXPECT_EQ(error.plugin, "case");
    EXPECT_EQ(host::i64(host::context_report(context.get()), "handles.live"), 1) << "the graph alone";
  } else if (const size_t at = error.message.find(path); at != std::string::npos) {
    error.message.replace(at, path.size(), "FILE");
  } else {
    EXPECT_EQ(error.plugin, "case") << "an error that has no path names the plugin";
  }
  expect(error, "plugin/" + GetParam());

  EXPECT_EQ(host::write(graph.get(), "json"), before);
  const host::Compiled compiled = compile_without(loaded ? "breaks" : nullptr);
  ASSERT_EQ(compiled.error.code, KILN_OK) << compiled.error.message;
  run(compiled.executable.get());
  EXPECT_OK(kiln_context_close(context.get()));
}
INSTANTIATE_TEST_SUITE_P(Plugin, RefusedPlugin, testing::ValuesIn(plugins()),
                         [](const testing::TestParamInfo<std::string> &at) { return at.param; });

}  // namespace
}  // namespace refused
