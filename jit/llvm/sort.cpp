// Sorts: merges of runs, from the length that they come in, where rows are short or runs long; else digits. Lanes,
// where row_local buffers have a row for each, are sorted one after the other.
#include "jit/llvm/sort_columns.h"

namespace kiln::codegen {
namespace {

using kernel::Sort;

class SortEmitter {
 public:
  SortEmitter(KernelState &state, const kernel::Stage &stage, const Point &point)
      : state_(state), b_(state.b), sort_(*stage.sort), point_(point), columns_(state, sort_, point) {
    count_ = stage_range(state, stage.axes.back(), point).end;
  }

  void emit() {
    emit_loop(state_, {b_.getInt64(0), b_.getInt64(point_.width), point_.width}, 1, [&](llvm::Value *lane) {
      home_ = columns_.begin(lane);
      if (sort_.wanted)
        emit_wanted(emit_scalar(state_, *sort_.wanted, point_));
      else
        emit_sorted(count_);
    });
  }

 private:
  // One walk over all elements, past a store of those that may be wanted: whatever comes before the last of `wanted`
  // sorted ones is put behind them. Full, the store is sorted, and keeps `wanted` again.
  void emit_wanted(llvm::Value *wanted) {
    constexpr uint64_t least_room = 32;
    llvm::Value *zero = b_.getInt64(0), *one = b_.getInt64(1);
    llvm::Value *room = at_most(max(b_.CreateShl(wanted, one), b_.getInt64(least_room)), count_);
    room = b_.CreateSelect(b_.CreateICmpSLT(b_.CreateShl(wanted, b_.getInt64(2)), count_), room, count_);
    emit_if(state_, b_.CreateICmpSGT(wanted, zero), [&] {
      emit_repeat(state_, {room, room}, [&](const Values &now) {
        llvm::Value *next = now[0], *held = now[1];
        emit_sorted(held);
        llvm::Value *more = b_.CreateICmpSLT(next, count_);
        Values values = emit_if(state_, more, {next, held}, [&] {
          return emit_fill(next, wanted, room, columns_.key(home_, b_.CreateNSWSub(wanted, one)));
        });
        return Repeated{std::move(values), more};
      });
    });
  }

  // Elements from `next` on that come before `last` go behind the first `held`, until there is no room or element left.
  Values emit_fill(llvm::Value *next, llvm::Value *held, llvm::Value *room, llvm::Value *last) {
    llvm::Value *one = b_.getInt64(1);
    return emit_repeat(state_, {next, held}, [&](const Values &now) {
      llvm::Value *i = now[0];
      llvm::Value *is_wanted = emit_before(state_, columns_.key_type(), columns_.key(home_, i), last, sort_.descending);
      const Values put = emit_if(state_, is_wanted, {now[1]}, [&] {
        columns_.copy(home_, i, home_, now[1]);
        return Values{b_.CreateNSWAdd(now[1], one)};
      });
      llvm::Value *following = b_.CreateNSWAdd(i, one);
      llvm::Value *goes_on = b_.CreateAnd(b_.CreateICmpSLT(following, count_), b_.CreateICmpSLT(put[0], room));
      return Repeated{{following, put[0]}, goes_on};
    });
  }

  void emit_sorted(llvm::Value *count) {
    if (!sort_.runs.is(1)) return emit_merges(count);
    const auto least = static_cast<uint64_t>(least_sorted_by_digits(columns_.key_type()));
    emit_if_else(
        state_, b_.CreateICmpSLT(count, b_.getInt64(least)), [&] { emit_merges(count); },
        [&] { emit_sort_by_digits(state_, columns_, home_, count); });
  }

  void emit_merges(llvm::Value *count) {
    llvm::Value *one = b_.getInt64(1), *runs = at_most(emit_scalar(state_, sort_.runs, point_), max(count, one));
    // As many doublings as make one run of all.
    llvm::Value *pieces = b_.CreateUDiv(b_.CreateNSWAdd(count, b_.CreateNSWSub(runs, one)), runs);
    const Range passes{b_.getInt64(0), emit_bit_count(state_, max(b_.CreateNSWSub(pieces, one), b_.getInt64(0)))};
    const Places places = emit_loop(state_, passes, 1, home_, [&](llvm::Value *pass, const Places &from) {
      emit_pass(from, count, b_.CreateShl(runs, pass));
      return Columns::swapped(from);
    });
    columns_.settle(places, home_, count);
  }

  // Merges neighbouring runs of `length`.
  void emit_pass(const Places &from, llvm::Value *count, llvm::Value *length) {
    llvm::Value *pair = b_.CreateShl(length, b_.getInt64(1));
    llvm::Value *pairs = b_.CreateUDiv(b_.CreateNSWAdd(count, b_.CreateNSWSub(pair, b_.getInt64(1))), pair);
    emit_loop(state_, {b_.getInt64(0), pairs}, 1, [&](llvm::Value *number) {
      llvm::Value *begin = b_.CreateNSWMul(number, pair);
      emit_merge(from, begin, at_most(b_.CreateNSWAdd(begin, length), count),
                 at_most(b_.CreateNSWAdd(begin, pair), count));
    });
  }

  // [begin, middle) and [middle, end) to the other place. Of equals the left one comes first.
  void emit_merge(const Places &places, llvm::Value *begin, llvm::Value *middle, llvm::Value *end) {
    llvm::Value *one = b_.getInt64(1);
    emit_loop(state_, {begin, end}, 1, {begin, middle}, [&](llvm::Value *to, const Values &next) {
      llvm::Value *left = next[0], *right = next[1];
      llvm::Value *has_left = b_.CreateICmpSLT(left, middle), *has_right = b_.CreateICmpSLT(right, end);
      // Where one run has ended, its last place is read in vain: `to` lies in both runs' common range.
      llvm::Value *x = columns_.key(places, b_.CreateSelect(has_left, left, to)),
                  *y = columns_.key(places, b_.CreateSelect(has_right, right, to));
      llvm::Value *right_first =
          b_.CreateAnd(has_right, emit_before(state_, columns_.key_type(), y, x, sort_.descending));
      llvm::Value *takes_right = b_.CreateOr(b_.CreateNot(has_left), right_first);
      columns_.move(places, b_.CreateSelect(takes_right, right, left), to);
      return Values{b_.CreateSelect(takes_right, left, b_.CreateNSWAdd(left, one)),
                    b_.CreateSelect(takes_right, b_.CreateNSWAdd(right, one), right)};
    });
  }

  llvm::Value *at_most(llvm::Value *value, llvm::Value *limit) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, value, limit);
  }
  llvm::Value *max(llvm::Value *a, llvm::Value *b) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b); }

  KernelState &state_;
  llvm::IRBuilder<> &b_;
  const Sort &sort_;
  const Point &point_;
  Columns columns_;
  Places home_;  // of the lane
  llvm::Value *count_;
};

}  // namespace

llvm::Value *emit_before(KernelState &state, DType type, llvm::Value *x, llvm::Value *y, bool descending) {
  auto &b = state.b;
  if (is_small_float(type)) {
    x = emit_convert(state, x, type, DType::f32);
    y = emit_convert(state, y, type, DType::f32);
  }
  if (descending) std::swap(x, y);
  // Less, or a number before a NaN.
  if (dtype_info(type).is_float) return b.CreateAnd(b.CreateFCmpORD(x, x), b.CreateFCmpULT(x, y));
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
