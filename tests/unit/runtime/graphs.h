// Graphs for tests, from their text form.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "runtime/graph/edit.h"
#include "runtime/graph/json.h"
#include "runtime/ops/op.h"

namespace kiln::test {

// A failure of the test, and an empty graph, when the text is no graph.
inline GraphPtr graph_of(std::string_view json) {
  Result<GraphPtr> graph = read_json(json, builtin_ops());
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? *graph : *Edit().finish(false);
}

// {"kiln": 1, "inputs": [x, y ... of f32[shape]], "nodes": [...], "outputs": [...]}
inline std::string f32_graph(std::string_view inputs, std::string_view shape, std::string_view nodes,
                             std::string_view outputs) {
  std::string list, outs;
  for (char name : inputs)
    list +=
        str_cat(list.empty() ? "" : ",", R"({"name":")", name, R"(","type":{"dtype":"f32","shape":[)", shape, "]}}");
  for (size_t at = 0, n = 0; at < outputs.size(); ++n) {
    const size_t end = std::min(outputs.find(' ', at), outputs.size());
    outs += str_cat(n ? "," : "", R"({"name":"out)", n, R"(","value":")", outputs.substr(at, end - at), R"("})");
    at = end + 1;
  }
  return str_cat(R"({"kiln":1,"inputs":[)", list, R"(],"nodes":[)", nodes, R"(],"outputs":[)", outs, "]}");
}

// x0, x1, ... of one element each, beside each other.
inline std::string concat_of(size_t count, std::string_view annotations = "{}") {
  std::string inputs, names;
  for (size_t k = 0; k < count; ++k) {
    inputs += str_cat(k ? "," : "", R"({"name":"x)", k, R"(","type":{"dtype":"f32","shape":[1]}})");
    names += str_cat(k ? "," : "", R"("x)", k, "\"");
  }
  return str_cat(R"({"kiln":1,"inputs":[)", inputs, R"(],"nodes":[{"name":"y","op":"concat","inputs":[)", names,
                 R"(],"attrs":{"dim":0},"annotations":)", annotations, R"(}],"outputs":[{"name":"y","value":"y"}]})");
}

}  // namespace kiln::test
