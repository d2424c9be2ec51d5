#include "runtime/graph/edit.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/unit/runtime/graph/fake_ops.h"

namespace kiln {
namespace {

using fake::Build;
using fake::n;

std::vector<std::string> names(const Graph &g) {
  std::vector<std::string> out;
  for (const Node &node : g.nodes()) out.push_back(node.name);
  return out;
}
using Names = std::vector<std::string>;

TEST(Edit, BuildsAGraphInCanonicalOrder) {
  Build b;
  ValueId x = b.input("x", {n(), 4});
  ValueId y = b.add("relu", {x});
  ValueId w = b.parameter("w", {4});
  auto half = std::make_shared<TensorData>(TensorData{DType::f32, {}, Bytes(4)});
  ValueId c = Build::take(b.edit.constant(half, "half"));
  ValueId z = b.add("add", {b.add("add", {y, w}), c}, {}, "z");
  GraphPtr g = b.finish({z});
  EXPECT_EQ(names(*g), (Names{"x", "w", "half", "relu", "add", "z"}));
  EXPECT_EQ(print(*g),
            "symbol n\n"
            "input x: f32[n, 4]\n"
            "parameter w: f32[4]\n"
            "constant half: f32[]\n"
            "relu = relu(x): f32[n, 4]\n"
            "add = add(relu, w): f32[n, 4]\n"
            "z = add(add, half): f32[n, 4]\n"
            "output output0 = z\n");
  EXPECT_EQ(g->inputs().size(), 1u);
  EXPECT_EQ(g->parameters().size(), 1u);
  EXPECT_EQ(g->type(x).layout, TensorType::Layout::exact);
  EXPECT_EQ(g->type(z).layout, TensorType::Layout::free);
}

TEST(Edit, AnswersUsersAndCounts) {
  Build b;
  ValueId x = b.input("x", {4});
  ValueId y = b.add("add", {x, x}), z = b.add("add", {y, x});
  GraphPtr g = b.finish({z, x});
  EXPECT_EQ(g->use_count(x), 4u);
  EXPECT_EQ(g->users(x), (std::vector<uint32_t>{y.node, z.node}));
  EXPECT_EQ(g->find("add_1")->id, z.node);
  EXPECT_EQ(g->find("nothing"), nullptr);
  EXPECT_FALSE(g->has({y.node, 1}));
}

TEST(Edit, AddFailsAtOnceAndSaysWhy) {
  Build b;
  ValueId x = b.input("x", {n(), 4}), i = b.input("i", {4}, DType::i64), y = b.input("y", {3});
  auto message = [&](std::string_view op, std::vector<ValueId> in, AttrMap attrs = {}) {
    Result<uint32_t> result = b.edit.add(fake::ops()[op], in, std::move(attrs));
    return result.ok() ? "ok" : result.status().message();
  };
  EXPECT_EQ(message("add", {x}), "[add] takes 2 operands, 1 are given");
  EXPECT_EQ(message("add", {x, i}), "[add] a is f32, b is i64; use convert to make them the same");
  EXPECT_EQ(message("relu", {i}), "[relu] x is i64[4]; expected one of f64, f32");
  EXPECT_EQ(message("add", {x, {99, 0}}), "[add] operand 1 is no value of this graph");
  EXPECT_EQ(message("add", {x, y}),
            "[add] shapes [n, 4] and [3] do not broadcast: dims at -1 must be equal; they are 4 and 3");
  EXPECT_EQ(message("relu", {x}, {{"alpha", 1}}), "[relu] has no attribute 'alpha'; it has none");
  EXPECT_EQ(message("split", {x}, {{"dim", "0"}}), "[split] attribute 'dim' is text; expected i64");
  EXPECT_EQ(message("split", {x}, {{"dim", 2}}), "[split] dim is 2; expected -2 to 1 for rank 2");
  EXPECT_EQ(message("reshape", {x}), "[reshape] attribute 'shape' is missing");
  EXPECT_EQ(b.edit.view().nodes().size(), 3u) << "a failed add leaves something behind";
}

TEST(Edit, NamesAreCheckedAndMade) {
  Build b;
  ValueId x = b.input("x", {4});
  auto message = [&](std::string_view name) {
    return b.edit.add(fake::ops()["relu"], {{x}}, {}, name).status().message();
  };
  EXPECT_EQ(message("x"), "name 'x' is taken already");
  EXPECT_EQ(message("a:b"), "name 'a:b': ':' and control characters are not allowed");
  EXPECT_EQ(message("\xff"), "a name is not UTF-8");
  EXPECT_EQ(b.edit.input("", make_type(DType::f32, {})).status().message(), "a name is empty");
  b.add("relu", {x}, {}, "relu_1");
  b.add("relu", {x});
  ValueId third = b.add("relu", {x});
  EXPECT_EQ(b.edit.view().find(third.node)->name, "relu_2");
}

TEST(Edit, ANameThatWasMadeGivesWayToOneThatIsTold) {
  Build b;
  const ValueId x = b.input("x", {4}), made = b.add("relu", {x});
  const ValueId told = b.input("relu", {4});
  EXPECT_EQ(b.edit.view().find("relu")->id, told.node);
  EXPECT_EQ(b.edit.view().find(made.node)->name, "relu_1");
  EXPECT_EQ(b.edit.view().find("relu_1")->id, made.node);
  EXPECT_EQ(b.edit.input("relu", make_type(DType::f32, {})).status().message(), "name 'relu' is taken already");
}

TEST(Edit, SymbolicBroadcastRecordsWhatACallMustCheck) {
  Build b;
  ValueId x = b.input("x", {n(), 4}), y = b.input("y", {Expr::symbol("m"), 1}), z = b.input("z", {3, 4});
  ValueId s = b.add("add", {x, y}), t = b.add("add", {x, z});
  const Graph &g = b.edit.view();
  const std::string what = "shapes [n, 4] and [m, 1] do not broadcast: dims at -2 must be equal";
  EXPECT_EQ(g.find(s.node)->equalities, (std::vector<Equality>{{Expr::symbol("m"), n(), what}}));
  EXPECT_EQ(g.type(s).text(), "f32[n, 4]");
  ASSERT_EQ(g.find(t.node)->equalities.size(), 1u);
  EXPECT_EQ(g.find(t.node)->equalities[0].left, Dim(3));
  EXPECT_EQ(g.type(t).text(), "f32[3, 4]");
}

TEST(Edit, ReplaceMovesAllUses) {
  Build b;
  ValueId x = b.input("x", {4});
  ValueId a = b.add("relu", {x}, {}, "a"), c = b.add("add", {a, a}, {}, "c"), d = b.add("add", {c, a}, {}, "d");
  GraphPtr g = b.finish({d, a});

  Build e(g);
  ValueId r = e.add("relu", {x}, {}, "r");
  ASSERT_TRUE(e.edit.replace(a, r).ok());
  EXPECT_EQ(e.edit.view().use_count(a), 0u);
  EXPECT_EQ(e.edit.view().use_count(r), 4u);
  EXPECT_EQ(e.edit.view().users(r), (std::vector<uint32_t>{c.node, d.node}));
  GraphPtr h = Build::take(e.edit.finish());
  EXPECT_EQ(names(*h), (Names{"x", "r", "c", "d"}));
  EXPECT_EQ(names(*g), (Names{"x", "a", "c", "d"})) << "the original changed";
}

TEST(Edit, ReplaceRefusesCyclesAndOtherTypes) {
  Build b;
  ValueId x = b.input("x", {4}), y = b.input("y", {5});
  ValueId a = b.add("relu", {x}, {}, "a"), c = b.add("relu", {a}, {}, "c"), d = b.add("relu", {c}, {}, "d");
  GraphPtr g = b.finish({d});
  Build e(g);
  EXPECT_EQ(e.edit.replace(a, c).message(),
            "replacing 'a' by 'c' would close a cycle: 'c' uses the former, and the latter depends on it");
  EXPECT_EQ(e.edit.replace(a, d).message(),
            "replacing 'a' by 'd' would close a cycle: 'c' uses the former, and the latter depends on it");
  EXPECT_EQ(e.edit.replace(a, y).message(), "replacing 'a' by 'y': the former is f32[4], the latter f32[5]");
  EXPECT_EQ(e.edit.replace(a, {77, 0}).message(), "replace: the new value is not of this graph");
  // After a replace that turns the order round, cycles are still found.
  ASSERT_TRUE(e.edit.replace(d, a).ok());
  ValueId late = e.add("relu", {d}, {}, "late");
  ASSERT_TRUE(e.edit.replace(a, x).ok());
  ASSERT_TRUE(e.edit.replace(x, y).code() == Code::type_mismatch);
  EXPECT_EQ(e.edit.replace(c, late).code(), Code::invalid_argument);
}

TEST(Edit, ReplaceChainsAgainstTheOrderSortsInTheEnd) {
  Build b;
  ValueId x = b.input("x", {4});
  ValueId p = b.add("relu", {x}, {}, "p"), q = b.add("relu", {x}, {}, "q"), s = b.add("add", {p, x}, {}, "s"),
          t = b.add("add", {q, x}, {}, "t");
  GraphPtr g = b.finish({s, t});
  Build e(g);
  ASSERT_TRUE(e.edit.replace(p, t).ok());                          // s now uses t, which stands behind it
  EXPECT_EQ(e.edit.replace(q, s).code(), Code::invalid_argument);  // t uses q, and s depends on t
  GraphPtr h = Build::take(e.edit.finish());
  EXPECT_EQ(names(*h), (Names{"x", "q", "t", "s"}));
}

TEST(Edit, ReplacementsInheritAnnotations) {
  Build b;
  ValueId x = b.input("x", {4});
  ValueId a = b.add("relu", {x}, {}, "a", {{"kiln.region", "one"}, {"debug.line", 3}});
  ValueId c = b.add("relu", {x}, {}, "c", {{"kiln.region", "two"}, {"debug.line", 4}});
  GraphPtr g = b.finish({a, c});
  {
    Build e(g);
    ValueId r = e.add("relu", {x}, {}, "r");
    ASSERT_TRUE(e.edit.replace(a, r).ok());
    EXPECT_EQ(e.edit.view().find(r.node)->annotations.at("kiln.region"), AttrValue("one"));
    EXPECT_EQ(e.edit.replace(c, r).message(),
              "annotation 'kiln.region' of 'r' would be \"one\" and, from 'c', \"two\"; set it on the new node");
    EXPECT_EQ(e.edit.view().use_count(c), 1u) << "the failed replace changed something";
    ASSERT_TRUE(e.edit.annotate(r.node, "kiln.region", "both").ok());
    EXPECT_TRUE(e.edit.replace(c, r).ok());
    EXPECT_EQ(e.edit.view().find(r.node)->annotations.at("kiln.region"), AttrValue("both"));
  }
  Build e(g);
  ASSERT_TRUE(e.edit.replace(a, c).ok());
  EXPECT_EQ(e.edit.view().find(c.node)->annotations.at("kiln.region"), AttrValue("two"))
      << "c was not added by the edit";
}

TEST(Edit, OptionsOfARegionAreInheritedWithinItAlone) {
  const AttrMap outer = {{"kiln.region", "one"}, {"kiln.region.fuse", false}};
  Build b;
  ValueId x = b.input("x", {4});
  b.edit.push_scope(outer);
  ValueId same = b.add("relu", {x}, {}, "same");
  ValueId other = b.add("relu", {x}, {}, "other", {{"kiln.region", "two"}});
  ValueId in_none = b.add("relu", {x}, {}, "in_none", {{"kiln.region", ""}});
  ASSERT_TRUE(b.edit.pop_scope().ok());
  GraphPtr g = b.finish({same, other, in_none});
  EXPECT_EQ(g->find("same")->annotations, outer);
  EXPECT_EQ(g->find("other")->annotations, (AttrMap{{"kiln.region", "two"}}));
  EXPECT_EQ(g->find("in_none")->annotations, AttrMap());

  Build e(g);
  ValueId helper = e.add("relu", {x}, {}, "helper");
  ValueId apart = e.add("relu", {helper}, {}, "apart", {{"kiln.region", "two"}});
  ValueId by = e.add("relu", {apart}, {}, "by");
  ASSERT_TRUE(e.edit.replace(same, by).ok());
  Result<GraphPtr> finished = e.edit.finish();
  ASSERT_TRUE(finished.ok()) << finished.status().message();
  g = *finished;
  EXPECT_EQ(g->find("by")->annotations, outer);
  EXPECT_EQ(g->find("apart")->annotations, (AttrMap{{"kiln.region", "two"}}));
  EXPECT_EQ(g->find("helper")->annotations, outer);
}

TEST(Edit, AllThatAReplacementIsMadeOfInherits) {
  Build b;
  ValueId x = b.input("x", {4});
  ValueId a = b.add("relu", {x}, {}, "a", {{"kiln.region", "one"}});
  ValueId c = b.add("relu", {a}, {}, "c", {{"kiln.region", "two"}});
  GraphPtr g = b.finish({c});
  const auto regions = [](const Graph &graph) {
    std::map<std::string, std::string> by_name;
    for (const Node &node : graph.nodes())
      if (node.op)
        by_name[node.name] = node.annotations.contains("kiln.region") ? node.annotations.at("kiln.region").text() : "";
    return by_name;
  };
  Build e(g);
  ValueId old = e.add("relu", {a}, {}, "of_the_old");
  ValueId helper = e.add("relu", {old}, {}, "helper");
  ValueId own = e.add("relu", {helper}, {}, "own", {{"kiln.region", "mine"}});
  ASSERT_TRUE(e.edit.replace(c, e.add("relu", {own}, {}, "second")).ok());
  ValueId first = e.add("relu", {e.add("relu", {x}, {}, "below")}, {}, "first");
  ASSERT_TRUE(e.edit.replace(a, first).ok());
  e.add("relu", {x}, {}, "unused");
  EXPECT_EQ(regions(*Build::take(e.edit.finish())), (std::map<std::string, std::string>{{"below", "\"one\""},
                                                                                        {"first", "\"one\""},
                                                                                        {"of_the_old", "\"two\""},
                                                                                        {"helper", "\"two\""},
                                                                                        {"own", "\"mine\""},
                                                                                        {"second", "\"two\""}}));

  Build shared(g);
  ValueId both = shared.add("relu", {x}, {}, "both");
  ASSERT_TRUE(shared.edit.replace(c, shared.add("relu", {both}, {}, "of_c")).ok());
  ASSERT_TRUE(shared.edit.set_outputs({{"c", shared.edit.view().outputs()[0].value}, {"a", a}}).ok());
  ASSERT_TRUE(shared.edit.replace(a, shared.add("relu", {both}, {}, "of_a")).ok());
  const auto of_shared = regions(*Build::take(shared.edit.finish()));
  EXPECT_EQ(of_shared.at("both"), "\"two\"") << "it is part of what was replaced first";
  EXPECT_EQ(of_shared.at("of_a"), "\"one\"");
}

TEST(Edit, WhatAReplacedNodeWasMadeOfInheritsNothing) {
  Build b;  // all is added by one edit
  ValueId x = b.input("x", {4}), n = b.add("relu", {x}, {}, "n");
  ValueId a = b.add("relu", {n}, {}, "a", {{"kiln.region", "one"}});
  ValueId c = b.add("relu", {n}, {}, "c", {{"kiln.region", "two"}});
  ASSERT_TRUE(b.edit.set_output_values(std::vector{a, c}).ok());
  ASSERT_TRUE(b.edit.replace(a, b.add("relu", {b.add("relu", {n}, {}, "for_a")}, {}, "new_a")).ok());
  ASSERT_TRUE(b.edit.replace(c, b.add("relu", {n}, {}, "new_c")).ok());
  const GraphPtr g = Build::take(b.edit.finish());
  EXPECT_EQ(g->find("n")->annotations, AttrMap());
  EXPECT_EQ(g->find("for_a")->annotations, (AttrMap{{"kiln.region", "one"}}));
  EXPECT_EQ(g->find("new_c")->annotations, (AttrMap{{"kiln.region", "two"}}));

  // What stands for a node without annotations has none to take from those that use it.
  Build first;
  ValueId y = first.input("x", {4}), p = first.add("relu", {y}, {}, "p");
  ValueId q = first.add("relu", {p}, {}, "q", {{"kiln.region", "one"}});
  Build e(first.finish({q}));
  ValueId wide = e.add("relu", {y}, {}, "wide");
  ASSERT_TRUE(e.edit.replace(p, e.add("relu", {wide}, {}, "rounded")).ok());
  ASSERT_TRUE(e.edit.replace(q, e.add("relu", {wide}, {}, "new_q")).ok());
  EXPECT_EQ(Build::take(e.edit.finish())->find("wide")->annotations, AttrMap());
}

// A node "a" of one input, which is marked and is what the graph gives.
struct Marked {
  ValueId x, a;
  GraphPtr graph;
};
Marked marked() {
  Build b;
  const ValueId x = b.input("x", {4}), a = b.add("relu", {x}, {}, "a", {{"kiln.region", "one"}});
  return {x, a, b.finish({a})};
}

TEST(Edit, WhatAPassMakesBetterIsPartOfTheSameReplacement) {
  const auto [x, a, graph] = marked();
  Build e(graph);
  ValueId inner = e.add("relu", {x}, {}, "inner");
  ASSERT_TRUE(e.edit.replace(a, e.add("relu", {inner}, {}, "outer")).ok());
  ASSERT_TRUE(e.edit.replace(inner, e.add("relu", {e.add("relu", {x}, {}, "deep")}, {}, "better")).ok());
  const GraphPtr g = Build::take(e.edit.finish());
  for (const char *name : {"deep", "better", "outer"})
    EXPECT_EQ(g->find(name)->annotations, (AttrMap{{"kiln.region", "one"}})) << name;
}

TEST(Edit, FinishingTwiceGivesEqualGraphsAndChangesNothing) {
  const auto [x, a, graph] = marked();
  Build e(graph);
  ValueId helper = e.add("relu", {x}, {}, "helper");
  ASSERT_TRUE(e.edit.replace(a, e.add("relu", {helper}, {}, "of_a")).ok());
  const std::string first = print(*Build::take(e.edit.finish()));
  EXPECT_EQ(e.edit.view().find(helper.node)->annotations, AttrMap());
  EXPECT_EQ(print(*Build::take(e.edit.finish())), first);
  EXPECT_NE(first.find("helper = relu(x): f32[4]  {kiln.region=\"one\"}"), std::string::npos) << first;
}

TEST(Edit, NamesUnderKilnAreClosedAndTyped) {
  Build b;
  ValueId x = b.input("x", {4}), a = b.add("relu", {x});
  const auto refused = [&](std::string_view key, AttrValue value, Code code, std::string_view message) {
    const Status status = b.edit.annotate(a.node, key, std::move(value));
    EXPECT_EQ(status.code(), code) << key;
    EXPECT_EQ(status.message(), message);
  };
  refused("kiln.regoin", "a", Code::unknown_name,
          "annotation 'kiln.regoin' is not known; under 'kiln.' there are: kiln.cut, kiln.decompose, kiln.donate, "
          "kiln.fallback, kiln.fallback.function, kiln.phase, kiln.region, kiln.region.backend, kiln.region.fuse, "
          "kiln.region.rounding, "
          "kiln.stage, kiln.region.backend.OPTION");
  refused("kiln.region", 3, Code::type_mismatch, "annotation 'kiln.region' is i64; expected text");
  refused("kiln.region.fuse", "no", Code::type_mismatch, "annotation 'kiln.region.fuse' is text; expected bool");
  refused("kiln.decompose", "never", Code::invalid_argument,
          "annotation 'kiln.decompose' is 'never'; expected 'backend', 'keep' or 'always'");
  refused("kiln.region.rounding", "loose", Code::invalid_argument,
          "annotation 'kiln.region.rounding' is 'loose', expected one of strict, relaxed");
  refused("kiln.region", std::vector<std::string>{"a"}, Code::type_mismatch,
          "annotation 'kiln.region' is a list of text; expected text");
  for (const char *name : {"forward", "two words", "naïve"})
    refused(
        "kiln.region", name, Code::invalid_argument,
        str_cat("annotation 'kiln.region' is '", name,
                "'; expected letters, digits, '_' and '-', other than forward and backward, or nothing: in no region"));
  EXPECT_TRUE(b.edit.annotate(a.node, "kiln.region", "Block-2_a").ok());
  EXPECT_TRUE(b.edit.annotate(a.node, "kilns.region", 3).ok()) << "the user's own";
  b.edit.push_scope({{"kiln.regoin", "a"}});
  EXPECT_EQ(b.edit.add(fake::ops()["relu"], std::vector{x}).status().code(), Code::unknown_name);
}

TEST(Edit, WhatIsUnmarkedOrRemovedIsNotInherited) {
  Build b;
  ValueId x = b.input("x", {4});
  ValueId a = b.add("relu", {x}, {}, "a", {{"kiln.region", "one"}, {"mine", 1}});
  b.edit.push_scope({{"kiln.region", "outer"}});
  ValueId inside = b.add("relu", {a}, {}, "inside", {{"kiln.region", ""}});
  ASSERT_TRUE(b.edit.pop_scope().ok());
  EXPECT_EQ(b.edit.view().find(inside.node)->annotations, AttrMap());
  Build e(b.finish({inside}));
  ValueId helper = e.add("relu", {x}, {}, "helper");
  ValueId first = e.add("relu", {helper}, {}, "first", {{"kiln.region", ""}});
  ASSERT_TRUE(e.edit.remove_annotation(helper.node, "mine").ok());
  ASSERT_TRUE(e.edit.replace(a, first).ok());
  ASSERT_TRUE(e.edit.annotate(helper.node, "kiln.region", "").ok());
  const GraphPtr g = Build::take(e.edit.finish());
  EXPECT_EQ(g->find("first")->annotations, (AttrMap{{"mine", 1}}));
  EXPECT_EQ(g->find("helper")->annotations, AttrMap());
  EXPECT_EQ(e.edit.remove_annotation(x.node, "mine").message(),
            "annotation 'mine': node 1, 'x', is no op node of this graph");
}

TEST(Edit, ScopesAnnotateWhatIsAddedInside) {
  Build b;
  ValueId x = b.input("x", {4});
  b.edit.push_scope({{"kiln.region", "outer"}, {"depth", 1}});
  b.edit.push_scope({{"kiln.region", "inner"}});
  ValueId a = b.add("relu", {x}), c = b.add("relu", {x}, {}, "c", {{"kiln.region", "own"}});
  ASSERT_TRUE(b.edit.pop_scope().ok());
  ASSERT_TRUE(b.edit.pop_scope().ok());
  EXPECT_EQ(b.edit.pop_scope().message(), "no scope is open");
  auto annotations = [&](ValueId v) { return b.edit.view().find(v.node)->annotations; };
  EXPECT_EQ(annotations(a), (AttrMap{{"kiln.region", "inner"}, {"depth", 1}}));
  EXPECT_EQ(annotations(c), (AttrMap{{"kiln.region", "own"}, {"depth", 1}}));
  EXPECT_EQ(b.edit.annotate(x.node, "k", 1).message(), "annotation 'k': node 1, 'x', is no op node of this graph");
  EXPECT_EQ(b.edit.annotate(a.node, "k", Expr::symbol("n")).message(),
            "annotation 'k' is dim; expected i64, f64, text, dtype or bool");
}

TEST(Edit, FinishDropsWhatNothingUsesButNotEffects) {
  Build b;
  ValueId x = b.input("x", {4}), unused = b.input("unused", {4});
  b.add("relu", {unused}, {}, "dead");
  b.add("print", {x}, {}, "told");
  Build::take(b.edit.constant(std::make_shared<TensorData>(TensorData{DType::f32, {0}, {}}), "dead_constant"));
  ValueId y = b.add("relu", {x}, {}, "y");
  GraphPtr g = b.finish({y});
  EXPECT_EQ(names(*g), (Names{"x", "unused", "told", "y"}));
  EXPECT_GT(b.edit.view().nodes().size(), g->nodes().size()) << "the edit stands as before";
  ValueId later = Build(g).add("relu", {x});
  EXPECT_GT(later.node, y.node) << "ids are never reused";
}

TEST(Edit, CopyIsMovedBehindAllReads) {
  Build b;
  ValueId x = b.input("x", {4});
  ValueId written = b.add("copy_", {x, b.add("relu", {x})}, {}, "written");
  ValueId y = b.add("add", {x, x}, {}, "y");
  GraphPtr g = b.finish({y, written});
  EXPECT_EQ(names(*g), (Names{"x", "relu", "y", "written"}));
  EXPECT_EQ(g->storage_of(written), x);
}

TEST(Edit, ConstantsAndSymbolsAreChecked) {
  Build b;
  auto message = [&](TensorData t) {
    return b.edit.constant(std::make_shared<TensorData>(std::move(t)), "c").status().message();
  };
  EXPECT_EQ(message({DType::f32, {2, 3}, Bytes(20)}), "constant 'c': f32[2, 3] takes 24 bytes, 20 are given");
  EXPECT_EQ(message({DType::f32, {-1}, {}}), "constant 'c': dim 0 of f32[-1] is negative");
  EXPECT_EQ(message({DType::f32, {INT64_MAX, 4}, {}}), "constant 'c': f32[9223372036854775807, 4] exceeds 2^63 bytes");
  EXPECT_EQ(b.edit.declare_symbol("2n", {}).message(),
            "symbol '2n': expected a letter or '_', then letters, digits, '_' or '.'");
  EXPECT_EQ(b.edit.declare_symbol("n", {.min = 4, .max = 3}).message(),
            "symbol 'n': min is 4, max is 3, divisor is 1; expected 0 <= min <= max and divisor >= 1");
  EXPECT_FALSE(b.edit.declare_symbol("n", {.divisor = 4, .hint = 6}).ok());
}

// Ten thousand nodes, each of which a pass replaces: within a bound that a quadratic method would miss by far.
TEST(Edit, RewritingALargeGraphIsNotQuadratic) {
  Build b;
  ValueId x = b.input("x", {4}), v = x;
  for (int i = 0; i < 10000; ++i) v = b.add("relu", {v});
  GraphPtr g = b.finish({v});
  auto begin = std::chrono::steady_clock::now();
  Build e(g);
  for (const Node &node : g->nodes()) {
    if (node.kind != Node::Kind::op) continue;
    ValueId operand = e.edit.view().find(node.id)->inputs[0];
    ValueId fresh = e.add("reshape", {e.add("relu", {operand})}, {{"shape", AttrValue(Shape{4})}});
    Build::check(e.edit.replace({node.id, 0}, fresh));
  }
  GraphPtr h = Build::take(e.edit.finish());
  EXPECT_EQ(h->nodes().size(), 20001u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
}

}  // namespace
}  // namespace kiln
