// Options of a registered backend that one region has and another has not.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test_backend.h"

namespace {

using host::TestBackend;

// Whose option "limit", 3 unless a compile says otherwise, is part of its bytes.
struct Limited : TestBackend {
  std::vector<int64_t> asked_with;
  std::vector<std::string> blobs;
  int64_t limit = 3;
  kiln_attr option = host::attr("limit", KILN_ATTR_I64, 1, &limit);

  Limited() {
    backend.options = &option, backend.option_count = 1;
    backend.user = static_cast<TestBackend *>(this);
    backend.takes = [](void *user, kiln_backend_call *call, const kiln_graph *, kiln_node, uint32_t *out) {
      of(user).asked_with.push_back(limit_of(call));
      *out = 1;
      return static_cast<kiln_error *>(nullptr);
    };
    backend.compile = [](void *user, kiln_backend_call *call, const kiln_graph *) {
      of(user).compiled++;
      const std::string blob = "limit " + std::to_string(limit_of(call));
      return kiln_backend_blob(call, blob.data(), blob.size());
    };
    backend.load = [](void *user, const void *blob, uint64_t size, void **out_program) {
      of(user).blobs.emplace_back(static_cast<const char *>(blob), size);
      *out_program = user;
      return static_cast<kiln_error *>(nullptr);
    };
  }
  static Limited &of(void *user) { return *static_cast<Limited *>(static_cast<TestBackend *>(user)); }
  static int64_t limit_of(kiln_backend_call *call) {
    kiln_attr out{};
    EXPECT_OK(kiln_backend_option(call, "limit", 5, &out));
    return *static_cast<const int64_t *>(out.data);
  }
};

// Two equal regions, each annotated with more.
std::string two_regions(const std::string &of_r, const std::string &of_s) {
  const auto node = [](const std::string &name, const std::string &input, const std::string &region,
                       const std::string &more) {
    return R"({"name": ")" + name + R"(", "op": "neg", "inputs": [")" + input +
           R"("], "annotations": {"kiln.region": {"text": ")" + region +
           R"("}, "kiln.region.backend": {"text": "ten"})" + more + "}}";
  };
  return R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [3]}}], "nodes": [)" +
         node("a", "x", "r", of_r) + R"(, {"name": "b", "op": "abs", "inputs": ["a"]}, )" + node("c", "b", "s", of_s) +
         R"(], "outputs": [{"name": "y", "value": "c"}]})";
}

class BackendRegionOptions : public testing::Test {
 protected:
  using Integers = std::vector<std::pair<std::string, int64_t>>;
  BackendRegionOptions() { ten.register_in(context.get()); }
  host::Compiled compile(const std::string &graph, const Integers &integers = {}, const char *backend_of_r = "ten") {
    const host::Graph parsed = host::parse(context.get(), graph);
    return host::compile(context.get(), parsed.get(), [&](kiln_options *options) {
      EXPECT_OK(kiln_options_set_text(options, "mode", 4, "marked", 6));
      EXPECT_OK(kiln_options_set_text(options, "region.r.backend", 16, backend_of_r, strlen(backend_of_r)));
      for (const auto &[name, value] : integers)
        EXPECT_OK(kiln_options_set_i64(options, name.data(), name.size(), value));
    });
  }
  std::string message(const std::string &graph, const Integers &integers = {}, const char *backend_of_r = "ten") {
    return compile(graph, integers, backend_of_r).error.message;
  }

  const std::string seven = R"(, "kiln.region.backend.limit": {"i64": 7})";
  Limited ten;
  const host::Context context = host::make_context();
};

TEST_F(BackendRegionOptions, AreThoseOfTheRegionsAnnotations) {
  const host::Compiled compiled = compile(two_regions(seven, ""));
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_EQ(ten.blobs, (std::vector<std::string>{"limit 7", "limit 3"}));
  EXPECT_EQ(ten.asked_with, (std::vector<int64_t>{7, 3}));
  const host::Report description = host::describe(compiled.executable.get());
  EXPECT_EQ(host::text(description, "compile.partition.regions.0.options.0"), "backend.limit=7");
}

TEST_F(BackendRegionOptions, ThatAreEqualMakeEqualRegionsOnce) {
  ASSERT_EQ(compile(two_regions(seven, seven)).error, host::Error());
  EXPECT_EQ(ten.blobs, (std::vector<std::string>{"limit 7"}));
}

TEST_F(BackendRegionOptions, OfACompileWinAndOfItsPhaseFirst) {
  ASSERT_EQ(compile(two_regions(seven, ""), {{"region.r.backend.limit", 9}, {"backend.ten.limit", 4}}).error,
            host::Error());
  EXPECT_EQ(ten.blobs, (std::vector<std::string>{"limit 9", "limit 4"}));
  ten.blobs.clear();
  const Integers of_phases = {
      {"region.r.backend.limit", 9}, {"region.r.forward.backend.limit", 11}, {"region.s.backward.backend.limit", 12}};
  ASSERT_EQ(compile(two_regions(seven, ""), of_phases).error, host::Error());
  EXPECT_EQ(ten.blobs, (std::vector<std::string>{"limit 11", "limit 3"}));
}

TEST_F(BackendRegionOptions, ThatTheBackendDoesNotHaveAreRefusedByName) {
  EXPECT_EQ(message(two_regions(R"(, "kiln.region.backend.limt": {"i64": 7})", "")),
            "region 'r': option 'backend.limt': backend 'ten' has no option 'limt'; it has limit");
  EXPECT_EQ(message(two_regions("", ""), {{"region.s.backend.most", 1}}),
            "region 's': option 'backend.most': backend 'ten' has no option 'most'; it has limit");
  EXPECT_EQ(message(two_regions(R"(, "kiln.region.backend.limit": {"text": "7"})", "")),
            "region 'r': option 'backend.limit' is of kind i64, not text");
}

TEST_F(BackendRegionOptions, OfARegionWithoutARegisteredBackendAreRefused) {
  EXPECT_EQ(message(two_regions(seven, ""), {}, "cpu"),
            "region 'r': option 'backend.limit' is given, and no registered backend is chosen for the region");
}

TEST_F(BackendRegionOptions, ABackendThatThereIsNotIsNamedWithWhoNamesIt) {
  EXPECT_EQ(message(two_regions("", ""), {}, "nope"),
            "option 'region.r.backend': no backend is named 'nope'; there are ten");
  EXPECT_EQ(
      message(two_regions("", ""), {}, "reference"),
      "option 'region.r.backend': a region's backend is reference, and the compile's is cpu; beside it there may be "
      "registered ones");
  std::string graph = two_regions("", "");
  graph.replace(graph.rfind(R"("ten")"), 5, R"("nope")");
  EXPECT_EQ(message(graph), "node 'c' [annotation 'kiln.region.backend']: no backend is named 'nope'; there are ten");
}

TEST_F(BackendRegionOptions, ThatDifferInARegionNameBothNodes) {
  std::string graph = two_regions(seven, R"(, "kiln.region.backend.limit": {"i64": 8})");
  graph.replace(graph.find(R"({"text": "s"})"), 13, R"({"text": "r"})");
  EXPECT_EQ(
      message(graph),
      "region 'r': annotation 'kiln.region.backend.limit' is 7 on node 'a' and 8 on node 'c'; the nodes of a region "
      "and phase have one value");
}

}  // namespace
