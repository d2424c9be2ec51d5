// Patterns for tests: found and rewritten in graphs, as texts.
#pragma once
#include <string>

#include "runtime/patterns/pattern_set.h"
#include "runtime/patterns/replacement.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln::test {

// {"kiln": 1, "pattern": "p", MORE}
inline std::string pattern_of(std::string_view more) { return str_cat(R"({"kiln":1,"pattern":"p",)", more, "}"); }

inline patterns::PatternSet set_of(std::initializer_list<std::string> texts) {
  std::vector<patterns::Pattern> all;
  for (const std::string &text : texts) {
    Result<patterns::Pattern> read = patterns::read_pattern(text, builtin_ops());
    EXPECT_TRUE(read.ok()) << read.status().message() << "\n" << text;
    if (read.ok()) all.push_back(std::move(read).value());
  }
  Result<patterns::PatternSet> set = patterns::PatternSet::make(std::move(all));
  EXPECT_TRUE(set.ok()) << set.status().message();
  return set.ok() ? std::move(set).value() : patterns::PatternSet();
}

inline std::string error_of(std::string_view pattern) {
  const Result<patterns::Pattern> read = patterns::read_pattern(pattern, builtin_ops());
  return read.ok() ? "none" : read.status().message();
}

struct Rewritten {
  GraphPtr graph;
  uint64_t count = 0;
  std::string error;
};
inline Rewritten rewrite(const patterns::PatternSet &set, const GraphPtr &graph) {
  Edit edit(graph);
  std::vector<uint64_t> matches(set.patterns().size());
  const Result<uint64_t> count = set.apply(
      edit,
      [&](size_t number, const patterns::Place &place) {
        return patterns::make_replacement(set.patterns()[number], place, edit);
      },
      matches);
  if (!count.ok()) return {.graph = graph, .error = count.status().message()};
  Result<GraphPtr> after = edit.finish();
  EXPECT_TRUE(after.ok()) << after.status().message();
  return {after.ok() ? *after : graph, *count, ""};
}

// The ops of the rewritten graph, in order: "mul add"; or the error.
inline std::string ops_after(std::initializer_list<std::string> patterns, std::string_view graph) {
  const Rewritten rewritten = rewrite(set_of(patterns), graph_of(graph));
  if (!rewritten.error.empty()) return rewritten.error;
  std::string ops;
  for (const Node &node : rewritten.graph->nodes())
    if (node.op) ops += str_cat(ops.empty() ? "" : " ", node.op->name);
  return ops;
}

inline std::string why_not(const std::string &pattern, std::string_view graph) {
  std::vector<patterns::Explained> out(1);
  set_of({pattern}).explain(*graph_of(graph), out);
  return out[0].found ? str_cat(out[0].found, " found") : out[0].closest.why;
}

}  // namespace kiln::test
