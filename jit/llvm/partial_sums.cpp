// Reductions whose lanes are points of the parallel axes. Sums are in the order that they have along vectors
// (kernel.h): what would be the lanes and sets of vectors there lies in scratch here, a vector of points for each.
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
        points_(kernel::reduced_points(stage)) {
    llvm::Value *area = emit_scalar(state_, state_.layout.partials, {});
    for (DType type : carriers_.types) {
      areas_.push_back(b_.CreateGEP(b_.getInt8Ty(), state_.scratch, area));
      area = b_.CreateNSWAdd(area, integer(count_ * lanes_ * size_of(type)));
    }
  }

  Values run(size_t first) {
    if (!is_once_each()) {
      emit_loop(state_, {integer(0), integer(count_), count_}, 1,
                [&](llvm::Value *number) { store(number, identities()); });
    }
    llvm::Value *points = emit_scalar(state_, points_, {});
    if (has_sets()) blocks_end_ = b_.CreateAnd(points, integer(-count_));
    take_points(first, integer(0), point_);
    if (has_sets()) combine_sets();
    const Values sum = combined(0, 1);
    return sum.empty() ? identities() : sum;
  }

 private:
  llvm::Value *integer(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }
  Values identities() { return emit_identities(state_, carriers_, point_.width); }
  bool has_sets() const { return count_ > lanes_; }
  bool is_once_each() const { return points_.is_integer() && points_.integer() <= count_; }  // a partial for each point

  // `before`: the number of points of the axes outside axis n.
  void take_points(size_t n, llvm::Value *before, const Point &point) {
    if (n == stage_.axes.size()) {
      llvm::Value *number = partial_of(before);
      return store(number,
                   combine(is_once_each() ? identities() : load(number), emit_body(state_, stage_.body, point)));
    }
    const Range range = stage_range(state_, stage_.axes[n], point);
    llvm::Value *outer = b_.CreateNSWMul(before, b_.CreateNSWSub(range.end, range.begin));
    emit_loop(state_, range, 1, [&](llvm::Value *i) {
      Point inside = point;
      inside.set_axis(state_.kernel.parallel.size() + n, i);
      take_points(n + 1, b_.CreateNSWAdd(outer, i), inside);
    });
  }

  llvm::Value *partial_of(llvm::Value *i) {
    llvm::Value *lane = b_.CreateAnd(i, integer(lanes_ - 1));
    if (!has_sets()) return is_once_each() ? i : lane;
    return b_.CreateSelect(b_.CreateICmpSLT(i, blocks_end_), b_.CreateAnd(i, integer(count_ - 1)), lane);
  }

  void combine_sets() {
    emit_loop(state_, {integer(0), integer(lanes_), lanes_}, 1, [&](llvm::Value *lane) {
      Values sum = load(lane);
      for (unsigned set = 1; set < kernel::sum_sets; ++set)
        sum = combine(sum, load(b_.CreateNSWAdd(lane, integer(set * lanes_))));
      store(lane, sum);
    });
  }

  // Partial `first`, and those after it by `step`: first the lower half of them, then the upper. Empty: there are none.
  Values combined(int64_t first, int64_t step) {
    const int64_t end = has_sets() ? lanes_ : is_once_each() ? points_.integer() : count_;
    if (first >= end) return {};
    if (first + step >= end) return load(integer(first));
    const Values low = combined(first, 2 * step), high = combined(first + step, 2 * step);
    return combine(low, high);
  }

  Values combine(const Values &left, const Values &right) {
    return emit_combination(state_, carriers_, left, right, point_.width);
  }

  llvm::Type *vector(llvm::Type *element) {
    return point_.is_vector() ? llvm::FixedVectorType::get(element, point_.width) : element;
  }
  llvm::Value *place(size_t carrier, llvm::Value *number) {
    return b_.CreateGEP(memory_type_of(state_, carriers_.types[carrier]), areas_[carrier],
                        b_.CreateNSWMul(number, integer(lanes_)));
  }
  llvm::Align alignment(size_t carrier) const { return llvm::Align(size_of(carriers_.types[carrier])); }

  Values load(llvm::Value *number) {
    Values values;
    for (size_t c = 0; c < areas_.size(); ++c) {
      llvm::Type *in_memory = memory_type_of(state_, carriers_.types[c]), *type = type_of(state_, carriers_.types[c]);
      llvm::Value *value = b_.CreateAlignedLoad(vector(in_memory), place(c, number), alignment(c));
      values.push_back(type == in_memory ? value : b_.CreateTrunc(value, vector(type)));
    }
    return values;
  }
  void store(llvm::Value *number, const Values &values) {
    for (size_t c = 0; c < areas_.size(); ++c) {
      llvm::Type *in_memory = memory_type_of(state_, carriers_.types[c]), *type = type_of(state_, carriers_.types[c]);
      llvm::Value *value = type == in_memory ? values[c] : b_.CreateZExt(values[c], vector(in_memory));
      b_.CreateAlignedStore(value, place(c, number), alignment(c));
    }
  }

  KernelState &state_;
  llvm::IRBuilder<> &b_;
  const kernel::Stage &stage_;
  const kernel::Carriers &carriers_;
  const Point &point_;
  const int64_t lanes_;
  const int64_t count_;  // of partial results: either all sets, or the first one's first
  const Expr points_;
  std::vector<llvm::Value *> areas_;   // by carrier
  llvm::Value *blocks_end_ = nullptr;  // the points before it fill all sets
};

}  // namespace

Values emit_partial_sums(KernelState &state, const kernel::Stage &stage, size_t first, const Point &point) {
  return PartialSums(state, stage, point).run(first);
}

}  // namespace kiln::codegen
