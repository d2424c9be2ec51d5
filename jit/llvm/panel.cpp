// Packing runs along whichever axis memory does: along k, `lanes` steps of a few rows at a time, transposed in
// registers; or along the panel's rows, which then are copied. What is moved are words: the elements of one group.
// Where the panel's rows are made of several axes (a convolution's pixels), memory runs along the last of them.
#include "jit/llvm/panel.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>

#include "jit/kernel/body.h"

namespace kiln::codegen {
namespace {

class PanelEmitter {
 public:
  PanelEmitter(KernelState &state, const PanelSource &source, const Point &point, const Range &along, const Range &k,
               llvm::Value *target)
      : state_(state),
        b_(state.b),
        source_(source),
        point_(point),
        along_(along),
        k_(k),
        target_(target),
        k_axis_(source.k_axis),
        lanes_(state.kernel.schedule.lanes()),
        bits_(size_of(source.type) * 8),
        word_(source.group == 1 ? type_of(state, source.type) : b_.getIntNTy(bits_ * source.group)) {}

  void emit() {
    if (source_.group > widest_word)
      row_by_row();
    else if (walks(source_.body, k_axis_))
      along_k();
    else
      along_rows();
    if (source_.step > source_.group) clear_rest();
  }

 private:
  static constexpr unsigned widest_word = 4;  // elements; in more of them there is nothing to transpose

  llvm::Value *integer(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }
  llvm::Align alignment() const { return llvm::Align(size_of(source_.type)); }

  // Where the word of a row stands that begins with k.
  llvm::Value *slot(llvm::Value *k, llvm::Value *row) {
    llvm::Value *line = b_.CreateNSWMul(words_before(k), integer(source_.rows));
    return b_.CreateGEP(word_, target_, b_.CreateNSWAdd(line, row));
  }
  llvm::Value *slot(llvm::Value *base, int64_t words, int64_t row) {
    return b_.CreateGEP(word_, base, integer(words * source_.rows + row));
  }
  llvm::Value *words_before(llvm::Value *k) {
    llvm::Value *elements = b_.CreateNSWSub(k, k_.begin);
    return source_.group == 1 ? elements : b_.CreateLShr(elements, std::countr_zero(source_.group));
  }
  llvm::Value *rounded_up(llvm::Value *k, unsigned step) {
    if (step == 1) return k;
    llvm::Value *elements = b_.CreateNSWAdd(b_.CreateNSWSub(k, k_.begin), integer(step - 1));
    return b_.CreateNSWAdd(k_.begin, b_.CreateAnd(elements, integer(-int64_t{step})));
  }
  void store(llvm::Value *value, llvm::Value *to) { b_.CreateAlignedStore(value, to, alignment()); }

  // ---- along k
  // Rows go in groups of 4, 2 or 1, as many as divide the panel. Those beyond the end are copies of the last.
  void along_k() {
    const unsigned group = source_.rows % 4 == 0 ? 4 : source_.rows % 2 == 0 ? 2 : 1;
    const unsigned width = lanes_ * source_.group;
    const auto [vectors, rest] = split_range(state_, k_, width);
    emit_loop(state_, {integer(0), integer(source_.rows)}, group, [&](llvm::Value *row) {
      emit_loop(state_, vectors, width, [&](llvm::Value *k) { transpose(group, k, row); });
      emit_loop(state_, rest, source_.group, [&](llvm::Value *k) {
        for (unsigned r = 0; r < group; ++r) {
          llvm::Value *number = b_.CreateNSWAdd(row, integer(r));
          store(word_at(point_at(number, k), k), slot(k, number));
        }
      });
    });
  }

  // The word that begins with k, of one row or of each lane; beyond the last k it holds zeros.
  llvm::Value *word_at(Point point, llvm::Value *k) {
    if (source_.group == 1) {
      point.set_axis(k_axis_, k);
      return splat(state_, evaluate(point), point.width);
    }
    llvm::Value *last = b_.CreateNSWSub(k_.end, integer(1)), *word = nullptr;
    for (unsigned e = 0; e < source_.group; ++e) {
      llvm::Value *number = b_.CreateNSWAdd(k, integer(e));
      point.set_axis(k_axis_, e == 0 ? k : b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, number, last));
      llvm::Value *bits = splat(state_, evaluate(point), point.width);
      bits = b_.CreateBitCast(bits, bits->getType()->getWithNewType(b_.getIntNTy(bits_)));
      if (e > 0)
        bits = b_.CreateSelect(b_.CreateICmpSLE(number, last), bits, llvm::Constant::getNullValue(bits->getType()));
      bits = b_.CreateZExt(bits, bits->getType()->getWithNewType(word_));
      word = e == 0 ? bits : b_.CreateOr(word, b_.CreateShl(bits, uint64_t{e} * bits_));
    }
    return word;
  }

  void clear_rest() {
    const Range rest{rounded_up(k_.end, source_.group), rounded_up(k_.end, source_.step)};
    emit_loop(state_, rest, source_.group, [&](llvm::Value *k) {
      emit_loop(state_, {integer(0), integer(source_.rows)}, 1,
                [&](llvm::Value *row) { store(llvm::Constant::getNullValue(word_), slot(k, row)); });
    });
  }

  // ---- row by row: what stands together is a vector and more, as memory has it or gathered.
  void row_by_row() {
    llvm::Type *element = b_.getIntNTy(bits_);
    const auto [vectors, rest] = split_range(state_, k_, source_.group);
    emit_loop(state_, {integer(0), integer(source_.rows)}, 1, [&](llvm::Value *row) {
      emit_loop(state_, vectors, source_.group, [&](llvm::Value *k) {
        ask_for(point_at(b_.CreateNSWAdd(row, integer(1)), k));
        store(splat(state_, evaluate(along(point_at(row, k), source_.group)), source_.group), slot(k, row));
      });
      llvm::Value *last = slot(rest.begin, row);
      emit_loop(state_, {rest.begin, rounded_up(k_.end, source_.group)}, 1, [&](llvm::Value *k) {
        store(llvm::Constant::getNullValue(element), b_.CreateGEP(element, last, b_.CreateNSWSub(k, rest.begin)));
      });
      emit_loop(state_, rest, 1, [&](llvm::Value *k) {
        store(evaluate(point_at(row, k)), b_.CreateGEP(element, last, b_.CreateNSWSub(k, rest.begin)));
      });
    });
  }

  // What will be read at `point`, where that is all that the body does: rows may be too far apart for processors to see
  // where the next one is.
  void ask_for(const Point &point) {
    const kernel::Value &value = source_.body.values[0];
    if (source_.body.values.size() > 1 || value.op != kernel::Core::load) return;
    if (state_.kernel.buffers[value.access.buffer].space == kernel::Buffer::Space::row_local) return;
    const LaneIndex at = emit_index(state_, value.access.index[0], point);
    llvm::Value *line = b_.CreateGEP(memory_type_of(state_, value.type), state_.buffers[value.access.buffer], at.base);
    emit_prefetch(state_, line, 3);
  }

  Point along(Point point, unsigned width) const {
    point.vector_axis = static_cast<int>(k_axis_);
    point.width = width;
    return point;
  }

  Point point_at(llvm::Value *row, llvm::Value *k) {
    llvm::Value *index = b_.CreateNSWAdd(along_.begin, row);
    llvm::Value *last = b_.CreateNSWSub(along_.end, integer(1));
    Point point = point_;
    point.set_axis(source_.axis, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, index, last));
    point.set_axis(k_axis_, k);
    return point;
  }

  // `group` rows of `lanes` words along k become `lanes` pieces of `group` words.
  void transpose(unsigned group, llvm::Value *k, llvm::Value *row) {
    Values rows;
    for (unsigned r = 0; r < group; ++r) {
      const unsigned width = lanes_ * source_.group;
      llvm::Value *elements = evaluate(along(point_at(b_.CreateNSWAdd(row, integer(r)), k), width));
      rows.push_back(b_.CreateBitCast(splat(state_, elements, width), llvm::FixedVectorType::get(word_, lanes_)));
    }
    llvm::Value *base = slot(k, row);
    const Values columns = group == 4 ? interleave_four(b_, rows) : group == 2 ? interleave_two(b_, rows) : rows;
    for (unsigned step = 0; step < lanes_; ++step) {
      const auto [vector, first] = place_of(group, step);
      store(part(columns[vector], first, group), slot(base, step, 0));
    }
  }

  // Where the piece of one step lies after interleaving, which works within blocks of four lanes, as x86's shuffles do.
  static std::pair<unsigned, unsigned> place_of(unsigned group, unsigned step) {
    if (group == 4) return {step % 4, step / 4 * 4};
    if (group == 2) return {step % 4 / 2, step / 4 * 4 + step % 2 * 2};
    return {0, step};
  }
  llvm::Value *part(llvm::Value *vector, unsigned first, unsigned count) {
    if (count == 1) return b_.CreateExtractElement(vector, uint64_t{first});
    llvm::SmallVector<int, 4> mask;
    for (unsigned i = 0; i < count; ++i) mask.push_back(static_cast<int>(first + i));
    return b_.CreateShuffleVector(vector, mask);
  }

  // ---- along rows
  // In pieces of `width` rows, or in one narrower piece. A panel that all exists goes line by line, so that memory is
  // read in its order, in as few pieces as there are; otherwise piece by piece, under a mask where not all lanes are
  // rows that exist.
  void along_rows() {
    const unsigned width = source_.rows < lanes_ ? std::bit_ceil(source_.rows) : std::gcd(source_.rows, lanes_);
    const auto plan_of = [&](unsigned lanes) { return LanePlan{source_.axis, lanes, true, false, 1}; };
    const LanePlan plan = plan_of(width);
    llvm::Value *left = b_.CreateNSWSub(along_.end, along_.begin);
    const auto in_one = [&] { copy_pieces({at_masked(state_, plan, point_, along_.begin, along_.end)}); };
    // Vectors as masks are slow to store under: slower than two pieces, but not than to find the rows of a flattened
    // axis for two.
    const bool in_two = state_.features.masks == Features::Masks::vectors && std::popcount(source_.rows) == 2;
    if (source_.rows < width && (!in_two || row_length() != 0)) return in_one();

    const auto all_rows = [&] {
      std::vector<Point> pieces;
      for (unsigned row = 0; row < source_.rows; row += pieces.back().width) {
        const unsigned lanes = std::min(lanes_, std::bit_floor(source_.rows - row));
        pieces.push_back(at_lanes(plan_of(lanes), point_, b_.CreateNSWAdd(along_.begin, integer(row))));
      }
      copy_pieces(pieces);
    };
    const auto some_rows = [&] {
      if (source_.rows < width) return in_one();
      clear(width);
      emit_loop(state_, {along_.begin, along_.end}, width, [&](llvm::Value *i) {
        copy_pieces({width == 1 ? at_scalar(plan, point_, i) : at_masked(state_, plan, point_, i, along_.end)});
      });
    };
    emit_if_else(state_, b_.CreateICmpSGE(left, integer(source_.rows)), all_rows, some_rows);
  }

  // What scratch holds could be subnormal numbers, which are slow to compute with.
  void clear(unsigned width) {
    llvm::Type *type = width == 1 ? word_ : llvm::FixedVectorType::get(word_, width);
    llvm::Value *size = b_.CreateNSWMul(words_before(rounded_up(k_.end, source_.group)), integer(source_.rows));
    emit_loop(state_, {integer(0), size}, width,
              [&](llvm::Value *i) { store(llvm::Constant::getNullValue(type), b_.CreateGEP(word_, target_, i)); });
  }

  // A piece of a flattened axis that stands in few rows of it is as many pieces of memory; else it would be gathered.
  void copy_pieces(const std::vector<Point> &pieces) {
    const unsigned width = pieces.front().width;
    const int64_t length = row_length();
    const bool is_masked = state_.features.has_masked(size_of(source_.type), width);
    if (length == 0 || width == 1 || source_.group > 1 || !is_masked || rows_of(width, length) > most_rows) {
      std::vector<std::vector<Point>> whole;
      for (const Point &piece : pieces) whole.push_back({piece});
      return copy(whole);
    }
    const auto in_rows = [&](int64_t count) {
      std::vector<std::vector<Point>> parts;
      for (const Point &piece : pieces) parts.push_back(divided(piece, length, count));
      copy(parts);
    };
    if (length < width) return in_rows(rows_of(width, length));
    llvm::Value *in_one = b_.getTrue();
    for (const Point &piece : pieces) {
      llvm::Value *column = b_.CreateURem(piece.axes[source_.axis], integer(length));
      in_one = b_.CreateAnd(in_one, b_.CreateICmpULE(column, integer(length - width)));
    }
    emit_if_else(state_, in_one, [&] { in_rows(1); }, [&] { in_rows(rows_of(width, length)); });
  }

  static constexpr int64_t most_rows = 4;
  // The most rows of `length` that a piece stands in, wherever it begins.
  static int64_t rows_of(int64_t width, int64_t length) { return (width - 2) / length + 2; }

  // How long rows are that the panel's axis is made of; 0: of none.
  int64_t row_length() const {
    int64_t length = 0;
    for (int64_t divisor : kernel::divisors_of(source_.body, source_.axis)) length = std::gcd(length, divisor);
    return length;
  }

  // After how many k their places (in a convolution's window) come again; 1: never, or after too many.
  int64_t period() const {
    constexpr int64_t most = 64;
    int64_t period = 1;
    const std::vector<int64_t> divisors = kernel::divisors_of(source_.body, k_axis_);
    for (int64_t divisor : divisors) period = std::max(period, divisor);
    const bool fits = std::ranges::all_of(divisors, [&](int64_t divisor) { return period % divisor == 0; });
    return fits && period <= most ? period : 1;
  }

  // The piece's lanes in each of `count` rows.
  std::vector<Point> divided(const Point &piece, int64_t length, int64_t count) {
    llvm::Value *first = piece.axes[source_.axis];
    llvm::Value *row = b_.CreateNSWSub(first, b_.CreateURem(first, integer(length)));
    llvm::SmallVector<llvm::Constant *, 16> iota;
    for (unsigned lane = 0; lane < piece.width; ++lane) iota.push_back(b_.getInt64(lane));
    llvm::Value *lanes = b_.CreateNSWAdd(splat(state_, first, piece.width), llvm::ConstantVector::get(iota));
    // Of fewer rows the last one is there again: what all lanes read alike must exist where none is active, too.
    llvm::Value *last = b_.CreateNSWAdd(first, integer(piece.width - 1));
    last = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, last, b_.CreateNSWSub(along_.end, integer(1)));
    llvm::Value *last_row = b_.CreateNSWSub(last, b_.CreateURem(last, integer(length)));
    std::vector<Point> parts;
    for (int64_t r = 0; r < count; ++r) {
      Point part = piece;
      part.row_begin =
          b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateNSWAdd(row, integer(r * length)), last_row);
      part.row_length = length;
      if (count > 1) {
        llvm::Value *column = b_.CreateSub(lanes, splat(state_, part.row_begin, piece.width));
        llvm::Value *inside = b_.CreateICmpULT(column, splat(state_, integer(length), piece.width));
        part.active = piece.active ? b_.CreateAnd(piece.active, inside) : inside;
        part.whole = nullptr;
      }
      parts.push_back(std::move(part));
    }
    return parts;
  }

  // Of each piece its parts, whose active lanes are together all that it has.
  void copy(const std::vector<std::vector<Point>> &pieces) {
    const auto copy_at = [&](const std::function<void(Point &)> &at, llvm::Value *k) {
      for (const std::vector<Point> &parts : pieces) {
        llvm::Value *row = b_.CreateNSWSub(parts[0].axes[source_.axis], along_.begin), *words = nullptr;
        for (Point part : parts) {
          at(part);
          llvm::Value *next = word_at(part, k);
          words = words
                      ? b_.CreateSelect(part.active, splat(state_, next, part.width), splat(state_, words, part.width))
                      : next;
        }
        store_piece(words, slot(k, row));
      }
    };
    const int64_t turns_of = source_.group == 1 ? period() : 1;
    if (turns_of == 1) {
      return emit_loop(state_, k_, source_.group, [&](llvm::Value *k) { copy_at([](Point &) {}, k); });
    }
    // What depends on the place alone is then told once for all turns.
    emit_loop(state_, {integer(0), integer(turns_of)}, 1, [&](llvm::Value *place) {
      const auto first_turn_from = [&](llvm::Value *k) {
        return b_.CreateUDiv(b_.CreateNSWAdd(b_.CreateNSWSub(k, place), integer(turns_of - 1)), integer(turns_of));
      };
      emit_loop(state_, {first_turn_from(k_.begin), first_turn_from(k_.end)}, 1, [&](llvm::Value *turn) {
        const auto at = [&](Point &part) {
          part.split_axis = static_cast<int>(k_axis_);
          part.period = turns_of;
          part.turn = turn;
          part.place = place;
        };
        copy_at(at, b_.CreateNSWAdd(b_.CreateNSWMul(turn, integer(turns_of)), place));
      });
    });
  }

  void store_piece(llvm::Value *values, llvm::Value *to) {
    auto *type = llvm::dyn_cast<llvm::FixedVectorType>(values->getType());
    const unsigned width = type ? type->getNumElements() : 1, count = std::min(width, source_.rows);
    if (count == width) {
      store(values, to);
    } else if (state_.features.has_masked(size_of(source_.type) * source_.group, width)) {
      emit_masked_store(state_, values, to, first_lanes(count, width));
    } else {
      for (unsigned lane = 0; lane < count; ++lane) store(part(values, lane, 1), slot(to, 0, lane));
    }
  }

  llvm::Constant *first_lanes(unsigned count, unsigned width) {
    llvm::SmallVector<llvm::Constant *, 16> mask;
    for (unsigned lane = 0; lane < width; ++lane) mask.push_back(b_.getInt1(lane < count));
    return llvm::ConstantVector::get(mask);
  }

  llvm::Value *evaluate(const Point &point) {
    llvm::Value *value = emit_body(state_, source_.body, point)[0];
    if (!source_.above_by_128) return value;
    return b_.CreateXor(value, llvm::ConstantInt::get(value->getType(), 128));
  }

  KernelState &state_;
  llvm::IRBuilder<> &b_;
  const PanelSource &source_;
  const Point &point_;
  const Range &along_, &k_;
  llvm::Value *target_;
  const size_t k_axis_;
  const unsigned lanes_;  // of words
  const unsigned bits_;   // of an element
  llvm::Type *word_;
};

}  // namespace

bool walks(const kernel::Body &body, size_t axis) {
  return std::ranges::any_of(body.values, [&](const kernel::Value &value) {
    if (value.op != kernel::Core::load) return false;
    const std::optional<Expr> step = value.access.index[0].coefficient(static_cast<uint32_t>(axis));
    return step && step->is(1);
  });
}

void emit_panel(KernelState &state, const PanelSource &source, const Point &point, const Range &along, const Range &k,
                llvm::Value *target) {
  PanelEmitter(state, source, point, along, k, target).emit();
}

}  // namespace kiln::codegen
