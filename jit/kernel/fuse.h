// From computes to kernels: inlining, grouping by rows, scheduling. Deterministic, linear in the number of computes.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/kernel/compute.h"
#include "jit/kernel/kernel.h"

namespace kiln::kernel {

// A tensor that computes read or make. Its memory is addressed by strides (elements).
struct Tensor {
  DType dtype = DType::f32;
  Shape dims, strides;
  bool is_output = false;  // must be in memory when all is done
  // Of what no compute makes: it is a parameter or constant, or follows from these alone. Of an output: it may be made
  // once a binding, if it follows from them.
  bool prepared = false;
  // Of a tensor that fusion added: the one that it is made for, of whose sums it has parts, or of whose operands a
  // copy.
  std::optional<uint32_t> part_of = {};
};

struct Program {  // computes in topological order
  std::vector<Tensor> tensors;
  struct Def {
    std::vector<uint32_t> results;  // tensors, one for each of the compute's
    std::vector<uint32_t> operands;
    Compute compute;
    std::string_view node = {}, op = {};  // of the graph, for messages; views of what the program was lowered from
  };
  std::vector<Def> defs;
};

struct Launch {
  std::shared_ptr<const Kernel> kernel;  // launches of equal kernels share one
  std::vector<uint32_t> buffers;         // tensor numbers, one for each in and out buffer of the kernel
  std::vector<std::string> symbols;      // the program's symbol for each of the kernel's
  // An output of which the kernel writes some elements alone: the others are those of `tensor`, with which the memory
  // is filled before, or which lay there.
  struct Base {
    uint16_t buffer;
    uint32_t tensor;
  };
  std::vector<Base> bases;
  bool prepared = false;  // depends on parameters alone: belongs to `prepare`

  // Takes for each tensor the one of that number.
  void go_to(const std::vector<uint32_t> &numbers) {
    for (uint32_t &tensor : buffers) tensor = numbers[tensor];
    for (Base &base : bases) base.tensor = numbers[base.tensor];
  }
};

struct Fused {
  std::vector<Tensor> tensors;   // the program's, then those that fusion added (packed panels, copies, parts of sums)
  std::vector<Launch> launches;  // in order of execution
  // How many tensors are in memory, and most often have a kernel of their own, only because the kernels that read them
  // would have grown past a limit: long chains of views, whose index maps multiply.
  uint32_t materialised = 0;
};

struct FuseOptions {
  bool fuse = true;     // false: one kernel a compute (tests compare both)
  bool ordered = true;  // Schedule::ordered
};
Result<Fused> fuse(const Program &program, const Target &target, const FuseOptions &options);

// A program that is one turn of a scan. Beside its own tensors stand those of all turns.
struct Turns {
  Expr count;
  bool reverse = false;  // the last turn first
  struct Carried {
    uint32_t before, after, end;  // what a turn reads, and in the first one is given; what it makes; what is left
  };
  struct Sequence {
    uint32_t element, whole;  // of a turn; of all turns, along a new first dim
  };
  std::vector<Carried> carried;
  std::vector<Sequence> read, made;
  std::vector<uint32_t> prepared;  // which of the tensors that all turns read depend on parameters alone
};
// All turns in one launch, where the program is one kernel and what its points carry is theirs alone and small; sums of
// products may be in it where they are small, and their weights are laid out for them by launches before. A turn gives
// the same bits as the program. Without fusion, or where it cannot be: nothing.
Result<std::optional<Fused>> fuse_turns(const Program &program, const Turns &turns, const Target &target,
                                        const FuseOptions &options);

// The defs that each launch computes, or a part of which, in their order; `tensors` are those after fusion. Linear in
// all of them.
std::vector<std::vector<uint32_t>> defs_of(std::span<const Launch> launches, std::span<const Tensor> tensors,
                                           const Program &program);
// The nodes that a launch computes, in their order, for messages: "'a' [reshape], 'y' [exp]".
std::string nodes_of(const Launch &launch, std::span<const Tensor> tensors, const Program &program);

}  // namespace kiln::kernel
