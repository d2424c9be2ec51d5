// Sorts by the digits of keys, the last one first: a byte a pass, over keys as unsigned numbers of the same order.
// Each pass is stable, so that their result is that of merges. Digits that all keys share cost nothing.
#include "jit/base/small_float.h"
#include "jit/llvm/sort_columns.h"

namespace kiln::codegen {
namespace {

constexpr uint64_t digits = 256;

class DigitSorter {
 public:
  DigitSorter(KernelState &state, Columns &columns, llvm::Value *count)
      : state_(state), b_(state.b), columns_(columns), count_(count), bytes_(size_of(columns.key_type())) {
    llvm::BasicBlock &block = state.function->getEntryBlock();
    llvm::IRBuilder<> entry(&block, block.begin());
    llvm::AllocaInst *table = entry.CreateAlloca(llvm::ArrayType::get(b_.getInt64Ty(), digits * bytes_));
    table->setAlignment(llvm::Align(64));
    table_ = table;
  }

  void emit(const Places &home) {
    count_digits(home);
    const Range passes{b_.getInt64(0), b_.getInt64(bytes_)};
    const Places places = emit_loop(state_, passes, 1, home, [&](llvm::Value *number, const Places &from) {
      llvm::Value *shift = b_.CreateShl(number, number64(3)), *row = b_.CreateShl(number, number64(8));
      llvm::Value *first = emit_digit(ordered(columns_.key(from, number64(0))), shift);
      llvm::Value *differ = b_.CreateICmpNE(load_count(b_.CreateAdd(row, first)), count_);
      return emit_if(state_, differ, from, [&] {
        emit_pass(from, shift, row);
        return Columns::swapped(from);
      });
    });
    columns_.settle(places, home, count_);
  }

 private:
  llvm::Value *number64(uint64_t n) { return b_.getInt64(n); }
  llvm::Value *slot(llvm::Value *i) { return b_.CreateGEP(b_.getInt64Ty(), table_, i); }
  llvm::Value *load_count(llvm::Value *i) { return b_.CreateAlignedLoad(b_.getInt64Ty(), slot(i), llvm::Align(8)); }
  void store_count(llvm::Value *i, llvm::Value *n) { b_.CreateAlignedStore(n, slot(i), llvm::Align(8)); }

  // How often each digit stands at each place.
  void count_digits(const Places &home) {
    auto *zeros = llvm::ConstantAggregateZero::get(llvm::FixedVectorType::get(b_.getInt64Ty(), 8));
    emit_loop(state_, {number64(0), number64(digits * bytes_)}, 8,
              [&](llvm::Value *i) { b_.CreateAlignedStore(zeros, slot(i), llvm::Align(64)); });
    emit_loop(state_, {number64(0), count_}, 1, [&](llvm::Value *i) {
      llvm::Value *key = ordered(columns_.key(home, i));
      for (uint64_t place = 0; place < bytes_; ++place) {
        llvm::Value *at = b_.CreateAdd(emit_digit(key, number64(8 * place)), number64(digits * place));
        store_count(at, b_.CreateNSWAdd(load_count(at), number64(1)));
      }
    });
  }

  // Each digit's first place, and there all elements, in order.
  void emit_pass(const Places &from, llvm::Value *shift, llvm::Value *row) {
    emit_loop(state_, {number64(0), number64(digits)}, 1, {number64(0)}, [&](llvm::Value *digit, const Values &sum) {
      llvm::Value *at = b_.CreateAdd(row, digit), *count = load_count(at);
      store_count(at, sum[0]);
      return Values{b_.CreateNSWAdd(sum[0], count)};
    });
    emit_loop(state_, {number64(0), count_}, 1, [&](llvm::Value *i) {
      llvm::Value *at = b_.CreateAdd(row, emit_digit(ordered(columns_.key(from, i)), shift));
      llvm::Value *to = load_count(at);
      columns_.move(from, i, to);
      store_count(at, b_.CreateNSWAdd(to, number64(1)));
    });
  }

  llvm::Value *emit_digit(llvm::Value *key, llvm::Value *shift) {
    return b_.CreateAnd(b_.CreateLShr(b_.CreateZExt(key, b_.getInt64Ty()), shift), number64(digits - 1));
  }

  // An unsigned number of the key's size that has its place in the order of kernel::Sort.
  llvm::Value *ordered(llvm::Value *key) {
    llvm::IntegerType *type = b_.getIntNTy(static_cast<unsigned>(8 * bytes_));
    const auto number = [&](uint64_t n) { return llvm::ConstantInt::get(type, n); };
    const uint64_t sign_bit = uint64_t{1} << (8 * bytes_ - 1);
    const DType dtype = columns_.key_type();
    const DTypeInfo &info = dtype_info(dtype);
    key = b_.CreateBitCast(key, type);
    llvm::Constant *sign = number(sign_bit);
    if (info.is_float) {
      llvm::Value *size = b_.CreateAnd(key, number(sign_bit - 1)), *is_negative = b_.CreateICmpSLT(key, number(0));
      llvm::Value *is_nan = b_.CreateICmpUGT(size, number(infinity_of(dtype)));
      key = b_.CreateSelect(is_negative, b_.CreateNot(key), b_.CreateOr(key, sign));
      key = b_.CreateSelect(b_.CreateICmpEQ(size, number(0)), sign, key);
      key = b_.CreateSelect(is_nan, number(~uint64_t{0}), key);
    } else if (info.is_signed) {
      key = b_.CreateXor(key, sign);
    }
    return columns_.descending() ? b_.CreateNot(key) : key;
  }

  // The bits beyond which there are NaN alone.
  static uint64_t infinity_of(DType type) {
    if (type == DType::f32) return uint64_t{0xff} << 23;
    return type == DType::f64 ? uint64_t{0x7ff} << 52 : small_format(type).overflow();
  }

  KernelState &state_;
  llvm::IRBuilder<> &b_;
  Columns &columns_;
  llvm::Value *count_;
  const uint64_t bytes_;
  llvm::Value *table_;
};

}  // namespace

int64_t least_sorted_by_digits(DType key) {
  switch (size_of(key)) {
    case 1:
      return 16;
    case 2:
      return 32;
    case 4:
      return 48;
    default:
      return 128;
  }
}

void emit_sort_by_digits(KernelState &state, Columns &columns, const Places &home, llvm::Value *count) {
  DigitSorter(state, columns, count).emit(home);
}

}  // namespace kiln::codegen
