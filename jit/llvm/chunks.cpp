// Reductions over many points, chunk by chunk, so that no sum of floats is one long chain. Sums of chunks are added in
// pairs, those in pairs again, and so on (kernel.h); what waits for its right neighbour lies in scratch, by the
// logarithm of its chunks. As in a binary number that counts the chunks, a bit is set where a sum waits.
#include "jit/llvm/emitter.h"

namespace kiln::codegen {

CarriersInScratch::CarriersInScratch(KernelState &state, const kernel::Carriers &carriers, const Expr &offset,
                                     int64_t count, unsigned width)
    : state_(state), carriers_(carriers), lanes_(kernel::points_side_by_side(state.kernel)), width_(width) {
  auto &b = state.b;
  llvm::Value *area = emit_scalar(state, offset, {});
  for (DType type : carriers.types) {
    areas_.push_back(b.CreateGEP(b.getInt8Ty(), state.scratch, area));
    area = b.CreateNSWAdd(area, b.getInt64(static_cast<uint64_t>(count * lanes_ * size_of(type))));
  }
}

llvm::Type *CarriersInScratch::vector(llvm::Type *element) const {
  return width_ > 1 ? llvm::FixedVectorType::get(element, width_) : element;
}

llvm::Value *CarriersInScratch::place(size_t carrier, llvm::Value *number) const {
  auto &b = state_.b;
  return b.CreateGEP(memory_type_of(state_, carriers_.types[carrier]), areas_[carrier],
                     b.CreateNSWMul(number, b.getInt64(static_cast<uint64_t>(lanes_))));
}

Values CarriersInScratch::load(llvm::Value *number) const {
  auto &b = state_.b;
  Values values;
  for (size_t c = 0; c < areas_.size(); ++c) {
    llvm::Type *in_memory = memory_type_of(state_, carriers_.types[c]), *type = type_of(state_, carriers_.types[c]);
    const llvm::Align alignment(size_of(carriers_.types[c]));
    llvm::Value *value = b.CreateAlignedLoad(vector(in_memory), place(c, number), alignment);
    values.push_back(type == in_memory ? value : b.CreateTrunc(value, vector(type)));
  }
  return values;
}

void CarriersInScratch::store(llvm::Value *number, const Values &values) const {
  auto &b = state_.b;
  for (size_t c = 0; c < areas_.size(); ++c) {
    llvm::Type *in_memory = memory_type_of(state_, carriers_.types[c]), *type = type_of(state_, carriers_.types[c]);
    const llvm::Align alignment(size_of(carriers_.types[c]));
    llvm::Value *value = type == in_memory ? values[c] : b.CreateZExt(values[c], vector(in_memory));
    b.CreateAlignedStore(value, place(c, number), alignment);
  }
}

namespace {

bool is_zero(llvm::Value *value) {
  const auto *constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  return constant && constant->isZero();
}

}  // namespace

Values emit_chunks(KernelState &state, const kernel::Stage &stage, const Range &all, unsigned width,
                   const std::function<Values(const Range &part)> &sum_of) {
  const int64_t waiting = kernel::waiting_in_scratch(state.kernel, stage);
  if (waiting == 0) return sum_of(all);
  auto &b = state.b;
  const int64_t chunk = kernel::chunk_of(stage);
  const CarriersInScratch left(state, stage.carriers, state.layout.waiting, waiting, width);
  const auto lowest_bit = [&](llvm::Value *bits) {
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, b.getTrue());
  };
  Values sum;
  emit_repeat(state, {b.getInt64(0)}, [&](const Values &now) -> Repeated {
    llvm::Value *begin = now[0], *end = b.CreateNSWAdd(begin, b.getInt64(chunk));
    llvm::Value *more = b.CreateICmpSLT(end, all.end);
    Range part{begin, b.CreateSelect(more, end, all.end), std::nullopt, all.multiple};
    if (!is_zero(all.begin)) {  // chunks before it are there, and empty
      part.begin = less_of(state, greater_of(state, begin, all.begin), part.end);
    }
    if (all.count) part.multiple = std::min(chunk, *all.count & -*all.count);
    if (part.multiple == chunk) part.count = chunk;
    sum = sum_of(part);

    // The sums that this one is added to: of those that wait the ones that it makes pairs with; in the end all.
    llvm::Value *number = b.CreateUDiv(begin, b.getInt64(chunk)), *next = b.CreateNSWAdd(number, b.getInt64(1));
    llvm::Value *pairs = b.CreateSelect(more, b.CreateAnd(number, b.CreateNot(next)), number), *zero = b.getInt64(0);
    sum = emit_if(state, b.CreateICmpNE(pairs, zero), sum, [&] {
      Values from{pairs};
      from.append(sum);
      const Values added = emit_repeat(state, from, [&](const Values &carried) -> Repeated {
        llvm::Value *bits = carried[0], *others = b.CreateAnd(bits, b.CreateNSWSub(bits, b.getInt64(1)));
        const Values right(carried.begin() + 1, carried.end());
        Values values{others};
        values.append(emit_combination(state, stage.carriers, left.load(lowest_bit(bits)), right, width));
        return {values, b.CreateICmpNE(others, zero)};
      });
      return Values(added.begin() + 1, added.end());
    });
    left.store(lowest_bit(next), sum);  // in the end for nobody
    return {{end}, more};
  });
  return sum;
}

}  // namespace kiln::codegen
