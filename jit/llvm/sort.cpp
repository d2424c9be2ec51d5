// Sorts: merges of runs, from the length that they come in, each pass into the spares and back. Lanes, where row_local
// buffers have a row for each, are sorted one after the other.
#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

using kernel::Sort;

class SortEmitter {
 public:
  SortEmitter(KernelState &state, const kernel::Stage &stage, const Point &point)
      : state_(state), b_(state.b), sort_(*stage.sort), point_(point) {
    const Range range = stage_range(state, stage.axes.back(), point);
    count_ = range.end;
  }

  void emit() {
    llvm::Value *runs =
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, emit_scalar(state_, sort_.runs, point_),
                                 b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, count_, b_.getInt64(1)));
    // As many doublings as make one run of all.
    llvm::Value *pieces = b_.CreateUDiv(b_.CreateNSWAdd(count_, b_.CreateNSWSub(runs, b_.getInt64(1))), runs);
    llvm::Value *more =
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b_.CreateNSWSub(pieces, b_.getInt64(1)), b_.getInt64(0));
    const Range passes{b_.getInt64(0), emit_bit_count(state_, more)};
    emit_loop(state_, {b_.getInt64(0), b_.getInt64(point_.width), point_.width}, 1, [&](llvm::Value *lane) {
      lane_ = lane;
      emit_loop(state_, passes, 1, [&](llvm::Value *pass) { emit_pass(b_.CreateShl(runs, pass)); });
    });
  }

 private:
  // Merges neighbouring runs of `length`.
  void emit_pass(llvm::Value *length) {
    llvm::Value *pair = b_.CreateShl(length, b_.getInt64(1));
    llvm::Value *pairs = b_.CreateUDiv(b_.CreateNSWAdd(count_, b_.CreateNSWSub(pair, b_.getInt64(1))), pair);
    emit_loop(state_, {b_.getInt64(0), pairs}, 1, [&](llvm::Value *number) {
      llvm::Value *begin = b_.CreateNSWMul(number, pair);
      emit_merge(begin, at_most(b_.CreateNSWAdd(begin, length)), at_most(b_.CreateNSWAdd(begin, pair)));
    });
    for (const Sort::Column &column : sort_.columns)
      emit_loop(state_, {b_.getInt64(0), count_}, 1,
                [&](llvm::Value *i) { store(column.buffer, i, load(column.spare, i)); });
  }

  // [begin, middle) and [middle, end) into the spares. Of equals the left one comes first.
  void emit_merge(llvm::Value *begin, llvm::Value *middle, llvm::Value *end) {
    llvm::Value *one = b_.getInt64(1);
    emit_loop(state_, {begin, end}, 1, {begin, middle}, [&](llvm::Value *to, const Values &next) {
      llvm::Value *left = next[0], *right = next[1];
      llvm::Value *has_left = b_.CreateICmpSLT(left, middle), *has_right = b_.CreateICmpSLT(right, end);
      // Where one run has ended, its last place is read in vain: `to` lies in both runs' common range.
      llvm::Value *x = key(b_.CreateSelect(has_left, left, to)), *y = key(b_.CreateSelect(has_right, right, to));
      const DType type = type_of_buffer(sort_.columns[0].buffer);
      llvm::Value *right_first = b_.CreateAnd(has_right, emit_before(state_, type, y, x, sort_.descending));
      llvm::Value *takes_right = b_.CreateOr(b_.CreateNot(has_left), right_first);
      llvm::Value *from = b_.CreateSelect(takes_right, right, left);
      for (const Sort::Column &column : sort_.columns) store(column.spare, to, load(column.buffer, from));
      return Values{b_.CreateSelect(takes_right, left, b_.CreateNSWAdd(left, one)),
                    b_.CreateSelect(takes_right, b_.CreateNSWAdd(right, one), right)};
    });
  }

  llvm::Value *at_most(llvm::Value *end) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, count_); }

  DType type_of_buffer(uint16_t buffer) const { return state_.kernel.buffers[buffer].type; }
  llvm::Type *memory_type(uint16_t buffer) { return memory_type_of(state_, type_of_buffer(buffer)); }
  llvm::Value *address(uint16_t buffer, llvm::Value *i) {
    llvm::Value *element = b_.CreateNSWAdd(b_.CreateNSWMul(i, b_.getInt64(point_.row_local_lanes)), lane_);
    return b_.CreateGEP(memory_type(buffer), state_.buffers[buffer], element);
  }
  llvm::Align alignment(uint16_t buffer) const { return llvm::Align(size_of(type_of_buffer(buffer))); }
  llvm::Value *load(uint16_t buffer, llvm::Value *i) {
    return b_.CreateAlignedLoad(memory_type(buffer), address(buffer, i), alignment(buffer));
  }
  void store(uint16_t buffer, llvm::Value *i, llvm::Value *element) {
    b_.CreateAlignedStore(element, address(buffer, i), alignment(buffer));
  }
  llvm::Value *key(llvm::Value *i) { return load(sort_.columns[0].buffer, i); }

  KernelState &state_;
  llvm::IRBuilder<> &b_;
  const Sort &sort_;
  const Point &point_;
  llvm::Value *count_, *lane_ = nullptr;
};

}  // namespace

llvm::Value *emit_before(KernelState &state, DType type, llvm::Value *x, llvm::Value *y, bool descending) {
  auto &b = state.b;
  if (is_small_float(type)) {
    x = emit_convert(state, x, type, DType::f32);
    y = emit_convert(state, y, type, DType::f32);
  }
  if (dtype_info(type).is_float) {
    llvm::Value *before = descending ? b.CreateFCmpOGT(x, y) : b.CreateFCmpOLT(x, y);
    return b.CreateOr(before, b.CreateAnd(b.CreateFCmpORD(x, x), b.CreateFCmpUNO(y, y)));
  }
  if (descending) std::swap(x, y);
  return dtype_info(type).is_signed ? b.CreateICmpSLT(x, y) : b.CreateICmpULT(x, y);
}

llvm::Value *emit_bit_count(KernelState &state, llvm::Value *number) {
  llvm::Value *zeros = state.b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, number, state.b.getFalse());
  return state.b.CreateNSWSub(state.b.getInt64(64), zeros);
}

void emit_sort(KernelState &state, const kernel::Stage &stage, const Point &point) {
  SortEmitter(state, stage, point).emit();
}

}  // namespace kiln::codegen
