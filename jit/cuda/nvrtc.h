// NVRTC, opened at run time: source in, cubin out. Needs neither a GPU nor a driver, and no CUDA header at build time.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/bytes.h"
#include "jit/base/status.h"

namespace kiln::cuda {

// What ptxas said of one entry.
struct EntryUse {
  std::string name;
  uint32_t registers = 0, shared_bytes = 0, spill_store_bytes = 0, spill_load_bytes = 0;
};
struct Cubin {
  Bytes code;
  std::vector<EntryUse> entries;
  std::string log;
};

// Threads: any; programs may be compiled side by side.
class Nvrtc {
 public:
  // Where it is looked for: KILN_NVRTC in jit/base/env.def. Code unimplemented, naming what was tried and the variable,
  // when there is none.
  static Result<Nvrtc> open();
  int major() const { return major_; }
  int minor() const { return minor_; }
  std::string name() const { return str_cat("NVRTC ", major_, ".", minor_); }
  // `arch`: "sm_80", "sm_90a", "sm_100". A failure's report has "log", "options" and "source".
  Result<Cubin> compile(const std::string &source, std::string_view arch) const;

 private:
  struct Functions;
  std::shared_ptr<const Functions> functions_;
  int major_ = 0, minor_ = 0;
};

// Reads the lines that --ptxas-options=-v prints.
std::vector<EntryUse> parse_ptxas_log(std::string_view log);

}  // namespace kiln::cuda
