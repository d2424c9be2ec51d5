// What is refused of backends of hosts: where they are registered, and where they answer. A row each.
#include <functional>

#include "rows.h"
#include "test_backend.h"

namespace {

using host::TestBackend;

constexpr uint8_t no_backend_uuid[16] = {};

struct DefinedBackend : host::Row {
  const char *words;
  std::function<void(kiln_backend &)> spoil;
  uint32_t code = KILN_INVALID_ARGUMENT;
};

void name_it(kiln_backend &b, std::string_view name) { b.name = name.data(), b.name_size = name.size(); }

const DefinedBackend backend_definitions[] = {
    {"NoSize", "backend->struct_size is 0; set it to the struct's size", [](kiln_backend &b) { b.struct_size = 0; }},
    {"UnknownFlag", "backend->flags has unknown bits", [](kiln_backend &b) { b.flags = 1u << 20; }},
    {"Reserved", "backend->reserved0 is 3, expected 0", [](kiln_backend &b) { b.reserved0 = 3; }},
    {"SufficesWithoutUuid", "has no effect without backend->uuid", [](kiln_backend &b) { b.uuid = nullptr; }},
    {"UuidWithoutFile", "there is no file to hash", [](kiln_backend &b) { b.flags = 0; }},
    {"UuidOfZeros", "backend->uuid is all zero", [](kiln_backend &b) { b.uuid = no_backend_uuid; }},
    {"NoName", "backend->name '' is no name", [](kiln_backend &b) { name_it(b, ""); }},
    {"NameWithADot", "has a dot", [](kiln_backend &b) { name_it(b, "a.b"); }},
    {"NameOfKilns", "is that of one of Kiln's own", [](kiln_backend &b) { name_it(b, "cuda"); }},
    {"OnADevice", "work in the host's memory", [](kiln_backend &b) { b.device_type = kDLCUDA; }, KILN_UNIMPLEMENTED},
    {"OptionOfKilns", "backend->options: 'kiln.rounding': names under kiln. are Kiln's",
     [](kiln_backend &b) {
       static const int64_t zero = 0;
       static const kiln_attr option = host::attr("kiln.rounding", KILN_ATTR_I64, 1, &zero);
       b.options = &option, b.option_count = 1;
     }},
    {"NoTakes", "backend->takes is NULL", [](kiln_backend &b) { b.takes = nullptr; }},
    {"NoCompile", "backend->compile is NULL", [](kiln_backend &b) { b.compile = nullptr; }},
    {"NoLoad", "backend->load is NULL", [](kiln_backend &b) { b.load = nullptr; }},
    {"NoRun", "backend->run is NULL", [](kiln_backend &b) { b.run = nullptr; }},
    {"CloseWithoutOpen", "has no effect without backend->open", [](kiln_backend &b) { b.open = nullptr; }},
    {"ReleaseWithoutPrepare", "has no effect without backend->prepare", [](kiln_backend &b) { b.prepare = nullptr; }},
};

class BackendDefinition : public testing::TestWithParam<DefinedBackend> {};

TEST_P(BackendDefinition, IsRefused) {
  TestBackend ten;
  {
    const host::Context context = host::make_context();
    GetParam().spoil(ten.backend);
    EXPECT_FAILS(kiln_backend_register(context.get(), &ten.backend, nullptr), GetParam().code, GetParam().words);
  }
  EXPECT_EQ(ten.destroyed, 0);
}
INSTANTIATE_TEST_SUITE_P(Backends, BackendDefinition, testing::ValuesIn(backend_definitions), host::name_of_row);

TEST(BackendMisuse, NamesAreTakenOnce) {
  TestBackend ten, again;
  {
    const host::Context context = host::make_context();
    ten.register_in(context.get());
    EXPECT_FAILS(kiln_backend_register(context.get(), &again.backend, nullptr), KILN_INVALID_ARGUMENT,
                 "the name is taken by another backend already");
  }
  EXPECT_EQ(again.destroyed, 0);
}

struct Answer : host::Row {
  const char *words;
  std::function<void(kiln_backend &)> spoil;
};

const Answer answers[] = {
    {"TakesAnswersOther", "takes answered 7, expected 0 or 1",
     [](kiln_backend &b) {
       b.takes = [](void *, kiln_backend_call *, const kiln_graph *, kiln_node, uint32_t *out) -> kiln_error * {
         *out = 7;
         return nullptr;
       };
     }},
    {"CompileGivesNothing", "compile has given no bytes (kiln_backend_blob)",
     [](kiln_backend &b) {
       b.compile = [](void *, kiln_backend_call *, const kiln_graph *) -> kiln_error * { return nullptr; };
     }},
    {"CompileGivesNoByte", "size is 0; a region has one byte at least",
     [](kiln_backend &b) {
       b.compile = [](void *, kiln_backend_call *call, const kiln_graph *) { return kiln_backend_blob(call, "", 0); };
     }},
    {"CompileGivesTwice", "the region has its bytes already",
     [](kiln_backend &b) {
       b.compile = [](void *, kiln_backend_call *call, const kiln_graph *) {
         kiln_error *error = kiln_backend_blob(call, "neg", 3);
         return error ? error : kiln_backend_blob(call, "neg", 3);
       };
     }},
    {"CompileTellsAKey", "only target tells what a backend depends on",
     [](kiln_backend &b) {
       b.compile = [](void *, kiln_backend_call *call, const kiln_graph *) { return kiln_backend_key(call, "x", 1); };
     }},
    {"CompileTellsWhyNot", "only takes tells why it does not take a node",
     [](kiln_backend &b) {
       b.compile = [](void *, kiln_backend_call *call, const kiln_graph *) {
         return kiln_backend_refuse(call, "x", 1);
       };
     }},
    {"TakesTellsNothing", "why is empty",
     [](kiln_backend &b) {
       b.takes = [](void *, kiln_backend_call *call, const kiln_graph *, kiln_node, uint32_t *) {
         return kiln_backend_refuse(call, "", 0);
       };
     }},
    {"TakesTellsLines", "why '",
     [](kiln_backend &b) {
       b.takes = [](void *, kiln_backend_call *call, const kiln_graph *, kiln_node, uint32_t *) {
         return kiln_backend_refuse(call, "a\nb", 3);
       };
     }},
    {"TakesAndTellsWhyNot", "takes answered 1, and why it does not take the node: no",
     [](kiln_backend &b) {
       b.takes = [](void *, kiln_backend_call *call, const kiln_graph *, kiln_node, uint32_t *out) {
         *out = 1;
         return kiln_backend_refuse(call, "no", 2);
       };
     }},
    {"TargetGivesBytes", "only compile gives bytes",
     [](kiln_backend &b) {
       b.target = [](void *, kiln_backend_call *call) { return kiln_backend_blob(call, "x", 1); };
     }},
    {"TargetAsksForAnOption", "target is asked for no compile, and has no options",
     [](kiln_backend &b) {
       b.target = [](void *, kiln_backend_call *call) {
         kiln_attr out{};
         return kiln_backend_option(call, "x", 1, &out);
       };
     }},
    {"UnknownOption", "the backend has no option 'x'",
     [](kiln_backend &b) {
       b.compile = [](void *, kiln_backend_call *call, const kiln_graph *) {
         kiln_attr out{};
         return kiln_backend_option(call, "x", 1, &out);
       };
     }},
};

class BackendAnswer : public testing::TestWithParam<Answer> {};

TEST_P(BackendAnswer, IsRefused) {
  TestBackend ten;
  GetParam().spoil(ten.backend);
  const host::Context context = host::make_context();
  ten.register_in(context.get());
  const host::Compiled compiled = host::compile(context.get(), host::chain("", "neg", "3"), "all", "ten");
  EXPECT_NE(compiled.error.message.find(GetParam().words), std::string::npos) << compiled.error.message;
}
INSTANTIATE_TEST_SUITE_P(Backends, BackendAnswer, testing::ValuesIn(answers), host::name_of_row);

}  // namespace
