// Code for the processors of this machine's kind, by LLVM.
#include "jit/base/codegen.h"
#include "runtime/backends/rows.h"

namespace kiln {
namespace {

constexpr BackendInfo::Listing cpu_listings[] = {{"llvm", KILN_CODEGEN_IR, ";"}, {"asm", KILN_CODEGEN_ASM, ";"}};

}  // namespace

constexpr BackendInfo cpu_backend{
    .name = "cpu", .module = "libkiln_llvm.so", .listings = cpu_listings, .refuses = refuse_kept_composites};

}  // namespace kiln
