// What decompositions of ops of the host's own bring in: other such ops, which are part of what the cache compares.
#include "test_function.h"
#include "test_op.h"
#include "tests/temporary_folder.h"

namespace {

using host::TestOp;

const std::string one_node = R"({"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
    "nodes": [{"name": "b", "op": "host.scale", "inputs": ["x"]}], "outputs": [{"name": "y", "value": "b"}]})";

// Puts one node of an op of one operand in place of the node.
kiln_error *becomes(kiln_op_call *call, std::string_view name, bool has_operand = true) {
  kiln_op op = 0;
  kiln_node made = 0;
  const kiln_value x = kiln_op_call_operand(call, 0);
  if (kiln_error *error = kiln_op_find(kiln_op_call_context(call), name.data(), name.size(), &op)) return error;
  kiln_edit *edit = kiln_op_call_edit(call);
  if (kiln_error *error = kiln_edit_add(edit, op, nullptr, 0, &x, has_operand, nullptr, 0, &made)) return error;
  return kiln_op_call_yield(call, 0, made << 32);
}

TEST(OpParts, ThatADecompositionBringsInIsPartOfWhatIsFound) {
  for (const char *backend : {"cpu", "reference"}) {
    const kiln::test::TemporaryFolder folder;
    const auto lookup = [&](int version, std::string_view part, const char *strict = "") {
      TestOp whole(TestOp::decomposes | TestOp::is_identified);
      whole.on_decompose = [](kiln_op_call *call) { return becomes(call, "host.part"); };
      TestOp inner(part == "anonymous" ? TestOp::decomposes : TestOp::decomposes | TestOp::is_identified, "host.part",
                   version);
      inner.on_decompose = [](kiln_op_call *call) { return becomes(call, "neg"); };
      static constexpr uint8_t other_uuid[16] = {9, 9};
      if (part != "anonymous") inner.def.uuid = other_uuid;
      const host::Context context = host::make_context(folder.path());
      whole.register_in(context.get());
      inner.register_in(context.get());
      const host::Graph graph = host::parse(context.get(), one_node);
      const host::Compiled compiled = host::compile(context.get(), graph.get(), [&](kiln_options *options) {
        EXPECT_OK(kiln_options_set_text(options, "backend", 7, backend, strlen(backend)));
        EXPECT_OK(kiln_options_set_bool(options, "strict", 6, *strict != 0));
      });
      return compiled.error.code ? compiled.error.message
                                 : host::text(compiled.report, "lookup") + host::text(compiled.report, "reason");
    };
    EXPECT_EQ(lookup(1, "").substr(0, 4), "MISS");
    EXPECT_EQ(lookup(1, "").substr(0, 3), "HIT");
    const std::string other = lookup(2, "");
    EXPECT_EQ(other.substr(0, 4), "MISS") << backend;
    EXPECT_NE(other.find("op 'host.part' is version 2"), std::string::npos) << other;
    EXPECT_EQ(lookup(3, "anonymous").substr(0, 4), "MISS");
    EXPECT_EQ(lookup(3, "anonymous").substr(0, 4), "MISS") << "what has no identity is not saved";
    EXPECT_NE(lookup(3, "anonymous", "strict").find("op 'host.part' has no identity"), std::string::npos);
  }
}

TEST(OpParts, ADecompositionThatComesBackToItselfIsAnErrorOnBothBackends) {
  for (const char *backend : {"cpu", "reference"}) {
    TestOp scale(TestOp::decomposes);
    scale.on_decompose = [](kiln_op_call *call) { return becomes(call, "host.scale"); };
    const host::Context context = host::make_context();
    scale.register_in(context.get());
    const host::Compiled compiled = host::compile(context.get(), one_node, "all", backend);
    EXPECT_EQ(compiled.error.code, KILN_PLUGIN_FAILED) << compiled.error;
    EXPECT_NE(compiled.error.message.find("[host.scale] its decomposition has not ended 16 deep"), std::string::npos)
        << compiled.error;
  }
}

TEST(OpParts, ADecompositionIsMadeOfWhatIsCompiledOnBothBackends) {
  for (const char *backend : {"cpu", "reference"}) {
    TestOp scale(TestOp::decomposes), part(TestOp::runs, "host.part");
    const host::Context context = host::make_context();
    scale.register_in(context.get());
    part.register_in(context.get());
    scale.on_decompose = [](kiln_op_call *call) { return becomes(call, "host.part"); };
    EXPECT_NE(host::compile(context.get(), one_node, "all", backend)
                  .error.message.find("[host.part] a function runs it; a decomposition"),
              std::string::npos);
    scale.on_decompose = [](kiln_op_call *call) { return becomes(call, "token", false); };
    EXPECT_NE(host::compile(context.get(), one_node, "all", backend)
                  .error.message.find("[token] it orders effects; a decomposition"),
              std::string::npos);
  }
}

}  // namespace
