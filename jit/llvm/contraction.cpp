// Contractions: blocked and packed as in Goto and van de Geijn, "Anatomy of high-performance matrix multiplication".
//
// A task owns a tile of m x n, whose sums lie in scratch (c_tile). For each block of k: the tile's rows of a are packed
// into panels of mr rows; for each panel of nr columns of b, which is packed just before its use or was packed once and
// for all, the microkernel runs down the panels of a, keeping mr x nr sums in registers. After the last block the
// epilogue reads the sums back. Rows and columns that stand over the tile's end hold copies of the last one; their sums
// are not read.
#include <algorithm>
#include <numeric>

#include "jit/llvm/emitter.h"
#include "jit/llvm/panel.h"

namespace kiln::codegen {
namespace {

class ContractionEmitter {
 public:
  ContractionEmitter(KernelState &state, const Point &point, const Range &m, const Range &n)
      : state_(state),
        b_(state.b),
        schedule_(state.kernel.schedule),
        stage_(state.kernel.stages.front()),
        contract_(*stage_.contract),
        point_(point),
        m_(m),
        n_(n),
        m_axis_(state.kernel.parallel.size() - 2),
        element_(type_of(state, contract_.accumulator)),
        lanes_(std::gcd(schedule_.nr, state.features.prefer_vector_bits / 8 / size_of(contract_.accumulator))),
        vector_(llvm::FixedVectorType::get(element_, lanes_)),
        c_columns_(round_up(schedule_.tiles[m_axis_ + 1], schedule_.nr)),
        c_rows_(round_up(schedule_.tiles[m_axis_], schedule_.mr)),
        a_panels_(area(state.layout.a_panel)),
        b_panel_(area(state.layout.b_panel)),
        c_tile_(area(state.layout.c_tile)) {}

  void emit() {
    const Range k = stage_range(state_, stage_.axes.front(), point_);
    k_extent_ = k.end;
    if (!k.count || *k.count == 0) emit_if(state_, b_.CreateICmpEQ(k.end, integer(0)), [&] { clear_sums(); });
    emit_loop(state_, k, schedule_.kc, [&](llvm::Value *begin) { emit_block(block_at(k, begin)); });
    emit_epilogue();
  }

 private:
  static int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }
  llvm::Value *integer(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }
  llvm::Value *at(llvm::Value *base, llvm::Value *index) { return b_.CreateGEP(element_, base, index); }
  llvm::Value *at(llvm::Value *base, int64_t index) { return at(base, integer(index)); }
  llvm::Value *area(const Expr &offset) {
    return b_.CreateGEP(b_.getInt8Ty(), state_.scratch, emit_scalar(state_, offset, {}));
  }
  llvm::Align alignment() const { return llvm::Align(size_of(contract_.accumulator)); }

  // [begin, begin + kc) of k, or what is left.
  Range block_at(const Range &k, llvm::Value *begin) {
    const int64_t kc = schedule_.kc;
    if (k.count && *k.count <= kc) return k;
    llvm::Value *end = b_.CreateNSWAdd(begin, integer(kc));
    if (k.count && *k.count % kc == 0) return {begin, end, kc};
    return {begin, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, k.end)};
  }

  void clear_sums() {
    emit_loop(state_, {integer(0), integer(c_rows_ * c_columns_)}, lanes_, [&](llvm::Value *i) {
      b_.CreateAlignedStore(llvm::Constant::getNullValue(vector_), at(c_tile_, i), alignment());
    });
  }

  void emit_block(const Range &k) {
    const PanelSource a{contract_.a, m_axis_, contract_.accumulator, schedule_.mr};
    const PanelSource b{contract_.b, m_axis_ + 1, contract_.accumulator, schedule_.nr};
    emit_loop(state_, m_, schedule_.mr,
              [&](llvm::Value *i) { emit_panel(state_, a, point_, {i, m_.end}, k, a_panel_of(i)); });
    emit_loop(state_, n_, schedule_.nr, [&](llvm::Value *j) {
      llvm::Value *columns = b_panel_;
      if (is_packed())
        columns = packed_panel(j, k.begin);
      else
        emit_panel(state_, b, point_, {j, n_.end}, k, columns);
      emit_loop(state_, m_, schedule_.mr, [&](llvm::Value *i) { emit_rows(i, j, k, columns); });
    });
  }

  llvm::Value *a_panel_of(llvm::Value *i) {
    return at(a_panels_, b_.CreateNSWMul(b_.CreateNSWSub(i, m_.begin), integer(schedule_.kc)));
  }

  bool is_packed() const {
    return contract_.panel == schedule_.nr &&
           state_.kernel.buffers[contract_.packed_buffer].type == contract_.accumulator;
  }
  // j is a multiple of nr, the panel's width: (j / nr * K + k) * nr = j * K + k * nr.
  llvm::Value *packed_panel(llvm::Value *j, llvm::Value *k) {
    llvm::Value *offset = emit_scalar(state_, contract_.packed_offset, point_);
    offset = b_.CreateNSWAdd(offset, b_.CreateNSWMul(j, k_extent_));
    offset = b_.CreateNSWAdd(offset, b_.CreateNSWMul(k, integer(schedule_.nr)));
    return at(state_.buffers[contract_.packed_buffer], offset);
  }

  // The microkernel for a panel of rows from i on; the last one may be thin, and then goes in smaller steps.
  void emit_rows(llvm::Value *i, llvm::Value *j, const Range &k, llvm::Value *columns) {
    const int64_t mr = schedule_.mr, few = few_rows();
    if (few == mr || (m_.count && *m_.count % mr == 0)) return emit_microkernel(mr, i, j, k, a_panel_of(i), columns);
    llvm::Value *left = b_.CreateNSWSub(m_.end, i);
    llvm::Value *thin = b_.CreateICmpSLE(left, integer(mr - few));
    emit_if(state_, b_.CreateNot(thin), [&] { emit_microkernel(mr, i, j, k, a_panel_of(i), columns); });
    emit_if(state_, thin, [&] {
      emit_loop(state_, {integer(0), left}, few, [&](llvm::Value *row) {
        emit_microkernel(few, b_.CreateNSWAdd(i, row), j, k, at(a_panel_of(i), row), columns);
      });
    });
  }
  // Enough rows to keep the multipliers busy for as long as one addition takes; a divisor of mr.
  int64_t few_rows() const {
    for (int64_t rows = std::min<int64_t>(4, schedule_.mr - 1); rows > 1; --rows)
      if (schedule_.mr % rows == 0) return rows;
    return schedule_.mr;
  }

  // c_tile[i.., j..] (+)= rows x columns. `a_rows` has mr elements for each k, of which the first `rows` are used.
  void emit_microkernel(int64_t rows, llvm::Value *i, llvm::Value *j, const Range &k, llvm::Value *a_rows,
                        llvm::Value *columns) {
    const int64_t vectors = schedule_.nr / lanes_;
    const Values zeros(static_cast<size_t>(rows * vectors), llvm::Constant::getNullValue(vector_));
    const Range depth{integer(0), b_.CreateNSWSub(k.end, k.begin), k.count};
    const Values sums = emit_loop(state_, depth, 1, zeros, [&](llvm::Value *step, const Values &carried) {
      llvm::Value *b_row = at(columns, b_.CreateNSWMul(step, integer(schedule_.nr)));
      llvm::Value *a_column = at(a_rows, b_.CreateNSWMul(step, integer(schedule_.mr)));
      Values b_vectors, next;
      for (int64_t v = 0; v < vectors; ++v)
        b_vectors.push_back(b_.CreateAlignedLoad(vector_, at(b_row, v * lanes_), alignment()));
      for (int64_t r = 0; r < rows; ++r) {
        llvm::Value *a = b_.CreateVectorSplat(lanes_, b_.CreateAlignedLoad(element_, at(a_column, r), alignment()));
        for (int64_t v = 0; v < vectors; ++v) next.push_back(multiply_add(a, b_vectors[v], carried[next.size()]));
      }
      return next;
    });
    llvm::Value *c = at(c_tile_, c_offset(i, j));
    const auto store = [&](bool add) {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t v = 0; v < vectors; ++v) {
          llvm::Value *to = at(c, r * c_columns_ + v * lanes_), *sum = sums[static_cast<size_t>(r * vectors + v)];
          if (add) sum = emit_add(b_.CreateAlignedLoad(vector_, to, alignment()), sum);
          b_.CreateAlignedStore(sum, to, alignment());
        }
      }
    };
    llvm::Value *first = b_.CreateICmpEQ(k.begin, integer(0));
    if (auto *known = llvm::dyn_cast<llvm::ConstantInt>(first)) return store(known->isZero());
    emit_if(state_, first, [&] { store(false); });
    emit_if(state_, b_.CreateNot(first), [&] { store(true); });
  }

  llvm::Value *multiply_add(llvm::Value *x, llvm::Value *y, llvm::Value *sum) {
    if (element_->isFloatingPointTy()) return emit_multiply_add(state_, x, y, sum);
    return b_.CreateAdd(b_.CreateMul(x, y), sum);
  }
  llvm::Value *emit_add(llvm::Value *x, llvm::Value *y) {
    return element_->isFloatingPointTy() ? b_.CreateFAdd(x, y) : b_.CreateAdd(x, y);
  }

  llvm::Value *c_offset(llvm::Value *i, llvm::Value *j) {
    llvm::Value *row = b_.CreateNSWMul(b_.CreateNSWSub(i, m_.begin), integer(c_columns_));
    return b_.CreateNSWAdd(row, b_.CreateNSWSub(j, n_.begin));
  }

  void emit_epilogue() {
    const size_t inner = schedule_.vector_m ? m_axis_ : m_axis_ + 1, outer = schedule_.vector_m ? m_axis_ + 1 : m_axis_;
    const Range &lanes_range = schedule_.vector_m ? m_ : n_, &other_range = schedule_.vector_m ? n_ : m_;
    const int64_t tile = schedule_.tiles[inner], width = schedule_.lanes;
    const LanePlan plan{inner, schedule_.lanes, can_mask(state_, stage_, inner), tile % width == 0 ? width : 1};
    emit_loop(state_, other_range, 1, [&](llvm::Value *i) {
      Point line = point_;
      line.set_axis(outer, i);
      emit_over_lanes(state_, plan, lanes_range, line, [&](const Point &at_point) {
        Leaves leaves;
        leaves.accumulator = load_sums(at_point);
        emit_stores(state_, stage_.stores, emit_body(state_, stage_.body, at_point, leaves), at_point);
      });
    });
  }

  // c_tile's rows are whole panels, so that lanes may stand over the tile's end; down a column they may not.
  llvm::Value *load_sums(const Point &at_point) {
    llvm::Value *offset = c_offset(at_point.axes[m_axis_], at_point.axes[m_axis_ + 1]);
    if (!at_point.is_vector()) return b_.CreateAlignedLoad(element_, at(c_tile_, offset), alignment());
    auto *type = llvm::FixedVectorType::get(element_, at_point.width);
    if (!schedule_.vector_m) return b_.CreateAlignedLoad(type, at(c_tile_, offset), alignment());
    llvm::Value *last = integer(c_rows_ * c_columns_ - 1), *sums = llvm::PoisonValue::get(type);
    for (unsigned lane = 0; lane < at_point.width; ++lane) {
      llvm::Value *index = b_.CreateNSWAdd(offset, integer(lane * c_columns_));
      if (at_point.active) index = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, index, last);
      sums =
          b_.CreateInsertElement(sums, b_.CreateAlignedLoad(element_, at(c_tile_, index), alignment()), uint64_t{lane});
    }
    return sums;
  }

  KernelState &state_;
  llvm::IRBuilder<> &b_;
  const kernel::Schedule &schedule_;
  const kernel::Stage &stage_;
  const kernel::Contract &contract_;
  const Point &point_;
  const Range m_, n_;
  const size_t m_axis_;
  llvm::Type *element_;
  const unsigned lanes_;  // of the microkernel's vectors
  llvm::Type *vector_;
  const int64_t c_columns_, c_rows_;  // of c_tile
  llvm::Value *a_panels_, *b_panel_, *c_tile_, *k_extent_ = nullptr;
};

}  // namespace

void emit_contraction(KernelState &state, const Point &point, Range m, Range n) {
  ContractionEmitter(state, point, m, n).emit();
}

}  // namespace kiln::codegen
