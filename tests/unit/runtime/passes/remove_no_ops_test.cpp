#include "tests/unit/runtime/passes/cleaned.h"

namespace kiln {
namespace {

using test::cleaned;
using test::Cleaned;

// y = exp(b), where b is made of the input a by `nodes`; `number` is the scalar constant c.
Cleaned without_no_ops(std::string_view nodes, std::string_view dtype = "f32", std::string_view number = "0",
                       std::string_view reader = "abs") {
  return cleaned(remove_no_ops_pass,
                 str_cat(R"({"kiln":1,"inputs":[{"name":"a","type":{"dtype":")", dtype,
                         R"(","shape":["n",4]}}],"constants":[{"name":"c","type":{"dtype":")", dtype,
                         R"(","shape":[]},"data":[)", number, "]}],\"nodes\":[", nodes, R"(,{"name":"y","op":")",
                         reader, R"(","inputs":["b"]}],"outputs":[{"name":"y","value":"y"}]})"));
}
bool removes(std::string_view op, std::string_view dtype, std::string_view number, bool first = false) {
  const Cleaned made = without_no_ops(
      str_cat(R"({"name":"b","op":")", op, first ? R"(","inputs":["c","a"]})" : R"(","inputs":["a","c"]})"), dtype,
      number, dtype == "bool" ? "not" : "abs");
  return made.rewrites == 1 && made.read() == "a";
}

TEST(RemoveNoOps, RemovesArithmeticThatChangesNoBit) {
  EXPECT_TRUE(removes("add", "i32", "0"));
  EXPECT_TRUE(removes("add", "i32", "0", true));
  EXPECT_TRUE(removes("sub", "f32", "0"));
  EXPECT_TRUE(removes("mul", "bf16", "1"));
  EXPECT_TRUE(removes("mul", "f64", "1", true));
  EXPECT_TRUE(removes("div", "f32", "1"));
  EXPECT_TRUE(removes("bit_or", "i64", "0"));
  EXPECT_TRUE(removes("bit_and", "i16", "-1"));
  EXPECT_TRUE(removes("and", "bool", "true"));
  EXPECT_TRUE(removes("shift_left", "i32", "0"));
}

TEST(RemoveNoOps, KeepsWhatChangesTheSignOfZero) {
  EXPECT_FALSE(removes("add", "f32", "0")) << "-0 + 0 is 0";
  EXPECT_TRUE(removes("add", "f32", "-0.0"));
  EXPECT_FALSE(removes("sub", "f32", "-0.0")) << "-0 - -0 is 0";
}

TEST(RemoveNoOps, KeepsWhatIsNoOperationOnlyFromOneSide) {
  EXPECT_FALSE(removes("sub", "f32", "0", true));
  EXPECT_FALSE(removes("div", "f32", "1", true));
  EXPECT_FALSE(removes("shift_left", "i32", "0", true));
  EXPECT_FALSE(removes("mul", "f32", "2"));
}

TEST(RemoveNoOps, KeepsWhatBroadcastsOrConverts) {
  const Cleaned made = without_no_ops(R"({"name":"z","op":"full","attrs":{"value":1,"dtype":"f32","shape":[3,"n",4]}},
      {"name":"b","op":"mul","inputs":["a","z"]})");
  EXPECT_EQ(made.rewrites, 0u);
}

TEST(RemoveNoOps, RemovesViewsThatMoveNothing) {
  for (const char *view :
       {R"("permute","inputs":["a"],"attrs":{"dims":[0,-1]})", R"("reshape","inputs":["a"],"attrs":{"shape":["n",4]})",
        R"("expand","inputs":["a"],"attrs":{"shape":["n",4]})", R"("slice","inputs":["a"],"attrs":{"dim":1,"end":4})",
        R"("squeeze","inputs":["a"],"attrs":{"dims":[]})"}) {
    const Cleaned made = without_no_ops(str_cat(R"({"name":"b","op":)", view, "}"));
    EXPECT_EQ(made.rewrites, 1u) << view;
    EXPECT_EQ(made.read(), "a") << view;
  }
  EXPECT_EQ(
      without_no_ops(R"({"name":"b","op":"slice","inputs":["a"],"attrs":{"dim":1,"start":-1,"end":-5,"step":-1}})")
          .rewrites,
      0u);
}

TEST(RemoveNoOps, RemovesConversionsThatLoseNothing) {
  const auto there_and_back = [](std::string_view from, std::string_view to) {
    return without_no_ops(str_cat(R"({"name":"m","op":"convert","inputs":["a"],"attrs":{"dtype":")", to, R"("}},
      {"name":"b","op":"convert","inputs":["m"],"attrs":{"dtype":")",
                                  from, R"("}})"),
                          from)
        .rewrites;
  };
  EXPECT_EQ(there_and_back("f32", "f32"), 2u);
  EXPECT_EQ(there_and_back("f16", "f32"), 1u);
  EXPECT_EQ(there_and_back("f32", "f16"), 0u);
  EXPECT_EQ(there_and_back("i8", "i32"), 1u);
  EXPECT_EQ(there_and_back("i8", "u32"), 0u);
  EXPECT_EQ(there_and_back("u8", "i16"), 1u);
  EXPECT_EQ(there_and_back("i64", "f64"), 0u);
  EXPECT_EQ(there_and_back("f16", "bf16"), 0u);
}

TEST(RemoveNoOps, RemovesWhatUndoesOrRepeats) {
  const Cleaned twice =
      without_no_ops(R"({"name":"m","op":"neg","inputs":["a"]},{"name":"b","op":"neg","inputs":["m"]})");
  EXPECT_EQ(twice.read(), "a");
  const Cleaned floors =
      without_no_ops(R"({"name":"m","op":"floor","inputs":["a"]},{"name":"b","op":"floor","inputs":["m"]})");
  EXPECT_EQ(floors.read(), "m");
  EXPECT_EQ(without_no_ops(R"({"name":"m","op":"exp","inputs":["a"]},{"name":"b","op":"exp","inputs":["m"]})").rewrites,
            0u);
}

TEST(RemoveNoOps, GivesNoOutputAnotherStorage) {
  const auto outputs = [](std::string_view nodes, std::string_view names) {
    return cleaned(remove_no_ops_pass, test::f32_graph("x", "8", nodes, names)).rewrites;
  };
  EXPECT_EQ(outputs(R"({"name":"y","op":"convert","inputs":["x"],"attrs":{"dtype":"f32"}})", "y"), 0u) << "an input";
  EXPECT_EQ(outputs(R"({"name":"y","op":"reshape","inputs":["x"],"attrs":{"shape":[8]}})", "y"), 0u)
      << "an input itself";
  EXPECT_EQ(outputs(R"({"name":"a","op":"abs","inputs":["x"]},{"name":"b","op":"abs","inputs":["a"]})", "a b"), 0u)
      << "another output";
  EXPECT_EQ(outputs(R"({"name":"a","op":"abs","inputs":["x"]},{"name":"b","op":"abs","inputs":["a"]})", "b"), 1u);
  EXPECT_EQ(outputs(R"({"name":"a","op":"abs","inputs":["x"]},{"name":"b","op":"abs","inputs":["a"]},
      {"name":"c","op":"abs","inputs":["a"]})",
                    "b c"),
            1u)
      << "one of them may be a";
}

TEST(RemoveNoOps, ReadsNoInputThatIsWrittenLater) {
  const Cleaned made = cleaned(remove_no_ops_pass, test::f32_graph("xz", "8", R"(
      {"name":"m","op":"neg","inputs":["x"]},{"name":"b","op":"neg","inputs":["m"]},{"name":"y","op":"exp","inputs":["b"]},
      {"name":"w","op":"copy_","inputs":["x","z"]})",
                                                                   "y w"));
  EXPECT_EQ(made.rewrites, 0u);
}

TEST(RemoveNoOps, KeepsWhatMarksHold) {
  const auto marked = [](std::string_view first, std::string_view then) {
    return without_no_ops(
               str_cat(
                   R"({"name":"k","op":"exp","inputs":["a"]},{"name":"m","op":"abs","inputs":["k"],"annotations":{)",
                   first, R"(}},{"name":"b","op":"abs","inputs":["m"],"annotations":{)", then, "}}"),
               "f32", "0", "exp")
        .rewrites;
  };
  constexpr std::string_view r = R"("kiln.region":{"text":"r"})";
  EXPECT_EQ(marked("", ""), 1u);
  EXPECT_EQ(marked(r, r), 1u) << "the region stays";
  EXPECT_EQ(marked("", r), 0u);
  EXPECT_EQ(marked("", R"("kiln.fallback":{"bool":true})"), 0u);
  EXPECT_EQ(marked("", R"("kiln.cut":{"bool":true})"), 0u);
  EXPECT_EQ(marked(R"("kiln.fallback.function":{"text":"f"})", ""), 0u)
      << "a function runs the other, whatever its op is";
  const auto ones_by = [](std::string_view annotations) {
    return without_no_ops(str_cat(R"({"name":"f","op":"full","attrs":{"value":1,"dtype":"f32","shape":[4]}},
      {"name":"v","op":"reshape","inputs":["f"],"attrs":{"shape":[1,4]},"annotations":{)",
                                  annotations, R"(}},{"name":"b","op":"mul","inputs":["a","v"]})"))
        .rewrites;
  };
  EXPECT_EQ(ones_by(""), 1u);
  EXPECT_EQ(ones_by(R"("kiln.fallback.function":{"text":"f"})"), 0u) << "a function runs the view";
  EXPECT_EQ(marked("", R"("debug.line":{"i64":3})"), 1u);
}

}  // namespace
}  // namespace kiln
