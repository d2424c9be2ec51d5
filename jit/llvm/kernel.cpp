// The entry function: a loop over tasks, each a tile of the parallel axes, and the stages at each of its points.
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "jit/base/kernel_args.h"
#include "jit/kernel/body.h"
#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

using kernel::Buffer;
using kernel::Kernel;
using kernel::Schedule;

llvm::Function *declare_entry(const Features &features, llvm::Module &module) {
  llvm::LLVMContext &context = module.getContext();
  auto *pointer = llvm::PointerType::getUnqual(context);
  auto *type = llvm::FunctionType::get(llvm::Type::getInt32Ty(context), {pointer}, false);
  auto *function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, entry_name, module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr("frame-pointer", "all");
  function->addFnAttr("no-builtins");
  function->addFnAttr("target-cpu", features.cpu);
  function->addFnAttr("prefer-vector-width", std::to_string(features.vector_bits));
  function->getArg(0)->setName("args");
  return function;
}

class KernelEmitter {
 public:
  KernelEmitter(const Kernel &kernel, const Features &features, llvm::Module &module)
      : state_{kernel,
               features,
               module,
               declare_entry(features, module),
               llvm::IRBuilder<>(module.getContext()),
               kernel::scratch_layout(kernel),
               nullptr,
               {},
               {},
               {},
               {},
               nullptr,
               nullptr,
               nullptr,
               kernel::hidden_columns(kernel),
               {},
               {},
               {}},
        b_(state_.b),
        kernel_(kernel),
        crossed_(kernel::crossed_loads(kernel)) {}

  Status emit() {
    b_.SetInsertPoint(llvm::BasicBlock::Create(b_.getContext(), "entry", state_.function));
    load_arguments();
    choose_streams();
    count_tiles();
    emit_tasks();
    // Others may read what was streamed as soon as the pool hears that this task has ended.
    if (any_stream_) emit_if(state_, any_stream_, [&] { b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {}); });
    b_.CreateRet(b_.getInt32(0));
    return state_.status;
  }

 private:
  llvm::Value *field(size_t offset, llvm::Type *type) {
    return b_.CreateLoad(type, b_.CreateConstGEP1_64(b_.getInt8Ty(), state_.args, offset));
  }

  void load_arguments() {
    llvm::Type *pointer = b_.getPtrTy();
    state_.args = state_.function->getArg(0);
    state_.scratch = field(offsetof(kiln_kernel_args, scratch), pointer);
    state_.error_word = field(offsetof(kiln_kernel_args, error_word), pointer);
    llvm::Value *sizes = field(offsetof(kiln_kernel_args, sizes), pointer);
    for (size_t i = 0; i < kernel_.symbols.size(); ++i)
      state_.symbols.push_back(b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstGEP1_64(b_.getInt64Ty(), sizes, i)));
    llvm::Value *buffers = field(offsetof(kiln_kernel_args, buffers), pointer);
    size_t row_local = 0;
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      if (kernel_.buffers[i].space == Buffer::Space::row_local) {
        llvm::Value *offset = emit_scalar(state_, state_.layout.row_local[row_local++], {});
        state_.buffers.push_back(b_.CreateGEP(b_.getInt8Ty(), state_.scratch, offset));
      } else {
        state_.buffers.push_back(b_.CreateLoad(pointer, b_.CreateConstGEP1_64(pointer, buffers, i)));
      }
    }
  }

  // Streaming pays where a buffer would only push others out of the caches. A kernel that reads it again needs it
  // there.
  void choose_streams() {
    const auto is_read = [&](size_t buffer) {
      return std::ranges::any_of(kernel_.stages, [&](const kernel::Stage &stage) {
        const auto reads = [&](const kernel::Body &body) {
          return std::ranges::any_of(body.values, [&](const kernel::Value &value) {
            return kernel::reads_memory(value.op) && value.access.buffer == buffer;
          });
        };
        return reads(stage.body) || (stage.contract && (reads(stage.contract->a) || reads(stage.contract->b))) ||
               std::ranges::any_of(stage.stores, [&](const kernel::Store &store) {
                 return store.to.buffer == buffer && (store.combines() || store.scatters());
               });
      });
    };
    state_.streams.resize(kernel_.buffers.size());
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      if (kernel_.buffers[i].space != Buffer::Space::out || is_read(i)) continue;
      state_.streams[i] = is_large(kernel_.buffers[i]);
      any_stream_ = either(any_stream_, state_.streams[i]);
    }
  }

  // i1: whether it leaves the caches; null: it never does.
  llvm::Value *is_large(const Buffer &buffer) {
    const uint64_t least = kernel_.schedule.stream_bytes;
    const uint64_t elements = (least + size_of(buffer.type) - 1) / size_of(buffer.type);
    if (least == 0 || (buffer.size.is_integer() && static_cast<uint64_t>(buffer.size.integer()) < elements))
      return nullptr;
    return b_.CreateICmpUGE(emit_scalar(state_, buffer.size, {}), b_.getInt64(elements));
  }

  llvm::Value *either(llvm::Value *a, llvm::Value *b) { return a && b ? b_.CreateOr(a, b) : a ? a : b; }

  // A kernel that streams, or reads much and computes little, waits for memory. Processors foresee too little of it,
  // and only within a page: the next lines are asked for into the first cache, those that follow into the second (25 to
  // 40 GB/s on two v4 cores). What lies in a cache is read more slowly with than without: where sizes decide, and the
  // code is short, it is there twice.
  void emit_tasks() {
    const Range tasks{field(offsetof(kiln_kernel_args, begin), b_.getInt64Ty()),
                      field(offsetof(kiln_kernel_args, end), b_.getInt64Ty())};
    const auto run = [&] { emit_loop(state_, tasks, 1, [&](llvm::Value *task) { emit_task(task); }); };
    const bool brief = is_brief();
    llvm::Value *waits = any_stream_;
    for (const Buffer &buffer : kernel_.buffers)
      if (brief && buffer.space == Buffer::Space::in) waits = either(waits, is_large(buffer));
    if (!waits) return run();
    const bool twice = brief && !llvm::isa<llvm::ConstantInt>(waits);
    for (const uint64_t bytes : {2048, 8192})
      state_.ahead.push_back(twice ? b_.getInt64(bytes) : b_.CreateSelect(waits, b_.getInt64(bytes), b_.getInt64(0)));
    if (!twice) return run();
    emit_if_else(state_, waits, run, [&] {
      state_.ahead.clear();
      run();
    });
  }

  // Few operations on what is read once and in order.
  bool is_brief() const {
    size_t values = 0;
    for (const kernel::Stage &stage : kernel_.stages) {
      if (stage.contract || stage.sort || stage.scans()) return false;
      values += stage.body.values.size() + stage.carriers.combine.values.size();
    }
    return values <= 16;
  }

  void count_tiles() {
    for (size_t i = 0; i < kernel_.parallel.size(); ++i) {
      const Expr &extent = kernel_.parallel[i].extent;
      extents_.push_back(emit_scalar(state_, extent, {}));
      tile_counts_.push_back(ceil_div(extent, Expr(static_cast<int64_t>(kernel_.schedule.tiles[i]))));
      tile_count_values_.push_back(emit_scalar(state_, tile_counts_.back(), {}));
    }
  }

  // Task numbers run through the tiles of the last axis first.
  void emit_task(llvm::Value *task) {
    ranges_.assign(kernel_.parallel.size(), {});
    llvm::Value *rest = task;
    for (size_t i = kernel_.parallel.size(); i-- > 0;) {
      llvm::Value *tile = rest;
      if (tile_counts_[i].is(1)) {
        tile = b_.getInt64(0);
      } else if (i > 0) {
        tile = b_.CreateURem(rest, tile_count_values_[i]);
        rest = b_.CreateUDiv(rest, tile_count_values_[i]);
      }
      ranges_[i] = tile_range(i, tile);
    }
    emit_axes(0, {});
  }

  Range tile_range(size_t axis, llvm::Value *tile) {
    const int64_t size = kernel_.schedule.tiles[axis];
    const Expr &extent = kernel_.parallel[axis].extent;
    llvm::Value *begin = b_.CreateNSWMul(tile, b_.getInt64(static_cast<uint64_t>(size)));
    llvm::Value *end = b_.CreateNSWAdd(begin, b_.getInt64(static_cast<uint64_t>(size)));
    if (size == 1) return {begin, end, 1};
    if (extent.is_integer() && extent.integer() % size == 0) return {begin, end, size};
    if (extent.is_integer() && extent.integer() < size) return {begin, extents_[axis], extent.integer()};
    return {begin, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, extents_[axis]), std::nullopt,
            std::gcd(size, whole_vectors(kernel_.schedule, extent))};
  }

  void emit_axes(size_t axis, const Point &point) {
    const size_t count = kernel_.parallel.size();
    if (is_tiled_contraction(kernel_) && axis + 2 == count)
      return emit_contraction(state_, kernel_.stages[0], point, ranges_[axis], ranges_[axis + 1]);
    if (is_in_row_tiles(kernel_) && axis + 1 == count) return emit_row_tile(state_, point, ranges_[axis]);
    if (axis == count) return emit_stages(state_, point);
    if (axis + 2 == count && !crossed_.empty()) return emit_blocks(axis, point);
    emit_axis(axis, point);
  }

  // A transpose, whose last axes go in blocks: what is left of them goes point by point, and lanes along the last.
  void emit_blocks(size_t axis, const Point &point) {
    const unsigned lanes = kernel_.schedule.lanes();
    const Range lines = ranges_[axis], columns = ranges_[axis + 1];
    const LaneRanges lines_in = split_range(state_, lines, lanes), columns_in = split_range(state_, columns, lanes);
    emit_loop(state_, lines_in.vectors, lanes, [&](llvm::Value *i) {
      emit_loop(state_, columns_in.vectors, lanes,
                [&](llvm::Value *j) { emit_crossed_block(state_, crossed_, point, i, j); });
      if (!columns.has_rest(lanes)) return;
      ranges_[axis] = {i, b_.CreateNSWAdd(i, b_.getInt64(lanes)), lanes};
      ranges_[axis + 1] = columns_in.rest;
      emit_axis(axis, point);
    });
    ranges_[axis] = lines_in.rest;
    ranges_[axis + 1] = columns;
    if (lines.has_rest(lanes)) emit_axis(axis, point);
  }

  void emit_axis(size_t axis, const Point &point) {
    const size_t count = kernel_.parallel.size();
    const Schedule &schedule = kernel_.schedule;
    const bool vectors = axis + 1 == count && schedule.vector == Schedule::Vector::parallel;
    const unsigned width = vectors ? schedule.lanes() : 1;
    const LanePlan plan = make_plan(state_, kernel_.stages, axis, width, schedule.tiles[axis] % width == 0 ? width : 1);
    Point inside = point;
    inside.row_local_lanes = width;
    const auto body = [&](const Point &next) { emit_axes(axis + 1, next); };
    Range range = ranges_[axis];
    if (const uint32_t many = kernel::points_side_by_side(kernel_); vectors && many > width) {
      const LanePlan pieces{axis, many, false, false, width};
      const auto [whole, rest] = split_range(state_, range, many);
      emit_loop(state_, whole, many, [&](llvm::Value *i) { body(at_lanes(pieces, inside, i)); });
      range = rest;
    }
    emit_over_lanes(state_, plan, range, inside, body);
  }

  KernelState state_;
  llvm::IRBuilder<> &b_;
  const Kernel &kernel_;
  std::vector<llvm::Value *> extents_, tile_count_values_;
  std::vector<Expr> tile_counts_;
  std::vector<Range> ranges_;          // of the task being emitted
  std::vector<size_t> crossed_;        // loads of a transpose, by number
  llvm::Value *any_stream_ = nullptr;  // i1
};

}  // namespace

Status emit_kernel(const Kernel &kernel, const Features &features, llvm::Module &module) {
  if (is_tiled_contraction(kernel) && kernel.schedule.mr == 0)
    return error(Code::unimplemented, "a contraction without a microkernel: it was scheduled for a device");
  return KernelEmitter(kernel, features, module).emit();
}

}  // namespace kiln::codegen
