// The steps of fusion and what passes between them. Private to jit/kernel; fuse.cpp reads as their list.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "jit/kernel/fuse.h"

namespace kiln::kernel {

// A compute that gets memory (or a place in a kernel that does): its producers that cost nothing are in its bodies.
struct Item {
  std::vector<uint32_t> results;   // tensors, one for each of the compute's
  std::vector<uint32_t> operands;  // tensors; what Access::buffer of the bodies numbers
  Compute compute;
  // Result axes whose extent is not 1, those last that a scan or sort goes along or a scatter writes across; others
  // read as 0.
  std::vector<uint32_t> domain;
  bool prepared = false;  // depends on parameters alone
  // Of a scatter: the tensor that its elements are before, if that is another in memory; then it begins as nothing.
  std::optional<uint32_t> base;
  bool over_budget = false;  // has memory only because a reader would have grown past a limit with it inside

  bool sorts() const { return compute.order != Compute::Order::none; }
  bool is_map() const { return compute.is_map(); }
  // How many of the domain's axes may be a kernel's rows.
  size_t row_axes() const {
    return static_cast<size_t>(std::ranges::count_if(domain, [&](uint32_t d) { return may_be_row(d); }));
  }
  bool may_be_row(uint32_t d) const {
    return static_cast<int32_t>(d) != compute.scan && (!compute.scatter || compute.keeps(d));
  }
};

// Items that become one kernel, in order.
struct Group {
  std::vector<uint32_t> items;
  bool contraction = false;  // the first item is one; the others are maps over its domain
  bool row_tiles = false;    // else: contractions are among the items, for a tile of rows at a time
  size_t rows = 0;           // leading domain axes that all items share, the kernel's parallel axes
  int cost = 0;              // of its bodies
};

// In how many windows of a sum an element may be, and be made for each: of more, what makes it is worth its memory, or
// a copy where windows are read in place.
inline constexpr int64_t few_windows = 2;
// inline.cpp: folds views, and producers that are cheap or read once, into their readers.
std::vector<Item> inline_producers(const Program &program, const FuseOptions &options);
// Renumbers the operands so that only those that the bodies load are left.
void drop_unused_operands(Item &item);
// pack.cpp: gives each contraction whose right operand depends on parameters alone a packing item before it.
std::vector<Item> split_packing(std::vector<Item> items, std::vector<Tensor> &tensors, const Target &target);
// Of the contractions of a turn: items that lay out right operands that no turn changes as [.., k][n], for lanes along
// n to read them side by side turn after turn.
std::vector<Item> split_columns(std::vector<Item> &items, std::vector<Tensor> &tensors, const Turns &turns);
// borders.cpp: gives the windows of a contraction's rows an operand with a border around it, so that they are read
// where they lie.
std::vector<Item> split_borders(std::vector<Item> items, std::vector<Tensor> &tensors, const Target &target,
                                const FuseOptions &options);
// split_sums.cpp: cuts long reductions of few results into groups, for tasks to share them, and adds an item that
// combines what each group comes to.
std::vector<Item> split_sums(std::vector<Item> items, std::vector<Tensor> &tensors, const Target &target,
                             const FuseOptions &options);
// group.cpp. Groups are in order of execution.
enum class Grouping : uint8_t {
  by_reads,     // an item joins what it reads; contractions are in tiles, with the maps over their domain
  in_rows,      // all items in one group of rows, which may be none, or no group; each point has its contractions
  in_one_task,  // the same without rows
};
std::vector<Group> group_items(const std::vector<Item> &items, const std::vector<Tensor> &tensors,
                               const FuseOptions &options, Grouping grouping = Grouping::by_reads);
// row_tiles.cpp: groups that pass rows from a contraction to the next are one, in tiles of rows.
std::vector<Group> join_row_tiles(std::vector<Group> groups, const std::vector<Item> &items,
                                  const std::vector<Tensor> &tensors);
// outputs.cpp: drops the items of groups that only copy what another group makes to an output of the same memory. Gives
// for each tensor the one that is written and read in its place, most often itself.
std::vector<uint32_t> write_outputs(std::vector<Group> &groups, const std::vector<Item> &items,
                                    const std::vector<Tensor> &tensors, const std::vector<uint32_t> &group_of);
// scatters.cpp: the tensor whose elements are what a scatter begins as, each at its place.
std::optional<uint32_t> begins_as(const Item &scatter);
// Finds the scatters that begin as another tensor that is in memory by then, and has them begin as nothing.
// `group_of` has the group that makes each tensor.
void find_bases(std::vector<Item> &items, const std::vector<Tensor> &tensors, const std::vector<uint32_t> &group_of,
                const std::vector<bool> &needed);
// Makes of a scatter one that goes through all its points in one task.
void drop_rows(Item &scatter);
// build.cpp: `needed`: tensors that outlive the group. The launch has its buffers, and no kernel yet.
struct Built {
  Kernel kernel;
  Launch launch;
};
Built build_launch(const Group &group, const std::vector<Item> &items, const std::vector<Tensor> &tensors,
                   const std::vector<bool> &needed);
// turns.cpp: the kernel of a turn as that of all turns.
std::optional<Built> take_turns(Built turn, const std::vector<Tensor> &tensors, const Turns &turns,
                                const Target &target);
// collapse.cpp: merges adjacent axes that every access walks as one, and names symbols s0, s1, ...
void collapse_axes(Kernel &kernel);
void for_each_expr_of_stage(Stage &stage, const std::function<void(Expr &)> &fn);
// Makes one axis of a stage's reduce axes, whatever its accesses become. `rows`: the number of parallel axes.
void flatten_reduction(Stage &stage, uint32_t rows);
std::vector<std::string> rename_symbols(Kernel &kernel);
// schedule.cpp
void schedule(Kernel &kernel, const Target &target, const FuseOptions &options);
// The microkernel that the target and a contraction of m rows (perhaps symbolic) get.
struct Microkernel {
  uint32_t mr, nr;
};
Microkernel choose_microkernel(const Expr &m, DType accumulator, const Target &target);
// What panels of its operands hold best: their elements before they are widened, where that gives the same sums.
struct Factors {
  DType a = DType::none, b = DType::none;  // as Contract's
  uint32_t group = 1;
};
Factors choose_factors(const Contract &contract, const Target &target);
void set_factors(Contract &contract, const Factors &factors);

// Whether `load`, of a tensor whose domain is `domain`, reads at axes[0], axes[1], ... in its first `count` domain
// axes.
bool reads_in_step(const Access &load, const std::vector<uint32_t> &domain, const std::vector<Expr> &axes,
                   size_t count);
// The item's domain axes as expressions.
std::vector<Expr> domain_axes(const Item &item);

}  // namespace kiln::kernel
