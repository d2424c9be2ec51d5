// Binary search: each pass halves what is left of the row, in all lanes at once.
#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

class Search {
 public:
  Search(KernelState &state, const kernel::Value &search, const Point &point)
      : state_(state), b_(state.b), search_(search), point_(point) {}

  llvm::Value *emit(llvm::Value *key, llvm::Value *valid, std::span<llvm::Value *const> values) {
    const LaneIndex start = emit_index(state_, search_.access.index[0], point_, values),
                    step = emit_index(state_, search_.access.index[1], point_, values),
                    count = emit_index(state_, search_.expr, point_, values);
    const kernel::Buffer &buffer = state_.kernel.buffers[search_.access.buffer];
    const bool own_rows = buffer.space == kernel::Buffer::Space::row_local && point_.row_local_lanes > 1;
    const bool varies =
        point_.is_vector() && (key->getType()->isVectorTy() || !start.uniform() || !step.uniform() ||
                               !count.uniform() || own_rows || (valid && valid->getType()->isVectorTy()));
    width_ = varies ? point_.width : 1;
    const auto lanes = [&](const LaneIndex &at) { return varies ? emit_lanes(state_, at, point_) : at.base; };
    key_ = splat(state_, key, width_);
    start_ = lanes(start);
    step_ = lanes(step);
    zero_ = number(0);
    llvm::Value *left = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, lanes(count), zero_);
    llvm::Value *searched = valid ? splat(state_, valid, width_) : nullptr;
    if (varies && point_.active) searched = searched ? b_.CreateAnd(searched, point_.active) : point_.active;
    if (searched) left = b_.CreateSelect(searched, left, zero_);
    llvm::Value *most = varies ? b_.CreateIntMaxReduce(left, true) : left;
    const Range passes{b_.getInt64(0), emit_bit_count(state_, most)};
    llvm::Value *found = emit_loop(state_, passes, 1, {zero_, left},
                                   [&](llvm::Value *, const Values &v) { return halve(v[0], v[1]); })[0];
    if (!valid) return found;
    llvm::Value *fill = number(static_cast<int64_t>(search_.access.fill));
    return b_.CreateSelect(splat(state_, valid, width_), found, fill);
  }

 private:
  llvm::Value *number(int64_t value) { return splat(state_, b_.getInt64(static_cast<uint64_t>(value)), width_); }

  // `before` elements are known to be counted; of the `left` that follow them nothing is known.
  Values halve(llvm::Value *before, llvm::Value *left) {
    llvm::Value *some = b_.CreateICmpSGT(left, zero_);
    llvm::Value *half = b_.CreateLShr(left, number(1)), *middle = b_.CreateNSWAdd(before, half);
    llvm::Value *place = b_.CreateNSWAdd(start_, b_.CreateNSWMul(middle, step_));
    const LaneIndex at = width_ > 1 ? LaneIndex{nullptr, nullptr, place} : LaneIndex{place};
    llvm::Value *element = splat(state_, emit_load(state_, search_.access, at, point_, some), width_);
    const DType type = state_.kernel.buffers[search_.access.buffer].type;
    const bool descending = search_.immediate & kernel::search_descending;
    llvm::Value *counts = search_.immediate & kernel::search_upper
                              ? b_.CreateNot(emit_before(state_, type, key_, element, descending))
                              : emit_before(state_, type, element, key_, descending);
    counts = b_.CreateAnd(counts, some);
    llvm::Value *after = b_.CreateNSWAdd(middle, number(1)),
                *rest = b_.CreateNSWSub(b_.CreateNSWSub(left, half), number(1));
    return {b_.CreateSelect(counts, after, before), b_.CreateSelect(counts, rest, half)};
  }

  KernelState &state_;
  llvm::IRBuilder<> &b_;
  const kernel::Value &search_;
  const Point &point_;
  unsigned width_ = 1;
  llvm::Value *key_ = nullptr, *start_ = nullptr, *step_ = nullptr, *zero_ = nullptr;
};

}  // namespace

llvm::Value *emit_search(KernelState &state, const kernel::Value &search, llvm::Value *key, const Point &point,
                         llvm::Value *valid, std::span<llvm::Value *const> values) {
  return Search(state, search, point).emit(key, valid, values);
}

}  // namespace kiln::codegen
