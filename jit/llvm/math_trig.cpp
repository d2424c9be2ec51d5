// sin and cos: x = n pi/2 + r with |r| <= pi/4 (and a little), then a minimax polynomial of r, chosen and signed by n
// mod
// 4. The reduction is by Cody and Waite's method for |x| < 2^18, else by that of Payne and Hanek ("Radian reduction for
// trigonometric functions") in f64, in a block of its own which runs when any lane is that large. Polynomials are
// minimax (Remez), fitted by coefficients.py.
//
// f32 with fused multiply-add keeps what r loses by rounding, for an error below 1 ulp. Without, the near reduction of
// f32 is in f64, and doing the same would take a quarter more time: docs/accuracy.md.
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <cmath>
#include <optional>

#include "jit/llvm/math_value.h"

namespace kiln::codegen::math {
namespace {

// (sin(r) - r) / r^3 and (cos(r) - 1 + r^2 / 2) / r^4, in r^2.
constexpr double sin_f32[] = {-0.166666672, 0.00833337847, -0.000198525624, 2.82633619e-06};
constexpr double cos_f32[] = {0.0416666456, -0.00138873002, 2.4430532e-05};
// clang-format off
constexpr double sin_f64[] = {
    -0.16666666666666666, 0.008333333333333042, -0.00019841269840960743, 2.7557319072739935e-06,
    -2.5052070520371635e-08, 1.6054251434433684e-10, -7.386090257059119e-13};
constexpr double cos_f64[] = {
    0.041666666666666664, -0.0013888888888888389, 2.4801587301179865e-05, -2.755731906012128e-07,
    2.0876721853599565e-09, -1.1466841381379813e-11, 4.591655100635707e-14};
// clang-format on

// 2 / pi in digits of 24 bits: digit i has the weight 2^(-24 (i + 1)).
constexpr uint32_t two_over_pi[] = {
    0xA2F983, 0x6E4E44, 0x1529FC, 0x2757D1, 0xF534DD, 0xC0DB62, 0x95993C, 0x439041, 0xFE5163, 0xABDEBB,
    0xC561B7, 0x246E3A, 0x424DD2, 0xE00649, 0x2EEA09, 0xD1921C, 0xFE1DEB, 0x1CB129, 0xA73EE8, 0x8235F5,
    0x2EBB44, 0x84E99C, 0x7026B4, 0x5F7E41, 0x3991D6, 0x398353, 0x39F49C, 0x845F8B, 0xBDF928, 0x3B1FF8,
    0x97FFDE, 0x05980F, 0xEF2F11, 0x8B5A0A, 0x6D1F6D, 0x367ECF, 0x27CB09, 0xB74F46, 0x3F669E, 0x5FEA2D,
    0x7527BA, 0xC7EBE5, 0xF17B3D, 0x0739F7, 0x8A5292, 0xEA6BFB, 0x5FB11F, 0x8D5D08, 0x560330};
constexpr size_t digits_f32 = 8,
                 digits_f64 = std::size(two_over_pi);  // down to 2^-60 and 2^-150 of the largest argument
constexpr int digit_scale = 128;  // digits are kept times 2^this, so that the last ones are normal numbers

constexpr double largest_near = 0x1p18;

struct TrigReduced {
  Num n;  // as n + magic
  Num r;
  std::optional<Num> rest = {};  // what r leaves, where that is kept
};

TrigReduced kept(const Num &n, const Double2 &r) {
  auto [sum, rest] = quick_sum(r.high, r.low);
  return {n, sum, rest};
}

// Of f64, for f32 too where there is no fma. pi / 2 in parts, the first of which, of 33 bits, leaves an exact
// difference. The others are subtracted such that r is rounded once, unless it is so small that nothing follows.
TrigReduced reduce_near(const Num &x, bool from_f32, bool keep) {
  Num shifted = multiply_add(x, 0.63661977236758134, binary64.magic);
  Num n = shifted - binary64.magic;
  Num first = multiply_add(n, -1.5707963267341256, x);
  if (x.builder().fma && !keep)
    return {shifted, multiply_add(n, -3.5215598651832e-27, multiply_add(n, -6.077100506506192e-11, first))};
  Num product = n * 6.077100506303966e-11, small = n * 2.0222662487959506e-21;  // of 33 bits: exact; of 53
  if (from_f32) return {shifted, (first - product) - small};
  auto [sum, rest] = quick_sum(product, small);
  if (keep) {
    Double2 r = two_sum(first, 0.0 - sum);
    return kept(shifted, {r.high, r.low - rest});
  }
  return {shifted, (first - sum) - rest};
}

// f32, with fma: pi / 2 in three parts of 24 bits. The first difference is exact; what the second product and its sum
// lose is kept.
TrigReduced reduce_near_f32(const Num &x) {
  Num shifted = multiply_add(x, 0x1.45f306p-1, binary32.magic);
  Num n = shifted - binary32.magic;
  Num first = multiply_add(n, -0x1.921fb6p+0, x);
  Num product = n * 0x1.777a5cp-25, product_rest = multiply_add(n, 0x1.777a5cp-25, 0.0 - product);
  Num r = first + product, back = r - first;
  Num lost = (first - (r - back)) + (product - back);  // Knuth's two-sum
  return {shifted, r, lost + multiply_add(n, 0x1.ee59dap-50, product_rest)};
}

// The digits as f64, in the read-only data of the module: one table, whoever asks first.
llvm::GlobalVariable *digit_table(llvm::IRBuilder<> &ir) {
  llvm::Module &module = *ir.GetInsertBlock()->getModule();
  if (llvm::GlobalVariable *table = module.getNamedGlobal("two_over_pi")) return table;
  llvm::SmallVector<double> digits;
  int weight = digit_scale;
  for (uint32_t digit : two_over_pi) digits.push_back(std::ldexp(digit, weight -= 24));
  llvm::Constant *data = llvm::ConstantDataArray::get(module.getContext(), digits);
  auto *table =
      new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, "two_over_pi");
  table->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  return table;
}

// A sum of which only the part modulo 4 is wanted: n + fraction + rest, n an integer, |fraction| <= 1/2, rest the
// rounding errors. Terms come in falling order of magnitude; where they cancel, the sums are exact.
struct SumModulo4 {
  Num n, fraction, rest;

  void add(const Num &product) {
    Num term = product - round_even(product * 0.25) * 4.0;
    Num sum = fraction + term;
    Num back = sum - fraction;  // Knuth's two-sum: the error of `sum`
    rest = rest + ((fraction - (sum - back)) + (term - back));
    Num integer = round_even(sum);
    fraction = sum - integer;
    n = n + integer;
  }
};

// x * 2/pi modulo 4, digit by digit. The products are exact: 24 bits by the 24 of f32, or by 27 and 26 bits of f64.
TrigReduced reduce_far(const Num &x, bool from_f32, bool keep) {
  llvm::IRBuilder<> &ir = x.ir();
  llvm::Value *table = digit_table(ir);
  Num scaled = x * std::ldexp(1, -digit_scale);
  Num high = float_of(bits_of(scaled) & bits_of(scaled).literal(-1 << 26), scaled);
  Num low = scaled - high;

  llvm::BasicBlock *before = ir.GetInsertBlock();
  llvm::BasicBlock *loop = llvm::BasicBlock::Create(ir.getContext(), "digits", before->getParent());
  llvm::BasicBlock *after = llvm::BasicBlock::Create(ir.getContext(), "reduced", before->getParent());
  ir.CreateBr(loop);
  ir.SetInsertPoint(loop);
  llvm::PHINode *i = ir.CreatePHI(ir.getInt64Ty(), 2);
  llvm::PHINode *state[3];
  for (llvm::PHINode *&phi : state) phi = ir.CreatePHI(x.type(), 2);
  SumModulo4 sum{x.with(state[0]), x.with(state[1]), x.with(state[2])};
  llvm::Value *digit = ir.CreateLoad(ir.getDoubleTy(), ir.CreateInBoundsGEP(ir.getDoubleTy(), table, i));
  if (auto *vector = llvm::dyn_cast<llvm::FixedVectorType>(x.type()))
    digit = ir.CreateVectorSplat(vector->getNumElements(), digit);
  if (from_f32) {
    sum.add(scaled * x.with(digit));
  } else {
    sum.add(high * x.with(digit));
    sum.add(low * x.with(digit));
  }
  llvm::Value *next = ir.CreateAdd(i, ir.getInt64(1));
  i->addIncoming(ir.getInt64(0), before);
  i->addIncoming(next, loop);
  const Num *values[] = {&sum.n, &sum.fraction, &sum.rest};
  for (size_t k = 0; k < 3; k++) {
    state[k]->addIncoming(x.literal(0).value(), before);
    state[k]->addIncoming(values[k]->value(), loop);
  }
  ir.CreateCondBr(ir.CreateICmpULT(next, ir.getInt64(from_f32 ? digits_f32 : digits_f64)), loop, after);
  ir.SetInsertPoint(after);
  Double2 turns = quick_sum(sum.fraction, sum.rest), r = two_product(turns.high, x.literal(1.5707963267948966));
  Num rest = r.low + multiply_add(turns.low, 1.5707963267948966, turns.high * 6.123233995736766e-17);
  if (keep) return kept(sum.n + binary64.magic, {r.high, rest});
  return {sum.n + binary64.magic, r.high + rest};
}

// reduce_far in the terms of reduce_near_f32.
TrigReduced reduce_far_f32(const Num &x) {
  TrigReduced far = reduce_far(widened(x), true, false);
  Num n = narrowed(far.n - binary64.magic), r = narrowed(far.r);
  return {n + binary32.magic, r, narrowed(far.r - widened(r))};
}

TrigReduced reduce(const Num &x, bool from_f32, bool keep) {
  llvm::IRBuilder<> &ir = x.ir();
  TrigReduced near = x.is_double() ? reduce_near(x, from_f32, keep) : reduce_near_f32(x);
  Num large = abs(x) >= largest_near;
  llvm::BasicBlock *start = ir.GetInsertBlock();
  llvm::Function *function = start->getParent();
  llvm::BasicBlock *slow = llvm::BasicBlock::Create(ir.getContext(), "far", function);
  llvm::BasicBlock *join = llvm::BasicBlock::Create(ir.getContext(), "join", function);
  llvm::MDBuilder metadata(ir.getContext());
  ir.CreateCondBr(any(large), slow, join, metadata.createUnlikelyBranchWeights());
  ir.SetInsertPoint(slow);
  TrigReduced far = x.is_double() ? reduce_far(x, from_f32, keep) : reduce_far_f32(x);
  Num n = select(large, far.n, near.n), r = select(large, far.r, near.r);
  const std::optional<Num> rest = near.rest ? std::optional(select(large, *far.rest, *near.rest)) : std::nullopt;
  llvm::BasicBlock *slow_end = ir.GetInsertBlock();
  ir.CreateBr(join);
  ir.SetInsertPoint(join);
  auto choose = [&](const Num &in_slow, const Num &in_near) {
    llvm::PHINode *phi = ir.CreatePHI(x.type(), 2);
    phi->addIncoming(in_slow.value(), slow_end);
    phi->addIncoming(in_near.value(), start);
    return x.with(phi);
  };
  TrigReduced chosen{choose(n, near.n), choose(r, near.r)};
  if (rest) chosen.rest = choose(*rest, *near.rest);
  return chosen;
}

Num is_odd(const Num &n) { return n.with(n.ir().CreateTrunc(n.value(), n.type_of(n.ir().getInt1Ty()))); }

}  // namespace

SineCosine sine_and_cosine(const Num &r, const Num &rest) {
  const bool wide = r.is_double();
  Num square = r * r, cross = 0.0 - r * rest, head = multiply_add(square, -0.5, 1.0);
  Num sine_tail = wide ? polynomial(square, sin_f64) : polynomial(square, sin_f32);
  Num cosine_tail = wide ? polynomial(square, cos_f64) : polynomial(square, cos_f32);
  if (wide) cross = multiply_add(two_product(r, r).low, -0.5, cross);
  return {{r, multiply_add(r * square, sine_tail, rest * head)},
          {head, multiply_add(square * square, cosine_tail, cross) + multiply_add(square, -0.5, 1.0 - head)}};
}

SineCosine sine_and_cosine(const Num &r, bool wide) {
  Num square = r * r;
  Num sine_tail = wide ? polynomial(square, sin_f64) : polynomial(square, sin_f32);
  Num cosine_tail = wide ? polynomial(square, cos_f64) : polynomial(square, cos_f32);
  Num cosine_head = multiply_add(square, -0.5, 1.0);
  return {{multiply_add(r * square, sine_tail, r), r.literal(0)},
          {multiply_add(square * square, cosine_tail, cosine_head), r.literal(0)}};
}

namespace {

// sin(x + quarter_turns pi/2).
Num shifted_sin(const Num &x, int quarter_turns) {
  llvm::IRBuilder<> &ir = x.ir();
  const bool wide = x.is_double();
  TrigReduced reduced = reduce(wide || x.builder().fma ? x : widened(x), !wide, false);
  Num quadrant = bits_of(reduced.n), r = reduced.r;
  if (!wide && r.is_double()) {
    quadrant = quadrant.with(ir.CreateTrunc(quadrant.value(), x.type_of(ir.getInt32Ty())));
    r = narrowed(r);
  }
  quadrant = quadrant + quarter_turns;

  Num sine = r, cosine = r;
  if (reduced.rest) {
    SineCosine parts = sine_and_cosine(r, *reduced.rest);
    sine = parts.sine.low + parts.sine.high;
    cosine = parts.cosine.low + parts.cosine.high;
  } else {
    SineCosine parts = sine_and_cosine(r, wide);
    sine = parts.sine.high;
    cosine = parts.cosine.high;
  }
  Num odd = is_odd(quadrant);
  Num sign = (quadrant & quadrant.literal(2)) << (format_of(x).bits - 2);
  return float_of(bits_of(select(odd, cosine, sine)) ^ sign, x);
}

// tan(r), or -1 / tan(r) after an odd number of quarter turns. Of f64 no rounding but the last counts.
Num tan_wide(const Num &x, bool single) {
  TrigReduced reduced = reduce(x, single, !single);
  Num odd = is_odd(bits_of(reduced.n));
  SineCosine of = single ? sine_and_cosine(reduced.r, false) : sine_and_cosine(reduced.r, *reduced.rest);
  Double2 negative{0.0 - of.cosine.high, 0.0 - of.cosine.low};
  Double2 above = select(odd, negative, of.sine), below = select(odd, of.sine, of.cosine);
  if (single) return select(x == 0.0, x, above.high / below.high);
  Double2 tangent = quotient(above, below);
  return select(x == 0.0, x, tangent.high + tangent.low);
}

}  // namespace

Num sin(const Num &x) { return select(x == 0.0, x, shifted_sin(x, 0)); }  // the sign of -0 would be lost
Num cos(const Num &x) { return shifted_sin(x, 1); }
Num tan(const Num &x) { return in_f64(x, tan_wide); }

}  // namespace kiln::codegen::math
