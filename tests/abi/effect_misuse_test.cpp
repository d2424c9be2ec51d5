// What is refused of effects and tokens: schemas, graphs that would bind one, and passes that lose or reorder them.
#include "rows.h"
#include "test_effect.h"

namespace {

using host::TestEffect;

// ---- definitions

struct DefinedEffect : host::Row {
  const char *words;
  std::function<void(TestEffect &)> spoil;
};
void give_schema(TestEffect &effect, std::string_view schema) {
  effect.def.schema = schema.data(), effect.def.schema_size = schema.size();
}
const DefinedEffect effect_definitions[] = {
    {"NoArgument",
     "op 'a' has KILN_OP_EFFECT; expected as its last argument one token, \"dtypes\": [\"token\"], and it has",
     [](TestEffect &e) { give_schema(e, R"({"name": "a", "results": ["done"]})"); }},
    {"NoToken", "expected as its last argument one token, \"dtypes\": [\"token\"], not 'x'",
     [](TestEffect &e) {
       give_schema(e, R"({"name": "a", "args": [{"name": "x", "dtypes": ["f32"]}], "results": ["done"]})");
     }},
    {"TokenOrNumber", "not 'x'",
     [](TestEffect &e) {
       give_schema(e, R"({"name": "a", "args": [{"name": "x", "dtypes": ["f32", "token"]}], "results": ["done"]})");
     }},
    {"TokenFirst", "op 'a' takes a token as 'after'; expected one as the last argument",
     [](TestEffect &e) {
       give_schema(e,
                   R"({"name": "a", "args": [{"name": "after", "dtypes": ["token"]}, {"name": "x", "dtypes": ["f32"]}],
           "results": ["done"]})");
     }},
    {"ManyTokens", "not 'after'",
     [](TestEffect &e) {
       give_schema(e, R"({"name": "a", "args": [{"name": "after", "dtypes": ["token"], "arity": "variadic"}],
           "results": ["done"]})");
     }},
    {"TokenWithoutTheFlag", "op 'host.note' takes a token as 'after'; expected one as the last argument of an op with",
     [](TestEffect &e) { e.def.flags = 0; }},
    {"Decomposes", "op->decompose is not NULL; an op with KILN_OP_EFFECT has op->run alone",
     [](TestEffect &e) {
       e.def.decompose = [](void *, kiln_op_call *) { return static_cast<kiln_error *>(nullptr); };
     }},
    {"IsRandom", "op->flags: KILN_OP_RANDOM has no effect beside KILN_OP_EFFECT",
     [](TestEffect &e) { e.def.flags |= KILN_OP_RANDOM; }},
    {"DoesNotRun", "op->run and op->decompose are NULL", [](TestEffect &e) { e.def.run = nullptr; }},
};
class EffectDefinition : public testing::TestWithParam<DefinedEffect> {};
TEST_P(EffectDefinition, IsRefused) {
  TestEffect effect;
  GetParam().spoil(effect);
  const host::Context context = host::make_context();
  EXPECT_FAILS(kiln_op_register(context.get(), &effect.def, nullptr), KILN_INVALID_ARGUMENT, GetParam().words);
}
INSTANTIATE_TEST_SUITE_P(Abi, EffectDefinition, testing::ValuesIn(effect_definitions), host::name_of_row);

// ---- graphs

constexpr std::string_view values = R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [4]}}],
    "nodes": [{"name": "t", "op": "token"},
              {"name": "a", "op": "host.note", "inputs": ["x", "t"], "attrs": {"id": 1}},
              {"name": "b", "op": "host.note", "inputs": ["a:0", "a:1"], "attrs": {"id": 2}},
              {"name": "c", "op": "host.note", "inputs": ["x", "b:1"], "attrs": {"id": 3}}],
    "outputs": [{"name": "y", "value": "b:0"}]})";

TEST(EffectMisuse, InferTellsTokensOfTheirOwnResultsAlone) {
  for (const auto &[index, dtype, words] :
       {std::tuple(0u, KILN_TOKEN, "infer told token of result 0, 'y'; tokens are the last results"),
        std::tuple(1u, KILN_F32, "infer told f32 of result 1, 'done'; tokens are the last results")}) {
    static uint32_t told_index, told_dtype;
    told_index = index, told_dtype = dtype;
    TestEffect effect;
    effect.def.infer = [](void *, kiln_op_call *call) -> kiln_error * {
      kiln_type type{};
      type.struct_size = sizeof type;
      for (uint32_t k = 0; k <= told_index; ++k) {
        type.dtype = k == told_index ? told_dtype : KILN_F32;
        if (kiln_error *error = kiln_op_call_result(call, k, &type)) return error;
      }
      return nullptr;
    };
    const host::Context context = host::make_context();
    effect.register_in(context.get());
    kiln_graph *graph = nullptr;
    EXPECT_FAILS(kiln_graph_parse(context.get(), values.data(), values.size(), &graph), KILN_PLUGIN_FAILED, words);
  }
}

host::Error compiled(const std::string &json, std::string_view backend = "cpu") {
  TestEffect effect;
  const host::Context context = host::make_context();
  effect.register_in(context.get());
  kiln_graph *made = nullptr;
  if (kiln_error *error = kiln_graph_parse(context.get(), json.data(), json.size(), &made)) return host::take(error);
  const host::Graph graph(made);
  return host::compile(context.get(), made,
                       [&](kiln_options *options) {
                         EXPECT_OK(kiln_options_set_text(options, "backend", 7, backend.data(), backend.size()));
                       })
      .error;
}

TEST(EffectMisuse, NothingBindsAToken) {
  for (const char *backend : {"cpu", "reference"}) {
    EXPECT_EQ(
        compiled(R"({"kiln": 1, "inputs": [{"name": "t", "type": {"dtype": "token", "shape": []}}]})", backend).message,
        "input 't' is a token, which cannot be bound; op token begins one");
    EXPECT_EQ(compiled(R"({"kiln": 1, "nodes": [{"name": "t", "op": "token"}],
                  "outputs": [{"name": "y", "value": "t"}]})",
                       backend)
                  .message,
              "output 'y' is a token, which cannot be bound; an effect whose token nothing takes runs all the same");
  }
  const host::Context context = host::make_context();
  kiln_edit *made = nullptr;
  ASSERT_OK(kiln_edit_begin(context.get(), nullptr, &made));
  const host::Edit edit(made);
  kiln_type type{};
  type.struct_size = sizeof type;
  type.dtype = KILN_TOKEN;
  kiln_value value = 0;
  EXPECT_FAILS(kiln_edit_parameter(made, "t", 1, &type, &value), KILN_INVALID_ARGUMENT, "parameter 't' is a token");
  DLTensor tensor{};
  tensor.dtype = {kDLOpaqueHandle, 0, 1};
  EXPECT_FAILS(kiln_edit_constant(made, "t", 1, &tensor, &value), KILN_TYPE_MISMATCH, "no dtype of DLPack code 3");
  EXPECT_OK(kiln_edit_input(made, "t", 1, &type, &value));  // it may become a nested graph
}

TEST(EffectMisuse, GraphsThatRunUnknownTimesHaveNone) {
  const host::Error error = compiled(R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [4]}}],
      "graphs": {"sum": {"inputs": [{"name": "a", "type": {"dtype": "f32", "shape": []}},
                                    {"name": "b", "type": {"dtype": "f32", "shape": []}}],
                         "nodes": [{"name": "t", "op": "token"}, {"name": "e", "op": "host.note", "inputs": ["a", "t"]},
                                   {"name": "s", "op": "add", "inputs": ["e:0", "b"]}],
                         "outputs": [{"name": "s", "value": "s"}]}},
      "nodes": [{"name": "y", "op": "associative_scan", "inputs": ["x"], "attrs": {"combine_graph": "sum"}}],
      "outputs": [{"name": "y", "value": "y:0"}]})");
  EXPECT_EQ(error.code, KILN_TYPE_MISMATCH);
  EXPECT_NE(error.message.find("[associative_scan] a node of its combine_graph has an effect"), std::string::npos)
      << error;
}

// ---- passes: on the chain a, b, c

struct Rewrite : host::Row {
  const char *words;  // of the error; nullptr: none
  std::vector<int64_t> noted;
  std::function<kiln_error *(kiln_pass_call *call, kiln_edit *edit)> does;
};
kiln_node find(kiln_edit *edit, std::string_view name) {
  kiln_node node = 0;
  EXPECT_OK(kiln_graph_find(kiln_edit_view(edit), name.data(), name.size(), &node));
  return node;
}
kiln_value value(kiln_edit *edit, std::string_view name, uint32_t result = 0) {
  return find(edit, name) << 32 | result;
}
kiln_error *give_other(kiln_pass_call *call, std::string_view without) {
  std::string json(values);
  if (!without.empty()) json.replace(json.find(without), without.size(), "");
  kiln_graph *graph = nullptr;
  if (kiln_error *error = kiln_graph_parse(kiln_pass_context(call), json.data(), json.size(), &graph)) return error;
  return kiln_pass_replace_graph(call, graph);
}

const Rewrite rewrites[] = {
    {"NothingIsRemovedThatNothingUses",
     nullptr,
     {1, 2, 3},
     [](kiln_pass_call *, kiln_edit *edit) { return kiln_edit_replace(edit, value(edit, "b"), value(edit, "x")); }},
    {"OneIsTakenOut",
     nullptr,
     {1, 3},
     [](kiln_pass_call *, kiln_edit *edit) {
       EXPECT_OK(kiln_edit_replace(edit, value(edit, "b"), value(edit, "x")));
       return kiln_edit_replace(edit, value(edit, "b", 1), value(edit, "a", 1));
     }},
    {"AnotherTakesItsPlace",
     nullptr,
     {1, 9, 3},
     [](kiln_pass_call *call, kiln_edit *edit) -> kiln_error * {
       kiln_op note = 0;
       EXPECT_OK(kiln_op_find(kiln_pass_context(call), "host.note", 9, &note));
       const kiln_value inputs[] = {value(edit, "a"), value(edit, "a", 1)};
       const int64_t id = 9;
       const kiln_attr attr = host::attr("id", KILN_ATTR_I64, 1, &id);
       kiln_node made = 0;
       if (kiln_error *error = kiln_edit_add(edit, note, nullptr, 0, inputs, 2, &attr, 1, &made)) return error;
       EXPECT_OK(kiln_edit_replace(edit, value(edit, "b"), made << 32));
       return kiln_edit_replace(edit, value(edit, "b", 1), made << 32 | 1);
     }},
    {"TheOrderIsLost",
     "node 'c' [host.note]: by their tokens it came after 'a', and does not any more",
     {},
     [](kiln_pass_call *, kiln_edit *edit) {
       EXPECT_OK(kiln_edit_replace(edit, value(edit, "b"), value(edit, "x")));
       return kiln_edit_replace(edit, value(edit, "b", 1), value(edit, "t"));
     }},
    {"ItsResultIsUsedButItsTokenIsNot",
     "node 'c' [host.note]: by their tokens it came after 'b', and does not",
     {},
     [](kiln_pass_call *, kiln_edit *edit) {
       return kiln_edit_replace(edit, value(edit, "b", 1), value(edit, "a", 1));
     }},
    {"AnotherGraphHasThemAll",
     nullptr,
     {1, 2, 3},
     [](kiln_pass_call *call, kiln_edit *) { return give_other(call, ""); }},
    {"AnotherGraphLacksOne",
     "node 'c' [host.note]: it has an effect, and is gone",
     {},
     [](kiln_pass_call *call, kiln_edit *) {
       return give_other(call, R"(,
              {"name": "c", "op": "host.note", "inputs": ["x", "b:1"], "attrs": {"id": 3}})");
     }},
};
class EffectPass : public testing::TestWithParam<Rewrite> {};
TEST_P(EffectPass, LosesNoEffectAndNoOrder) {
  TestEffect effect;
  const host::Context context = host::make_context();
  effect.register_in(context.get());
  host::TestPass pass([](kiln_pass_call *call) -> kiln_error * {
    if (kiln_error *error = GetParam().does(call, kiln_pass_edit(call))) return error;
    return kiln_pass_done(call, 1);
  });
  ASSERT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, nullptr));
  const host::Graph graph = host::parse(context.get(), values);
  const host::Compiled compiled = host::compile(context.get(), graph.get());
  if (GetParam().words) {
    EXPECT_EQ(compiled.error.code, KILN_INVARIANT);
    EXPECT_NE(compiled.error.message.find(GetParam().words), std::string::npos) << compiled.error;
    return;
  }
  ASSERT_EQ(compiled.error, host::Error());
  kiln_call *made = nullptr;
  ASSERT_OK(kiln_call_create(compiled.executable.get(), &made));
  const host::Call call(made);
  const host::Array x({4}, {1, 2, 3, 4}), y({4}, {0, 0, 0, 0});
  const DLTensor *args[] = {&x.tensor, &y.tensor};
  ASSERT_OK(kiln_call_run(made, args, 2, nullptr));
  EXPECT_EQ(effect.take(), GetParam().noted);
  EXPECT_EQ(y.values, x.values);
}
INSTANTIATE_TEST_SUITE_P(Abi, EffectPass, testing::ValuesIn(rewrites), host::name_of_row);

// The order that a graph yields to what follows it, in the graph of a call.
TEST(EffectMisuse, APassMayNotCutTheOrderThatANestedGraphYields) {
  TestEffect effect;
  const host::Context context = host::make_context();
  effect.register_in(context.get());
  host::TestPass pass([](kiln_pass_call *call) -> kiln_error * {
    kiln_edit *edit = kiln_pass_edit(call);
    kiln_node b = 0;
    if (kiln_error *error = kiln_graph_find(kiln_edit_view(edit), "b", 1, &b)) {
      kiln_error_destroy(error);
      return kiln_pass_done(call, 0);
    }
    if (kiln_error *error = kiln_edit_replace(edit, b << 32 | 1, value(edit, "after"))) return error;
    return kiln_pass_done(call, 1);
  });
  ASSERT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, nullptr));
  const host::Graph graph = host::parse(context.get(), R"({"kiln": 1,
      "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [4]}}],
      "graphs": {"body": {"inputs": [{"name": "v", "type": {"dtype": "f32", "shape": [4]}},
                                     {"name": "after", "type": {"dtype": "token", "shape": []}}],
                          "nodes": [{"name": "a", "op": "host.note", "inputs": ["v", "after"], "attrs": {"id": 1}},
                                    {"name": "b", "op": "host.note", "inputs": ["v", "a:1"], "attrs": {"id": 2}}],
                          "outputs": [{"name": "v", "value": "v"}, {"name": "t", "value": "b:1"}]}},
      "nodes": [{"name": "t", "op": "token"}, {"name": "w", "op": "call", "inputs": ["x", "t"], "attrs": {"graph": "body"}},
                {"name": "end", "op": "host.note", "inputs": ["w:0", "w:1"], "attrs": {"id": 3}}],
      "outputs": [{"name": "y", "value": "end:0"}]})");
  const host::Compiled compiled = host::compile(context.get(), graph.get());
  EXPECT_EQ(compiled.error.code, KILN_INVARIANT) << compiled.error;
  EXPECT_NE(compiled.error.message.find(
                "node 'a' [host.note]: by the tokens that the graph yields what follows it came after this"),
            std::string::npos)
      << compiled.error;
}

}  // namespace
