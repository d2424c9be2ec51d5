// Reductions whose lanes are points of the parallel axes. Sums are in the order that they have along vectors
// (kernel.h): what would be the lanes and sets of vectors there lies in scratch here, a vector of points for each. The
// few points of a window are written out one by one, and their sums stay in registers.
#include <algorithm>

#include "jit/kernel/body.h"
#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

class PartialSums {
 public:
  PartialSums(KernelState &state, const kernel::Stage &stage, const Point &point)
      : state_(state),
        b_(state.b),
        stage_(stage),
        carriers_(stage.carriers),
        point_(point),
        lanes_(state.kernel.schedule.lanes()),
        count_(kernel::partials_in_scratch(state.kernel, stage)),
        points_(kernel::reduced_points(stage)),
        in_chunks_(kernel::waiting_in_scratch(state.kernel, stage) > 0),
        partials_(state, carriers_, state.layout.partials, count_, point.width) {}

  Values run(size_t first) {
    const std::optional<Expr> &until = stage_.carriers.until;
    Range all{integer(0), until ? emit_scalar(state_, *until, point_) : emit_scalar(state_, points_, {})};
    if (points_.is_integer() && !until) all.count = points_.integer();
    if (has_sets() && !is_window()) blocks_end_ = b_.CreateAnd(all.end, integer(-count_));
    return emit_chunks(state_, stage_, all, point_.width, [&](const Range &part) {
      if (is_window()) return combined(0, 1);
      if (!is_once_each()) {
        emit_loop(state_, {integer(0), integer(count_), count_}, 1,
                  [&](llvm::Value *number) { partials_.store(number, identities()); });
      }
      take_points(first, integer(0), part, point_);
      if (has_sets()) combine_sets();
      const Values sum = combined(0, 1);
      return sum.empty() ? identities() : sum;
    });
  }

 private:
  llvm::Value *integer(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }
  Values identities() { return emit_identities(state_, carriers_, point_.width); }
  bool has_sets() const { return count_ > lanes_; }
  bool is_once_each() const {  // a partial for each point
    return points_.is_integer() && points_.integer() <= count_ && !stage_.carriers.until;
  }

  // Few points, whose number is known, of a body so short that all of them are little code.
  bool is_window() const {
    constexpr int64_t most_points = 64, most_code = 1024;
    const auto is_known = [](const kernel::Axis &axis) { return axis.extent.is_integer(); };
    return !in_chunks_ && !stage_.carriers.until && points_.is_integer() && points_.integer() > 0 &&
           points_.integer() <= most_points && std::ranges::all_of(stage_.axes, is_known) &&
           points_.integer() * code_of(stage_.body) <= most_code;
  }
  static int64_t code_of(const kernel::Body &body) {
    return std::max<int64_t>(kernel::cost_of(body), static_cast<int64_t>(body.values.size()));
  }
  // What point `number` of a window adds.
  Values point_of_window(int64_t number) {
    Point inside = point_;
    for (size_t n = stage_.axes.size(); n-- > 0;) {
      if (stage_.axes[n].role != kernel::Axis::Role::reduce) continue;
      const int64_t extent = stage_.axes[n].extent.integer();
      inside.set_axis(state_.kernel.parallel.size() + n, integer(number % extent));
      number /= extent;
    }
    return emit_body(state_, stage_.body, inside);
  }
  // Of all sets. It is made where it is added to others, so that few partial results at a time are in registers.
  Values partial_of_window(int64_t lane) {
    const int64_t points = points_.integer(), blocks_end = has_sets() ? points / count_ * count_ : 0;
    Values sum;
    for (int64_t set = 0; set < (has_sets() ? int64_t{kernel::sum_sets} : 1); ++set) {
      Values of_set = identities();
      for (int64_t i = set * lanes_ + lane; i < blocks_end; i += count_) of_set = combine(of_set, point_of_window(i));
      for (int64_t i = blocks_end + lane; set == 0 && i < points; i += lanes_)
        of_set = combine(of_set, point_of_window(i));
      sum = sum.empty() ? of_set : combine(sum, of_set);
    }
    return sum;
  }
  Values partial(int64_t number) { return is_window() ? partial_of_window(number) : partials_.load(integer(number)); }

  // `before`: the number of points of the axes outside axis n; `part`: which of those of the axes from n on.
  void take_points(size_t n, llvm::Value *before, const Range &part, const Point &point) {
    if (n == stage_.axes.size()) {
      llvm::Value *number = partial_of(before);
      const Values sum = is_once_each() ? identities() : partials_.load(number);
      return partials_.store(number, combine(sum, emit_body(state_, stage_.body, point)));
    }
    const Range axis = stage_range(state_, stage_.axes[n], point);
    llvm::Value *outer = b_.CreateNSWMul(before, b_.CreateNSWSub(axis.end, axis.begin));
    const bool is_last = n + 1 == stage_.axes.size();
    llvm::Value *inner = in_chunks_ && !is_last ? points_inside(n) : nullptr;
    const bool is_part = in_chunks_ || stage_.carriers.until;
    const Range range = !is_part ? axis : is_last ? part : quotients(part, inner);
    emit_loop(state_, range, 1, [&](llvm::Value *i) {
      Point inside = point;
      const size_t id = state_.kernel.parallel.size() + n;
      inside.set_axis(id, i);
      if (is_last) inside.stepping = static_cast<int>(id);
      take_points(n + 1, b_.CreateNSWAdd(outer, i), inner ? remainders(part, i, inner) : Range{}, inside);
    });
  }

  // Of the axes inside axis n; at least 1, for it divides.
  llvm::Value *points_inside(size_t n) {
    Expr points = 1;
    for (size_t inner = n + 1; inner < stage_.axes.size(); ++inner) points *= stage_.axes[inner].extent;
    return emit_scalar(state_, max(points, 1), {});
  }
  // Which groups of `size` numbers a part has a share in, and what that is of group i.
  Range quotients(const Range &part, llvm::Value *size) {
    llvm::Value *last = b_.CreateNSWAdd(part.end, b_.CreateNSWSub(size, integer(1)));
    return {b_.CreateUDiv(part.begin, size), b_.CreateUDiv(last, size)};
  }
  Range remainders(const Range &part, llvm::Value *i, llvm::Value *size) {
    llvm::Value *before = b_.CreateNSWMul(i, size);
    return {b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b_.CreateNSWSub(part.begin, before), integer(0)),
            b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateNSWSub(part.end, before), size)};
  }

  llvm::Value *partial_of(llvm::Value *i) {
    llvm::Value *lane = b_.CreateAnd(i, integer(std::min(count_, lanes_) - 1));
    if (!has_sets()) return is_once_each() ? i : lane;
    return b_.CreateSelect(b_.CreateICmpSLT(i, blocks_end_), b_.CreateAnd(i, integer(count_ - 1)), lane);
  }

  void combine_sets() {
    emit_loop(state_, {integer(0), integer(lanes_), lanes_}, 1, [&](llvm::Value *lane) {
      Values sum = partials_.load(lane);
      for (unsigned set = 1; set < kernel::sum_sets; ++set)
        sum = combine(sum, partials_.load(b_.CreateNSWAdd(lane, integer(set * lanes_))));
      partials_.store(lane, sum);
    });
  }

  // Partial `first`, and those after it by `step`: first the lower half of them, then the upper. Empty: there are none.
  Values combined(int64_t first, int64_t step) {
    const int64_t end = has_sets() ? lanes_ : is_once_each() ? points_.integer() : count_;
    if (first >= end) return {};
    if (first + step >= end) return partial(first);
    const Values low = combined(first, 2 * step), high = combined(first + step, 2 * step);
    return combine(low, high);
  }

  Values combine(const Values &left, const Values &right) {
    return emit_combination(state_, carriers_, left, right, point_.width);
  }

  KernelState &state_;
  llvm::IRBuilder<> &b_;
  const kernel::Stage &stage_;
  const kernel::Carriers &carriers_;
  const Point &point_;
  const int64_t lanes_;
  const int64_t count_;  // of partial results: either all sets, or the first one's first
  const Expr points_;
  const bool in_chunks_;  // then axes run over parts of them
  const CarriersInScratch partials_;
  llvm::Value *blocks_end_ = nullptr;  // the points before it fill all sets
};

}  // namespace

Values emit_partial_sums(KernelState &state, const kernel::Stage &stage, size_t first, const Point &point) {
  return PartialSums(state, stage, point).run(first);
}

}  // namespace kiln::codegen
