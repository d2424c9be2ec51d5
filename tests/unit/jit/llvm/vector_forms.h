// The vector forms of memory access that the emitter may write for each width of vectors: the table of
// jit/llvm/features.h, said again in terms of LLVM's text.
#pragma once
#include <algorithm>
#include <regex>
#include <set>
#include <string>

#include "jit/base/target.h"

namespace kiln::testing {

// The intrinsics in a module's text that touch memory and that the table does not list for the target.
inline std::set<std::string> forbidden_forms(const std::string &ir, const Target &target) {
  static const std::regex called("call [^\n]*@(llvm\\.(?:masked|vp|x86|experimental)\\.[^(]*)\\("),
      products(
          "llvm\\.x86\\.(sse2\\.pmadd\\.wd|avx2\\.pmadd\\.wd|avx512\\.(pmaddw\\.d\\.512|vpdpbusd\\.(128|256|512)))"),
      of_target("llvm\\.x86\\.avx\\.mask(load|store)\\.p[sd](\\.256)?"),
      generic("llvm\\.masked\\.(load|store|gather|scatter)\\.v([0-9]+)[if]([0-9]+)\\.v?[0-9]*p0");
  std::set<std::string> forbidden;
  for (std::sregex_iterator at(ir.begin(), ir.end(), called), end; at != end; ++at) {
    const std::string name = (*at)[1];
    std::smatch form;
    bool allowed = name == "llvm.x86.sse.sfence" || std::regex_match(name, products);  // of registers
    if (target.vector_bytes() == 32) allowed |= std::regex_match(name, of_target);
    if (target.vector_bytes() == 64 && std::regex_match(name, form, generic)) {
      const int lanes = std::stoi(form[2]), bits = std::stoi(form[3]);
      const bool side_by_side = form[1] == "load" || form[1] == "store";
      allowed |= lanes * bits <= 512 && (side_by_side || bits >= 32);
    }
    if (!allowed) forbidden.insert(name);
  }
  return forbidden;
}

}  // namespace kiln::testing
