// Transposes in registers: lanes() rows of as many elements are read along memory, and become columns by shuffles, of
// which each takes blocks of four lanes apart or moves such blocks, as x86's do.
#include <array>

#include "jit/llvm/emitter.h"

namespace kiln::codegen {
namespace {

class Transposer {
 public:
  Transposer(KernelState &state, unsigned lanes) : b_(state.b), lanes_(lanes) {}

  Values run(Values rows) {
    // Of four rows each block of four lanes.
    for (unsigned first = 0; first < lanes_; first += 4) {
      llvm::Value **four = rows.begin() + first;
      llvm::Value *a = within(four[0], four[1], {0, 4, 1, 5}), *b = within(four[0], four[1], {2, 6, 3, 7}),
                  *c = within(four[2], four[3], {0, 4, 1, 5}), *d = within(four[2], four[3], {2, 6, 3, 7});
      four[0] = within(a, c, {0, 1, 4, 5});
      four[1] = within(a, c, {2, 3, 6, 7});
      four[2] = within(b, d, {0, 1, 4, 5});
      four[3] = within(b, d, {2, 3, 6, 7});
    }
    // Then the blocks: one that is `distance` rows further down changes places with one as far to the right.
    for (unsigned distance = lanes_ / 2; distance >= 4; distance /= 2) {
      for (unsigned row = 0; row < lanes_; ++row) {
        if (row & distance) continue;
        llvm::Value *upper = rows[row], *lower = rows[row + distance];
        llvm::SmallVector<int, 16> left, right;
        for (unsigned lane = 0; lane < lanes_; ++lane) {
          const bool is_right = lane & distance;
          left.push_back(static_cast<int>(is_right ? lanes_ + lane - distance : lane));
          right.push_back(static_cast<int>(is_right ? lanes_ + lane : lane + distance));
        }
        rows[row] = b_.CreateShuffleVector(upper, lower, left);
        rows[row + distance] = b_.CreateShuffleVector(upper, lower, right);
      }
    }
    return rows;
  }

 private:
  // The same choice of four out of eight in each block of four lanes of x and y.
  llvm::Value *within(llvm::Value *x, llvm::Value *y, std::array<unsigned, 4> choice) {
    llvm::SmallVector<int, 16> mask;
    for (unsigned lane = 0; lane < lanes_; ++lane) {
      const unsigned from = choice[lane % 4], block = lane / 4 * 4;
      mask.push_back(static_cast<int>(from < 4 ? block + from : lanes_ + block + from - 4));
    }
    return b_.CreateShuffleVector(x, y, mask);
  }

  llvm::IRBuilder<> &b_;
  const unsigned lanes_;
};

}  // namespace

void emit_crossed_block(KernelState &state, std::span<const size_t> crossed, const Point &point, llvm::Value *i,
                        llvm::Value *j) {
  auto &b = state.b;
  const kernel::Stage &stage = state.kernel.stages[0];
  const unsigned lanes = state.kernel.schedule.lanes();
  const size_t last = state.kernel.parallel.size() - 1;
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
    columns.push_back(Transposer(state, lanes).run(std::move(rows)));
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
}

}  // namespace kiln::codegen
