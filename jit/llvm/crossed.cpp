// Transposes in registers: lanes() rows of as many elements are read along memory, and become columns by shuffles, of
// which each takes blocks of four lanes apart or moves such blocks, as x86's do.
#include <algorithm>
#include <array>
#include <utility>

#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

// The same choice of four out of eight in each block of four lanes of x and y.
llvm::Value *blockwise(llvm::IRBuilder<> &b, llvm::Value *x, llvm::Value *y, std::array<unsigned, 4> choice) {
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements();
  llvm::SmallVector<int, 16> mask;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    const unsigned from = choice[lane % 4];
    mask.push_back(static_cast<int>((from < 4 ? from : lanes + from - 4) + lane / 4 * 4));
  }
  return b.CreateShuffleVector(x, y, mask);
}

// `lanes` rows of as many elements become columns.
Values transposed(llvm::IRBuilder<> &b, Values rows, unsigned lanes) {
  for (unsigned first = 0; first < lanes; first += 4) {
    const Values columns = interleave_four(b, llvm::ArrayRef<llvm::Value *>(rows).slice(first, 4));
    std::ranges::copy(columns, rows.begin() + first);
  }
  // Then blocks of four lanes: one that is `distance` rows further down changes places with one as far to the right.
  for (unsigned distance = lanes / 2; distance >= 4; distance /= 2) {
    for (unsigned row = 0; row < lanes; ++row) {
      if (row & distance) continue;
      llvm::Value *upper = rows[row], *lower = rows[row + distance];
      llvm::SmallVector<int, 16> left, right;
      for (unsigned lane = 0; lane < lanes; ++lane) {
        const bool is_right = lane & distance;
        left.push_back(static_cast<int>(is_right ? lanes + lane - distance : lane));
        right.push_back(static_cast<int>(is_right ? lanes + lane : lane + distance));
      }
      rows[row] = b.CreateShuffleVector(upper, lower, left);
      rows[row + distance] = b.CreateShuffleVector(upper, lower, right);
    }
  }
  return rows;
}

}  // namespace

Values interleave_two(llvm::IRBuilder<> &b, llvm::ArrayRef<llvm::Value *> rows) {
  return {blockwise(b, rows[0], rows[1], {0, 4, 1, 5}), blockwise(b, rows[0], rows[1], {2, 6, 3, 7})};
}

Values interleave_four(llvm::IRBuilder<> &b, llvm::ArrayRef<llvm::Value *> rows) {
  const Values first = interleave_two(b, rows.slice(0, 2)), second = interleave_two(b, rows.slice(2, 2));
  return {blockwise(b, first[0], second[0], {0, 1, 4, 5}), blockwise(b, first[0], second[0], {2, 3, 6, 7}),
          blockwise(b, first[1], second[1], {0, 1, 4, 5}), blockwise(b, first[1], second[1], {2, 3, 6, 7})};
}

void emit_crossed_block(KernelState &state, std::span<const size_t> crossed, const Point &point, llvm::Value *i,
                        llvm::Value *j) {
  auto &b = state.b;
  const kernel::Stage &stage = state.kernel.stages[0];
  const unsigned lanes = state.kernel.schedule.lanes();
  const size_t last = state.kernel.parallel.size() - 1;
  const auto ahead = std::exchange(state.ahead, {});  // what lies further on in a row is another block's
  const auto after = [&](llvm::Value *begin, unsigned n) { return b.CreateNSWAdd(begin, b.getInt64(n)); };
  std::vector<Values> columns;  // by crossed load
  for (size_t load : crossed) {
    Values rows;
    for (unsigned n = 0; n < lanes; ++n) {
      Point row = at_lanes({last - 1, lanes, false, false, 1}, point, i);
      row.set_axis(last, after(j, n));
      const kernel::Access &access = stage.body.values[load].access;
      rows.push_back(emit_load(state, access, emit_index(state, access.index[0], row), row, nullptr));
    }
    columns.push_back(transposed(b, std::move(rows), lanes));
  }
  for (unsigned n = 0; n < lanes; ++n) {
    Point line = at_lanes({last, lanes, false, false, 1}, point, j);
    line.set_axis(last - 1, after(i, n));
    Values loaded(stage.body.values.size(), nullptr);
    for (size_t c = 0; c < crossed.size(); ++c) loaded[crossed[c]] = columns[c][n];
    Leaves leaves;
    leaves.loaded = loaded;
    emit_stores(state, stage.stores, emit_body(state, stage.body, line, leaves), line);
  }
  state.ahead = ahead;
}

}  // namespace kiln::codegen
