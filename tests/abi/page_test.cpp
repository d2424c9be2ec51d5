// The compile option report_html: what the page holds. tests/e2e/report_page_test.py opens it.
#include <fstream>
#include <sstream>

#include "host.h"
#include "tests/temporary_folder.h"

namespace {

class Page : public testing::Test {
 protected:
  host::Compiled compile(const std::string &path) {
    return host::compile(context.get(), graph.get(), [&](kiln_options *options) {
      if (!path.empty()) EXPECT_OK(kiln_options_set_text(options, "report_html", 11, path.data(), path.size()));
    });
  }
  std::string written() const {
    std::ostringstream text;
    text << std::ifstream(page).rdbuf();
    return text.str();
  }
  // The data that the page's script reads.
  static std::string data_of(const std::string &html) {
    constexpr std::string_view begin = "<script id=\"data\" type=\"application/json\">";
    const size_t at = html.find(begin) + begin.size();
    return html.substr(at, html.find("</script>", at) - at);
  }
  const kiln::test::TemporaryFolder cache, folder;
  const std::string page = folder.path() + "/first.html";
  std::vector<std::string> warnings;
  kiln_event_sink sink = host::warnings_into(warnings);
  const host::Context context = host::make_context(cache.path(), &sink);
  const host::Graph graph = host::parse(context.get(), host::small_graph);
};

TEST_F(Page, ShowsTheCompileAndHowALookupEndsThen) {
  for (const char *lookup : {"MISS", "HIT"}) {
    const host::Compiled compiled = compile(page);
    ASSERT_EQ(compiled.error, host::Error());
    EXPECT_EQ(host::text(compiled.report, "lookup"), "BYPASS");
    EXPECT_EQ(host::text(compiled.report, "reason"), "report_html");
    const std::string html = written(), data = data_of(html);
    EXPECT_TRUE(html.starts_with("<!doctype html>")) << html.substr(0, 80);
    EXPECT_TRUE(data.starts_with("{\"title\":\"first\",")) << data.substr(0, 80);
    const size_t told = data.find("\"lookup\":{\"report\":{\"lookup\":\"");
    ASSERT_NE(told, std::string::npos);
    EXPECT_EQ(data.substr(told + 30, std::string_view(lookup).size()), lookup);
    for (const char *part :
         {"\"passes\":[{", "\"000_given\":", "\"kernels\":[{\"ir\":", "\"code\":\"llvm\"", "\\ndefine ", "\"plan\":"})
      EXPECT_NE(data.find(part), std::string::npos) << part;
    EXPECT_EQ(html.find("@KILN_"), std::string::npos);
    EXPECT_EQ(host::text(compile("").report, "lookup"), lookup);  // which nothing of this has changed
  }
  EXPECT_TRUE(warnings.empty());
}

TEST_F(Page, OfBackendReferenceHasNoKernels) {
  const host::Compiled compiled = host::compile(context.get(), graph.get(), [&](kiln_options *options) {
    EXPECT_OK(kiln_options_set_text(options, "backend", 7, "reference", 9));
    EXPECT_OK(kiln_options_set_text(options, "report_html", 11, page.data(), page.size()));
  });
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_NE(data_of(written()).find("\"kernels\":[]"), std::string::npos);
}

TEST_F(Page, ThatCannotBeWrittenFailsTheCompile) {
  const host::Compiled compiled = compile(folder.path() + "/absent/page.html");
  EXPECT_EQ(compiled.error.code, KILN_IO);
  EXPECT_EQ(compiled.error.message.find("option 'report_html': "), 0u) << compiled.error;
}

}  // namespace
