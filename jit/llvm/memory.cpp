// Loads and stores of elements: broadcast, contiguous, strided or anywhere; predicated or not.
//
// A lane that must not touch memory is kept from it in one of two ways: by a masked instruction where the level has one
// (the table in features.h), otherwise by sending its address to a safe place (the argument block), so that no branch
// is needed. Masked stores without instructions are branches; loops avoid them by scalar tails.
//
// A store that combines is a load, an operation and a store: of vectors where lanes lie side by side, lane by lane in
// their order where two of them may meet. Scattered lanes that meet are written in their order as well.
#include "jit/base/kernel_args.h"
#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

// One access at one point. Addresses are in elements.
class ElementAccess {
  static constexpr unsigned piece_bytes = 16;  // of a streaming store
  static constexpr unsigned cache_line = 64;

 public:
  ElementAccess(KernelState &state, const kernel::Access &access, LaneIndex at, const Point &point)
      : state_(state), b_(state.b), point_(point), access_(access), at_(at) {
    const kernel::Buffer &buffer = state.kernel.buffers[access.buffer];
    type_ = buffer.type;
    base_ = state.buffers[access.buffer];
    element_ = memory_type_of(state, type_);
    active_ = point.active;
    if (buffer.space == kernel::Buffer::Space::row_local && state.first_row) go_to_row(buffer);
    if (buffer.space == kernel::Buffer::Space::row_local && point.row_local_lanes > 1) spread_over_lanes();
  }

  llvm::Value *load(llvm::Value *valid) {
    if (at_.uniform()) return load_uniform(valid);
    if (at_.contiguous()) prefetch();
    llvm::Value *mask = mask_with(valid);
    llvm::Value *elements;
    if (takes_every_other()) {
      return decode(load_every_other(mask, valid));
    } else if (!mask) {
      elements = at_.contiguous() ? load_at(address(), vector()) : load_lanes(nullptr, nullptr);
    } else if (at_.contiguous() && has_masked()) {
      llvm::Value *otherwise = valid ? splat(state_, fill(), width()) : llvm::Constant::getNullValue(vector());
      return decode(emit_masked_load(state_, vector(), address(), mask, otherwise));
    } else if (at_.contiguous() && !active_ && !valid->getType()->isVectorTy()) {
      static_assert(sizeof(kiln_kernel_args) >= 32, "the safe place holds a vector of every level without masks");
      elements = load_at(b_.CreateSelect(valid, address(), state_.args), vector());
    } else {
      elements = load_lanes(mask, splat(state_, fill(), width()));
    }
    if (mask && valid) elements = b_.CreateSelect(mask, elements, splat(state_, fill(), width()));
    return decode(elements);
  }

  // `valid`: as for a load.
  void store(llvm::Value *value, kernel::Store::Mode mode, llvm::Value *valid) {
    const bool combines = mode != kernel::Store::Mode::plain;
    const auto varies = [](llvm::Value *v) { return v && v->getType()->isVectorTy(); };
    if (!point_.is_vector() || (at_.uniform() && !combines && !varies(value) && !varies(valid))) {
      const auto store_one = [&] { store_at(address(), value, mode); };
      if (valid) return emit_if(state_, valid, store_one);
      return store_one();
    }
    value = splat(state_, value, width());
    if (valid) active_ = mask_with(valid);
    const bool whole = !valid && point_.whole;  // what `whole` says of the lanes holds
    if (at_.contiguous() && combines) value = combined(load(nullptr), value, mode);
    if (at_.contiguous() && active_) {
      store_masked(encode(value), whole);
    } else if (at_.contiguous()) {
      store_vector(encode(value));
    } else if (!combines && !at_.uniform() && state_.features.has_scattered(size_of(type_))) {
      emit_scatter(state_, encode(value), addresses(), active_ ? active_ : all_lanes());
    } else {
      store_lanes(value, mode);
    }
  }

 private:
  unsigned width() const { return point_.width; }
  llvm::Align alignment() const { return llvm::Align(size_of(type_)); }
  llvm::Type *vector() const { return llvm::FixedVectorType::get(element_, width()); }
  llvm::Value *address() { return b_.CreateGEP(element_, base_, at_.base); }

  llvm::Value *address(unsigned lane) {
    llvm::Value *index;
    if (at_.uniform()) return address();
    if (at_.contiguous()) return b_.CreateGEP(element_, address(), b_.getInt64(lane));
    if (at_.lanes) {
      index = b_.CreateExtractElement(at_.lanes, uint64_t{lane});
    } else {
      index = b_.CreateNSWAdd(at_.base, b_.CreateNSWMul(at_.stride, b_.getInt64(lane)));
    }
    return b_.CreateGEP(element_, base_, index);
  }

  bool has_masked() const { return state_.features.has_masked(size_of(type_), width()); }
  llvm::Value *all_lanes() { return llvm::ConstantInt::getTrue(llvm::FixedVectorType::get(b_.getInt1Ty(), width())); }
  llvm::Value *addresses() { return b_.CreateGEP(element_, base_, emit_lanes(state_, at_, point_)); }

  llvm::Value *load_at(llvm::Value *pointer, llvm::Type *type) {
    return b_.CreateAlignedLoad(type, pointer, alignment());
  }

  void prefetch() {
    const bool tail = active_ && !point_.whole;
    if (tail || state_.kernel.buffers[access_.buffer].space != kernel::Buffer::Space::in) return;
    // Behind a piece that a loaded number names lies what nobody asked for.
    if (state_.ahead.empty() || access_.index[0].depends_on_value()) return;
    if (point_.stepping < 0) {
      prefetch(state_.ahead.front(), 3);
      return prefetch(state_.ahead.back(), 2);
    }
    // The same bytes, which lie in pieces of a vector: once is enough (.7 to .85 of a loop in C; twice was .7 again).
    const std::optional<Expr> step = access_.index[0].coefficient(static_cast<uint32_t>(point_.stepping));
    if (!step) return;
    llvm::Value *steps = b_.CreateUDiv(state_.ahead.back(), b_.getInt64(width()));
    prefetch(b_.CreateNSWMul(emit_scalar(state_, *step, {}), steps), 2);
  }

  // The vector `bytes` further on.
  void prefetch(llvm::Value *bytes, uint32_t locality) {
    for (unsigned line = 0; line < width() * size_of(type_); line += cache_line) {
      llvm::Value *at = b_.CreateGEP(b_.getInt8Ty(), address(), b_.CreateNSWAdd(bytes, b_.getInt64(line)));
      emit_prefetch(state_, at, locality);
    }
  }

  // What an access with `valid` false reads, as memory holds it.
  llvm::Value *fill() { return encode(constant_of(state_, type_, access_.fill)); }

  llvm::Value *mask_with(llvm::Value *valid) {
    if (!valid) return active_;
    valid = splat(state_, valid, width());
    return active_ ? b_.CreateAnd(valid, active_) : valid;
  }

  llvm::Value *load_uniform(llvm::Value *valid) {
    if (!valid) return decode(load_at(address(), element_));
    llvm::Value *any = valid->getType()->isVectorTy() ? b_.CreateOrReduce(mask_with(valid)) : valid;
    llvm::Value *loaded = decode(load_at(b_.CreateSelect(any, address(), state_.args), element_));
    return b_.CreateSelect(valid, splat_like(loaded, valid), splat_like(decode(fill()), valid));
  }

  llvm::Value *splat_like(llvm::Value *scalar, llvm::Value *shape) {
    return shape->getType()->isVectorTy() ? splat(state_, scalar, width()) : scalar;
  }

  // Where a gather would go lane by lane: a convolution of stride 2 reads so.
  bool takes_every_other() const {
    const auto *stride = llvm::dyn_cast_or_null<llvm::ConstantInt>(at_.stride);
    return stride && stride->equalsInt(2) && width() >= 4 && has_masked() &&
           !state_.features.has_scattered(size_of(type_));
  }
  // Out of two vectors, of which the second begins so that it ends with the last lane's element: between the first and
  // the last one everything exists, and beyond them nothing is read.
  llvm::Value *load_every_other(llvm::Value *mask, llvm::Value *valid) {
    const unsigned half = width() / 2;
    // Of 8 lanes: the mask's 0 4 1 5 2 6 3 7, then elements 0 2 4 6 of the first vector and 1 3 5 7 of the second.
    llvm::SmallVector<int, 16> crossed, chosen;
    for (unsigned lane = 0; lane < width(); ++lane) {
      crossed.push_back(static_cast<int>(lane / 2 + lane % 2 * half));
      chosen.push_back(static_cast<int>(lane < half ? 2 * lane : 2 * lane + 1));
    }
    llvm::Value *otherwise = mask && valid ? splat(state_, fill(), width()) : llvm::Constant::getNullValue(vector());
    if (mask) mask = b_.CreateShuffleVector(mask, crossed);
    const auto load_part = [&](bool odd) -> llvm::Value * {
      llvm::Value *pointer = odd ? b_.CreateGEP(element_, address(), b_.getInt64(width() - 1)) : address();
      if (!mask) return load_at(pointer, vector());
      llvm::SmallVector<llvm::Constant *, 16> lanes;
      for (unsigned lane = 0; lane < width(); ++lane) lanes.push_back(b_.getInt1(lane % 2 == odd));
      return emit_masked_load(state_, vector(), pointer, b_.CreateAnd(mask, llvm::ConstantVector::get(lanes)),
                              otherwise);
    };
    llvm::Value *even = load_part(false);
    return b_.CreateShuffleVector(even, load_part(true), chosen);
  }

  // Lane by lane, or gathered. Lanes without `mask` (null: none) hold `otherwise` or anything.
  llvm::Value *load_lanes(llvm::Value *mask, llvm::Value *otherwise) {
    if (state_.features.has_scattered(size_of(type_))) {
      if (!otherwise) otherwise = llvm::PoisonValue::get(vector());
      return emit_gather(state_, vector(), addresses(), mask ? mask : all_lanes(), otherwise);
    }
    llvm::Value *elements = llvm::PoisonValue::get(vector());
    for (unsigned lane = 0; lane < width(); ++lane) {
      llvm::Value *pointer = address(lane);
      if (mask) pointer = b_.CreateSelect(b_.CreateExtractElement(mask, uint64_t{lane}), pointer, state_.args);
      elements = b_.CreateInsertElement(elements, load_at(pointer, element_), uint64_t{lane});
    }
    return elements;
  }

  llvm::Value *combined(llvm::Value *old, llvm::Value *value, kernel::Store::Mode mode) {
    return emit_core(state_, kernel::core_of(mode, type_), {type_, type_}, {old, value}, nullptr);
  }
  void store_at(llvm::Value *pointer, llvm::Value *value, kernel::Store::Mode mode) {
    if (mode != kernel::Store::Mode::plain) value = combined(decode(load_at(pointer, element_)), value, mode);
    b_.CreateAlignedStore(encode(value), pointer, alignment());
  }

  void store_lanes(llvm::Value *values, kernel::Store::Mode mode) {
    for (unsigned lane = 0; lane < width(); ++lane) {
      const auto store_lane = [&] { store_at(address(lane), b_.CreateExtractElement(values, uint64_t{lane}), mode); };
      if (active_)
        emit_if(state_, b_.CreateExtractElement(active_, uint64_t{lane}), store_lane);
      else
        store_lane();
    }
  }

  // Without mask registers some processors store under a mask in microcode: only where there is need.
  void store_masked(llvm::Value *elements, bool may_be_whole) {
    const auto masked = [&] {
      if (has_masked())
        emit_masked_store(state_, elements, address(), active_);
      else
        store_lanes(decode(elements), kernel::Store::Mode::plain);
    };
    const bool streams = state_.streams[access_.buffer];
    if (!may_be_whole || (state_.features.masks == Features::Masks::registers && !streams)) return masked();
    emit_if_else(state_, point_.whole, [&] { store_vector(elements); }, masked);
  }

  // Streaming stores need aligned addresses, which only the run knows. In pieces of 16 bytes, as malloc aligns: they
  // meet in the buffer of their cache line, wherever the array begins.
  void store_vector(llvm::Value *elements) {
    llvm::Value *pointer = address();
    const auto plain = [&] { b_.CreateAlignedStore(elements, pointer, alignment()); };
    llvm::Value *stream = state_.streams[access_.buffer];
    const unsigned lanes = piece_bytes / size_of(type_);
    if (!stream || width() < lanes) return plain();
    const auto past_caches = [&] {
      llvm::MDNode *nontemporal = llvm::MDNode::get(b_.getContext(), llvm::ConstantAsMetadata::get(b_.getInt32(1)));
      for (unsigned lane = 0; lane < width(); lane += lanes) {
        llvm::Value *piece = width() == lanes ? elements : b_.CreateShuffleVector(elements, part(lane, lanes));
        llvm::Value *place = b_.CreateGEP(element_, pointer, b_.getInt64(lane));
        b_.CreateAlignedStore(piece, place, llvm::Align(piece_bytes))
            ->setMetadata(llvm::LLVMContext::MD_nontemporal, nontemporal);
      }
    };
    llvm::Value *low_bits = b_.CreateAnd(b_.CreatePtrToInt(pointer, b_.getInt64Ty()), b_.getInt64(piece_bytes - 1));
    llvm::Value *aligned = b_.CreateICmpEQ(low_bits, b_.getInt64(0));
    emit_if_else(state_, b_.CreateAnd(stream, aligned), past_caches, plain);
  }

  static llvm::SmallVector<int, 16> part(unsigned begin, unsigned count) {
    llvm::SmallVector<int, 16> lanes;
    for (unsigned lane = begin; lane < begin + count; ++lane) lanes.push_back(static_cast<int>(lane));
    return lanes;
  }

  // In a tile of rows each has an area of its own; lanes go along one.
  void go_to_row(const kernel::Buffer &buffer) {
    const size_t last = state_.kernel.parallel.size() - 1;
    llvm::Value *row = b_.CreateNSWSub(point_.axes[last], state_.first_row);
    base_ = b_.CreateGEP(element_, base_, b_.CreateNSWMul(row, emit_scalar(state_, kernel::row_step(buffer), {})));
  }

  // A row_local element has one value for each lane, side by side; lanes that are not active have theirs too.
  void spread_over_lanes() {
    llvm::Value *lanes = b_.getInt64(point_.row_local_lanes);
    if (at_.uniform()) {
      at_ = {b_.CreateNSWMul(at_.base, lanes), point_.is_vector() ? b_.getInt64(1) : nullptr};
      active_ = nullptr;
    } else {
      Point lane_number = point_;
      llvm::Value *offsets = b_.CreateNSWMul(emit_lanes(state_, at_, point_), splat(state_, lanes, width()));
      llvm::Value *iota = emit_lanes(state_, {b_.getInt64(0), b_.getInt64(1)}, lane_number);
      at_ = {nullptr, nullptr, b_.CreateNSWAdd(offsets, iota)};
    }
  }

  llvm::Value *decode(llvm::Value *elements) {
    if (type_ != DType::boolean) return elements;
    return b_.CreateICmpNE(elements, llvm::Constant::getNullValue(elements->getType()));
  }
  llvm::Value *encode(llvm::Value *value) {
    if (type_ != DType::boolean) return value;
    return b_.CreateZExt(value, value->getType()->getWithNewType(element_));
  }

  KernelState &state_;
  llvm::IRBuilder<> &b_;
  const Point &point_;
  const kernel::Access &access_;
  LaneIndex at_;
  DType type_;
  llvm::Value *base_;
  llvm::Type *element_;
  llvm::Value *active_;
};

}  // namespace

llvm::Value *emit_load(KernelState &state, const kernel::Access &access, const LaneIndex &at, const Point &point,
                       llvm::Value *valid) {
  return ElementAccess(state, access, at, point).load(valid);
}

void emit_prefetch(KernelState &state, llvm::Value *pointer, uint32_t locality) {
  auto &b = state.b;
  constexpr uint32_t reads = 0, data = 1;
  b.CreateIntrinsic(llvm::Intrinsic::prefetch, {pointer->getType()},
                    {pointer, b.getInt32(reads), b.getInt32(locality), b.getInt32(data)});
}

void emit_store(KernelState &state, const kernel::Store &store, const Values &results, const Point &point) {
  llvm::Value *valid = store.to.valid < 0 ? nullptr : results[static_cast<size_t>(store.to.valid)];
  ElementAccess(state, store.to, emit_index(state, store.to.index[0], point, results), point)
      .store(results[static_cast<size_t>(store.value)], store.mode, valid);
}

}  // namespace kiln::codegen
