#include "runtime/cache/key.h"

#include "tests/unit/runtime/graphs.h"

namespace kiln {
namespace {

using test::f32_graph;
using test::graph_of;

// Everything that a key is made of, to be changed one by one.
struct Request {
  std::string graph = f32_graph("x", "8", R"({"name":"y","op":"exp","inputs":["x"]})", "y");
  std::string options = "fuse=true";
  std::vector<Pass> late = {{.name = "first", .plugin = "p.so", .version = "1", .uuid = Uuid{1}},
                            {.name = "second", .plugin = "p.so", .version = "1", .uuid = Uuid{2}}};
  Target target;
  std::string backend = "cpu", build = "b1";

  std::vector<KeyComponent> components() const {
    std::vector<std::shared_ptr<const Pass>> passes;
    for (const Pass &pass : late) passes.push_back(std::make_shared<const Pass>(pass));
    std::string uncacheable;
    Result<std::vector<KeyComponent>> result =
        key_components({*graph_of(graph), options, passes, target, backend, build}, uncacheable);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return *result;
  }
  Digest key() const { return graph_key(components()); }
};

// The names of the components that differ from the unchanged request's; the key must differ too, or neither.
std::vector<std::string> changed(const std::function<void(Request &)> &change) {
  Request before, after;
  change(after);
  const std::vector<KeyComponent> a = before.components(), b = after.components();
  std::vector<std::string> names;
  for (size_t i = 0; i < a.size(); ++i) {
    if (i >= b.size() || a[i].name != b[i].name || a[i].digest != b[i].digest) names.push_back(a[i].name);
  }
  EXPECT_EQ(before.key() == after.key(), names.empty());
  return names;
}

using Names = std::vector<std::string>;

TEST(Key, IsTheSameForTheSameRequest) {
  EXPECT_EQ(changed([](Request &) {}), Names{});
}

TEST(Key, NamesTheComponentThatDiffers) {
  EXPECT_EQ(changed([](Request &r) { r.options = "fuse=false"; }), Names{"options"});
  EXPECT_EQ(changed([](Request &r) { r.target = *Target::by_name("v4"); }), Names{"target"});
  EXPECT_EQ(changed([](Request &r) { r.target = Target::device("sm_90"); }), Names{"target"});
  EXPECT_EQ(changed([](Request &r) { r.backend = "reference"; }), Names{"backend"});
  EXPECT_EQ(changed([](Request &r) { r.build = "b2"; }), Names{"build"});
}

TEST(Key, CoversAllOfAPass) {
  const Names second = {"pass second"};
  EXPECT_EQ(changed([](Request &r) { r.late[1].version = "2"; }), second);
  EXPECT_EQ(changed([](Request &r) { r.late[1].uuid = Uuid{3}; }), second);
  EXPECT_EQ(changed([](Request &r) { r.late[1].options["level"] = AttrValue(2); }), second);
  EXPECT_EQ(changed([](Request &r) { r.late[1].stage = Stage::pre_grad; }), second);
  EXPECT_EQ(changed([](Request &r) { r.late[1].priority = 5; }), second);
  EXPECT_EQ(changed([](Request &r) { r.late[1].file = digest_of("file"); }), second);
  EXPECT_EQ(changed([](Request &r) {
              r.late[1].fingerprint = [](Fingerprint &out) {
                out.key.text("what the pass read");
                return Status();
              };
            }),
            second);
}

TEST(Key, CoversTheOrderOfPassesAndTheirNumber) {
  EXPECT_EQ(changed([](Request &r) { std::swap(r.late[0], r.late[1]); }).size(), 2u);
  EXPECT_FALSE(changed([](Request &r) { r.late.pop_back(); }).empty());
}

TEST(Key, CoversTheGraphWithItsAnnotationsAndNotItsDebugNames) {
  const auto graph = [](std::string_view nodes, std::string_view output) {
    return [json = f32_graph("x", "8", nodes, output)](Request &r) { r.graph = json; };
  };
  EXPECT_EQ(changed(graph(R"({"name":"y","op":"log","inputs":["x"]})", "y")), (Names{"graph", "ops"}));
  EXPECT_EQ(changed(graph(R"({"name":"y","op":"exp","inputs":["x"],"annotations":{"a":{"i64":1}}})", "y")),
            Names{"graph"});
  EXPECT_EQ(changed(graph(R"({"name":"z","op":"exp","inputs":["x"]})", "z")), Names{});
  EXPECT_EQ(changed(graph(R"({"name":"y","op":"exp","inputs":["x"],"annotations":{"debug.a":{"i64":1}}})", "y")),
            Names{});
}

TEST(Key, NamesTheOpsOfNestedGraphsWithTheirVersions) {
  Request r;
  r.graph = R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":[4]}}],
      "nodes":[{"name":"a","op":"call","inputs":["x"],"attrs":{"graph":"g"}}],"outputs":[{"name":"y","value":"a"}],
      "graphs":{"g":{"inputs":[{"name":"u","type":{"dtype":"f32","shape":[4]}}],
                     "nodes":[{"name":"e","op":"exp","inputs":["u"]}],"outputs":[{"name":"v","value":"e"}]}}})";
  EXPECT_EQ(r.components()[1].text, "call 1, exp 1");
}

// Thirty graphs, each of which calls the one before it twice: 2^30 calls, which a walk that looks at each does not end.
TEST(Key, LooksOnceAtAGraphThatIsUsedOften) {
  const auto graph = [](int level) {
    const std::string body = level == 0
                                 ? R"({"name": "a", "op": "neg", "inputs": ["x"]},
                                             {"name": "y", "op": "neg", "inputs": ["a"]})"
                                 : str_cat(R"({"name": "a", "op": "call", "inputs": ["x"], "attrs": {"graph": "g)",
                                           level - 1, R"("}}, {"name": "y", "op": "call", "inputs": ["a"],
                                                  "attrs": {"graph": "g)",
                                           level - 1, "\"}}");
    return str_cat(R"("inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [2]}}], "nodes": [)", body,
                   R"(], "outputs": [{"name": "y", "value": "y"}]})");
  };
  std::string graphs;
  for (int level = 0; level < 29; ++level) graphs += str_cat(level ? ", " : "", "\"g", level, "\": {", graph(level));
  Request request;
  request.graph = str_cat(R"({"kiln": 1, "graphs": {)", graphs, "}, ", graph(29));
  EXPECT_EQ(request.components()[1].text, "call 1, neg 1");
}

TEST(Key, ReportsAPassWhoseFingerprintFails) {
  Pass pass{.name = "p", .plugin = "p.so", .uuid = Uuid{1}};
  pass.fingerprint = [](Fingerprint &) { return error(Code::io, "no such file"); };
  const std::shared_ptr<const Pass> late[] = {std::make_shared<const Pass>(pass)};
  const GraphPtr graph = graph_of(Request().graph);
  std::string uncacheable;
  const Status status = key_components({*graph, {}, late, Target(), "cpu", "b"}, uncacheable).status();
  EXPECT_EQ(status.code(), Code::plugin_failed);
  EXPECT_EQ(status.message(), "pass 'p' of p.so: its fingerprint failed: no such file");
  EXPECT_EQ(status.info()->cause->code, Code::io);
}

TEST(KernelKey, CoversKernelTargetLevelAndBuild) {
  const Bytes kernel = {1, 2, 3}, other = {1, 2, 4};
  const Target v3 = *Target::by_name("v3"), v4 = *Target::by_name("v4");
  const Digest key = kernel_key(kernel, "cpu", v3, "b");
  EXPECT_EQ(key, kernel_key(kernel, "cpu", v3, "b"));
  EXPECT_NE(key, kernel_key(other, "cpu", v3, "b"));
  EXPECT_NE(key, kernel_key(kernel, "cpu", v4, "b"));
  EXPECT_NE(key, kernel_key(kernel, "cpu", v3, "c"));
  EXPECT_NE(key, kernel_key(kernel, "cuda", v3, "b"));
  EXPECT_NE(key, kernel_key(kernel, "cpu", v3, "b", "NVRTC 13.0"));
}

}  // namespace
}  // namespace kiln
