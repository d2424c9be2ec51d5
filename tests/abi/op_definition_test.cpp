// What is refused of ops of the host's where they are registered. A row each.
#include <functional>

#include "rows.h"
#include "test_op.h"

namespace {

using host::TestOp;

TEST(Op, ANameIsOneOps) {
  TestOp abs(TestOp::runs, "abs"), one(TestOp::runs), two(TestOp::runs);
  {
    const host::Context context = host::make_context();
    EXPECT_FAILS(kiln_op_register(context.get(), &abs.def, nullptr), KILN_INVALID_ARGUMENT,
                 "the name is that of a built-in op");
    one.register_in(context.get());
    EXPECT_FAILS(kiln_op_register(context.get(), &two.def, nullptr), KILN_INVALID_ARGUMENT,
                 "op 'host.scale': the name is taken by another op already");
  }
  EXPECT_EQ(one.destroyed, 1);
  EXPECT_EQ(two.destroyed + abs.destroyed, 0) << "its user stays the caller's";
}

TEST(Op, AClosedContextTakesNone) {
  TestOp scale(TestOp::runs);
  const host::Context context = host::make_context();
  ASSERT_OK(kiln_context_close(context.get()));
  EXPECT_FAILS(kiln_op_register(context.get(), &scale.def, nullptr), KILN_INVALID_ARGUMENT, "the context is closed");
}

struct DefinedOp : host::Row {
  const char *words;
  std::function<void(kiln_op_def &)> spoil;
  uint32_t code = KILN_INVALID_ARGUMENT;
};

void take_schema(kiln_op_def &def, std::string_view schema) {
  def.schema = schema.data(), def.schema_size = schema.size();
}
constexpr uint8_t no_uuid[16] = {};

const DefinedOp op_definitions[] = {
    {"NoSize", "op->struct_size is 0; set it to the struct's size", [](kiln_op_def &d) { d.struct_size = 0; }},
    {"UnknownFlag", "op->flags has unknown bits", [](kiln_op_def &d) { d.flags = 1u << 20; }},
    {"SufficesWithoutUuid", "has no effect without op->uuid", [](kiln_op_def &d) { d.flags = KILN_OP_UUID_SUFFICES; }},
    {"UuidWithoutFile", "there is no file to hash", [](kiln_op_def &d) { d.uuid = host::some_uuid; }},
    {"UuidOfZeros", "op->uuid is all zero", [](kiln_op_def &d) { d.uuid = no_uuid, d.flags = KILN_OP_UUID_SUFFICES; }},
    {"NoInfer", "op->infer is NULL", [](kiln_op_def &d) { d.infer = nullptr; }},
    {"NeitherRunsNorDecomposes", "one of them is needed", [](kiln_op_def &d) { d.run = nullptr; }},
    {"CloseWithoutOpen", "op->close has no effect without op->open",
     [](kiln_op_def &d) { d.close = [](void *, void *) {}; }},
    {"NoSchema", "op->schema", [](kiln_op_def &d) { take_schema(d, ""); }},
    {"SchemaNotUtf8", "op->schema is not UTF-8", [](kiln_op_def &d) { take_schema(d, "\xff"); }},
    {"SchemaNoJson", "op->schema: ", [](kiln_op_def &d) { take_schema(d, "{name}"); }},
    {"SampleOfNoSize", "its inputs have symbol 'n', of which 'sizes' does not tell the size",
     [](kiln_op_def &d) {
       take_schema(d, R"({"name": "host.scale", "args": [{"name": "x", "dtypes": ["f32"]}], "results": ["y"], "samples":
                        [{"name": "s", "inputs": [{"dtype": "f32", "shape": ["m", "2*n"]}], "sizes": {"m": 3}}]})");
     }},
    {"SampleOfAnotherType", "samples[0]: [host.scale] x is f64[2]",
     [](kiln_op_def &d) {
       take_schema(d, R"({"name": "host.scale", "args": [{"name": "x", "dtypes": ["f32"]}], "results": ["y"],
                        "samples": [{"name": "s", "inputs": [{"dtype": "f64", "shape": [2]}]}]})");
     },
     KILN_TYPE_MISMATCH},
    {"SampleOfTooMany", "samples[0]: [host.scale] takes 1 operands, 2 are given",
     [](kiln_op_def &d) {
       take_schema(d, R"({"name": "host.scale", "args": [{"name": "x", "dtypes": ["f32"]}], "results": ["y"],
                        "samples": [{"name": "s", "inputs": [{"dtype": "f32", "shape": [2]},
                                                             {"dtype": "f32", "shape": [2]}]}]})");
     },
     KILN_TYPE_MISMATCH},
    {"SampleWithoutItsAttribute", "samples[0]: [host.scale] attribute 'k' is missing",
     [](kiln_op_def &d) {
       take_schema(d, R"({"name": "host.scale", "args": [{"name": "x", "dtypes": ["f32"]}], "results": ["y"],
                        "attrs": [{"name": "k", "kind": "i64"}],
                        "samples": [{"name": "s", "inputs": [{"dtype": "f32", "shape": [2]}]}]})");
     }},
    {"ArgTwice", "args[1]: 'x' is there already",
     [](kiln_op_def &d) {
       take_schema(d, R"({"name": "a", "results": ["y"], "args": [{"name": "x", "dtypes": ["f32"]},
                        {"name": "x", "dtypes": ["f32"]}]})");
     }},
    {"ResultTwice", "results[1]: 'y' is there already",
     [](kiln_op_def &d) { take_schema(d, R"({"name": "a", "results": ["y", "y"]})"); }},
    {"SchemaAList", "op->schema: ", [](kiln_op_def &d) { take_schema(d, "[1]"); }},
    {"NoName", "'name'", [](kiln_op_def &d) { take_schema(d, R"({"results": ["y"]})"); }},
    {"NameOfTwoWords", "'a b' is no name",
     [](kiln_op_def &d) { take_schema(d, R"({"name": "a b", "results": ["y"]})"); }},
    {"NoResults", "the op has no results", [](kiln_op_def &d) { take_schema(d, R"({"name": "a"})"); }},
    {"UnknownMember", "'colour'",
     [](kiln_op_def &d) { take_schema(d, R"({"name": "a", "results": ["y"], "colour": 1})"); }},
    {"VersionZero", "version: expected 1 to 65535",
     [](kiln_op_def &d) { take_schema(d, R"({"name": "a", "results": ["y"], "version": 0})"); }},
    {"ArgWithoutTypes", "args[0]",
     [](kiln_op_def &d) { take_schema(d, R"({"name": "a", "results": ["y"], "args": [{"name": "x"}]})"); }},
    {"ArgOfNoType", "args[0].dtypes[0]",
     [](kiln_op_def &d) {
       take_schema(d, R"({"name": "a", "results": ["y"], "args": [{"name": "x", "dtypes": ["f31"]}]})");
     },
     KILN_UNKNOWN_NAME},
    {"ArgBehindAVariadicOne", "comes after one that is variadic",
     [](kiln_op_def &d) {
       take_schema(d, R"({"name": "a", "results": ["y"], "args": [
           {"name": "x", "dtypes": ["f32"], "arity": "variadic"}, {"name": "z", "dtypes": ["f32"]}]})");
     }},
    {"AttrOfNoKind", "attrs[0].kind: expected i64, f64",
     [](kiln_op_def &d) {
       take_schema(d, R"({"name": "a", "results": ["y"], "attrs": [{"name": "k", "kind": "graph"}]})");
     }},
    {"AttrTwice", "'k' is there already",
     [](kiln_op_def &d) {
       take_schema(d, R"({"name": "a", "results": ["y"], "attrs": [{"name": "k", "kind": "i64"},
           {"name": "k", "kind": "i64"}]})");
     }},
    {"DefaultOfAnotherKind", "attrs[0].default",
     [](kiln_op_def &d) {
       take_schema(d, R"({"name": "a", "results": ["y"], "attrs": [{"name": "k", "kind": "bool", "default": 3}]})");
     }},
};

class OpDefinition : public testing::TestWithParam<DefinedOp> {};

TEST_P(OpDefinition, IsRefusedAndUserStaysTheCallers) {
  TestOp scale(TestOp::runs);
  GetParam().spoil(scale.def);
  {
    const host::Context context = host::make_context();
    EXPECT_FAILS(kiln_op_register(context.get(), &scale.def, nullptr), GetParam().code, GetParam().words);
  }
  EXPECT_EQ(scale.destroyed, 0);
}
INSTANTIATE_TEST_SUITE_P(Abi, OpDefinition, testing::ValuesIn(op_definitions), host::name_of_row);

}  // namespace
