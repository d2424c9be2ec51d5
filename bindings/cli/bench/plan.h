// What is measured: each graph or artifact with each combination of what --vary names.
#pragma once
#include <string>
#include <vector>

#include "../args.h"

namespace kiln::cli::bench {

struct Variant {
  std::string name;    // "mlp.json/threads:2/n:128"
  std::string inputs;  // the same for variants that get the same inputs, whose outputs are to be equal
  bool is_artifact = false;
  std::vector<std::string> words;  // of the process that measures it
};

inline constexpr size_t most_variants = 64;

// Of the operands, --vary and the flags of run_flags and compile_flags. Usage: a name that nothing has, a value twice,
// what is given by a flag, too, or more variants than that. Asks a process of `limit` seconds what each operand is.
std::vector<Variant> variants_of(const Args &args, int limit);

}  // namespace kiln::cli::bench
