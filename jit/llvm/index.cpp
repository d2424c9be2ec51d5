// Index expressions over the lanes of a point.
//
// An expression is kept as base + stride * lane as long as it is one: then an access is a broadcast (stride 0), a
// vector load (stride 1) or strided. i // c and i % c stay so where active lanes do not cross a multiple of c. What is
// left becomes a vector of i64, whose floor divisions run in floating point: vectors have no integer division.
#include <bit>

#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

class IndexEmitter {
 public:
  IndexEmitter(KernelState &state, const Point &point, std::span<llvm::Value *const> values)
      : state_(state), b_(state.b), point_(point), values_(values) {}

  LaneIndex emit(const Expr &e) {
    switch (e.kind()) {
      case Expr::Kind::integer:
        return {integer(e.integer())};
      case Expr::Kind::symbol:
        return {symbol(e.symbol_name())};
      case Expr::Kind::axis:
        return axis(e.id());
      case Expr::Kind::value: {
        llvm::Value *v = values_[e.id()];
        if (!v->getType()->isVectorTy()) return {v};
        return {nullptr, nullptr, v};
      }
      case Expr::Kind::sum:
        return fold(e, &IndexEmitter::add);
      case Expr::Kind::product:
        return fold(e, &IndexEmitter::multiply);
      case Expr::Kind::min:
        return fold(e, &IndexEmitter::minimum);
      case Expr::Kind::max:
        return fold(e, &IndexEmitter::maximum);
      case Expr::Kind::floor_div:
        return divide(e, false);
      case Expr::Kind::mod:
        return divide(e, true);
    }
    return {integer(0)};
  }

 private:
  llvm::Value *integer(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }

  llvm::Value *symbol(const std::string &name) {
    const auto &names = state_.kernel.symbols;
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) return state_.symbols[i];
    state_.fail(error(Code::internal, "an index uses symbol '", name, "', which the kernel does not declare"));
    return integer(0);
  }

  LaneIndex axis(uint32_t id) {
    llvm::Value *value = id < point_.axes.size() ? point_.axes[id] : nullptr;
    if (!value) {
      state_.fail(error(Code::internal, "an index uses axis ", id, " outside its loop"));
      return {integer(0)};
    }
    if (point_.is_vector() && static_cast<int>(id) == point_.vector_axis) return {value, integer(1)};
    return {value};
  }

  LaneIndex fold(const Expr &e, LaneIndex (IndexEmitter::*combine)(const LaneIndex &, const LaneIndex &)) {
    LaneIndex result;
    bool first = true;
    for (const Expr &operand : e.operands()) {
      const LaneIndex next = emit(operand);
      result = first ? next : (this->*combine)(result, next);
      first = false;
    }
    return result;
  }

  LaneIndex add(const LaneIndex &x, const LaneIndex &y) {
    if (x.lanes || y.lanes) return general(b_.CreateNSWAdd(lanes(x), lanes(y)));
    llvm::Value *stride = x.stride && y.stride ? b_.CreateNSWAdd(x.stride, y.stride) : x.stride ? x.stride : y.stride;
    return {b_.CreateNSWAdd(x.base, y.base), stride};
  }

  LaneIndex multiply(const LaneIndex &x, const LaneIndex &y) {
    if (!x.uniform() && !y.uniform()) return general(b_.CreateNSWMul(lanes(x), lanes(y)));
    const LaneIndex &varying = x.uniform() ? y : x;
    llvm::Value *factor = x.uniform() ? x.base : y.base;
    if (varying.lanes) return general(b_.CreateNSWMul(varying.lanes, lanes({factor})));
    return {b_.CreateNSWMul(varying.base, factor), varying.stride ? b_.CreateNSWMul(varying.stride, factor) : nullptr};
  }

  LaneIndex minimum(const LaneIndex &x, const LaneIndex &y) { return choose(x, y, llvm::Intrinsic::smin); }
  LaneIndex maximum(const LaneIndex &x, const LaneIndex &y) { return choose(x, y, llvm::Intrinsic::smax); }
  LaneIndex choose(const LaneIndex &x, const LaneIndex &y, llvm::Intrinsic::ID which) {
    if (x.uniform() && y.uniform()) return {b_.CreateBinaryIntrinsic(which, x.base, y.base)};
    return general(b_.CreateBinaryIntrinsic(which, lanes(x), lanes(y)));
  }

  LaneIndex divide(const Expr &e, bool remainder) {
    const Expr &dividend = e.operands()[0], &divisor = e.operands()[1];
    if (const std::optional<LaneIndex> known = of_split(dividend, divisor, remainder)) return *known;
    const LaneIndex x = emit(dividend), y = emit(divisor);
    if (in_row(dividend, divisor)) {
      llvm::Value *quotient = b_.CreateUDiv(point_.row_begin, y.base);
      if (!remainder) return {quotient};
      return {b_.CreateNSWSub(x.base, b_.CreateNSWMul(quotient, y.base)), x.stride};
    }
    const bool inside = x.contiguous() && divisor.is_integer() && divisor.integer() > 0 &&
                        divisor.integer() % point_.width == 0 && starts_block(dividend);
    if (y.uniform() && (x.uniform() || inside)) {
      const bool non_negative = dividend.lower_bound().value_or(-1) >= 0;
      llvm::Value *quotient = scalar_quotient(x.base, y.base, divisor, non_negative);
      if (!remainder) return {quotient};
      return {b_.CreateNSWSub(x.base, b_.CreateNSWMul(quotient, y.base)), x.stride};
    }
    llvm::Value *n = lanes(x), *d = lanes(y);
    llvm::Value *quotient = is_small(dividend, divisor) ? small_quotient(n, divisor.integer()) : lane_quotient(n, d);
    return general(remainder ? b_.CreateNSWSub(n, b_.CreateNSWMul(quotient, d)) : quotient);
  }

  // Of period * turn + place by what divides the period: then the loop over turns need not divide.
  std::optional<LaneIndex> of_split(const Expr &dividend, const Expr &divisor, bool remainder) {
    const auto divides = [&](int64_t d) { return d > 0 && point_.period % d == 0; };
    const auto is_split = [&](const Expr &e) {
      return e.kind() == Expr::Kind::axis && static_cast<int>(e.id()) == point_.split_axis;
    };
    if (point_.split_axis < 0 || !divisor.is_integer() || !divides(divisor.integer())) return std::nullopt;
    const int64_t d = divisor.integer();
    if (is_split(dividend) && remainder) return LaneIndex{b_.CreateURem(point_.place, integer(d))};
    if (is_split(dividend)) {
      llvm::Value *turns = b_.CreateNSWMul(point_.turn, integer(point_.period / d));
      return LaneIndex{b_.CreateNSWAdd(turns, b_.CreateUDiv(point_.place, integer(d)))};
    }
    if (!remainder || dividend.kind() != Expr::Kind::floor_div || !is_split(dividend.operands()[0]))
      return std::nullopt;
    const Expr &inner = dividend.operands()[1];
    if (!inner.is_integer() || inner.integer() > point_.period || !divides(inner.integer() * d)) return std::nullopt;
    return LaneIndex{b_.CreateURem(b_.CreateUDiv(point_.place, integer(inner.integer())), integer(d))};
  }

  bool in_row(const Expr &dividend, const Expr &divisor) const {
    return point_.row_begin && dividend.kind() == Expr::Kind::axis &&
           static_cast<int>(dividend.id()) == point_.vector_axis && divisor.is_integer() && divisor.integer() > 0 &&
           divisor.integer() % point_.row_length == 0;
  }

  // Whether a contiguous dividend is a multiple of the width in lane 0: the vector axis, plus multiples of the width.
  bool starts_block(const Expr &e) const {
    if (point_.alignment % point_.width != 0) return false;
    const std::span<const Expr> terms = e.kind() == Expr::Kind::sum ? e.operands() : std::span(&e, 1);
    for (const Expr &term : terms) {
      if (term.kind() == Expr::Kind::axis && static_cast<int>(term.id()) == point_.vector_axis) continue;
      const Expr &factor = term.kind() == Expr::Kind::product ? term.operands()[0] : term;
      if (!factor.is_integer() || factor.integer() % point_.width != 0) return false;
    }
    return true;
  }

  // A divisor of 0 gives 0: x / max(d, 1) * (d > 0), where d is not known. Divisors are sizes: never negative.
  llvm::Value *scalar_quotient(llvm::Value *x, llvm::Value *d, const Expr &divisor, bool non_negative) {
    const bool positive = divisor.lower_bound().value_or(0) > 0;
    llvm::Value *safe = positive ? d : b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, d, integer(1));
    llvm::Value *quotient;
    if (non_negative) {
      quotient = b_.CreateUDiv(x, safe);
    } else if (divisor.is_integer() && divisor.integer() > 0 &&
               std::has_single_bit(static_cast<uint64_t>(divisor.integer()))) {
      quotient = b_.CreateAShr(x, static_cast<uint64_t>(std::countr_zero(static_cast<uint64_t>(divisor.integer()))));
    } else {
      quotient = b_.CreateSDiv(x, safe);
      llvm::Value *below = b_.CreateICmpSLT(b_.CreateNSWSub(x, b_.CreateNSWMul(quotient, safe)), integer(0));
      quotient = b_.CreateNSWSub(quotient, b_.CreateZExt(below, b_.getInt64Ty()));
    }
    return positive ? quotient : b_.CreateSelect(b_.CreateICmpSGT(d, integer(0)), quotient, integer(0));
  }

  static bool is_small(const Expr &dividend, const Expr &divisor) {
    constexpr int64_t limit = 1 << 16;
    return divisor.is_integer() && divisor.integer() > 0 && divisor.integer() < limit &&
           dividend.lower_bound().value_or(-1) >= 0 && dividend.upper_bound().value_or(limit) < limit;
  }

  // n / d for 0 <= n, d < 2^16: n * ceil(2^32 / d) exceeds n * 2^32 / d by less than n < 2^32 / d, the room that the
  // largest remainder leaves.
  llvm::Value *small_quotient(llvm::Value *n, int64_t d) {
    const auto constant = [&](int64_t value) {
      return llvm::ConstantInt::get(n->getType(), static_cast<uint64_t>(value));
    };
    llvm::Value *low = b_.CreateAnd(n, constant(UINT32_MAX));  // tells LLVM that a 32-bit multiplication will do
    return b_.CreateLShr(b_.CreateMul(low, constant(((int64_t{1} << 32) + d - 1) / d)), constant(32));
  }

  // floor(n / d) for |n|, |d| < 2^51, which all offsets are: the correctly rounded quotient of two such integers never
  // crosses an integer. Conversion adds 1.5 * 2^52, whose low bits then hold the integer: no level needs more for it.
  llvm::Value *lane_quotient(llvm::Value *n, llvm::Value *d) {
    auto *doubles = llvm::FixedVectorType::get(b_.getDoubleTy(), point_.width);
    const double magic = 6755399441055744.0;
    llvm::Value *magic_double = llvm::ConstantFP::get(doubles, magic);
    llvm::Value *magic_bits = llvm::ConstantInt::get(n->getType(), std::bit_cast<uint64_t>(magic));
    const auto to_double = [&](llvm::Value *v) {
      return b_.CreateFSub(b_.CreateBitCast(b_.CreateAdd(v, magic_bits), doubles), magic_double);
    };
    llvm::Value *quotient = emit_floor(state_, b_.CreateFDiv(to_double(n), to_double(d)));
    llvm::Value *bits = b_.CreateBitCast(b_.CreateFAdd(quotient, magic_double), n->getType());
    llvm::Value *result = b_.CreateSub(bits, magic_bits);
    llvm::Value *zero = llvm::Constant::getNullValue(n->getType());
    return b_.CreateSelect(b_.CreateICmpEQ(d, zero), zero, result);
  }

  LaneIndex general(llvm::Value *vector) { return {nullptr, nullptr, vector}; }
  llvm::Value *lanes(const LaneIndex &x) { return emit_lanes(state_, x, point_); }

  KernelState &state_;
  llvm::IRBuilder<> &b_;
  const Point &point_;
  std::span<llvm::Value *const> values_;
};

}  // namespace

bool LaneIndex::contiguous() const {
  auto *constant = llvm::dyn_cast_or_null<llvm::ConstantInt>(stride);
  return constant && constant->isOne();
}

llvm::Value *emit_lanes(KernelState &state, const LaneIndex &at, const Point &point) {
  if (at.lanes) return at.lanes;
  llvm::Value *base = splat(state, at.base, point.width);
  if (!at.stride || !point.is_vector()) return base;
  llvm::SmallVector<llvm::Constant *, 16> iota;
  for (unsigned lane = 0; lane < point.width; ++lane) iota.push_back(state.b.getInt64(lane));
  llvm::Value *steps = llvm::ConstantVector::get(iota);
  if (!at.contiguous()) steps = state.b.CreateNSWMul(steps, splat(state, at.stride, point.width));
  return state.b.CreateNSWAdd(base, steps);
}

LaneIndex emit_index(KernelState &state, const Expr &expr, const Point &point, std::span<llvm::Value *const> values) {
  return IndexEmitter(state, point, values).emit(expr);
}

llvm::Value *emit_narrow_lanes(KernelState &state, const Expr &expr, const Point &point,
                               std::span<llvm::Value *const> values) {
  constexpr int64_t limit = int64_t{1} << 30;  // lanes that do not exist lie a few strides beyond
  if (expr.lower_bound().value_or(-limit) <= -limit || expr.upper_bound().value_or(limit) >= limit) return nullptr;
  llvm::IRBuilder<> &b = state.b;
  const LaneIndex at = emit_index(state, expr, point, values);
  if (at.lanes) return b.CreateTrunc(at.lanes, llvm::FixedVectorType::get(b.getInt32Ty(), point.width));
  llvm::Value *base = b.CreateTrunc(at.base, b.getInt32Ty());
  if (at.uniform()) return base;
  const auto *stride = llvm::dyn_cast<llvm::ConstantInt>(at.stride);
  if (!stride || stride->getSExtValue() < -limit / 64 || stride->getSExtValue() > limit / 64) return nullptr;
  llvm::SmallVector<llvm::Constant *, 16> steps;
  for (unsigned lane = 0; lane < point.width; ++lane)
    steps.push_back(b.getInt32(static_cast<uint32_t>(stride->getSExtValue() * lane)));
  return b.CreateAdd(splat(state, base, point.width), llvm::ConstantVector::get(steps));
}

llvm::Value *emit_scalar(KernelState &state, const Expr &expr, const Point &point) {
  Point scalar = point;
  scalar.width = 1;
  scalar.vector_axis = -1;
  scalar.active = nullptr;
  return emit_index(state, expr, scalar).base;
}

}  // namespace kiln::codegen
