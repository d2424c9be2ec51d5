// What is refused of functions of the host: where they are registered, and where they do not fit a node. A row each.
#include <algorithm>
#include <functional>

#include "rows.h"
#include "test_function.h"

namespace {

using host::by;
using host::chain;
using host::compile;
using host::TestFunction;

constexpr uint8_t no_function_uuid[16] = {};

struct DefinedFunction : host::Row {
  const char *words;
  std::function<void(kiln_function &)> spoil;
  uint32_t code = KILN_INVALID_ARGUMENT;
};

void give(const char *&data, uint64_t &size, std::string_view text) { data = text.data(), size = text.size(); }

const DefinedFunction function_definitions[] = {
    {"NoSize", "function->struct_size is 0; set it to the struct's size", [](kiln_function &f) { f.struct_size = 0; }},
    {"UnknownFlag", "function->flags has unknown bits", [](kiln_function &f) { f.flags = 1u << 20; }},
    {"SufficesWithoutUuid", "has no effect without function->uuid",
     [](kiln_function &f) { f.flags = KILN_FUNCTION_UUID_SUFFICES; }},
    {"UuidWithoutFile", "there is no file to hash", [](kiln_function &f) { f.uuid = host::some_uuid; }},
    {"UuidOfZeros", "function->uuid is all zero",
     [](kiln_function &f) { f.uuid = no_function_uuid, f.flags = KILN_FUNCTION_UUID_SUFFICES; }},
    {"NoName", "is no name: 1 to 100 letters", [](kiln_function &f) { f.name_size = 0; }},
    {"NameOfTwoWords", "'a b' is no name", [](kiln_function &f) { give(f.name, f.name_size, "a b"); }},
    {"NameNotUtf8", "function->name is not UTF-8", [](kiln_function &f) { give(f.name, f.name_size, "\xff"); }},
    {"NameOfWhatReportsTell", "'reference' is taken: reports call so",
     [](kiln_function &f) { give(f.name, f.name_size, "reference"); }},
    {"VersionOfTwoLines", "function->version", [](kiln_function &f) { give(f.version, f.version_size, "1\n2"); }},
    {"SignatureOfTwoLines", "function->signature",
     [](kiln_function &f) { give(f.signature, f.signature_size, "void\n()"); }},
    {"PointerAndLibrary", "function->pointer is given, and function->library",
     [](kiln_function &f) { give(f.library, f.library_size, "/lib/x.so"); }},
    {"NeitherPointerNorLibrary", "function->library is not given", [](kiln_function &f) { f.pointer = nullptr; }},
    {"LibraryWithoutSymbol", "function->symbol is empty",
     [](kiln_function &f) { f.pointer = nullptr, give(f.library, f.library_size, "/lib/x.so"); }},
    {"LibraryOfNoPath", "'x.so' is no absolute path",
     [](kiln_function &f) {
       f.pointer = nullptr, give(f.library, f.library_size, "x.so"), give(f.symbol, f.symbol_size, "f");
     }},
    {"LibraryThatIsNotListed", "'/lib/x.so' is not among the files that the context's option 'load_symbols' lists",
     [](kiln_function &f) {
       f.pointer = nullptr, give(f.library, f.library_size, "/lib/x.so"), give(f.symbol, f.symbol_size, "f");
     }},
};

class FunctionDefinition : public testing::TestWithParam<DefinedFunction> {};

TEST_P(FunctionDefinition, IsRefusedAndUserStaysTheCallers) {
  TestFunction function("f", host::triple_signature, host::triple);
  GetParam().spoil(function.function);
  {
    const host::Context context = host::make_context();
    EXPECT_FAILS(kiln_function_register(context.get(), &function.function, nullptr), GetParam().code, GetParam().words);
  }
  EXPECT_EQ(function.destroyed, 0);
}
INSTANTIATE_TEST_SUITE_P(Abi, FunctionDefinition, testing::ValuesIn(function_definitions), host::name_of_row);

struct Text : host::Row {
  const char *signature, *words;
};

// Signatures that are none. Places are counted from 0.
const Text texts[] = {
    {"Empty", "", "at 0: expected what it returns, void, i32 or error, and it ends there"},
    {"ReturnsAFloat", "f32 ()", "at 0: expected what it returns, void, i32 or error, not 'f32 ()'"},
    {"NoArguments", "void", "at 4: expected '(', and it ends there"},
    {"EndsEarly", "void (i32 1", "at 11: expected ',' or ')', and it ends there"},
    {"GoesOn", "void () x", "at 8: expected the end, not 'x'"},
    {"EmptyArgument", "void (i32 1, )", "at 13: expected a type, data, inout, tensor, scratch or user, not ')'"},
    {"UnknownType", "void (int 1)", "at 6: expected a type, data, inout, tensor, scratch or user, not 'int 1)'"},
    {"TypeAlone", "void (i32)", "at 9: expected a number, a name, size or stride, not ')'"},
    {"ScalarOfASmallFloat", "void (f16 1)", "at 10: there is no C type for a f16 that is no element"},
    {"FloatThatIsComputed", "void (f32 n + 1)", "at 10: expected a number or a name, not 'n + 1)'"},
    {"DataOfNothing", "void (f32 data)", "at 14: expected an operand or a result, by name or number, not ')'"},
    {"DataOfAKeyword", "void (data user)", "at 11: expected an operand or a result, by name or number, not 'user)'"},
    {"OpenBracket", "void (data a[m)", "at 14: expected ',' or ']', not ')'"},
    {"SizeThatIsComputed", "void (data a[m + 1])", "at 15: expected ',' or ']', not '+ 1])'"},
    {"SizeBelowZero", "void (data a[-1])", "at 13: expected an integer, not '-1])'"},
    {"InoutOfOne", "void (inout y)", "at 13: expected '=' and the operand that it begins as, not ')'"},
    {"ScratchOfNothing", "void (scratch)", "at 13: expected a number, a name, size or stride, not ')'"},
    {"SizeWithoutDim", "void (i64 size a)", "at 16: expected an integer, not ')'"},
    {"OpenParenthesis", "void (i64 (1 + 2, user)", "at 16: expected an operator or ')', not ', user)'"},
    {"IntegerTooLarge", "void (i64 99999999999999999999)", "at 10: expected an integer"},
    {"DivisionBy0", "void (i64 1/0)", "at 12: it divides by 0"},
    {"RemainderBy0", "void (i64 n % (3 - 3), user)", "at 14: it divides by 0"},
    {"ScratchBelow0", "void (scratch -1)", "at 14: scratch of -1 bytes"},
    {"IntegerBeyondItsType", "void (i8 2 * 64)", "at 9: 128 is no i8"},
    {"IntegerBelowItsType", "void (u64 -1)", "at 10: -1 is no u64"},
    {"PointerToWhatIsNoByte", "void (u8 *256)", "at 10: 256 is no u8"},
    {"TruthOf2", "void (bool 2)", "at 11: 2 is no bool"},
    {"FloatBeyondItsType", "void (f32 1e39)", "at 10: 1e39 is no f32"},
    {"CharacterOfTwo", "void (i8 'ab')", "at 9: expected one character between quotes"},
    {"PointerToData", "void (f32 *data a)", "at 11: expected a number or a name, not 'data a)'"},
    {"NestedTooDeep", "void (i64 ((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))) )",
     "it is nested more than 32 deep"},
    {"OfDashes", "void (i64 ---------------------------------------------------------1)",
     "it is nested more than 32 deep"},
};

class FunctionSignature : public testing::TestWithParam<Text> {};

TEST_P(FunctionSignature, IsRefusedWithThePlace) {
  TestFunction function("f", GetParam().signature, host::triple);
  const host::Context context = host::make_context();
  EXPECT_FAILS(kiln_function_register(context.get(), &function.function, nullptr), KILN_INVALID_ARGUMENT,
               GetParam().words);
}
INSTANTIATE_TEST_SUITE_P(Abi, FunctionSignature, testing::ValuesIn(texts), host::name_of_row);

TEST(FunctionMisuse, LongSignaturesAreRefused) {
  const std::string long_text = "void (i64 1" + std::string(5000, ' ') + ")";
  std::string many = "void (user", product = "void (i64 (a0";
  for (int i = 0; i < 64; ++i) many += ", user";
  for (int i = 1; i < 80; ++i) product += " + a" + std::to_string(i);
  product += ") * (b0";
  for (int i = 1; i < 80; ++i) product += " + b" + std::to_string(i);
  const host::Context context = host::make_context();
  for (const auto &[signature, words] :
       {std::pair(long_text, "at most 4096 are read"), std::pair(many + ")", "there are more than 64 arguments"),
        std::pair(product + "))", "the expression is too long")}) {
    TestFunction function("f", signature, host::triple);
    EXPECT_FAILS(kiln_function_register(context.get(), &function.function, nullptr), KILN_INVALID_ARGUMENT, words);
  }
}

// Signatures that do not fit node b, which is neg, or the sum of f32[2, 3] over dim 0.
struct Fit : host::Row {
  const char *signature, *words;
  uint32_t code = KILN_TYPE_MISMATCH;
  const char *node = R"("op": "neg", "inputs": ["x"])";
};
const char *const sum = R"("op": "sum", "inputs": ["x"], "attrs": {"dims": [0]})";
const char *const add = R"("op": "add", "inputs": ["x", "x"])";

const Fit fits[] = {
    {"NoSuchOperand", "void (data 0, data 1, data 2)",
     "at 27: the node has no operand or result 2; it has 0 'x', 1 'y'", KILN_UNKNOWN_NAME},
    {"NoSuchName", "void (data x, data z)", "at 19: the node has no operand or result 'z'; it has 0 'x', 1 'y'",
     KILN_UNKNOWN_NAME},
    {"NoResult", "void (data x)", "no argument gives it result 0, 'y'; data, inout or tensor does"},
    {"OtherElements", "void (f32 data x, f64 data y)", "at 18: 'y' is f32, and the signature says f64"},
    {"OtherRank", "void (data x[n], data y)", "at 11: 'x' is f32[2, 3], of 2 dims; the signature gives it 1"},
    {"OtherSize", "void (data x[2, 4], data y)", "at 16: dim 1 of 'x' is 3; expected 4"},
    {"SizesThatDiffer", "void (data x[n, n], data y)",
     "at 16: dim 1 of 'x' is 3; expected 'n', as dim 0 of 'x', which is 2"},
    {"SizesOfTwoThatDiffer", "void (data a[m, n], data y[n, m])",
     "at 27: dim 0 of 'y' is 2; expected 'n', as dim 1 of 'a', which is 3", KILN_TYPE_MISMATCH, add},
    {"NoSuchDim", "void (data x, data y, i64 size x 2)", "at 26: 'x' is f32[2, 3], which has no dim 2"},
    {"NoSuchStride", "void (data x, data y, i64 stride y 7)", "at 26: 'y' is f32[2, 3], which has no dim 7"},
    {"NoSuchSymbol", "void (data x, data y, i64 n)",
     "at 26: 'n' is no size of the signature, no attribute of the op and no symbol of its operands", KILN_UNKNOWN_NAME},
    {"SizeAsAFloat", "void (data x[n, _], data y, f32 n)", "at 28: 'n' is a size, and the signature says f32"},
    {"InoutOfAnOperand", "void (inout x=x, data y)", "at 12: 'x' is an operand, and no result"},
    {"InoutFromAResult", "void (data x, inout y=y)", "at 22: 'y' is a result, and no operand"},
    {"InoutOfOtherTypes", "void (inout y=x)", "at 6: 'y' is f32[3], 'x', which it begins as, is f32[2, 3]",
     KILN_TYPE_MISMATCH, sum},
    {"ListByValue", "void (data x, data y, i64 dims)",
     "at 22: 'dims' is a list of i64, which is passed as a pointer: 'i64 *dims'", KILN_TYPE_MISMATCH, sum},
    {"ListInASum", "void (data x, data y, i64 dims + 1)",
     "at 26: 'dims' is a list of i64, with which nothing is computed", KILN_TYPE_MISMATCH, sum},
    {"BoolAsAFloat", "void (data x, data y, f64 keepdim)", "at 22: 'keepdim' is bool, and the signature says f64",
     KILN_TYPE_MISMATCH, sum},
};

class FunctionFit : public testing::TestWithParam<Fit> {};

TEST_P(FunctionFit, IsAnErrorOfTheCompileThatNamesNodeFunctionAndPlace) {
  TestFunction function("f", GetParam().signature, host::triple);
  const host::Context context = host::make_context();
  function.register_in(context.get());
  const std::string json = R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [2, 3]}}],
      "nodes": [{"name": "b", )" +
                           std::string(GetParam().node) + R"(, "annotations": {)" + by("f") +
                           R"(}}], "outputs": [{"name": "y", "value": "b"}]})";
  const host::Compiled compiled = compile(context.get(), json);
  EXPECT_EQ(compiled.error.code, GetParam().code) << compiled.error;
  EXPECT_NE(compiled.error.message.find("node 'b' ["), std::string::npos) << compiled.error;
  EXPECT_NE(compiled.error.message.find(std::string("function 'f' does not fit: signature '") + GetParam().signature +
                                        "', " + GetParam().words),
            std::string::npos)
      << compiled.error;
  EXPECT_EQ(compile(context.get(), chain("")).error, host::Error());
}
INSTANTIATE_TEST_SUITE_P(Abi, FunctionFit, testing::ValuesIn(fits), host::name_of_row);

TEST(FunctionMisuse, ANodeThatNamesNoneOfTheContextIsAnError) {
  TestFunction function("f", host::triple_signature, host::triple);
  const host::Context context = host::make_context();
  const host::Compiled none = compile(context.get(), chain(by("g")));
  EXPECT_EQ(none.error.code, KILN_UNKNOWN_NAME);
  EXPECT_EQ(none.error.message, "node 'b' [neg]: no function is named 'g'; none is registered");
  function.register_in(context.get());
  EXPECT_EQ(compile(context.get(), chain(by("g"))).error.message,
            "node 'b' [neg]: no function is named 'g'; there are f");
  EXPECT_EQ(compile(context.get(), chain(by(""))).error, host::Error()) << "an empty name unmarks";
}

TEST(FunctionMisuse, NodesThatAreNotOneStepTakeNone) {
  TestFunction function("f", host::triple_signature, host::triple);
  const host::Context context = host::make_context();
  function.register_in(context.get());
  const host::Compiled call = compile(context.get(), R"({"kiln": 1,
      "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [2]}}],
      "graphs": {"g": {"inputs": [{"name": "v", "type": {"dtype": "f32", "shape": [2]}}],
      "nodes": [{"name": "n", "op": "neg", "inputs": ["v"]}], "outputs": [{"name": "o", "value": "n"}]}},
      "nodes": [{"name": "c", "op": "call", "inputs": ["x"], "attrs": {"graph": "g"}, "annotations": {)" +
                                                         by("f") + R"(}}], "outputs": [{"name": "y", "value": "c"}]})");
  EXPECT_EQ(call.error.code, KILN_INVALID_ARGUMENT);
  EXPECT_EQ(call.error.message, "node 'c' [call] is marked to be run by function 'f', and it is not one step");
  kiln_op op = 0;
  ASSERT_OK(kiln_op_find(context.get(), "while", 5, &op));
  EXPECT_FAILS(kiln_fallback_register(context.get(), op, "f", 1, nullptr), KILN_INVALID_ARGUMENT,
               "nodes of op 'while' are not single steps");
  ASSERT_OK(kiln_op_find(context.get(), "token", 5, &op));
  EXPECT_FAILS(kiln_fallback_register(context.get(), op, "f", 1, nullptr), KILN_INVALID_ARGUMENT,
               "nodes of op 'token' order others, and are run by nothing");
}

TEST(FunctionMisuse, ACallIsNotClonedInsideItsOwnRun) {
  TestFunction function("f", host::triple_signature, host::triple);
  const host::Context context = host::make_context();
  function.register_in(context.get());
  const host::Compiled compiled = compile(context.get(), chain(by("f")));
  ASSERT_EQ(compiled.error, host::Error());
  const host::Call call = host::make_call(compiled.executable);
  function.on_call = [&] {
    kiln_call *clone = nullptr;
    EXPECT_FAILS(kiln_call_clone(call.get(), &clone), KILN_BUSY,
                 "the call is in use, on another thread or by the run that asks");
    EXPECT_EQ(clone, nullptr);
    return static_cast<kiln_error *>(nullptr);
  };
  const host::Array x({2}, {1, 2}), y({2}, {0, 0});
  EXPECT_OK(host::run(call.get(), {&x, &y}));
  EXPECT_EQ(function.called, 1);
}

TEST(FunctionMisuse, OfNamesOpsAndIds) {
  TestFunction one("f", host::triple_signature, host::triple), two("f", host::triple_signature, host::triple);
  const host::Context context = host::make_context();
  const uint64_t id = one.register_in(context.get());
  EXPECT_FAILS(kiln_function_register(context.get(), &two.function, nullptr), KILN_INVALID_ARGUMENT,
               "function 'f': the name is taken by another function already");
  EXPECT_EQ(two.destroyed, 0);
  kiln_op neg = 0;
  ASSERT_OK(kiln_op_find(context.get(), "neg", 3, &neg));
  EXPECT_FAILS(kiln_fallback_register(context.get(), neg, "g", 1, nullptr), KILN_UNKNOWN_NAME,
               "no function is named 'g'; there are f");
  EXPECT_FAILS(kiln_fallback_register(context.get(), 999999, "f", 1, nullptr), KILN_OUT_OF_RANGE, "no op has number");
  uint64_t fallback = 0;
  ASSERT_OK(kiln_fallback_register(context.get(), neg, "f", 1, &fallback));
  EXPECT_FAILS(kiln_fallback_register(context.get(), neg, "f", 1, nullptr), KILN_INVALID_ARGUMENT,
               "op 'neg' falls back to function 'f' already");
  EXPECT_FAILS(kiln_function_unregister(context.get(), id), KILN_INVALID_ARGUMENT,
               "op 'neg' falls back to function 'f'; unregister that first");
  EXPECT_FAILS(kiln_function_unregister(context.get(), fallback), KILN_OUT_OF_RANGE, "no function has id");
  EXPECT_FAILS(kiln_fallback_unregister(context.get(), id), KILN_OUT_OF_RANGE, "no fallback has id");
  ASSERT_OK(kiln_fallback_unregister(context.get(), fallback));
  ASSERT_OK(kiln_function_unregister(context.get(), id));
  EXPECT_FAILS(kiln_function_register(nullptr, &one.function, nullptr), KILN_INVALID_ARGUMENT, "context is NULL");
  EXPECT_FAILS(kiln_function_register(context.get(), nullptr, nullptr), KILN_INVALID_ARGUMENT, "function is NULL");
}

TEST(FunctionMisuse, AnnotationsOfAnotherKindAreRefused) {
  const host::Context context = host::make_context();
  const std::string json = chain(R"("kiln.fallback.function": {"bool": true})");
  kiln_graph *graph = nullptr;
  EXPECT_FAILS(kiln_graph_parse(context.get(), json.data(), json.size(), &graph), KILN_TYPE_MISMATCH,
               "annotation 'kiln.fallback.function' is bool; expected text");
}

}  // namespace
