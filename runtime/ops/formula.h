// Values of a body with operators, so that a lowering reads as its formula. For lowerings of this folder.
#pragma once
#include "runtime/ops/op.h"

namespace kiln::ops {

// A value under construction; what two of them make stands after both. Integers wrap, comparisons with NaN are false
// but for !=.
class Term {
 public:
  Term(kernel::BodyBuilder &body, int value) : body_(&body), value_(value) {}
  int value() const { return value_; }
  DType type() const { return body_->type(value_); }
  bool is_float() const { return dtype_info(type()).is_float; }
  Term literal(double number) const { return {*body_, body_->constant(type(), number)}; }
  Term as(DType type) const { return {*body_, body_->convert(value_, type)}; }
  Term op(kernel::Core core) const { return {*body_, body_->op(core, value_)}; }
  Term op(kernel::Core core, const Term &b) const { return {*body_, body_->op(core, value_, b.value_)}; }
  Term op(kernel::Core core, const Term &b, const Term &c) const {
    return {*body_, body_->op(core, value_, b.value_, c.value_)};
  }

 private:
  kernel::BodyBuilder *body_;
  int value_;
};

// What a formula mixes with a Term: another one, or a number, which takes its type.
class Factor {
 public:
  Factor(const Term &term) : term_(&term) {}
  Factor(double number) : number_(number) {}
  Term as(const Term &like) const { return term_ ? *term_ : like.literal(number_); }

 private:
  const Term *term_ = nullptr;
  double number_ = 0;
};

#define KILN_TERM_OPERATOR(symbol, core) \
  inline Term operator symbol(const Term &a, const Factor &b) { return a.op(kernel::Core::core, b.as(a)); }
KILN_TERM_OPERATOR(+, add)
KILN_TERM_OPERATOR(-, sub)
KILN_TERM_OPERATOR(*, mul)
KILN_TERM_OPERATOR(/, div)
KILN_TERM_OPERATOR(<, lt)
KILN_TERM_OPERATOR(<=, le)
KILN_TERM_OPERATOR(>, gt)
KILN_TERM_OPERATOR(>=, ge)
KILN_TERM_OPERATOR(==, eq)
KILN_TERM_OPERATOR(!=, ne)
#undef KILN_TERM_OPERATOR
inline Term operator-(double a, const Term &b) { return b.literal(a) - b; }
inline Term operator/(double a, const Term &b) { return b.literal(a) / b; }
inline Term operator-(const Term &a) { return a.op(kernel::Core::neg); }
inline Term operator&(const Term &a, const Term &b) { return a.op(kernel::Core::logical_and, b); }
inline Term operator|(const Term &a, const Term &b) { return a.op(kernel::Core::logical_or, b); }
inline Term operator!(const Term &a) { return a.op(kernel::Core::logical_not); }

inline Term min(const Term &a, const Factor &b) { return a.op(kernel::Core::min, b.as(a)); }
inline Term max(const Term &a, const Factor &b) { return a.op(kernel::Core::max, b.as(a)); }
inline Term abs(const Term &a) { return a.op(kernel::Core::abs); }
inline Term sqrt(const Term &a) { return a.op(kernel::Core::sqrt); }
inline Term floor(const Term &a) { return a.op(kernel::Core::floor); }
inline Term exp(const Term &a) { return a.op(kernel::Core::exp); }
inline Term log(const Term &a) { return a.op(kernel::Core::log); }
inline Term expm1(const Term &a) { return a.op(kernel::Core::expm1); }
inline Term log1p(const Term &a) { return a.op(kernel::Core::log1p); }
inline Term tanh(const Term &a) { return a.op(kernel::Core::tanh); }
// Of a's type, which one of the two has to tell.
inline Term select(const Term &condition, const Term &a, const Factor &b) {
  return condition.op(kernel::Core::select, a, b.as(a));
}
inline Term select(const Term &condition, double a, const Term &b) {
  return condition.op(kernel::Core::select, b.literal(a), b);
}
inline Term sigmoid(const Term &x) { return 1 / (exp(-x) + 1); }
// |a| with the sign of b, which may be -0. The sign of a NaN counts for nothing: it is positive.
inline Term with_sign_of(const Term &a, const Term &b) {
  const Term size = abs(a);
  return select((b < 0) | (1 / b < 0), -size, size);
}

// A lowering that is one core op, of one operand or two.
template <kernel::Core core>
Status lower_as(LowerContext &c) {
  const int a = c.load(0);
  c.body.yield(kernel::core_info(core).operands == 2 ? c.body.op(core, a, c.load(1)) : c.body.op(core, a));
  return {};
}

// A lowering from a formula: of the context and the operands' elements, one to three, which are broadcast together.
template <auto formula>
Status lower_by(LowerContext &c) {
  const auto operand = [&](size_t k) { return Term(c.body, c.load(k)); };
  const auto y = [&] {
    const Term x = operand(0);
    if constexpr (std::is_invocable_v<decltype(formula), LowerContext &, Term>) {
      return formula(c, x);
    } else {
      const Term second = operand(1);
      if constexpr (std::is_invocable_v<decltype(formula), LowerContext &, Term, Term>)
        return formula(c, x, second);
      else
        return formula(c, x, second, operand(2));
    }
  }();
  c.body.yield(y.value());
  return {};
}

}  // namespace kiln::ops
