// Misuse of passes, edits and plugins by their ABI, a row each: what is done, the code, and a part of what is said.
// After each the compile, or the context, goes on.
#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

#include "host.h"
#include "rows.h"
#include "test_pass.h"

namespace {

using host::TestPass;

// What a running pass has: x is an input, w a parameter, once = -x, twice = -once, sum = twice + w, an output.
struct Frame {
  kiln_pass_call *call;
  kiln_edit *edit = kiln_pass_edit(call);
  const kiln_graph *graph = kiln_edit_view(edit);
  kiln_context *context = kiln_pass_context(call);

  kiln_node node(std::string_view name) const {
    kiln_node found = 0;
    EXPECT_OK(kiln_graph_find(graph, name.data(), name.size(), &found));
    return found;
  }
  kiln_value value(std::string_view name) const { return node(name) << 32; }
  kiln_op op(std::string_view name) const {
    kiln_op found = 0;
    EXPECT_OK(kiln_op_find(context, name.data(), name.size(), &found));
    return found;
  }
  kiln_error *add(std::string_view name, std::vector<kiln_value> inputs, std::vector<kiln_attr> attrs = {},
                  std::string_view label = {}) const {
    kiln_node out = 0;
    return kiln_edit_add(edit, op(name), label.data(), label.size(), inputs.data(), inputs.size(), attrs.data(),
                         attrs.size(), &out);
  }
  kiln_error *annotate(std::string_view key, uint32_t kind, const void *data, std::string_view on = "once") const {
    const kiln_attr attr = host::attr(key, kind, kind ? 1 : 0, data);
    return kiln_edit_annotate(edit, node(on), &attr, 1);
  }
};

kiln_error *on_another_thread(const std::function<kiln_error *()> &what) {
  kiln_error *error = nullptr;
  std::thread([&] { error = what(); }).join();
  return error;
}

struct Row : host::Row {
  uint32_t code;
  const char *words;
  std::function<kiln_error *(const Frame &)> misuse;
};

const int64_t one = 1;
const uint8_t number_two = 2;
const kiln_text some_text{"a", 1}, bad_text{"\xff", 1}, no_text{nullptr, 3};
constexpr std::string_view tall = "tall";

const std::vector<Row> &rows() {
  static const std::vector<Row> table = {
      // ---- the pass's call
      {"DoneTwice", KILN_INVALID_ARGUMENT, "has said so before",
       [](const Frame &f) {
         EXPECT_OK(kiln_pass_done(f.call, 0));
         return kiln_pass_done(f.call, 7);
       }},
      {"EditAfterDone", KILN_INVALID_ARGUMENT, "has said that it is done",
       [](const Frame &f) {
         EXPECT_OK(kiln_pass_done(f.call, 0));
         return kiln_edit_replace(f.edit, f.value("twice"), f.value("x"));
       }},
      {"AnnotateAfterDone", KILN_INVALID_ARGUMENT, "has said that it is done",
       [](const Frame &f) {
         EXPECT_OK(kiln_pass_done(f.call, 0));
         return f.annotate("a.b", KILN_ATTR_I64, &one);
       }},
      {"DoneWithoutCall", KILN_INVALID_ARGUMENT, "call is NULL",
       [](const Frame &) { return kiln_pass_done(nullptr, 0); }},
      {"DoneOnAnotherThread", KILN_INVALID_ARGUMENT, "of a pass that runs on another thread",
       [](const Frame &f) { return on_another_thread([&] { return kiln_pass_done(f.call, 0); }); }},
      {"DoneOfAnEdit", KILN_INVALID_ARGUMENT, "handle of another type",
       [](const Frame &f) { return kiln_pass_done(reinterpret_cast<kiln_pass_call *>(f.edit), 0); }},
      {"UnknownOption", KILN_UNKNOWN_NAME, "declared no option 'depth'",
       [](const Frame &f) {
         kiln_attr out{};
         return kiln_pass_option(f.call, "depth", 5, &out);
       }},
      {"OptionWithoutPlace", KILN_INVALID_ARGUMENT, "out is NULL",
       [](const Frame &f) { return kiln_pass_option(f.call, "depth", 5, nullptr); }},
      {"OptionNotUtf8", KILN_INVALID_ARGUMENT, "name is not UTF-8",
       [](const Frame &f) {
         kiln_attr out{};
         return kiln_pass_option(f.call, "\xff", 1, &out);
       }},
      {"KeyInsideRun", KILN_INVALID_ARGUMENT, "only a pass's fingerprint",
       [](const Frame &f) { return kiln_pass_fingerprint_add(f.call, "a", 1); }},
      {"NoteNotUtf8", KILN_INVALID_ARGUMENT, "text is not UTF-8",
       [](const Frame &f) { return kiln_pass_note(f.call, "\xc3", 1); }},
      {"NoteOfTwoLines", KILN_INVALID_ARGUMENT, "has control characters",
       [](const Frame &f) { return kiln_pass_note(f.call, "a\nb", 3); }},
      {"WarnWithEscape", KILN_INVALID_ARGUMENT, "has control characters",
       [](const Frame &f) { return kiln_pass_warn(f.call, "\x1b[2J", 4); }},
      {"EmptyNote", KILN_INVALID_ARGUMENT, "text is empty",
       [](const Frame &f) { return kiln_pass_note(f.call, "", 0); }},
      {"NoteWithoutText", KILN_INVALID_ARGUMENT, "text is NULL, its size is 4",
       [](const Frame &f) { return kiln_pass_note(f.call, nullptr, 4); }},
      {"NoteOnAnotherThread", KILN_INVALID_ARGUMENT, "runs on another thread",
       [](const Frame &f) { return on_another_thread([&] { return kiln_pass_note(f.call, "a", 1); }); }},
      // ---- giving another graph
      {"GivesItsView", KILN_INVALID_ARGUMENT, "graph is a view",
       [](const Frame &f) { return kiln_pass_replace_graph(f.call, const_cast<kiln_graph *>(f.graph)); }},
      {"GivesNoGraph", KILN_INVALID_ARGUMENT, "graph is NULL",
       [](const Frame &f) { return kiln_pass_replace_graph(f.call, nullptr); }},
      {"GivesTwoGraphs", KILN_INVALID_ARGUMENT, "has given a graph already",
       [](const Frame &f) {
         EXPECT_OK(kiln_pass_replace_graph(f.call, host::parse(f.context, host::small_graph).release()));
         const host::Graph second = host::parse(f.context, host::small_graph);
         return kiln_pass_replace_graph(f.call, second.get());
       }},
      {"GivesAGraphAfterDone", KILN_INVALID_ARGUMENT, "has said that it is done",
       [](const Frame &f) {
         EXPECT_OK(kiln_pass_done(f.call, 0));
         const host::Graph own = host::parse(f.context, host::small_graph);
         return kiln_pass_replace_graph(f.call, own.get());
       }},
      {"GivesAGraphOfAnotherContext", KILN_INVALID_ARGUMENT, "is of another context",
       [](const Frame &f) {
         const host::Context other = host::make_context();
         const host::Graph own = host::parse(other.get(), host::small_graph);
         return kiln_pass_replace_graph(f.call, own.get());
       }},
      // ---- its edit
      {"FinishesItsEdit", KILN_INVALID_ARGUMENT, "a pass's own",
       [](const Frame &f) {
         kiln_graph *out = nullptr;
         return kiln_edit_finish(f.edit, &out);
       }},
      {"EditsOnAnotherThread", KILN_INVALID_ARGUMENT, "runs on another thread",
       [](const Frame &f) {
         const kiln_value from = f.value("twice"), to = f.value("x");
         return on_another_thread([&] { return kiln_edit_replace(f.edit, from, to); });
       }},
      {"AddsOnAnotherThread", KILN_INVALID_ARGUMENT, "runs on another thread",
       [](const Frame &f) {
         const kiln_op neg = f.op("neg");
         const kiln_value x = f.value("x");
         kiln_node out = 0;
         return on_another_thread([&] { return kiln_edit_add(f.edit, neg, nullptr, 0, &x, 1, nullptr, 0, &out); });
       }},
      {"AsksOnAnotherThread", KILN_INVALID_ARGUMENT, "runs on another thread",
       [](const Frame &f) {
         uint64_t count = 0;
         return on_another_thread([&] { return kiln_graph_nodes(f.graph, nullptr, 0, &count); });
       }},
      {"AsksItsContextOnAnotherThread", KILN_INVALID_ARGUMENT, "runs on another thread",
       [](const Frame &f) {
         kiln_op op = 0;
         return on_another_thread([&] { return kiln_op_find(f.context, "neg", 3, &op); });
       }},
      {"CompilesItsView", KILN_INVALID_ARGUMENT, "graph is the view of an edit",
       [](const Frame &f) {
         kiln_executable *out = nullptr;
         return kiln_compile(f.context, f.graph, nullptr, &out, nullptr);
       }},
      {"ClosesItsContext", KILN_INVALID_ARGUMENT, "context is a view",
       [](const Frame &f) { return kiln_context_close(f.context); }},
      {"BeginsWithoutPlace", KILN_INVALID_ARGUMENT, "out is NULL",
       [](const Frame &f) { return kiln_edit_begin(f.context, f.graph, nullptr); }},
      // ---- replace
      {"ReplacesANodeThatIsNot", KILN_INVALID_ARGUMENT, "the old value is not of this graph",
       [](const Frame &f) { return kiln_edit_replace(f.edit, kiln_value{99} << 32, f.value("x")); }},
      {"ReplacesByANodeThatIsNot", KILN_INVALID_ARGUMENT, "the new value is not of this graph",
       [](const Frame &f) { return kiln_edit_replace(f.edit, f.value("once"), kiln_value{99} << 32); }},
      {"ReplacesByANumberOfANode", KILN_INVALID_ARGUMENT, "the new value is not of this graph",
       [](const Frame &f) { return kiln_edit_replace(f.edit, f.value("once"), f.node("x")); }},
      {"ReplacesBySecondResultOfOne", KILN_INVALID_ARGUMENT, "the new value is not of this graph",
       [](const Frame &f) { return kiln_edit_replace(f.edit, f.value("once"), f.value("x") | 1); }},
      {"ReplacesByAnotherType", KILN_TYPE_MISMATCH, "the former is f32[n, 2], the latter f32[2]",
       [](const Frame &f) { return kiln_edit_replace(f.edit, f.value("once"), f.value("w")); }},
      {"ReplacesByWhatDependsOnIt", KILN_INVALID_ARGUMENT, "would close a cycle",
       [](const Frame &f) { return kiln_edit_replace(f.edit, f.value("once"), f.value("twice")); }},
      // ---- add
      {"AddsNoOp", KILN_OUT_OF_RANGE, "no op has number 0",
       [](const Frame &f) {
         kiln_node out = 0;
         return kiln_edit_add(f.edit, 0, nullptr, 0, nullptr, 0, nullptr, 0, &out);
       }},
      {"AddsAnOpThatIsNot", KILN_OUT_OF_RANGE, "no op has number 1073741824",
       [](const Frame &f) {
         kiln_node out = 0;
         return kiln_edit_add(f.edit, 1u << 30, nullptr, 0, nullptr, 0, nullptr, 0, &out);
       }},
      {"AddsWithoutOperands", KILN_TYPE_MISMATCH, "[add]", [](const Frame &f) { return f.add("add", {}); }},
      {"AddsWithTooMany", KILN_TYPE_MISMATCH, "[neg]",
       [](const Frame &f) { return f.add("neg", {f.value("x"), f.value("x")}); }},
      {"AddsWithAnOperandThatIsNot", KILN_INVALID_ARGUMENT, "operand 0 is no value of this graph",
       [](const Frame &f) { return f.add("neg", {kiln_value{99} << 32}); }},
      {"AddsWithOperandZero", KILN_INVALID_ARGUMENT, "operand 0 is no value of this graph",
       [](const Frame &f) { return f.add("neg", {0}); }},
      {"AddsAnUnknownAttribute", KILN_UNKNOWN_NAME, "tall",
       [](const Frame &f) { return f.add("neg", {f.value("x")}, {host::attr(tall, KILN_ATTR_I64, 1, &one)}); }},
      {"AddsAnAttributeTwice", KILN_INVALID_ARGUMENT, "is given twice",
       [](const Frame &f) {
         const kiln_attr attr = host::attr("dim", KILN_ATTR_I64, 1, &one);
         return f.add("softmax", {f.value("x")}, {attr, attr});
       }},
      {"AddsAnAttributeOfAnotherKind", KILN_TYPE_MISMATCH, "dim",
       [](const Frame &f) {
         return f.add("softmax", {f.value("x")}, {host::attr("dim", KILN_ATTR_TEXT, 1, &some_text)});
       }},
      {"AddsAnAttributeOfNoKind", KILN_INVALID_ARGUMENT, "no kind of attribute has number 77",
       [](const Frame &f) { return f.add("softmax", {f.value("x")}, {host::attr("dim", 77, 1, &one)}); }},
      {"AddsAScalarOfTwo", KILN_INVALID_ARGUMENT, "a scalar's count is 1, not 2",
       [](const Frame &f) { return f.add("softmax", {f.value("x")}, {host::attr("dim", KILN_ATTR_I64, 2, &one)}); }},
      {"AddsAnAttributeWithoutData", KILN_INVALID_ARGUMENT, "data is NULL",
       [](const Frame &f) { return f.add("softmax", {f.value("x")}, {host::attr("dim", KILN_ATTR_I64, 1, nullptr)}); }},
      {"AddsAnAttributeWithoutName", KILN_INVALID_ARGUMENT, "an attribute has no name",
       [](const Frame &f) { return f.add("softmax", {f.value("x")}, {host::attr("", KILN_ATTR_I64, 1, &one)}); }},
      {"AddsABooleanOfTwo", KILN_INVALID_ARGUMENT, "a boolean is 0 or 1, not 2",
       [](const Frame &f) { return f.add("sum", {f.value("x")}, {host::attr("keepdim", KILN_ATTR_BOOL, 1, &number_two)}); }},
      {"AddsATakenName", KILN_INVALID_ARGUMENT, "name 'once' is taken already",
       [](const Frame &f) { return f.add("neg", {f.value("x")}, {}, "once"); }},
      {"AddsANameWithAColon", KILN_INVALID_ARGUMENT, "':' and control characters are not allowed",
       [](const Frame &f) { return f.add("neg", {f.value("x")}, {}, "a:b"); }},
      {"AddsANameOfTwoLines", KILN_INVALID_ARGUMENT, "control characters are not allowed",
       [](const Frame &f) { return f.add("neg", {f.value("x")}, {}, "a\nb"); }},
      {"AddsANameThatIsNoUtf8", KILN_INVALID_ARGUMENT, "name is not UTF-8",
       [](const Frame &f) { return f.add("neg", {f.value("x")}, {}, "\xff"); }},
      {"AddsWithoutPlace", KILN_INVALID_ARGUMENT, "out is NULL",
       [](const Frame &f) {
         const kiln_value x = f.value("x");
         return kiln_edit_add(f.edit, f.op("neg"), nullptr, 0, &x, 1, nullptr, 0, nullptr);
       }},
      {"AddsConstantWithoutTensor", KILN_INVALID_ARGUMENT, "tensor is NULL",
       [](const Frame &f) {
         kiln_value out = 0;
         return kiln_edit_constant(f.edit, nullptr, 0, nullptr, &out);
       }},
      {"AddsAnInputOfNoType", KILN_INVALID_ARGUMENT, "type is NULL",
       [](const Frame &f) {
         kiln_value out = 0;
         return kiln_edit_input(f.edit, "more", 4, nullptr, &out);
       }},
      // ---- annotate and scope
      {"AnnotatesAnInput", KILN_INVALID_ARGUMENT, "is no op node of this graph",
       [](const Frame &f) { return f.annotate("a.b", KILN_ATTR_I64, &one, "x"); }},
      {"AnnotatesAnUnknownNameOfKilns", KILN_UNKNOWN_NAME, "kiln.tall",
       [](const Frame &f) { return f.annotate("kiln.tall", KILN_ATTR_I64, &one); }},
      {"AnnotatesAnotherKind", KILN_TYPE_MISMATCH, "kiln.region",
       [](const Frame &f) { return f.annotate("kiln.region", KILN_ATTR_I64, &one); }},
      {"AnnotatesNoUtf8", KILN_INVALID_ARGUMENT, "is not UTF-8",
       [](const Frame &f) { return f.annotate("a.b", KILN_ATTR_TEXT, &bad_text); }},
      {"AnnotatesATextWithoutBytes", KILN_INVALID_ARGUMENT, "is NULL, its size is 3",
       [](const Frame &f) { return f.annotate("a.b", KILN_ATTR_TEXT, &no_text); }},
      {"TakesAwayWithAValue", KILN_INVALID_ARGUMENT, "is taken away, but has a value",
       [](const Frame &f) {
         const kiln_attr attr = host::attr("a.b", KILN_ATTR_NONE, 1, &one);
         return kiln_edit_annotate(f.edit, f.node("once"), &attr, 1);
       }},
      {"AnnotatesNodeZero", KILN_INVALID_ARGUMENT, "no node has number 0",
       [](const Frame &f) { return kiln_edit_annotate(f.edit, 0, nullptr, 0); }},
      {"OpensAScopeOfAnUnknownNameOfKilns", KILN_UNKNOWN_NAME, "kiln.regoin",
       [](const Frame &f) {
         const kiln_attr attr = host::attr("kiln.regoin", KILN_ATTR_TEXT, 1, &some_text);
         return kiln_edit_scope(f.edit, &attr, 1);
       }},
      {"OpensAScopeOfAnotherKind", KILN_TYPE_MISMATCH, "kiln.region",
       [](const Frame &f) {
         const kiln_attr attr = host::attr("kiln.region", KILN_ATTR_I64, 1, &one);
         return kiln_edit_scope(f.edit, &attr, 1);
       }},
      {"OpensAScopeOfWhatInputsHave", KILN_INVALID_ARGUMENT, "'kiln.donate' is for inputs",
       [](const Frame &f) {
         const uint8_t truth = 1;
         const kiln_attr attr = host::attr("kiln.donate", KILN_ATTR_BOOL, 1, &truth);
         return kiln_edit_scope(f.edit, &attr, 1);
       }},
      {"ClosesNoScope", KILN_INVALID_ARGUMENT, "no scope is open",
       [](const Frame &f) { return kiln_edit_scope(f.edit, nullptr, 0); }},
      // ---- questions
      {"FindsANodeThatIsNot", KILN_UNKNOWN_NAME, "no node is named 'tall'",
       [](const Frame &f) {
         kiln_node out = 0;
         return kiln_graph_find(f.graph, "tall", 4, &out);
       }},
      {"FindsAnOpThatIsNot", KILN_UNKNOWN_NAME, "tall",
       [](const Frame &f) {
         kiln_op out = 0;
         return kiln_op_find(f.context, "tall", 4, &out);
       }},
      {"AsksANodeThatIsNot", KILN_OUT_OF_RANGE, "the graph has no node 99",
       [](const Frame &f) {
         kiln_text out{};
         return kiln_node_name(f.graph, 99, &out);
       }},
      {"AsksAValueThatIsNot", KILN_OUT_OF_RANGE, "the graph has no value",
       [](const Frame &f) {
         kiln_dtype out = 0;
         return kiln_value_dtype(f.graph, 99, &out);
       }},
      {"AsksAConstantOfAnOp", KILN_INVALID_ARGUMENT, "is no constant",
       [](const Frame &f) {
         const DLTensor *out = nullptr;
         return kiln_node_constant(f.graph, f.node("once"), &out);
       }},
      {"AsksAnAttributeThatIsNot", KILN_UNKNOWN_NAME, "has no attribute 'tall'",
       [](const Frame &f) {
         kiln_attr out{};
         return kiln_node_attr(f.graph, f.node("once"), "tall", 4, &out);
       }},
      {"AsksForStridesOfTheMiddle", KILN_INVALID_ARGUMENT, "is the planner's to choose",
       [](const Frame &f) {
         uint64_t rank = 0;
         return kiln_value_strides(f.graph, f.value("once"), nullptr, 0, &rank);
       }},
      {"AsksForNoSide", KILN_INVALID_ARGUMENT, "no side of a signature has number 9",
       [](const Frame &f) {
         uint64_t count = 0;
         return kiln_graph_signature(f.graph, 9, nullptr, 0, &count);
       }},
      {"ReadsDimsIntoNothing", KILN_INVALID_ARGUMENT, "buffer is NULL",
       [](const Frame &f) {
         uint64_t rank = 0;
         return kiln_value_dims(f.graph, f.value("x"), nullptr, 2, &rank);
       }},
      {"CompilesInItself", KILN_PLUGIN_FAILED, "passes compile in one another, 8 deep",
       [](const Frame &f) {
         const host::Graph own = host::parse(f.context, host::small_graph);
         kiln_executable *out = nullptr;
         return kiln_compile(f.context, own.get(), nullptr, &out, nullptr);
       }},
  };
  return table;
}

class PassMisuse : public testing::TestWithParam<Row> {};

TEST_P(PassMisuse, IsRefusedAndTheCompileGoesOn) {
  const Row &row = GetParam();
  const bool nests = std::string_view(row.what) == "CompilesInItself";
  host::Error error;
  TestPass pass([&](kiln_pass_call *call) -> kiln_error * {
    kiln_error *refused = row.misuse({call});
    if (nests && refused) return refused;
    error = host::take(refused);
    kiln_error_destroy(kiln_pass_done(call, 0));  // where the row has not said so
    return nullptr;
  });
  {
    const host::Context context = host::make_context();
    const host::Graph graph = host::parse(context.get(), host::small_graph);
    uint64_t id = 0;
    ASSERT_OK(kiln_pass_register(context.get(), &pass.pass, nullptr, &id));
    const host::Compiled compiled = host::compile(context.get(), graph.get());
    if (nests) error = compiled.error;
    EXPECT_EQ(compiled.error.code, nests ? row.code : KILN_OK) << compiled.error.message;
  }
  EXPECT_EQ(error.code, row.code) << error.message;
  EXPECT_NE(error.message.find(row.words), std::string::npos) << error.message;
  EXPECT_EQ(pass.destroyed, 1);
}
INSTANTIATE_TEST_SUITE_P(Abi, PassMisuse, testing::ValuesIn(rows()), host::name_of_row);

// ---- registering

struct Registration : host::Row {
  const char *words;
  std::function<void(kiln_pass &)> spoil;
};

const kiln_dim some_dim{3, 0};
const std::vector<Registration> &registrations() {
  static const kiln_attr dim = host::attr("size", KILN_ATTR_DIM, 1, &some_dim);
  static const kiln_attr control = host::attr("a\tb", KILN_ATTR_I64, 1, &one);
  static const std::vector<Registration> table = {
      {"NoSize", "struct_size is 0; set it to the struct's size, 144", [](kiln_pass &p) { p.struct_size = 0; }},
      {"HugeSize", "struct_size is 4097; set it", [](kiln_pass &p) { p.struct_size = 4097; }},
      {"SizeWithinAMember", "struct_size is 89, which ends within a member", [](kiln_pass &p) { p.struct_size = 89; }},
      {"NoRun", "pass->run is NULL", [](kiln_pass &p) { p.run = nullptr; }},
      {"NoName", "has no name", [](kiln_pass &p) { p.name_size = 0; }},
      {"NameOfTwoLines", "pass->name 'a\\x0ab' has control characters",
       [](kiln_pass &p) { p.name = "a\nb", p.name_size = 3; }},
      {"NameWithEscape", "has control characters", [](kiln_pass &p) { p.name = "\x1b[2J", p.name_size = 4; }},
      {"NameNoUtf8", "pass->name is not UTF-8 text, at byte 1",
       [](kiln_pass &p) { p.name = "a\xff", p.name_size = 2; }},
      {"NameWithoutBytes", "pass->name is NULL, its size is 4", [](kiln_pass &p) { p.name = nullptr; }},
      {"NameOfABuiltIn", "the name is taken by pass 'cse' already",
       [](kiln_pass &p) { p.name = "cse", p.name_size = 3; }},
      {"VersionOfTwoLines", "pass->version", [](kiln_pass &p) { p.version = "1\r", p.version_size = 2; }},
      {"StageZero", "no stage has number 0", [](kiln_pass &p) { p.stage = 0; }},
      {"StageJoint", "do not run yet", [](kiln_pass &p) { p.stage = KILN_STAGE_JOINT; }},
      {"Timing", "no timing has number 3", [](kiln_pass &p) { p.timing = 3; }},
      {"EarlyAfterTheGradient", "can be early", [](kiln_pass &p) { p.timing = KILN_TIMING_EARLY; }},
      {"LateWithoutIdentity", "needs an identity", [](kiln_pass &p) { p.timing = KILN_TIMING_LATE; }},
      {"UuidSufficesWithoutOne", "no effect without pass->uuid",
       [](kiln_pass &p) { p.flags = KILN_PASS_UUID_SUFFICES; }},
      {"UnknownFlag", "unknown bits: 64", [](kiln_pass &p) { p.flags = 64; }},
      {"AnyThread", "no effect yet", [](kiln_pass &p) { p.flags = KILN_PASS_ANY_THREAD; }},
      {"Reserved", "reserved0 is not 0", [](kiln_pass &p) { p.reserved0 = 1; }},
      {"UuidWithoutFile", "no file to hash", [](kiln_pass &p) { p.uuid = host::some_uuid; }},
      {"OptionsWithoutBytes", "attrs is NULL", [](kiln_pass &p) { p.option_count = 2; }},
      {"OptionOfKindDim", "'size' is of kind dim, which no host can set",
       [](kiln_pass &p) { p.options = &dim, p.option_count = 1; }},
      {"OptionNameWithATab", "has control characters", [](kiln_pass &p) { p.options = &control, p.option_count = 1; }},
  };
  return table;
}

class PassRegistration : public testing::TestWithParam<Registration> {};

TEST_P(PassRegistration, IsRefusedAndUserStaysTheCallers) {
  TestPass pass(host::nothing);
  GetParam().spoil(pass.pass);
  const host::Context context = host::make_context();
  const host::Error error = host::take(kiln_pass_register(context.get(), &pass.pass, nullptr, nullptr));
  EXPECT_TRUE(error.code == KILN_INVALID_ARGUMENT || error.code == KILN_UNIMPLEMENTED) << error;
  EXPECT_NE(error.message.find(GetParam().words), std::string::npos) << error.message;
  EXPECT_OK(kiln_context_close(context.get()));
  EXPECT_EQ(pass.destroyed, 0);
}
INSTANTIATE_TEST_SUITE_P(Abi, PassRegistration, testing::ValuesIn(registrations()), host::name_of_row);

}  // namespace
