// Contractions: blocked and packed as in Goto and van de Geijn, "Anatomy of high-performance matrix multiplication".
//
// A task owns a tile of m x n, whose sums lie in scratch (c_tile); in tiles of rows all columns, or so many of them at
// a time. For each block of k: the tile's rows of a are packed into panels of mr rows; for each panel of nr columns of
// b, which is packed just before its use or was packed once and for all, the microkernel runs down the panels of a,
// keeping mr x nr sums in registers. After the last block the epilogue reads the sums back. Rows and columns that stand
// over the tile's end hold copies or zeros; their sums are not read. Rows of a that are windows of an image, or that
// the kernel has made itself, are read where they lie, by the address of each row and how far each step of k is from
// it. Of k that is hidden (kernel::HiddenColumns) nothing is packed of a, and of b it is seen alone what 0 makes of it.
#include <algorithm>
#include <numeric>

#include "jit/kernel/body.h"
#include "jit/llvm/emitter.h"
#include "jit/llvm/panel.h"
#include "jit/llvm/products.h"
#include "jit/llvm/tiles.h"

namespace kiln::codegen {
namespace {

// The body of what panels of it hold.
kernel::Body factor_body(const kernel::Body &body, DType factor) {
  kernel::Body copy = body;
  if (factor == DType::none) return copy;
  copy.yields[0] = copy.values[static_cast<size_t>(copy.yields[0])].args[0];
  kernel::prune(copy);
  return copy;
}

// Rows of a that are read where they lie. `step`: how far each k is from the first, the same for all rows, where that
// is no even count; none: so many elements.
struct InPlace {
  const kernel::Access &access;
  std::optional<Expr> step;
};
const llvm::Align alignment_of_step(sizeof(int64_t));

class ContractionEmitter {
 public:
  ContractionEmitter(KernelState &state, const kernel::Stage &stage, const Point &point, const Range &m, const Range &n)
      : state_(state),
        b_(state.b),
        schedule_(state.kernel.schedule),
        stage_(stage),
        contract_(*stage_.contract),
        point_(point),
        m_(m),
        n_(n),
        axes_(kernel::contraction_axes(state.kernel, stage)),
        depth_(kernel::block_depth(state.kernel, stage)),
        block_columns_(kernel::block_columns(state.kernel, stage)),
        element_(type_of(state, contract_.accumulator)),
        lanes_(std::gcd(schedule_.nr, schedule_.lanes(size_of(contract_.accumulator)))),
        vector_(llvm::FixedVectorType::get(element_, lanes_)),
        a_body_(factor_body(contract_.a, contract_.a_factor)),
        b_body_(factor_body(contract_.b, contract_.b_factor)),
        a_element_(memory_type_of(state, contract_.a_type())),
        b_element_(memory_type_of(state, contract_.b_type())),
        k_step_(kernel::k_step(contract_, schedule_)),
        a_group_(kernel::group_of_rows(contract_, schedule_, walks(a_body_, axes_.k))),
        products_(state, contract_, lanes_),
        in_place_(find_in_place()),
        k_(whole_range(state, stage_.axes.back(), point)),
        k_shown_(stage_range(state, stage_.axes.back(), point)),
        one_block_(block_columns_ == 0),
        c_columns_(round_up(std::max<int64_t>(block_columns_, 1), schedule_.nr)),
        c_rows_(round_up(schedule_.tiles[axes_.m], schedule_.mr)),
        a_panels_(area(state.layout.a_panel)),
        b_panel_(area(state.layout.b_panel)),
        c_tile_(area(state.layout.c_tile)) {}

  void emit() {
    if (in_tiles()) emit_tiles_begin(state_);
    emit_blocks();
    if (in_tiles()) emit_tiles_end(state_);
  }

 private:
  bool in_tiles() const { return schedule_.products == kernel::Schedule::Products::tiles; }

  static Range whole_range(KernelState &state, const kernel::Axis &axis, const Point &point) {
    Range range{state.b.getInt64(0), emit_scalar(state, axis.extent, point)};
    if (axis.extent.is_integer()) range.count = axis.extent.integer();
    return range;
  }

  void emit_blocks() {
    if (one_block_) return emit_block(k_);
    clear_sums();
    // At least once, so that the epilogue runs where k is empty.
    llvm::Value *end = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, k_.end, integer(1));
    emit_loop(state_, {integer(0), end, k_.count}, depth_,
              [&](llvm::Value *begin) { emit_block(piece_at(begin, k_, depth_)); });
  }

  static int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }
  llvm::Value *integer(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }
  llvm::Value *at(llvm::Value *base, llvm::Value *index) { return b_.CreateGEP(element_, base, index); }
  llvm::Value *at(llvm::Value *base, int64_t index) { return at(base, integer(index)); }
  llvm::Value *area(const Expr &offset) {
    return b_.CreateGEP(b_.getInt8Ty(), state_.scratch, emit_scalar(state_, offset, {}));
  }
  llvm::Value *load(llvm::Type *type, llvm::Value *from) { return b_.CreateAlignedLoad(type, from, alignment()); }
  void store(llvm::Value *value, llvm::Value *to) { b_.CreateAlignedStore(value, to, alignment()); }
  llvm::Align alignment() const { return llvm::Align(size_of(contract_.accumulator)); }

  // [begin, begin + size), or what is left of `whole`.
  Range piece_at(llvm::Value *begin, const Range &whole, int64_t size) {
    llvm::Value *end = b_.CreateNSWAdd(begin, integer(size));
    if (!whole.has_rest(size)) return {begin, end, size};
    return {begin, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, whole.end)};
  }
  // [j, j + nr) of n, or what is left.
  Range columns_at(llvm::Value *j) {
    const int64_t nr = schedule_.nr;
    llvm::Value *end = b_.CreateNSWAdd(j, integer(nr));
    if (!n_.has_rest(nr)) return {j, end, nr};
    if (n_.count && *n_.count < nr) return {j, n_.end, n_.count};
    return {j, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, n_.end)};
  }

  void clear_sums() {
    const int64_t mr = schedule_.mr;
    llvm::Value *rows = b_.CreateNSWAdd(b_.CreateNSWSub(m_.end, m_.begin), integer(mr - 1));
    llvm::Value *size = b_.CreateNSWMul(b_.CreateUDiv(rows, integer(mr)), integer(mr * c_columns_));
    emit_loop(state_, {integer(0), size}, lanes_,
              [&](llvm::Value *i) { store(llvm::Constant::getNullValue(vector_), at(c_tile_, i)); });
  }

  void emit_block(const Range &block) {
    Range k = block;
    std::vector<Range> hidden;
    if (hides_k()) {
      k.begin = greater_of(state_, block.begin, less_of(state_, k_shown_.begin, block.end));
      k.end = greater_of(state_, k.begin, less_of(state_, k_shown_.end, block.end));
      k.count = std::nullopt;
      k.multiple = std::gcd(k_shown_.multiple, depth_);
      if (state_.hidden->from) hidden.push_back({block.begin, k.begin});
      if (state_.hidden->until) hidden.push_back({k.end, block.end});
    }
    const auto step = static_cast<unsigned>(k_step_);
    const auto a_group = static_cast<unsigned>(a_group_);
    const PanelSource a{a_body_,      axes_.m, axes_.k, contract_.a_type(),
                        schedule_.mr, a_group, step,    products_.above_by_128()};
    const PanelSource b{b_body_, axes_.n, axes_.k, contract_.b_type(), schedule_.nr, contract_.group, step};
    if (!in_place_)
      pack_rows(a, k);
    else if (in_place_->step)
      list_steps(k);
    emit_loop(state_, n_, schedule_.nr, [&](llvm::Value *j) {
      columns_begin_ = j;
      llvm::Value *columns = b_panel_;
      if (hides_k()) sum_hidden(hidden, b, j);
      if (is_packed())
        columns = packed_panel(j, k.begin);
      else
        emit_panel(state_, b, point_, {j, n_.end}, k, columns);
      begin_sums(k, columns);
      emit_loop(state_, m_, schedule_.mr, [&](llvm::Value *i) { emit_rows(i, j, k, columns); });
      // The panel's sums are still near; storing results while the next panel is computed hides the stores.
      if (one_block_) return emit_epilogue(columns_at(j));
      emit_if(state_, b_.CreateICmpSGE(block.end, k_.end), [&] { emit_epilogue(columns_at(j)); });
    });
  }

  // Where k goes from place to place in windows: to pack them would be to write each element many times. And rows that
  // the kernel itself has made, of which each begins in other lines of a cache (kernel::row_step; attention takes .95
  // of the time). What lies along lines of other memory, or down columns, is packed: that takes .9 to 1 of the time.
  std::optional<InPlace> find_in_place() const {
    const kernel::Value &load = a_body_.values[0];
    if (a_body_.values.size() != 1 || load.op != kernel::Core::load || load.access.valid >= 0 || k_step_ != 1 ||
        load.type != contract_.accumulator || !kernel::may_read_rows_in_place(schedule_.mr) ||
        schedule_.products != kernel::Schedule::Products::widened)
      return {};
    const auto k = static_cast<uint32_t>(axes_.k);
    const Expr &index = load.access.index[0];
    const std::optional<Expr> stride = index.coefficient(k);
    if (is_row_local(load.access))
      return stride && stride->is(1) ? std::optional(InPlace{load.access, {}}) : std::nullopt;
    const Expr step = index - index.substitute([&](const Expr &leaf) -> std::optional<Expr> {
      return leaf.kind() == Expr::Kind::axis && leaf.id() == k ? std::optional<Expr>(0) : std::nullopt;
    });
    if (stride || step.depends_on_axis(static_cast<uint32_t>(axes_.m))) return {};
    return InPlace{load.access, step};
  }
  bool is_row_local(const kernel::Access &access) const {
    return state_.kernel.buffers[access.buffer].space == kernel::Buffer::Space::row_local;
  }
  // How far each step of k is from the first, where panels would lie.
  void list_steps(const Range &k) {
    emit_loop(state_, depth_of(k), 1, [&](llvm::Value *number) {
      Point at = point_;
      at.set_axis(axes_.k, b_.CreateNSWAdd(k.begin, number));
      b_.CreateAlignedStore(emit_scalar(state_, *in_place_->step, at), place_of_step(number), alignment_of_step);
    });
  }
  llvm::Value *place_of_step(llvm::Value *number) { return b_.CreateGEP(b_.getInt64Ty(), a_panels_, number); }
  // From where elements of row i are read. Rows beyond the last are copies of it.
  llvm::Value *row_in_place(llvm::Value *i, const Range &k) {
    const kernel::Access &access = in_place_->access;
    Point at = point_;
    llvm::Value *row = less_of(state_, i, b_.CreateNSWSub(m_.end, integer(1)));
    at.set_axis(axes_.m, row);
    at.set_axis(axes_.k, in_place_->step ? integer(0) : k.begin);
    llvm::Value *place = emit_scalar(state_, access.index[0], at);
    if (is_row_local(access)) {
      llvm::Value *distance = emit_scalar(state_, kernel::row_step(state_.kernel.buffers[access.buffer]), {});
      place = b_.CreateNSWAdd(place, b_.CreateNSWMul(b_.CreateNSWSub(row, state_.first_row), distance));
    }
    return b_.CreateGEP(a_element_, state_.buffers[access.buffer], place);
  }

  // All panels of a. Where memory runs along the rows, its lines have parts of several panels: some steps of k of all
  // of them are packed before the next, so that lines are read once.
  void pack_rows(const PanelSource &a, const Range &k) {
    constexpr int64_t steps = 8;
    const auto pack = [&](const Range &piece) {
      llvm::Value *before = b_.CreateNSWMul(b_.CreateNSWSub(piece.begin, k.begin), integer(schedule_.mr));
      emit_loop(state_, m_, schedule_.mr, [&](llvm::Value *i) {
        emit_panel(state_, a, point_, {i, m_.end}, piece, b_.CreateGEP(a_element_, a_panel_of(i), before));
      });
    };
    const bool is_copied = a_body_.values.size() == 1 && k_step_ == 1 && a_group_ == 1;
    if (!is_copied || walks(a_body_, axes_.k)) return pack(k);
    emit_loop(state_, k, steps, [&](llvm::Value *begin) { pack(piece_at(begin, k, steps)); });
  }

  bool hides_k() const { return state_.shown && state_.shown->end == k_shown_.end; }

  // What all rows add for products of 0 with a panel's columns: they are added up by themselves, several at a time,
  // from -0 on, which no sum sees.
  void sum_hidden(const std::vector<Range> &hidden, const PanelSource &source, llvm::Value *j) {
    const size_t vectors = schedule_.nr / lanes_;
    hidden_sums_.assign(vectors, llvm::ConstantFP::getNegativeZero(vector_));
    for (const Range &k : hidden) {
      // Where memory runs along the columns, and there are no others in a vector of them, it is seen where it lies.
      if (walks(b_body_, axes_.n) && !n_.has_rest(schedule_.nr) && contract_.b_factor == DType::none) {
        sum_hidden(k, [&](llvm::Value *step, size_t v) {
          Point at = point_;
          at.set_axis(axes_.k, b_.CreateNSWAdd(k.begin, step));
          at.set_axis(axes_.n, b_.CreateNSWAdd(j, integer(static_cast<int64_t>(v * lanes_))));
          at.vector_axis = static_cast<int>(axes_.n);
          at.width = lanes_;
          return Values{splat(state_, emit_body(state_, b_body_, at)[0], lanes_)};
        });
      } else {
        emit_panel(state_, source, point_, {j, n_.end}, k, b_panel_);
        sum_hidden(k, [&](llvm::Value *step, size_t v) { return vector_of(line_of(b_panel_, step), v); });
      }
    }
  }
  template <class Fn>
  void sum_hidden(const Range &k, Fn columns_at) {
    constexpr unsigned sets = 4;
    const size_t vectors = hidden_sums_.size();
    llvm::Value *zero = llvm::Constant::getNullValue(vector_), *none = llvm::ConstantFP::getNegativeZero(vector_);
    const auto add_step = [&](llvm::Value *step, Values sums, size_t set) {
      for (size_t v = 0; v < vectors; ++v) {
        llvm::Value *&sum = sums[set * vectors + v];
        sum = products_.multiply_add({zero}, columns_at(step, v), sum);
      }
      return sums;
    };
    const auto [blocks, rest] = split_range(state_, depth_of(k), sets);
    Values sums(sets * vectors, none);
    sums = emit_loop(state_, blocks, sets, sums, [&](llvm::Value *step, Values now) {
      for (unsigned set = 0; set < sets; ++set) now = add_step(b_.CreateNSWAdd(step, integer(set)), now, set);
      return now;
    });
    sums =
        emit_loop(state_, rest, 1, sums, [&](llvm::Value *step, const Values &now) { return add_step(step, now, 0); });
    for (size_t v = 0; v < vectors; ++v)
      for (unsigned set = 0; set < sets; ++set) hidden_sums_[v] = added(hidden_sums_[v], sums[set * vectors + v]);
  }

  llvm::Value *a_panel_of(llvm::Value *i) {
    const int64_t depth = round_up(depth_, a_group_);
    return b_.CreateGEP(a_element_, a_panels_, b_.CreateNSWMul(b_.CreateNSWSub(i, m_.begin), integer(depth)));
  }

  bool is_packed() const { return contract_.panel != 0; }
  // j is a multiple of nr, the panel's width, and k one of the group: (j / nr * K + k) * nr = j * K + k * nr.
  llvm::Value *packed_panel(llvm::Value *j, llvm::Value *k) {
    llvm::Value *offset = emit_scalar(state_, contract_.packed_offset, point_);
    offset = b_.CreateNSWAdd(offset, b_.CreateNSWMul(j, b_.CreateNSWMul(steps_of(k_), integer(k_step_))));
    offset = b_.CreateNSWAdd(offset, b_.CreateNSWMul(k, integer(schedule_.nr)));
    return b_.CreateGEP(b_element_, state_.buffers[contract_.packed_buffer], offset);
  }
  // How many steps the microkernel takes for a range of k.
  llvm::Value *steps_of(const Range &k) {
    llvm::Value *count = b_.CreateNSWSub(k.end, k.begin);
    if (k_step_ == 1) return count;
    return b_.CreateUDiv(b_.CreateNSWAdd(count, integer(k_step_ - 1)), integer(k_step_));
  }
  Range depth_of(const Range &k) {
    const auto steps = [&](int64_t count) { return (count + k_step_ - 1) / k_step_; };
    return {integer(0), steps_of(k), k.count ? std::optional(steps(*k.count)) : std::nullopt,
            k_step_ == 1 ? k.multiple : 1};
  }

  // What sums over a block of k begin with, by vectors of a panel's columns.
  void begin_sums(const Range &k, llvm::Value *columns) {
    first_sums_.assign(schedule_.nr / lanes_, llvm::Constant::getNullValue(vector_));
    if (!products_.above_by_128()) return;
    const Values row = products_.by_128();
    first_sums_ = emit_loop(state_, depth_of(k), 1, first_sums_, [&](llvm::Value *step, const Values &carried) {
      llvm::Value *line = line_of(columns, step);
      Values next;
      for (llvm::Value *sum : carried) next.push_back(products_.multiply_add(row, vector_of(line, next.size()), sum));
      return next;
    });
    for (llvm::Value *&sum : first_sums_) sum = b_.CreateNeg(sum);
  }
  // A panel's columns in a step, and those of one vector.
  llvm::Value *line_of(llvm::Value *columns, llvm::Value *step) {
    return b_.CreateGEP(b_element_, columns, b_.CreateNSWMul(step, integer(int64_t{schedule_.nr} * contract_.group)));
  }
  Values vector_of(llvm::Value *line, size_t vector) {
    const int64_t offset = static_cast<int64_t>(vector) * lanes_ * contract_.group;
    return products_.columns(b_.CreateGEP(b_element_, line, integer(offset)));
  }

  // The microkernel for a panel of rows from i on; the last one may be thin, and then goes in smaller steps.
  void emit_rows(llvm::Value *i, llvm::Value *j, const Range &k, llvm::Value *columns) {
    const int64_t mr = schedule_.mr, few = few_rows();
    if (in_tiles()) return emit_tiles(i, j, k, columns);
    if (few == mr || (m_.count && *m_.count % mr == 0)) return emit_microkernel(mr, i, j, k, a_panel_of(i), columns);
    llvm::Value *left = b_.CreateNSWSub(m_.end, i);
    const auto all_rows = [&] { emit_microkernel(mr, i, j, k, a_panel_of(i), columns); };
    const auto thin = [&] {
      emit_loop(state_, {integer(0), left}, few, [&](llvm::Value *row) {
        emit_microkernel(few, b_.CreateNSWAdd(i, row), j, k,
                         b_.CreateGEP(a_element_, a_panel_of(i), b_.CreateNSWMul(row, integer(a_group_))), columns);
      });
    };
    emit_if_else(state_, b_.CreateICmpSGT(left, integer(mr - few)), all_rows, thin);
  }
  // Enough rows to keep the multipliers busy for as long as one addition takes; a divisor of mr.
  int64_t few_rows() const {
    for (int64_t rows = std::min<int64_t>(4, schedule_.mr - 1); rows > 1; --rows)
      if (schedule_.mr % rows == 0) return rows;
    return schedule_.mr;
  }

  // The same with tiles, which take their time for rows that do not exist.
  void emit_tiles(llvm::Value *i, llvm::Value *j, const Range &k, llvm::Value *columns) {
    const TileBlock block{a_panel_of(i), columns, at(c_tile_, c_offset(i, j)), c_columns_, one_block_};
    emit_tile_products(state_, contract_, block, depth_of(k));
  }

  // Goes through the steps of a block: of each the columns, and what tells its elements of rows: where the first is in
  // the panel, of which the next is a_group_ elements behind, or for rows in place how far the step is. Several steps
  // stand side by side, with constants for their places: what counts and tells places would be a quarter of all
  // instructions, which shows where another thread shares the core. `at_a_time` divides a_group_, where that is no
  // step.
  template <class Fn>
  Values over_steps(const Range &depth, int64_t at_a_time, llvm::Value *a_rows, llvm::Value *columns,
                    const Values &sums, Fn body) {
    const bool in_groups = !in_place_ && a_group_ != k_step_;
    const int64_t line = int64_t{schedule_.nr} * contract_.group;
    const int64_t next_row = in_groups ? 1 : schedule_.mr * k_step_;
    const auto rows_at = [&](llvm::Value *step) -> llvm::Value * {
      if (in_place_) return in_place_->step ? place_of_step(step) : step;
      llvm::Value *place = in_groups ? b_.CreateURem(step, integer(a_group_)) : nullptr;
      llvm::Value *group = in_groups ? b_.CreateNSWSub(step, place) : step;
      llvm::Value *rows = b_.CreateGEP(a_element_, a_rows, b_.CreateNSWMul(group, integer(schedule_.mr * k_step_)));
      return in_groups ? b_.CreateGEP(a_element_, rows, place) : rows;
    };
    const auto elements_of = [&](llvm::Value *rows, int64_t step) -> llvm::Value * {
      if (!in_place_) return b_.CreateGEP(a_element_, rows, integer(step * next_row));
      if (!in_place_->step) return b_.CreateNSWAdd(rows, integer(step));
      llvm::Value *from = b_.CreateGEP(b_.getInt64Ty(), rows, integer(step));
      return b_.CreateAlignedLoad(b_.getInt64Ty(), from, alignment_of_step);
    };
    const auto [blocks, rest] = split_range(state_, depth, static_cast<unsigned>(at_a_time));
    const Values whole = emit_loop(state_, blocks, at_a_time, sums, [&](llvm::Value *first, Values now) {
      llvm::Value *rows = rows_at(first), *lines = line_of(columns, first);
      for (int64_t step = 0; step < at_a_time; ++step) {
        // Columns of the next steps, loaded ahead, would take the registers that sums are in.
        if (step > 0) b_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent, llvm::SyncScope::SingleThread);
        now = body(b_.CreateGEP(b_element_, lines, integer(step * line)), elements_of(rows, step), now);
      }
      return now;
    });
    return emit_loop(state_, rest, 1, whole, [&](llvm::Value *step, const Values &now) {
      llvm::Value *rows =
          in_groups ? b_.CreateGEP(a_element_, rows_at(rest.begin), b_.CreateNSWSub(step, rest.begin)) : rows_at(step);
      return body(line_of(columns, step), elements_of(rows, 0), now);
    });
  }

  // c_tile[i.., j..] += rows x columns, a sum of its own. `a_rows` has mr groups for each step, of which the first
  // `rows` are used.
  void emit_microkernel(int64_t rows, llvm::Value *i, llvm::Value *j, const Range &k, llvm::Value *a_rows,
                        llvm::Value *columns) {
    const int64_t vectors = schedule_.nr / lanes_;
    llvm::Value *c = at(c_tile_, c_offset(i, j));
    // Made where it is used: nothing moves an address down through the loop (object_compiler.cpp).
    const auto place = [&](size_t sum) {
      const auto r = static_cast<int64_t>(sum) / vectors, v = static_cast<int64_t>(sum) % vectors;
      return at(c, r * c_columns_ + v * lanes_);
    };
    Values sums;
    for (size_t sum = 0; sum < static_cast<size_t>(rows * vectors); ++sum)
      sums.push_back(first_sums_[sum % static_cast<size_t>(vectors)]);

    Values rows_in_place;
    for (int64_t r = 0; in_place_ && r < rows; ++r)
      rows_in_place.push_back(row_in_place(b_.CreateNSWAdd(i, integer(r)), k));
    const auto element_of = [&](llvm::Value *elements, int64_t r) {
      if (in_place_) return b_.CreateGEP(a_element_, rows_in_place[static_cast<size_t>(r)], elements);
      return b_.CreateGEP(a_element_, elements, integer(r * a_group_));
    };
    // Eight would take a quarter longer to compile.
    const int64_t at_a_time = rows == schedule_.mr ? 4 : 1;
    sums = over_steps(depth_of(k), at_a_time, a_rows, columns, sums,
                      [&](llvm::Value *line, llvm::Value *elements, const Values &carried) {
                        llvm::SmallVector<Values, 4> b_vectors;
                        Values next;
                        for (size_t v = 0; v < static_cast<size_t>(vectors); ++v)
                          b_vectors.push_back(vector_of(line, v));
                        prefetch(line);
                        for (int64_t r = 0; r < rows; ++r) {
                          const Values a = products_.row(element_of(elements, r));
                          for (const Values &b : b_vectors)
                            next.push_back(products_.multiply_add(a, b, carried[next.size()]));
                        }
                        return next;
                      });
    for (size_t sum = 0; sum < sums.size(); ++sum) {
      if (!hidden_sums_.empty()) sums[sum] = added(sums[sum], hidden_sums_[sum % hidden_sums_.size()]);
      if (!one_block_) sums[sum] = added(load(vector_, place(sum)), sums[sum]);
      store(sums[sum], place(sum));
    }
  }

  llvm::Value *added(llvm::Value *x, llvm::Value *y) {
    return emit_core(state_, kernel::Core::add, {contract_.accumulator, contract_.accumulator}, {x, y}, nullptr);
  }

  // A packed panel may come from far: ask for what is read some steps later.
  void prefetch(llvm::Value *b_row) {
    constexpr int64_t distance_bytes = 1024, line_bytes = 64;
    const int64_t row_bytes = int64_t{schedule_.nr} * contract_.group * size_of(contract_.b_type());
    if (!is_packed()) return;
    for (int64_t offset = 0; offset < row_bytes; offset += line_bytes) {
      llvm::Value *line = b_.CreateConstGEP1_64(b_.getInt8Ty(), b_row, static_cast<uint64_t>(distance_bytes + offset));
      emit_prefetch(state_, line, 3);
    }
  }

  llvm::Value *c_offset(llvm::Value *i, llvm::Value *j) {
    llvm::Value *row = b_.CreateNSWMul(b_.CreateNSWSub(i, m_.begin), integer(c_columns_));
    return b_.CreateNSWAdd(row, b_.CreateNSWSub(j, one_block_ ? columns_begin_ : n_.begin));
  }

  // Where all rows see all columns, what tells them apart is known.
  void emit_epilogue(const Range &columns) {
    if (!state_.shown) return emit_epilogue(columns, {});
    const std::vector<kernel::Value> &values = stage_.body.values;
    Values known;
    for (size_t number = 0; number < values.size(); ++number) {
      if (std::ranges::find(state_.hidden->shows, &values[number]) == state_.hidden->shows.end()) continue;
      known.resize(number + 1, nullptr);
      known[number] = b_.getTrue();
    }
    if (known.empty()) return emit_epilogue(columns, {});
    llvm::Value *all_see = b_.CreateAnd(b_.CreateICmpSLE(state_.visible->begin, columns.begin),
                                        b_.CreateICmpSLE(columns.end, state_.visible->end));
    emit_if_else(state_, all_see, [&] { emit_epilogue(columns, known); }, [&] { emit_epilogue(columns, {}); });
  }

  // `known`: values of the body that are, as Leaves::loaded.
  void emit_epilogue(const Range &columns, const Values &known) {
    const size_t inner = schedule_.vector_m ? axes_.m : axes_.n, outer = schedule_.vector_m ? axes_.n : axes_.m;
    const Range &lanes_range = schedule_.vector_m ? m_ : columns, &other_range = schedule_.vector_m ? columns : m_;
    const auto tile_of = [&](size_t axis) {
      return axis < schedule_.tiles.size() ? schedule_.tiles[axis] : schedule_.nr;
    };
    const int64_t step = schedule_.vector_m ? tile_of(inner) : std::gcd(tile_of(inner), schedule_.nr);
    const int64_t width = schedule_.lanes();
    LanePlan plan = make_plan(state_, {&stage_, 1}, inner, schedule_.lanes(), step % width == 0 ? width : 1);
    if (schedule_.vector_m) plan.single = false;  // sums down a column are loaded lane by lane
    emit_loop(state_, other_range, 1, [&](llvm::Value *i) {
      Point line = point_;
      line.set_axis(outer, i);
      emit_over_lanes(state_, plan, lanes_range, line, [&](const Point &at_point) {
        Leaves leaves;
        leaves.accumulator = load_sums(at_point);
        leaves.loaded = known;
        emit_stores(state_, stage_.stores, emit_body(state_, stage_.body, at_point, leaves), at_point);
      });
    });
  }

  // c_tile's rows are whole panels, so that lanes may stand over the tile's end; down a column they may not.
  llvm::Value *load_sums(const Point &at_point) {
    llvm::Value *offset = c_offset(at_point.axes[axes_.m], at_point.axes[axes_.n]);
    if (!at_point.is_vector()) return load(element_, at(c_tile_, offset));
    auto *type = llvm::FixedVectorType::get(element_, at_point.width);
    if (!schedule_.vector_m) return load(type, at(c_tile_, offset));
    llvm::Value *last = integer(c_rows_ * c_columns_ - 1), *sums = llvm::PoisonValue::get(type);
    for (unsigned lane = 0; lane < at_point.width; ++lane) {
      llvm::Value *index = b_.CreateNSWAdd(offset, integer(lane * c_columns_));
      if (at_point.active) index = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, index, last);
      sums = b_.CreateInsertElement(sums, load(element_, at(c_tile_, index)), uint64_t{lane});
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
  const kernel::ContractionAxes axes_;
  const int64_t depth_, block_columns_;  // of k and n; kernel::block_columns
  llvm::Type *element_;
  const unsigned lanes_;  // of the microkernel's vectors
  llvm::Type *vector_;
  const kernel::Body a_body_, b_body_;  // of what panels hold
  llvm::Type *a_element_, *b_element_;
  const int64_t k_step_;
  const int64_t a_group_;  // elements of a row that stand together in a panel: a step's, or a line of memory's
  Products products_;
  const std::optional<InPlace> in_place_;
  Values first_sums_, hidden_sums_;   // by vectors of a panel's columns
  const Range k_, k_shown_;           // all of it, and of that what is not hidden
  const bool one_block_;              // of k: sums are complete when they leave the registers, and used at once
  const int64_t c_columns_, c_rows_;  // of c_tile, which then has one panel of columns
  llvm::Value *a_panels_, *b_panel_, *c_tile_;
  llvm::Value *columns_begin_ = nullptr;  // n of the current panel's first column
};

}  // namespace

void emit_contraction(KernelState &state, const kernel::Stage &stage, const Point &point, const Range &m,
                      const Range &n) {
  const int64_t columns = kernel::block_columns(state.kernel, stage);
  if (kernel::is_tiled_contraction(state.kernel) || columns == 0 || (n.count && *n.count <= columns))
    return ContractionEmitter(state, stage, point, m, n).emit();
  emit_loop(state, n, columns, [&](llvm::Value *begin) {
    llvm::Value *end = state.b.CreateNSWAdd(begin, state.b.getInt64(static_cast<uint64_t>(columns)));
    const Range piece{begin, state.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, n.end)};
    ContractionEmitter(state, stage, point, m, piece).emit();
  });
}

}  // namespace kiln::codegen
