// What the two ways of sorting share: the columns of a sort, of one lane, and where their elements lie by now.
#pragma once
#include "jit/llvm/emitter.h"

namespace kiln::codegen {

// Pointers to the first elements, of one lane: for each column where its elements are; then, in the same order, its
// other place. A pass moves all from the one to the other, and swaps the two.
using Places = Values;

class Columns {
 public:
  Columns(KernelState &state, const kernel::Sort &sort, const Point &point)
      : state_(state), b_(state.b), sort_(sort), lanes_(point.row_local_lanes) {}

  size_t size() const { return sort_.columns.size(); }
  bool descending() const { return sort_.descending; }
  DType key_type() const { return type_of(0); }

  Places begin(llvm::Value *lane) {
    Places places;
    for (const bool spare : {false, true}) {
      for (size_t c = 0; c < size(); ++c) {
        const kernel::Sort::Column &column = sort_.columns[c];
        places.push_back(b_.CreateGEP(memory_type(c), state_.buffers[spare ? column.spare : column.buffer], lane));
      }
    }
    return places;
  }
  static Places swapped(const Places &places) {
    Places swapped(places.begin() + places.size() / 2, places.end());
    swapped.append(places.begin(), places.begin() + places.size() / 2);
    return swapped;
  }
  llvm::Value *load(const Places &from, size_t column, llvm::Value *i) {
    return b_.CreateAlignedLoad(memory_type(column), address(from[column], column, i), alignment(column));
  }
  llvm::Value *key(const Places &from, llvm::Value *i) { return load(from, 0, i); }
  // All of element `from_i` to `to_i` of the other place.
  void move(const Places &places, llvm::Value *from_i, llvm::Value *to_i) {
    copy(places, from_i, swapped(places), to_i);
  }
  void copy(const Places &from, llvm::Value *from_i, const Places &to, llvm::Value *to_i) {
    for (size_t c = 0; c < size(); ++c)
      b_.CreateAlignedStore(load(from, c, from_i), address(to[c], c, to_i), alignment(c));
  }
  // Back to where they began, if they are not there.
  void settle(const Places &places, const Places &home, llvm::Value *count) {
    emit_if(state_, b_.CreateICmpNE(places[0], home[0]),
            [&] { emit_loop(state_, {b_.getInt64(0), count}, 1, [&](llvm::Value *i) { copy(places, i, home, i); }); });
  }

 private:
  DType type_of(size_t column) const { return state_.kernel.buffers[sort_.columns[column].buffer].type; }
  llvm::Type *memory_type(size_t column) { return memory_type_of(state_, type_of(column)); }
  llvm::Align alignment(size_t column) const { return llvm::Align(size_of(type_of(column))); }
  llvm::Value *address(llvm::Value *base, size_t column, llvm::Value *i) {
    return b_.CreateGEP(memory_type(column), base, b_.CreateNSWMul(i, b_.getInt64(lanes_)));
  }

  KernelState &state_;
  llvm::IRBuilder<> &b_;
  const kernel::Sort &sort_;
  const unsigned lanes_;
};

// sort_digits.cpp. From how many elements on it is faster than merges; and the sort of `count` of them.
int64_t least_sorted_by_digits(DType key);
void emit_sort_by_digits(KernelState &state, Columns &columns, const Places &home, llvm::Value *count);

}  // namespace kiln::codegen
