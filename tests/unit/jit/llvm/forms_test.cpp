// The forms that no op uses yet, at every level, against the interpreter.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "tests/unit/jit/kernel/group_forms.h"
#include "tests/unit/jit/kernel/order_forms.h"
#include "tests/unit/jit/kernel/panel_forms.h"
#include "tests/unit/jit/kernel/row_tile_forms.h"
#include "tests/unit/jit/kernel/scan_forms.h"
#include "tests/unit/jit/llvm/compiled_kernel.h"

namespace kiln::codegen::testing {
namespace {

void expect_interpreted(const Form &form, const Target &target) {
  SCOPED_TRACE(form.name);
  Form scheduled = form;
  set_target(scheduled.kernel, target);
  const Status status = verify(scheduled.kernel);
  ASSERT_TRUE(status.ok()) << status.message() << "\n" << print(form.kernel);
  FormMemory memory(scheduled);
  std::vector<void *> buffers;
  for (std::vector<uint8_t> &bytes : memory.bytes) buffers.push_back(bytes.data());
  EXPECT_EQ(LoadedKernel(form.kernel, target).run(buffers, form.sizes), form.error_word);
  memory.expect_interpreted();
}

void expect_interpreted(const std::vector<Form> &forms) {
  for (const Form &form : forms) at_every_level([&](const Target &target) { expect_interpreted(form, target); });
}

std::string assembly(const Form &form, const Target &target) {
  Kernel kernel = form.kernel;
  set_target(kernel, target);
  const Compiled compiled = compile(kernel, target, KILN_CODEGEN_ASM);
  EXPECT_EQ(compiled.error, "") << form.name;
  return compiled.text;
}
bool has(const std::string &text, std::string_view word) { return text.find(word) != std::string::npos; }

TEST(Forms, StoresCombineScatterAndAreGuarded) { expect_interpreted(store_forms()); }
TEST(Forms, ScansGoEitherWayWithOrWithoutThePoint) { expect_interpreted(scan_forms()); }
TEST(Forms, SearchesAndSortsHaveOneOrder) { expect_interpreted(order_forms()); }
TEST(Forms, GroupsEndWhereThePointsDoAndTheirSumsAreAddedInPairs) { expect_interpreted(group_forms()); }
TEST(Forms, ContractionsPassSumsOnThroughBuffersOfTheirOwn) { expect_interpreted(contraction_forms()); }
TEST(Forms, TilesOfRowsPassScoresOnFromProductToProduct) { expect_interpreted(row_tile_forms()); }
TEST(Forms, PanelsHoldNarrowTypesInGroups) {
  expect_interpreted(panel_forms());
  for (const char *name : {"v3+avx_vnni", "v4+vnni", "v4+avx_vnni", "v4-avx512vl+vnni"}) {
    const Target target = *Target::by_name(name);
    SCOPED_TRACE(name);
    if (!target.runs_on_host()) continue;
    for (const Form &form : panel_forms())
      if (form.kernel.schedule.products == Schedule::Products::dot) expect_interpreted(form, target);
  }
}

TEST(Forms, BytesAreMultipliedWithoutSaturation) {
  const auto text = [](const char *target, uint32_t nr) {
    const PanelForm p{.a = DType::i8,
                      .b = DType::i8,
                      .accumulator = DType::i32,
                      .group = 4,
                      .products = Schedule::Products::dot,
                      .nr = nr};
    return assembly(panel_form(p), *Target::by_name(target));
  };
  for (const auto &[target, instruction] : {std::pair{"x86-64", "pmaddwd"},
                                            {"v3", "vpmaddwd"},
                                            {"v3+avx_vnni", "vpdpbusd"},
                                            {"v4", "vpmaddwd"},
                                            {"v4+vnni", "vpdpbusd"}}) {
    const std::string code = text(target, 16);
    EXPECT_TRUE(has(code, instruction)) << target;
    EXPECT_FALSE(has(code, "vpdpbusds") || has(code, "pmaddubsw") || has(code, "pmulld")) << target;
  }
}

TEST(Forms, PairsOfHalvesAreMultipliedByInstructionsWhereTheTargetHasThem) {
  const Form form = panel_form(bf16_dot_form());
  Kernel kernel = form.kernel;
  set_target(kernel, *Target::by_name("v4"));
  EXPECT_TRUE(has(compile(kernel, *Target::by_name("v4")).error, "dot products of bf16"));
  const Target target = *Target::by_name("v4+bf16");
  EXPECT_TRUE(has(assembly(form, target), "vdpbf16ps"));
  if (!target.runs_on_host()) GTEST_SKIP() << "SKIP: this machine has no AVX512-BF16";
  expect_interpreted(form, target);
}

TEST(Forms, TilesAreOf16RowsBy64Bytes) {
  const Target target = *Target::by_name("v4+amx");
  for (const PanelForm &p : tile_forms()) {
    const Form form = panel_form(p);
    SCOPED_TRACE(form.name);
    const std::string code = assembly(form, target);
    const std::string_view product = p.a == DType::i8 ? "tdpbssd" : p.a == DType::u8 ? "tdpbusd" : "tdpbf16ps";
    for (std::string_view word : {product, std::string_view("ldtilecfg"), std::string_view("tileloadd"),
                                  std::string_view("tilestored"), std::string_view("tilerelease")})
      EXPECT_TRUE(has(code, word)) << word;
    EXPECT_EQ(has(code, "tilezero"), p.kc >= p.depth);
    Kernel kernel = form.kernel;
    set_target(kernel, *Target::by_name("v4"));
    EXPECT_TRUE(has(compile(kernel, *Target::by_name("v4")).error, "products in tiles: the target lacks amx"));
  }
}

TEST(Forms, TilesMultiplyAsTheInterpreterSays) {
  const Target target = *Target::by_name("v4+amx");
  if (!target.runs_on_host()) GTEST_SKIP() << "SKIP: " << target.check_host().message();
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  if (syscall(SYS_arch_prctl, request_permission, tile_data) != 0)
    GTEST_SKIP() << "SKIP: the kernel gives this process no tile registers: " << std::strerror(errno);
  for (const PanelForm &p : tile_forms()) expect_interpreted(panel_form(p), target);
}

}  // namespace
}  // namespace kiln::codegen::testing
